#!/bin/bash
# Matrix products beside the machine's limits (linear_bench); `make bench-micro` builds it first.
# TRIPTYCH_CPU_ISA picks one level, TRIPTYCH_THREADS the number of threads.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
program=${TRIPTYCH_BUILD:-$root/build/release}/linear_bench
if [ ! -x "$program" ]; then
  echo "$program is missing: run 'make bench-micro', which builds it" >&2
  exit 3
fi
exec "$program"
