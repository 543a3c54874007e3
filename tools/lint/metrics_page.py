#!/usr/bin/env python3
"""Writes docs/metrics.md from src/observe/metrics.def, the one list of metrics."""

import pathlib
import re
import sys

TABLE = "src/observe/metrics.def"
PAGE = "docs/metrics.md"

_STRING = r'"(?:\\.|[^"\\])*"'
_BUCKETS = re.compile(r"TRIPTYCH_BUCKETS\(\s*k(\w+)\s*,([^)]*)\)")
_METRIC = re.compile(rf"TRIPTYCH_METRIC\(\s*k(\w+)\s*,\s*\w+\s*,\s*({_STRING})\s*,\s*({_STRING})\s*,\s*k(\w+)\s*,"
                     rf"\s*((?:{_STRING}\s*)+)\)")
_PART = re.compile(rf"^// (.+)\n(?=TRIPTYCH_METRIC)|({_METRIC.pattern})", re.MULTILINE)

_HEAD = """# Metrics

What `GET /metrics` of `triptych serve` says. The list is `src/observe/metrics.def`; this page is made from it
(`tools/lint/metrics_page.py`).

- Prometheus' text format 0.0.4, or OpenMetrics 1.0 for whoever accepts it, as Prometheus does. Only the latter has
  exemplars: the id of the latest request in each bucket of the time to its first token, as in its answer's `id`.
- Times are seconds, sizes bytes. `model_name` is a model's own name, whichever alias a request used. No label takes
  values from a request, so the number of series does not grow.
- Gauges and the counts that the engine keeps are looked up when the page is asked for; asking costs little, so a
  router may ask many times a second.
- Names with `vllm:` are for routers that know those. `promtool check metrics` objects to the colon in them.
"""

_BUCKETS_HEAD = """
## Buckets
Upper edges, seconds.

| in the table | edges |
| --- | --- |
"""


def _joined(literals):
    """The text of adjacent C++ string literals."""
    return "".join(part[1:-1].replace('\\"', '"') for part in re.findall(_STRING, literals))


def _row(metric):
    kind, name, labels, buckets, text = metric
    kind = kind.lower() + ("" if buckets == "None" else f", {_bucket_name(buckets)}")
    labels = ", ".join(f"`{label}`" for label in _joined(labels).split(",") if label)
    return f"| `{_joined(name)}` | {kind} | {labels} | {_joined(text).replace('|', '&#124;')} |\n"


def _bucket_name(identifier):
    """FirstToken -> first token"""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", identifier).lower()


def page_of(table):
    """The Markdown page for the text of metrics.def."""
    out = _HEAD
    for part in _PART.finditer(table):
        if part.group(1):
            out += f"\n## {part.group(1)}\n\n| metric | kind | labels | what |\n| --- | --- | --- | --- |\n"
        else:
            out += _row(part.groups()[2:])
    out += _BUCKETS_HEAD
    for name, edges in _BUCKETS.findall(table):
        out += f"| {_bucket_name(name)} | {', '.join(edge.strip() for edge in edges.split(','))} |\n"
    return out


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    (root / PAGE).write_text(page_of((root / TABLE).read_text()))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    sys.exit(main())
