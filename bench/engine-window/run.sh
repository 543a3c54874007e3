#!/usr/bin/env bash
# Usage: make bench-engine-window       What it measures: the head of bench/engine/window.cc
set -euo pipefail
cd "$(dirname "$0")/../.."
model=build/checkpoints/demo-8192-384
bench/engine/derive_checkpoint.py models/demo $model --context 8192 --picture 384
exec build/release/engine_window_bench $model tests/eval/demo/images
