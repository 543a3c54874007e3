"""Our binary beside llama.cpp's llama-bench on SmolLM2-135M with 16-bit weights: prefill of 512 tokens, decode of 128, taking turns in one run.

Both run the same F16 and BF16 GGUF files (make_gguf.py); of each side the better file counts.
"""

import argparse
import json
import statistics
import subprocess

import triptych_cli
from triptych_cli import PEERS, Triptych, needed

BENCH = PEERS / "llamacpp" / "build" / "bin" / "llama-bench"
KINDS = ("F16", "BF16")
PREFILL, DECODE = 512, 128


def gguf_path(kind):
    """One of the two files."""
    path = PEERS / f"smollm2-135m-{kind}.gguf"
    if not path.exists():
        raise SystemExit(f"{path} is not there: run bench/peers/make_gguf.py")
    return path


def llama_bench(path, threads, prompt_tokens, generate):
    """Tokens a second of one repetition, after llama-bench's own warm-up."""
    command = [str(BENCH), "-m", str(path), "-t", str(threads), "-r", "1", "-o", "json", "-p", str(prompt_tokens), "-n", str(generate)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {process.stderr.strip()[-1000:]}")
    return json.loads(process.stdout)[0]["avg_ts"]


def measure(ours, threads, rounds):
    """Tokens a second: {(peer, kind, what): [round, ...]}."""
    rates = {}
    for _ in range(rounds):
        for kind in KINDS:
            path = gguf_path(kind)
            report = ours.bench(path, PREFILL, 1)
            mine = PREFILL / needed(report, "prefill_ms", "triptych bench") * 1e3
            rates.setdefault(("triptych", kind, "prefill"), []).append(mine)
            rates.setdefault(("llama.cpp", kind, "prefill"), []).append(llama_bench(path, threads, PREFILL, 0))
            report = ours.bench(path, 1, DECODE)
            mine = 1e3 / needed(report, "decode_ms_per_token", "triptych bench")
            rates.setdefault(("triptych", kind, "decode"), []).append(mine)
            rates.setdefault(("llama.cpp", kind, "decode"), []).append(llama_bench(path, threads, 0, DECODE))
    return rates


def run(ours, threads, rounds):
    """The table, and the part of RESULT that this file owns."""
    if not BENCH.exists():
        raise SystemExit(f"{BENCH} is not there: run bench/peers/build_llamacpp.sh")
    rates = measure(ours, threads, rounds)
    medians = {key: statistics.median(values) for key, values in rates.items()}
    print(f"\nSmolLM2-135M, tokens a second, median of {rounds}")
    print(f"{'':14}" + "".join(f"{f'{what} {kind}':>15}" for what in ("prefill", "decode") for kind in KINDS))
    for peer in ("triptych", "llama.cpp"):
        print(f"{peer:14}" + "".join(f"{medians[peer, kind, what]:15.1f}" for what in ("prefill", "decode") for kind in KINDS))
    best = {(peer, what): max(medians[peer, kind, what] for kind in KINDS) for peer in ("triptych", "llama.cpp") for what in ("prefill", "decode")}
    return {f"llamacpp_{what}_ratio": best["triptych", what] / best["llama.cpp", what] for what in ("prefill", "decode")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    triptych_cli.add_arguments(parser)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    result = run(Triptych(arguments.binary, arguments.threads), arguments.threads, arguments.rounds)
    print("RESULT " + triptych_cli.flat_json(result))


if __name__ == "__main__":
    main()
