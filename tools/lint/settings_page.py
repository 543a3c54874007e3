#!/usr/bin/env python3
"""Writes docs/settings.md from src/base/settings.def, the one list of settings."""

import pathlib
import re
import sys

TABLE = "src/base/settings.def"
PAGE = "docs/settings.md"

_STRING = r'"(?:\\.|[^"\\])*"'
_SETTING = re.compile(rf"TRIPTYCH_SETTING\(\s*(\w+)\s*,\s*({_STRING})\s*,\s*({_STRING})\s*,\s*((?:{_STRING}\s*)+)\)")

_HEAD = """# Settings

Read once at start from the environment. The list is `src/base/settings.def`; this page is made from
it (`tools/lint/settings_page.py`), and `triptych doctor` shows what the machine makes of them.

| variable | default | what it does |
| --- | --- | --- |
"""


def _joined(literals):
    """The text of adjacent C++ string literals."""
    return "".join(part[1:-1].replace('\\"', '"') for part in re.findall(_STRING, literals))


def page_of(table):
    """The Markdown page for the text of settings.def."""
    rows = (f"| `{_joined(env)}` | `{_joined(default)}` | {_joined(text).replace('|', '&#124;')} |\n"
            for _, env, default, text in _SETTING.findall(table))
    return _HEAD + "".join(rows)


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    (root / PAGE).write_text(page_of((root / TABLE).read_text()))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    sys.exit(main())
