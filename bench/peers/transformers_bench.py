"""Our binary beside Hugging Face transformers on the CPU: same checkpoints, pictures and threads, taking turns in one run.

Two models: the shipped demo model, and a LLaVA of public shape with random weights (make_llava.py). transformers runs in
float32 and in bfloat16; of each time the better one counts.
"""

import argparse
import contextlib
import statistics
import sys

import triptych_cli
from peer_process import PeerProcess
from triptych_cli import PEERS, ROOT, Triptych, needed

DEMO = ROOT / "models" / "demo"
DEMO_PICTURE = ROOT / "tests" / "eval" / "demo" / "images" / "000.jpg"
QUESTION = "What color is the square?"
DTYPES = ("float32", "bfloat16")
DEMO_TOKENS = 64
LLAVA_TOKENS = 16
LLAVA_ROWS = 608  # 576 of the picture and some text


class Samples:
    """Milliseconds (or MiB) by peer and measure; medians over the rounds."""

    def __init__(self):
        self.values = {}

    def add(self, peer, measure, value):
        self.values.setdefault((peer, measure), []).append(value)

    def median(self, peer, measure):
        return statistics.median(self.values[peer, measure])

    def best_peer(self, measure):
        """The lower median of transformers' dtypes, and which one it was."""
        return min((self.median(dtype, measure), dtype) for dtype in DTYPES if (dtype, measure) in self.values)

    def ratio(self, measure):
        """transformers' better dtype over ours."""
        return self.best_peer(measure)[0] / self.median("triptych", measure)

    def table(self, title, measures):
        """Rows for people."""
        print(f"\n{title}")
        print(f"{'':34}{'triptych':>12}" + "".join(f"{'hf ' + dtype:>14}" for dtype in DTYPES) + f"{'best hf / ours':>16}")
        for measure in measures:
            if ("triptych", measure) not in self.values:
                continue
            row = f"{measure:34}{self.median('triptych', measure):12.2f}"
            for dtype in DTYPES:
                row += f"{self.median(dtype, measure):14.2f}" if (dtype, measure) in self.values else f"{'-':>14}"
            print(f"{row}{self.ratio(measure):16.2f}")


def workers(stack, folder, threads):
    """One transformers process a dtype."""
    script = ROOT / "bench" / "peers" / "hf_worker.py"
    return {
        dtype: stack.enter_context(
            PeerProcess(f"transformers {dtype}", [sys.executable, str(script), str(folder), dtype, str(threads)], threads)
        )
        for dtype in DTYPES
    }


def demo(ours, threads, rounds):
    """Time to first token from a picture file, and decode."""
    samples = Samples()
    with contextlib.ExitStack() as stack:
        peers = workers(stack, DEMO, threads)
        for number in range(rounds + 1):  # round 0 warms up
            report = ours.bench(DEMO, 16, DEMO_TOKENS, DEMO_PICTURE)
            rows = needed(report, "prompt_tokens", "triptych bench")
            found = {"triptych": {"ttft ms": needed(report, "ttft_ms", "triptych bench"),
                                  "decode ms/token": needed(report, "decode_ms_per_token", "triptych bench")}}  # fmt: skip
            for dtype, peer in peers.items():
                first = peer.ask("first_token", image=str(DEMO_PICTURE), text=QUESTION)
                decode = peer.ask("decode", n_tokens=DEMO_TOKENS, prompt_tokens=rows)
                found[dtype] = {"ttft ms": first["ms"], "decode ms/token": decode["ms_per_token"]}
            record(samples, found, number)
    samples.table(f"demo model, {DEMO_TOKENS} tokens after a picture and a question", ["ttft ms", "decode ms/token"])
    return samples


def record(samples, found, number):
    """Keeps a round, unless it was the warm-up."""
    for peer, measures in found.items():
        for measure, value in measures.items():
            if number > 0:
                samples.add(peer, measure, value)


def llava(ours, threads, rounds, folder):
    """Tower, prefill, decode and peak memory at the public LLaVA shape; one dtype of transformers at a time in memory."""
    samples = Samples()
    measures = ["ttft ms", "tower ms", "prefill ms", "decode ms/token", "peak MiB"]
    for dtype in DTYPES:
        script = ROOT / "bench" / "peers" / "hf_worker.py"
        command = [sys.executable, str(script), str(folder), dtype, str(threads)]
        with PeerProcess(f"transformers {dtype}", command, threads) as peer:
            for number in range(rounds):
                report = ours.bench(folder, LLAVA_ROWS, LLAVA_TOKENS, DEMO_PICTURE)
                rows = needed(report, "prompt_tokens", "triptych bench")
                mine = {"ttft ms": "ttft_ms", "tower ms": "vision_ms", "prefill ms": "prefill_ms",
                        "decode ms/token": "decode_ms_per_token", "peak MiB": "peak_memory_mib"}  # fmt: skip
                for measure, key in mine.items():
                    samples.add("triptych", measure, needed(report, key, "triptych bench"))
                if number == 0:
                    peer.ask("first_token", image=str(DEMO_PICTURE), text="warm")
                samples.add(dtype, "ttft ms", peer.ask("first_token", image=str(DEMO_PICTURE), text=QUESTION)["ms"])
                samples.add(dtype, "tower ms", peer.ask("tower", image=str(DEMO_PICTURE))["ms"])
                samples.add(dtype, "prefill ms", peer.ask("prefill", n_tokens=rows)["ms"])
                decode = peer.ask("decode", n_tokens=LLAVA_TOKENS, prompt_tokens=rows)
                samples.add(dtype, "decode ms/token", decode["ms_per_token"])
                samples.add(dtype, "peak MiB", decode["peak_mib"])
    samples.table("LLaVA, ViT-L/14-336 and Llama 1.1B, random bf16 weights, one picture", measures)
    return samples


def run(ours, threads, rounds):
    """All of it; the part of RESULT that this file owns."""
    llava_folder = PEERS / "llava-1.1b"
    if not (llava_folder / "model.safetensors").exists():
        raise SystemExit(f"{llava_folder} is not there: run bench/peers/make_llava.py")
    small, large = demo(ours, threads, rounds), llava(ours, threads, max(1, rounds - 1), llava_folder)
    memory, memory_dtype = large.best_peer("peak MiB")
    print(f"\nmemory: ours over transformers {memory_dtype}; float32 {large.median('float32', 'peak MiB'):.0f} MiB, "
          f"bfloat16 {large.median('bfloat16', 'peak MiB'):.0f} MiB")  # fmt: skip
    return {
        "ttft_ratio_demo": small.ratio("ttft ms"),
        "decode_ratio_demo": small.ratio("decode ms/token"),
        "ttft_ratio_llava": large.ratio("ttft ms"),
        "tower_ratio_llava": large.ratio("tower ms"),
        "prefill_ratio_llava": large.ratio("prefill ms"),
        "decode_ratio_llava": large.ratio("decode ms/token"),
        "memory_ratio_llava": large.median("triptych", "peak MiB") / memory,
        "memory_ratio_llava_f32": large.median("triptych", "peak MiB") / large.median("float32", "peak MiB"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    triptych_cli.add_arguments(parser)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    result = run(Triptych(arguments.binary, arguments.threads), arguments.threads, arguments.rounds)
    print("RESULT " + triptych_cli.flat_json(result))


if __name__ == "__main__":
    main()
