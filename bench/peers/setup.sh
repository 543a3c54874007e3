#!/usr/bin/env bash
# Makes what the peer benchmarks need, once: Python packages, SmolLM2 in 16-bit GGUF, a LLaVA of public shape, llama.cpp.
# TRIPTYCH_PYTHON names an interpreter to use instead of an environment of our own (build/venv).
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/peers/python.sh
tools/setup/fetch_testdata.sh
"$python" bench/peers/make_gguf.py
"$python" bench/peers/make_llava.py
TRIPTYCH_PYTHON=$python bench/peers/build_llamacpp.sh
