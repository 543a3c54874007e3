#!/usr/bin/env python3
"""Checks the rules of the house: layers, banned patterns, formatting.

Prints `file:line: rule: message` for each finding and exits with 1 if there was any. The rules and
their exceptions are data, in rules.py. Sizes over the limits are reported and never fail.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import time

import checks
import rules

FORMATTER = "clang-format-16"


def read_tree(root):
    """Every text file that the checks look at."""
    files = []
    for folder, subfolders, names in os.walk(root):
        here = pathlib.Path(folder).relative_to(root).as_posix()
        prefix = "" if here == "." else here + "/"
        subfolders[:] = [s for s in subfolders if s != "__pycache__" and f"{prefix}{s}/" not in rules.SKIPPED]
        for name in names:
            path = pathlib.Path(folder, name)
            if path.suffix in checks.TEXT and not path.is_symlink():
                try:
                    files.append(checks.SourceFile(prefix + name, path.read_text(encoding="utf-8")))
                except UnicodeDecodeError:
                    continue  # data under a text file's name, as fuzz seeds are
    return sorted(files, key=lambda file: file.path)


def format_findings(root, files):
    """C++ files that clang-format would change; a notice and nothing else without clang-format."""
    if shutil.which(FORMATTER) is None:
        print(f"lint: {FORMATTER} is not installed, so formatting is not checked", file=sys.stderr)
        return []
    paths = [file.path for file in files if file.suffix in checks.CPP and file.path.startswith(("src/", "bench/", "tests/"))]
    workers = os.cpu_count() or 1
    batches = [paths[i::workers] for i in range(workers) if paths[i::workers]]

    def run(batch):
        done = subprocess.run([FORMATTER, "--dry-run", "--ferror-limit=1", *batch], cwd=root, text=True,
                              capture_output=True, check=False)
        return [line.split(":", 2) for line in done.stderr.splitlines() if "[-Wclang-format-violations]" in line]

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        lines = [line for batch in pool.map(run, batches) for line in batch]
    first = {}
    for path, line, _ in lines:
        first.setdefault(path, int(line))
    return [checks.Finding(path, line, "format", f"run {FORMATTER} -i on it (make format)")
            for path, line in sorted(first.items())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2],
                        help="the tree to check (default: this repository)")
    parser.add_argument("--sizes", action="store_true", help="list files and functions over the limits of the house")
    parser.add_argument("--no-format", action="store_true", help="leave clang-format out")
    options = parser.parse_args()

    start = time.monotonic()
    files = read_tree(options.root)
    findings = [finding for file in files for check in checks.FILE_CHECKS for finding in check(file)]
    findings += [finding for check in checks.TREE_CHECKS for finding in check(files)]
    if not options.no_format:
        findings += format_findings(options.root, files)
    for finding in findings:
        print(finding)

    large = checks.size_report(files)
    if options.sizes:
        for line in large:
            print(f"size: {line}")
    verdict = f"{len(findings)} findings" if findings else "clean"
    print(f"lint: {verdict} in {len(files)} files, {len(large)} sizes over the limits"
          f"{'' if options.sizes or not large else ' (--sizes lists them)'}, {time.monotonic() - start:.1f} s")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
