#!/usr/bin/env bash
# Reservation of memory and step time, in the simulator: bench/sim/README.md.
set -euo pipefail
exec "$(dirname "$0")/../sim/run.sh" "$@"
