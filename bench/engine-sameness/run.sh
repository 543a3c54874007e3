#!/usr/bin/env bash
# Usage: make bench-engine-sameness       What it measures: the head of bench/engine/sameness.cc
set -euo pipefail
cd "$(dirname "$0")/../.."
exec build/release/engine_sameness_bench "$@"
