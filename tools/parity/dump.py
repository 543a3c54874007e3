"""Runs the parity cases in transformers and writes what it computes: taps, prompt ids and greedy tokens."""

import argparse
import json
import re

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import save_file
from transformers import AutoProcessor, AutoTokenizer

import hf_model
import paths
from pictures import picture_path
from taps import Taps

LARGEST_GOLDEN = 300 * 1024


def run_messages(run):
    """The run's conversation with its pictures' names; `images` + `text` is short for one user turn."""
    if "messages" in run:
        return run["messages"]
    if "raw" in run:
        return None
    parts = [{"type": "image", "picture": name} for name in run.get("images", [])]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": run["text"]}]}]


def picture_names(messages):
    """Pictures in prompt order."""
    return [part["picture"] for message in messages or [] for part in message["content"] if part["type"] == "image"]


class Prompter:
    """Renders and tokenises as a checkpoint's own processor or tokenizer does."""

    def __init__(self, folder, is_multimodal):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.processor = AutoProcessor.from_pretrained(folder, backend="pil") if is_multimodal else None
        if self.processor and not type(self.processor.image_processor).__name__.endswith("Pil"):
            raise SystemExit(f"{folder}: wanted the PIL image processor, got {type(self.processor.image_processor)}")

    def __call__(self, run):
        """(prompt text, prompt ids [S], pixel values or None). Message text never becomes a special token."""
        if "raw" in run:
            return run["raw"], self.tokenizer(run["raw"])["input_ids"], None
        messages = []
        # transformers offers this only where the template writes special tokens, so it is asked for where it matters.
        sanitizing = {"sanitize_control_tokens": True} if "<" in json.dumps(run_messages(run)) else {}
        for message in run_messages(run):
            parts = []
            for part in message["content"]:
                if part["type"] == "image":
                    part = {"type": "image", "image": Image.open(picture_path(part["picture"])).convert("RGB")}
                parts.append(part)
            messages.append({"role": message["role"], "content": parts})
        if self.processor is None:
            for message in messages:
                message["content"] = "".join(part["text"] for part in message["content"])
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            ids = self.tokenizer.apply_chat_template(
                messages, tokenize=True, return_dict=False, add_generation_prompt=True, **sanitizing
            )
            return text, list(ids), None
        text = self.processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        inputs = self.processor.apply_chat_template(
            messages, tokenize=True, return_dict=True, return_tensors="pt", add_generation_prompt=True, **sanitizing
        )
        return text, inputs["input_ids"][0].tolist(), inputs.get("pixel_values")


@torch.inference_mode()
def forward(model, ids, pixel_values, n_greedy):
    """Taps of the prompt, then greedy tokens with their margins."""
    extra = {} if pixel_values is None else {"pixel_values": pixel_values}
    with Taps(model) as taps:
        output = model(input_ids=torch.tensor([ids]), use_cache=True, **extra)
    tensors = taps.result()
    if pixel_values is not None:
        tensors["pixel_values"] = pixel_values
    tensors["logits.all"] = output.logits[0]
    tensors["logits"] = output.logits[0, -1]
    tokens, margins = [], []
    cache = output.cache
    logits = output.logits[0, -1]
    for _ in range(n_greedy):
        best = torch.topk(logits, 2)
        tokens.append(int(best.indices[0]))
        margins.append(round(float(best.values[0] - best.values[1]), 6))
        output = model(input_ids=torch.tensor([[tokens[-1]]]), cache=cache, use_cache=True)
        cache, logits = output.cache, output.logits[0, -1]
    return {name: tensor.float().numpy() for name, tensor in tensors.items()}, tokens, margins


def media_spans(ids, image_token_id, n_pictures):
    """[first, length] of each picture: the image token's places, cut into equal parts."""
    places = [index for index, token in enumerate(ids) if token == image_token_id]
    if not n_pictures:
        return []
    length = len(places) // n_pictures
    return [[places[number * length], length] for number in range(n_pictures)]


def kept_taps(run, tensors):
    """Taps worth their bytes: all blocks for few runs, the stage boundaries for the others."""
    ends = ["pixel_values", "projector.out", "logits"]
    if run.get("all_logits"):
        ends.append("logits.all")
    return [name for name in tensors if name in ends or (run.get("taps") == "all" and name != "logits.all")]


def relative_error(ours, golden):
    """The distance that tolerances speak of: largest difference over the golden's root mean square."""
    rms = float(np.sqrt(np.mean(np.square(golden, dtype=np.float64))))
    return float(np.max(np.abs(ours.astype(np.float64) - golden))) / max(rms, 1e-30)


def tolerance_of(tap, tolerance):
    """The tolerance with the longest dotted prefix of the tap's name."""
    while tap:
        if tap in tolerance:
            return tolerance[tap]
        tap = tap.rpartition(".")[0]
    return tolerance["default"]


def check_layouts(case, folders, results):
    """Every further layout of a case must give the same ids, tensors and tokens in transformers itself."""
    for folder in folders[1:]:
        model = hf_model.load_model(folder)
        prompter = Prompter(folder, hf_model.is_multimodal(model.config))
        for run, (text, ids, tensors, tokens, _) in zip(case["runs"], results):
            again_text, again_ids, pixels = prompter(run)
            again, again_tokens, _ = forward(model, again_ids, pixels, len(tokens))
            worst = max(relative_error(again[name], tensors[name]) for name in tensors)
            if (text, ids, tokens) != (again_text, again_ids, again_tokens) or worst > 1e-6:
                raise SystemExit(f"{folder}: run {run['name']} differs from the first layout ({worst})")


def check_mutations(case, folder, results):
    """A wrong option must show: each mutation has to move its tap at least ten tolerances away."""
    for mutation in case.get("mutations", []):
        model = hf_model.load_model(folder, **mutation["set"])
        tap, best = mutation["seen_in"], 0.0
        for run, (_, ids, tensors, _, _) in zip(case["runs"], results):
            if tap not in kept_taps(run, tensors):
                continue
            pixels = torch.from_numpy(tensors["pixel_values"]) if "pixel_values" in tensors else None
            wrong, _, _ = forward(model, ids, pixels, 0)
            if wrong[tap].shape == tensors[tap].shape:
                best = max(best, relative_error(wrong[tap], tensors[tap]))
        needed = 10 * tolerance_of(tap, case["tolerance"])
        print(f"  wrong {mutation['set']}: {tap} moves by {best:.2g} (needs {needed:.2g})")
        if best < needed:
            raise SystemExit(f"{case['name']}: the golden would not notice {mutation['set']}")


@torch.inference_mode()
def bf16_activation_tolerance(case, folder, results):
    """Twice the error that rounding the input of every Linear and matrix product to bfloat16 makes."""
    model = hf_model.load_model(folder)

    def rounded(module, args):
        return tuple(arg.bfloat16().float() if torch.is_tensor(arg) and arg.is_floating_point() else arg for arg in args)

    for module in model.modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Conv2d)):
            module.register_forward_pre_hook(rounded)
    errors = {}
    for run, (_, ids, tensors, _, _) in zip(case["runs"], results):
        pixels = torch.from_numpy(tensors["pixel_values"]) if "pixel_values" in tensors else None
        again, _, _ = forward(model, ids, pixels, 0)
        for name in kept_taps(run, tensors):
            errors[name] = max(errors.get(name, 0.0), 2 * relative_error(again[name], tensors[name]))
    return {"default": float(f"{max(errors.values()):.2g}"), **{name: float(f"{e:.2g}") for name, e in errors.items()}}


def golden_run(run, result, image_token_id):
    """The run as golden.json has it."""
    text, ids, tensors, tokens, margins = result
    messages = run_messages(run)
    names = picture_names(messages)
    plain = [
        {"role": m["role"], "content": [{k: v for k, v in part.items() if k != "picture"} for part in m["content"]]}
        for m in messages or []
    ]
    taps = kept_taps(run, tensors)
    return {
        "name": run["name"],
        "images": [paths.relative(picture_path(name)) for name in names],
        "messages": plain or None,
        "text": run.get("raw"),
        "beyond_max_positions": run.get("beyond_max_positions", False),
        "prompt_text": text,
        "prompt_ids": ids,
        "media_spans": media_spans(ids, image_token_id, len(names)),
        "taps": taps,
        "shapes": {name: list(tensors[name].shape) for name in taps},
        "greedy_ids": tokens,
        "greedy_margins": margins,
    }


def dump_case(name):
    """Writes golden.json and golden.safetensors of one case."""
    case = paths.load_case(name)
    home = paths.GOLDENS / name
    folders = [home / folder for folder, _ in paths.layouts_of(case)]
    model = hf_model.load_model(folders[0])
    prompter = Prompter(folders[0], hf_model.is_multimodal(model.config))
    results = []
    for run in case["runs"]:
        text, ids, pixels = prompter(run)
        results.append((text, ids, *forward(model, ids, pixels, run.get("greedy", 0))))
    check_layouts(case, folders, results)
    check_mutations(case, folders[0], results)
    image_token_id = case["checkpoint"]["config"].get("image_token_id")
    tensors = {
        f"{run['name']}/{tap}": np.ascontiguousarray(result[2][tap], dtype=np.float32)
        for run, result in zip(case["runs"], results)
        for tap in kept_taps(run, result[2])
    }
    golden = {
        "case": name,
        "description": case["description"],
        "covers": case["covers"],
        "versions": hf_model.versions(),
        "checkpoints": [paths.relative(folder) for folder in folders],
        "tensors": paths.relative(home / "golden.safetensors"),
        "image_token_id": image_token_id,
        "tolerance": case["tolerance"],
        "tolerance_bf16_activations": {
            **bf16_activation_tolerance(case, folders[0], results),
            **({"pixel_values": 0} if image_token_id is not None else {}),
        },
        "near_tie": case["near_tie"],
        "near_tie_bf16_activations": case.get("near_tie_bf16_activations", 0.25),
        "runs": [golden_run(run, result, image_token_id) for run, result in zip(case["runs"], results)],
    }
    save_file(tensors, home / "golden.safetensors")
    (home / "golden.safetensors").chmod(0o644)
    text = json.dumps(golden, indent=1, ensure_ascii=False)
    text = re.sub(r"\[[\s\d.,e\[\]-]+\]", lambda match: re.sub(r"\s+", " ", match[0]), text)  # numbers on one line
    (home / "golden.json").write_text(text + "\n")
    n_bytes = (home / "golden.safetensors").stat().st_size
    steps = [margin for result in results for margin in result[4]]
    kinds = len({token for result in results for token in result[3]})
    print(f"{name}: {len(tensors)} tensors, {n_bytes / 1024:.0f} KiB; {kinds} kinds of greedy tokens, "
          f"smallest margin {min(steps, default=float('nan')):.3g}, bf16 {golden['tolerance_bf16_activations']['default']}")  # fmt: skip
    if n_bytes > LARGEST_GOLDEN:
        raise SystemExit(f"{name}: golden.safetensors has {n_bytes} bytes, more than {LARGEST_GOLDEN}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="case names; all by default")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name in paths.case_names(parser.parse_args().cases):
        dump_case(name)


if __name__ == "__main__":
    main()
