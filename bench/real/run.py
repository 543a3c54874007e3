"""Real weights: SmolLM2-135M-Instruct's greedy answers and perplexity beside transformers loading the same GGUF. `make bench-real` runs it.

transformers is fed our own tokens, once for each answer: where its best next token is ours at every place, its own greedy
answer is ours. A place where it is not is shown with the distance between the two logits; a small one is a near-tie. Its
matrices are rounded to bfloat16 as our loader does with quantised ones, and it computes in float32.
"""

import argparse
import json
import math
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TQDM_DISABLE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))

import torch
import transformers

import triptych_cli
from triptych_cli import Triptych, needed, smollm2_gguf

HERE = Path(__file__).resolve().parent
TEXT = HERE / "public_domain.txt"
MAX_TOKENS = 128
DEFAULT_WINDOW = 1024
NEAR_TIE = 0.25


class Reference:
    """transformers with the GGUF's weights."""

    def __init__(self, gguf, threads, keeps_f32):
        torch.set_num_threads(threads)
        transformers.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(**source)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32).eval()
        if not keeps_f32:
            with torch.no_grad():
                for parameter in self.model.parameters():
                    if parameter.dim() == 2:
                        parameter.copy_(parameter.bfloat16().float())

    def prompt_ids(self, prompt):
        """A chat of one user turn, as its template has it."""
        messages = [{"role": "user", "content": prompt}]
        return list(self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False))

    @torch.inference_mode()
    def logits(self, ids):
        """[S, V] of a sequence."""
        return self.model(input_ids=torch.tensor([ids])).logits[0]

    def perplexity(self, text, window):
        """exp of the mean loss over windows without overlap, each alone; a window's first token is not scored."""
        ids = self.tokenizer(text)["input_ids"]
        loss, count = 0.0, 0
        for first in range(0, len(ids), window):
            part = ids[first : first + window]
            if len(part) > 1:
                log_probabilities = torch.log_softmax(self.logits(part)[:-1].double(), -1)
                loss -= log_probabilities.gather(1, torch.tensor(part[1:])[:, None]).sum().item()
                count += len(part) - 1
        return math.exp(loss / count), count


class Agreement:
    """How our answers stand to the reference."""

    def __init__(self):
        self.tokens = self.equal = self.answers = self.equal_answers = self.near_ties = 0
        self.worst = 0.0

    def add(self, reference, number, prompt, report):
        """Scores one answer, and prints where it leaves the reference."""
        prompt_ids = reference.prompt_ids(prompt)
        ours = needed(report, "token_ids", "triptych chat")
        if report.get("prompt_ids", prompt_ids) != prompt_ids:
            raise SystemExit(f"prompt {number}: other prompt ids than transformers'\nours   {report['prompt_ids']}\ntheirs {prompt_ids}")
        end = reference.tokenizer.eos_token_id
        if len(ours) < MAX_TOKENS and (not ours or ours[-1] != end):
            ours = [*ours, end]  # an answer that stopped by itself: the end token is part of the comparison
        logits = reference.logits(prompt_ids + ours[:-1])[len(prompt_ids) - 1 :]
        best = logits.argmax(-1)
        distances = (logits.max(-1).values - logits.gather(1, torch.tensor(ours)[:, None])[:, 0]).tolist()
        differing = [place for place, token in enumerate(ours) if token != int(best[place])]
        self.tokens += len(ours)
        self.equal += len(ours) - len(differing)
        self.answers += 1
        self.equal_answers += not differing
        self.near_ties += sum(distances[place] <= NEAR_TIE for place in differing)
        self.worst = max([self.worst, *(distances[place] for place in differing)])
        text = "same to the end"
        if differing:
            first = differing[0]
            pair = [reference.tokenizer.decode([token]) for token in (ours[first], int(best[first]))]
            kind = "near-tie" if distances[first] <= NEAR_TIE else "DIFFERENT"
            text = f"first differs at {first}: {pair[0]!r} for {pair[1]!r}, logit distance {distances[first]:.4f} ({kind}); {len(differing)} places"
        print(f"{number:3} {len(ours):4} tokens  {text}")


def answers(ours, reference, prompts, gguf):
    """All prompts through `triptych chat`."""
    agreement = Agreement()
    for number, prompt in enumerate(prompts):
        report, _ = ours.run("chat", gguf, "--json", "--max-tokens", MAX_TOKENS, "--temperature", 0, prompt)
        agreement.add(reference, number, prompt, report)
    print(f"{agreement.equal} of {agreement.tokens} tokens equal, {agreement.equal_answers} of {agreement.answers} answers; "
          f"{agreement.near_ties} of {agreement.tokens - agreement.equal} differences are near-ties (<= {NEAR_TIE}), largest distance {agreement.worst:.4f}")  # fmt: skip
    return agreement


def perplexity_gap(ours, reference, gguf):
    """Percent between our perplexity and the reference's."""
    report, _ = ours.run("perplexity", gguf, TEXT, "--json")
    value = needed(report, "perplexity", "triptych perplexity")
    expected, count = reference.perplexity(TEXT.read_text(), report.get("window", DEFAULT_WINDOW))
    gap = 100 * abs(value - expected) / expected
    print(f"perplexity of {TEXT.name}: ours {value:.4f} ({report.get('tokens', '?')} tokens), transformers {expected:.4f} ({count}): {gap:.3f} % apart")
    return gap


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    triptych_cli.add_arguments(parser)
    parser.add_argument("--model", type=Path, help="GGUF (default: the one of tools/setup/fetch_testdata.sh)")
    parser.add_argument("--prompts", type=int, default=None, help="only the first N prompts")
    parser.add_argument("--keep-f32", action="store_true", help="do not round the reference's weights to bfloat16")
    parser.add_argument("--modes", nargs="*", default=["auto", "f32"], choices=["auto", "f32"], help="TRIPTYCH_MATMUL values to try")
    arguments = parser.parse_args()
    gguf = arguments.model or smollm2_gguf()
    prompts = json.loads((HERE / "prompts.json").read_text())[: arguments.prompts]
    reference = Reference(gguf, arguments.threads, arguments.keep_f32)
    result = {}
    for mode in arguments.modes:
        print(f"\nTRIPTYCH_MATMUL={mode}" + (" (what users get)" if mode == "auto" else " (activations stay float32)"))
        ours = Triptych(arguments.binary, arguments.threads, {"TRIPTYCH_MATMUL": mode})
        suffix = "" if mode == arguments.modes[0] else f"_{mode}"
        agreement = answers(ours, reference, prompts, gguf)
        result[f"smollm2_equal_tokens{suffix}"] = agreement.equal / agreement.tokens
        result[f"smollm2_equal_answers{suffix}"] = agreement.equal_answers / agreement.answers
        result[f"smollm2_worst_logit_distance{suffix}"] = agreement.worst
        result[f"smollm2_ppl_gap{suffix}"] = perplexity_gap(ours, reference, gguf)
    print("RESULT " + triptych_cli.flat_json(result))


if __name__ == "__main__":
    main()
