#!/usr/bin/env bash
# Asks the shipped model about shipped pictures, as a user would.
set -euo pipefail
cd "$(dirname "$0")/.."

triptych=${TRIPTYCH:-build/release/triptych}
[ -x "$triptych" ] || { echo "$triptych is not built: run make demo" >&2; exit 1; }

bold='' dim='' plain=''
[ -t 1 ] && bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'

ask() {
  printf '\n%s\n%s %s\n' "$bold$1$plain" "$dim?$plain" "$2"
  "$triptych" chat models/demo --image "$1" --stats "$2"
}

ask tests/eval/demo/images/018.jpg "What does the purple text say?"
ask tests/eval/demo/images/022.jpg "How many bars are there?"
ask tests/eval/demo/images/011.jpg "Describe the picture."

printf '\nYour own picture and question:  %s chat models/demo --image FILE "QUESTION"\n' "$triptych"
