#!/usr/bin/env python3
"""Says where build time went: total, by kind and the slowest files, from Ninja's own log.

A file that ccache answered counts with the time of that answer; set CCACHE_DISABLE=1 for real ones.
"""

import argparse
import pathlib
import sys

KINDS = {".o": "compile", ".a": "archive", ".json": "test discovery", ".cmake": "test discovery"}


def read_log(path):
    """Seconds of the latest run of each output: {output: seconds}, and the wall time they span.

    Ninja counts milliseconds from each start of its own, so the span is that of the longest run.
    """
    steps, latest_end = {}, 0
    for line in path.read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        steps[output] = (int(end) - int(start)) / 1000
        latest_end = max(latest_end, int(end))
    return steps, latest_end / 1000


def kind_of(output):
    """What made an output, in a word."""
    if output.endswith("libtriptych_text.a"):
        return "Rust"
    suffix = pathlib.PurePosixPath(output).suffix
    return KINDS.get(suffix, "link" if not suffix else "other")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=pathlib.Path("build/release"))
    parser.add_argument("--slowest", type=int, default=20, help="how many files to list")
    options = parser.parse_args()

    log = options.folder / ".ninja_log"
    if not log.exists():
        sys.exit(f"{log} is missing: build first (make release)")
    steps, wall = read_log(log)
    steps = {name: seconds for name, seconds in steps.items() if not pathlib.Path(name).is_absolute() or "rust" in name}

    by_kind = {}
    for output, seconds in steps.items():
        by_kind.setdefault(kind_of(output), []).append(seconds)
    print(f"{'what':<16}{'steps':>7}{'seconds':>10}")
    for kind, seconds in sorted(by_kind.items(), key=lambda item: -sum(item[1])):
        print(f"{kind:<16}{len(seconds):>7}{sum(seconds):>10.1f}")
    print(f"{'total':<16}{len(steps):>7}{sum(steps.values()):>10.1f}   longest run {wall:.1f} s by the clock")
    print(f"\nslowest {options.slowest} files")
    compiled = [(seconds, output) for output, seconds in steps.items() if kind_of(output) == "compile"]
    for seconds, output in sorted(compiled, reverse=True)[: options.slowest]:
        source = output.split(".dir/", 1)[-1].removesuffix(".o")
        folder = output.split("/CMakeFiles/", 1)[0]
        print(f"{seconds:>8.1f}  {folder}/{source}")


if __name__ == "__main__":
    main()
