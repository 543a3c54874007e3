#!/usr/bin/env bash
# The Playground of the release build in headless Chromium. What drives it comes from npm's index into
# build/web/browser, once for each change of its versions.
set -euo pipefail
cd "$(dirname "$0")/../.."

home=$PWD/build/web/browser
if ! cmp -s tests/web/package.json "$home/package.json"; then
  echo "web: installing what drives the browser into build/web/browser"
  rm -rf "$home"
  mkdir -p "$home"
  npm install --prefix "$home" --no-audit --no-fund --no-update-notifier --ignore-scripts --no-package-lock --loglevel error \
    $(node -p 'Object.entries(require("./tests/web/package.json").dependencies).map((d) => d.join("@")).join(" ")')
  cp tests/web/package.json "$home/"
fi
export TRIPTYCH_BROWSER_HOME=$home
echo "web: types"
"$home/node_modules/.bin/tsc" -p web
echo "web: the page in Chromium"
node --test --test-reporter spec tests/web/playground_test.mjs
echo "web: all tests passed; screenshots in build/web"
