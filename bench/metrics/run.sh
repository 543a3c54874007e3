#!/bin/bash
# What counting costs (metrics_bench); `make bench-metrics` builds it first.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
program=${TRIPTYCH_BUILD:-$root/build/release}/metrics_bench
if [ ! -x "$program" ]; then
  echo "$program is missing: run 'make bench-metrics', which builds it" >&2
  exit 3
fi
exec "$program"
