"""Runs our own binary and reads its JSON; measures wall time and peak memory of the process from outside."""

import json
import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "build" / "release" / "triptych"
PEERS = ROOT / "build" / "peers"
SMOLLM2 = ROOT / "build" / "testdata" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm2_gguf():
    """The GGUF that tools/setup/fetch_testdata.sh fetches; the tests use the same."""
    if not SMOLLM2.exists():
        raise SystemExit(f"{SMOLLM2} is not there: run tools/setup/fetch_testdata.sh (needs a network once)")
    return SMOLLM2


def add_arguments(parser):
    """The options that every benchmark has."""
    parser.add_argument("--binary", type=Path, default=BINARY, help="our binary (default: build/release/triptych)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads for all (default: cores)")


class Triptych:
    """Our binary with a fixed number of threads."""

    def __init__(self, binary, threads, environment=None):
        if not Path(binary).exists():
            raise SystemExit(f"{binary} is not there: build it (cmake --preset release && ninja -C build/release), or pass --binary")
        self.binary = str(binary)
        self.environment = {**os.environ, "TRIPTYCH_THREADS": str(threads), **(environment or {})}

    def run(self, *arguments, stdin=None):
        """(JSON that the command printed, wall seconds, peak MiB). Exits with the command's own message if it fails."""
        command = [self.binary, *(str(argument) for argument in arguments)]
        started = time.perf_counter()
        process = subprocess.Popen(
            command, env=self.environment, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        output, errors = process.communicate(stdin)
        wall = time.perf_counter() - started
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\nended with {process.returncode}: {errors.strip()[-2000:]}")
        try:
            return json.loads(output[output.index("{") :]), wall
        except ValueError as error:
            raise SystemExit(f"{' '.join(command)}\nprinted no JSON ({error}): {output[:500]}") from error

    def bench(self, model, prompt_tokens, generate, image=None):
        """`triptych bench`: a dict with the keys that README.md lists."""
        arguments = ["bench", model, "--json", "--prompt-tokens", prompt_tokens, "--gen", generate]
        if image is not None:
            arguments += ["--image", image]
        return self.run(*arguments)[0]


def needed(report, key, what):
    """A key of a JSON report, or an error that says who should have written it."""
    if report.get(key) is None:  # absent, or null: not measured
        raise SystemExit(f"{what} has no \"{key}\"; it has {', '.join(sorted(report))}")
    return report[key]


def flat_json(result):
    """The object of a RESULT line: numbers to four significant digits."""
    return json.dumps({key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in result.items()})
