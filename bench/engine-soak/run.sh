#!/usr/bin/env bash
# Usage: make bench-engine-soak, or bench/engine-soak/run.sh SECONDS       What it measures: the head of bench/engine/soak.cc
set -euo pipefail
cd "$(dirname "$0")/../.."
exec build/release/engine_soak_bench "$@"
