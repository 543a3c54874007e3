#!/usr/bin/env bash
# Usage: make bench-engine-throughput       What it measures: the head of bench/engine/throughput.cc
set -euo pipefail
cd "$(dirname "$0")/../.."
exec build/release/engine_throughput_bench "$@"
