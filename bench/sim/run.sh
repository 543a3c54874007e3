#!/usr/bin/env bash
# The scheduler on simulated hours (engine_sim); `make bench-sim` builds it first.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
program=${TRIPTYCH_BUILD:-$root/build/release}/engine_sim
if [ ! -x "$program" ]; then
  echo "$program is missing: run 'make bench-sim', which builds it" >&2
  exit 3
fi
exec "$program" "$@"
