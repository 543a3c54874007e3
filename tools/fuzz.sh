#!/usr/bin/env bash
# Runs every fuzz target for some seconds over its seeds and says whether anything was found.
# Usage: tools/fuzz.sh [seconds]
# Seeds: tests/fuzz/corpus/NAME. What a run adds is kept in build/fuzz/corpus/NAME, findings in
# build/fuzz/findings; run one again with build/fuzz/fuzz_NAME FILE.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
home=build/fuzz
findings=$home/findings
mkdir -p "$findings"
shopt -s nullglob
targets=("$home"/fuzz_*)
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no targets in $home" >&2; exit 1; }

failed=()
for target in "${targets[@]}"; do
  name=${target##*/fuzz_}
  corpus=$home/corpus/$name
  mkdir -p "$corpus"
  seeds=()
  [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
  log=$home/$name.log
  if "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$findings/$name-" "$corpus" "${seeds[@]}" >"$log" 2>&1; then
    runs=$(awk '/stat::number_of_executed_units/{print $2}' "$log")
    printf 'fuzz: %-24s %10s runs in %s s, nothing found\n' "$name" "${runs:-?}" "$seconds"
  else
    printf 'fuzz: %-24s FAILED, see %s and %s\n' "$name" "$log" "$findings"
    failed+=("$name")
  fi
done
[ ${#failed[@]} = 0 ] || { echo "fuzz: findings in ${failed[*]}"; exit 1; }
echo "fuzz: ${#targets[@]} targets, $seconds s each, no finding"
