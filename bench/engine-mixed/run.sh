#!/usr/bin/env bash
# Usage: make bench-engine-mixed       What it measures: the head of bench/engine/mixed.cc
set -euo pipefail
cd "$(dirname "$0")/../.."
exec build/release/engine_mixed_bench "$@"
