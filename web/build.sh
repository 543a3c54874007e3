#!/usr/bin/env bash
# Builds the Playground, the page that the server shows at /, into build/web/page. npm's index is asked once for each
# change of package-lock.json. Without Node or that index the server is built with what is there: an earlier
# page, or a line that says how to build it.
set -euo pipefail
cd "$(dirname "$0")/.."

out=build/web
say() { printf 'web: %s\n' "$*"; }
give_up() { say "$*: the page at / stays as it is"; exit 0; }

digest_of() { find "$@" -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1; }
is_done() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }

sources=$(digest_of web/src web/*.*)
is_done $out/built "$sources" && [ -f $out/page/policy.txt ] && exit 0

command -v node >/dev/null && command -v npm >/dev/null || give_up "there is no node or no npm"
node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' || give_up "node $(node --version) is older than 18"

mkdir -p $out
packages=$(digest_of web/package-lock.json)
if ! is_done web/node_modules/.lock-digest "$packages"; then
  say "fetching what builds the page"
  (cd web && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel error --prefer-offline \
    --fetch-retries 2 --fetch-retry-mintimeout 500 --fetch-retry-maxtimeout 2000) ||
    give_up "npm could not fetch the packages of web/package-lock.json"
  echo "$packages" >web/node_modules/.lock-digest
fi
(cd web && npm run --silent --no-update-notifier build -- --logLevel warn)
echo "$sources" >$out/built
say "the page has $(stat -c %s $out/page/index.html) bytes"
