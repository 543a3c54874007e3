#!/usr/bin/env bash
# Reservation of memory and step time: in the simulator (bench/sim/README.md), and how well the cost
# model behind it predicts the real engine (bench/engine/step_error.cc): steps of the demo model, of
# a fifth of a millisecond, and of one three times as wide, whose weights no cache holds.
set -euo pipefail
cd "$(dirname "$0")/../.."
wide=build/checkpoints/demo-wide-3
bench/engine/derive_checkpoint.py models/demo $wide --widen 3
real=$(build/release/engine_step_error_bench)
real_wide=$(build/release/engine_step_error_bench $wide)
simulated=$(bench/sim/run.sh "$@")
grep -v '^RESULT ' <<<"$real"
grep -v '^RESULT ' <<<"$real_wide" | sed 's/^/three times as wide: /'
grep -v '^RESULT ' <<<"$simulated"
figure() { sed -n 's/^RESULT {\(.*\)}$/\1/p'; }
echo "RESULT {$(figure <<<"$simulated"), $(figure <<<"$real"), $(figure <<<"$real_wide" | sed 's/_p95"/_p95_wide"/g')}"
