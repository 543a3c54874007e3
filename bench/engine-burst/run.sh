#!/usr/bin/env bash
# Usage: make bench-engine-burst       What it measures: the head of bench/engine/burst.cc
set -euo pipefail
cd "$(dirname "$0")/../.."
model=build/checkpoints/demo-32768-96
bench/engine/derive_checkpoint.py models/demo $model --context 32768 --picture 96
exec build/release/engine_burst_bench $model
