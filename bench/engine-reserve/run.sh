#!/usr/bin/env bash
# Reservation of memory and step time: in the simulator (bench/sim/README.md), and how well the cost
# model behind it predicts the real engine (bench/engine/step_error.cc).
set -euo pipefail
cd "$(dirname "$0")/../.."
real=$(build/release/engine_step_error_bench)
simulated=$(bench/sim/run.sh "$@")
grep -v '^RESULT ' <<<"$real"
grep -v '^RESULT ' <<<"$simulated"
figure() { sed -n 's/^RESULT {\(.*\)}$/\1/p'; }
echo "RESULT {$(figure <<<"$simulated"), $(figure <<<"$real")}"
