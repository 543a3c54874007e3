#!/usr/bin/env bash
# Usage: make bench-engine-jitter       What it measures: the head of bench/engine/jitter.cc
set -euo pipefail
cd "$(dirname "$0")/../.."
exec build/release/engine_jitter_bench "$@"
