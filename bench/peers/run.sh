#!/usr/bin/env bash
# All comparisons with peers: sets up what is missing, then run.py with the same arguments.
set -euo pipefail
cd "$(dirname "$0")/../.."
bench/peers/setup.sh
. bench/peers/python.sh
exec "$python" bench/peers/run.py "$@"
