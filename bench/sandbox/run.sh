#!/usr/bin/env bash
# What decoding in sandboxed processes costs (sandbox_bench); `make bench-sandbox` builds it first.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
program=${TRIPTYCH_BUILD:-$root/build/release}/sandbox_bench
if [ ! -x "$program" ]; then
  echo "$program is missing: run 'make bench-sandbox', which builds it" >&2
  exit 3
fi
exec "$program" "${1:-$root/models/demo}" "${2:-101}"
