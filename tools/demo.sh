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

ask tests/eval/demo/images/074.jpg "What does the text say?"
ask tests/eval/demo/images/037.jpg "How many crosses are in the picture?"
ask tests/eval/demo/images/042.jpg "Describe the picture."

printf '\nYour own picture and question:  %s chat models/demo --image FILE "QUESTION"\n' "$triptych"
