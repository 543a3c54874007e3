#!/usr/bin/env bash
# Usage: make bench-engine-overload       What it measures: the head of bench/engine/overload.cc
set -euo pipefail
cd "$(dirname "$0")/../.."
exec build/release/engine_overload_bench "$@"
