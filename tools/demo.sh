#!/usr/bin/env bash
# Asks the shipped model about shipped pictures, as a user would.
set -euo pipefail
cd "$(dirname "$0")/.."

triptych=${TRIPTYCH:-build/release/triptych}
[ -x "$triptych" ] || { echo "$triptych is not built: run make demo" >&2; exit 1; }

ask() {
  printf '\n\033[1m%s\033[0m\n\033[2m?\033[0m %s\n' "$1" "$2"
  "$triptych" chat models/demo --image "$1" --stats "$2"
}

ask tests/eval/demo/images/018.jpg "What does the purple text say?"
ask tests/eval/demo/images/022.jpg "How many bars are there?"
ask tests/eval/demo/images/011.jpg "Describe the picture."

printf '\nYour own picture and question:  %s chat models/demo --image FILE "QUESTION"\n' "$triptych"
