"""All comparisons with peers and with the machine's limits, one table each, and the RESULT line that gathers them. `make bench-peers` runs it.

Read the figures only when nothing else runs on the machine; every ratio is of times that took turns in this run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import llamacpp_bench
import transformers_bench
import triptych_cli
from triptych_cli import ROOT, Triptych, needed

DEMO = ROOT / "models" / "demo"
NAMES = (
    "llamacpp_prefill_ratio", "llamacpp_decode_ratio", "ttft_ratio_demo", "decode_ratio_demo", "tower_ratio_llava",
    "prefill_ratio_llava", "decode_ratio_llava", "memory_ratio_llava", "preprocess_ratio_12mp", "gemm_peak_fraction",
    "decode_bandwidth_fraction", "startup_s", "memory_over_plan_mib",
)  # fmt: skip


def result_line(command, threads):
    """Runs one of our own benchmark programs; its output, and the object of its RESULT line."""
    environment = {**os.environ, "TRIPTYCH_THREADS": str(threads)}
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    lines = [line for line in output.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise SystemExit(f"{' '.join(command)} printed no RESULT line")
    print(output[: output.rindex("RESULT ")])
    return json.loads(lines[-1][len("RESULT ") :])


def limits(build, threads):
    """Fractions of the machine's own peak and bandwidth."""
    found = sorted(build.rglob("linear_bench"))
    if not found:
        raise SystemExit(f"no linear_bench under {build}: build all targets (ninja -C {build})")
    result = result_line([str(found[0])], threads)
    return {name: result[name] for name in ("gemm_peak_fraction", "decode_bandwidth_fraction")}


def preprocessing(build, threads, rounds):
    """transformers' better processor over ours, 12-megapixel JPEG to pixel values."""
    script = ROOT / "bench" / "preprocess" / "run.py"
    command = [sys.executable, str(script), "--build", str(build), "--threads", str(threads), "--rounds", str(rounds)]
    return {"preprocess_ratio_12mp": result_line(command, threads)["preprocess_ratio_12mp"]}


def starting(ours, rounds):
    """Seconds from start to the first token of the demo model, less the time of the prompt itself; and memory over the plan."""
    seconds = []
    for _ in range(rounds + 2):
        report, wall = ours.run("chat", DEMO, "--json", "--max-tokens", 1, "--temperature", 0, "Hello")
        seconds.append(wall - needed(report, "usage", "triptych chat")["ttft_ms"] / 1e3)
    report = ours.bench(DEMO, 16, 64, transformers_bench.DEMO_PICTURE)
    planned = needed(report, "weights_mib", "triptych bench") + needed(report, "kv_mib", "triptych bench")
    over = needed(report, "peak_memory_mib", "triptych bench") - planned
    print(f"\ndemo model: start {statistics.median(seconds):.3f} s, peak {over:.1f} MiB over weights and KV ({planned:.1f} MiB)")
    return {"startup_s": statistics.median(seconds), "memory_over_plan_mib": over}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    triptych_cli.add_arguments(parser)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skip", nargs="*", default=[], choices=["llamacpp", "transformers", "preprocess", "limits", "start"])
    arguments = parser.parse_args()
    ours = Triptych(arguments.binary, arguments.threads)
    threads, rounds = arguments.threads, arguments.rounds
    parts = {
        "limits": lambda: limits(arguments.binary.parent, threads),
        "start": lambda: starting(ours, rounds),
        "preprocess": lambda: preprocessing(arguments.binary.parent, threads, rounds),
        "llamacpp": lambda: llamacpp_bench.run(ours, threads, rounds),
        "transformers": lambda: transformers_bench.run(ours, threads, rounds),
    }
    result = {}
    for name, part in parts.items():
        if name not in arguments.skip:
            result.update(part())
    ordered = {name: result[name] for name in NAMES if name in result}
    ordered.update({name: value for name, value in result.items() if name not in ordered})
    print(f"\n{'figure':28}{'value':>10}")
    for name, value in ordered.items():
        print(f"{name:28}{value:10.3f}")
    print("RESULT " + triptych_cli.flat_json(ordered))


if __name__ == "__main__":
    main()
