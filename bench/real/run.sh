#!/usr/bin/env bash
# run.py on the GGUF of the test data, with an interpreter that has transformers (bench/peers/python.sh).
set -euo pipefail
cd "$(dirname "$0")/../.."
. bench/peers/python.sh
tools/setup/fetch_testdata.sh
exec "$python" bench/real/run.py "$@"
