#!/usr/bin/env bash
# run.py with an interpreter that has transformers (bench/peers/python.sh).
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/peers/python.sh
exec "$python" bench/preprocess/run.py "$@"
