#!/usr/bin/env bash
# Real clients of OpenAI's API against the release build, on loopback. They come from the package indexes into
# build/clients, once for each change of their versions.
set -euo pipefail
cd "$(dirname "$0")/../.."

home=$PWD/build/clients
versions=$(cat tests/clients/requirements.txt tests/clients/package.json)
if [ "$(cat "$home/versions" 2>/dev/null)" != "$versions" ]; then
  echo "clients: installing them into build/clients"
  python3 -m venv "$home"
  "$home/bin/pip" install -q --disable-pip-version-check -r tests/clients/requirements.txt
  cp tests/clients/package.json "$home/"
  npm install --prefix "$home" --no-audit --no-fund --ignore-scripts --loglevel error
  printf '%s\n' "$versions" >"$home/versions"
fi
export TRIPTYCH_CLIENTS=$home
echo "clients: OpenAI for Python"
"$home/bin/python" tests/clients/openai_python_test.py
echo "clients: LangChain"
"$home/bin/python" tests/clients/langchain_test.py
echo "clients: OpenAI for Node"
"$home/bin/python" tests/clients/served.py node --test --test-reporter spec tests/clients/openai_node_test.mjs
echo "clients: all tests passed"
