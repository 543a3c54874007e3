#!/usr/bin/env bash
# Usage: make bench-engine-identity       What it measures: the head of bench/engine/identity.cc
set -euo pipefail
cd "$(dirname "$0")/../.."
model=build/checkpoints/demo-2048-32
bench/engine/derive_checkpoint.py models/demo $model --context 2048 --picture 32
exec build/release/engine_identity_bench $model tests/eval/demo/images
