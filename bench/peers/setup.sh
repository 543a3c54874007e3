#!/usr/bin/env bash
# Makes what the peer benchmarks need, once: Python with pinned packages (build/venv), SmolLM2 in 16-bit GGUF, a LLaVA of public shape, llama.cpp.
# TRIPTYCH_PYTHON names an interpreter that has the packages of requirements.txt already; then no environment is made.
# Usage: bench/peers/setup.sh [python|all]
set -euo pipefail
cd "$(dirname "$0")/../.."
what=${1:-all}
if [ -z "${TRIPTYCH_PYTHON:-}" ]; then
  if [ ! -x build/venv/bin/python ]; then
    python3 -m venv build/venv
  fi
  if ! cmp -s bench/peers/requirements.txt build/venv/installed.txt; then
    build/venv/bin/python -m pip install --quiet --disable-pip-version-check -r bench/peers/requirements.txt
    cp bench/peers/requirements.txt build/venv/installed.txt
  fi
  export TRIPTYCH_PYTHON=$PWD/build/venv/bin/python
fi
[ "$what" = python ] && exit 0
"$TRIPTYCH_PYTHON" bench/peers/make_gguf.py
"$TRIPTYCH_PYTHON" bench/peers/make_llava.py
bench/peers/build_llamacpp.sh
