# Sourced: sets $python to an interpreter that has the packages of bench/peers/requirements.txt, made if need be.
# TRIPTYCH_PYTHON names one that has most of them; what it lacks is put beside it into build/peers/site.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
requirements=$root/bench/peers/requirements.txt
if [ -n "${TRIPTYCH_PYTHON:-}" ]; then
  python=$TRIPTYCH_PYTHON
  site=$root/build/peers/site
  export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
  missing=$("$python" - "$requirements" <<'PROGRAM'
import importlib.metadata, re, sys
for line in open(sys.argv[1]):
    name = re.match(r"[\w-]*", line)[0]
    try:
        name and importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        print(line.strip())
PROGRAM
  )
  if [ -n "$missing" ]; then
    # shellcheck disable=SC2086
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$site" $missing
  fi
else
  python=$root/build/venv/bin/python
  if [ ! -x "$python" ]; then
    python3 -m venv "$root/build/venv"
  fi
  if ! cmp -s "$requirements" "$root/build/venv/installed.txt"; then
    "$python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
    cp "$requirements" "$root/build/venv/installed.txt"
  fi
fi
