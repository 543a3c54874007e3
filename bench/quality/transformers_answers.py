"""Greedy answers by Hugging Face transformers, float32 on the CPU. A picture goes through the tower once for all its questions."""

import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor

BATCH = 16
MAX_TOKENS = 256


class TowerOnce:
    """Put in place of a tower's forward: keeps the outputs of pictures seen in this batch, by their bytes."""

    def __init__(self, tower):
        self.forward = tower.forward
        tower.forward = self
        self.seen = {}

    def __call__(self, pixel_values, **arguments):
        keys = [picture.numpy().tobytes() for picture in pixel_values]
        new = {key: index for index, key in enumerate(keys) if key not in self.seen}
        if new:
            output = self.forward(pixel_values[list(new.values())], **arguments)
            for row, key in enumerate(new):
                self.seen[key] = (output, row)
        first = self.seen[keys[0]][0]
        rows = [self.seen[key] for key in keys]
        first = type(first)(**{name: None for name in first})
        n_states = len(rows[0][0].hidden_states)
        first["hidden_states"] = tuple(
            None if rows[0][0].hidden_states[state] is None
            else torch.stack([output.hidden_states[state][row] for output, row in rows])
            for state in range(n_states)
        )  # fmt: skip
        return first


def messages_of(row):
    """The conversation of a question: pictures in the first turn, earlier turns as they were."""
    parts = [{"type": "image"}] * len(row["images"])
    messages = []
    for asked, answered in [*row.get("history", []), [row["question"], None]]:
        messages.append({"role": "user", "content": [*parts, {"type": "text", "text": asked}]})
        if answered is not None:
            messages.append({"role": "assistant", "content": [{"type": "text", "text": answered}]})
        parts = []
    return messages


@torch.inference_mode()
def answer_all(model_folder, set_folder, rows, threads):
    """Answers in the order of `rows`."""
    torch.set_num_threads(threads)
    # The PIL processors are the reference of preprocessing; the default ones round otherwise.
    processor = AutoProcessor.from_pretrained(model_folder, backend="pil")
    processor.tokenizer.padding_side = "left"
    model = AutoModelForImageTextToText.from_pretrained(model_folder, dtype=torch.float32).eval()
    tower = TowerOnce(model.model.vision_tower)
    # Batches of like pictures and like length; the longest answer of a batch is all that it waits for.
    order = sorted(range(len(rows)), key=lambda index: (len(rows[index]["images"]), rows[index]["images"], len(rows[index]["answer"])))
    answers = [None] * len(rows)
    for first in range(0, len(order), BATCH):
        batch = order[first : first + BATCH]
        for n_images in {len(rows[index]["images"]) for index in batch}:
            part = [index for index in batch if len(rows[index]["images"]) == n_images]
            texts = [processor.apply_chat_template(messages_of(rows[index]), add_generation_prompt=True) for index in part]
            pictures = [[Image.open(set_folder / name).convert("RGB") for name in rows[index]["images"]] for index in part]
            inputs = processor(text=texts, images=pictures, padding=True, return_tensors="pt", add_special_tokens=False)
            tokens = model.generate(**inputs, do_sample=False, max_new_tokens=MAX_TOKENS)
            new = tokens[:, inputs["input_ids"].shape[1] :]
            for index, answer in zip(part, processor.batch_decode(new, skip_special_tokens=True)):
                answers[index] = answer
        tower.seen.clear()
        print(f"\rtransformers {set_folder.name}: {min(first + BATCH, len(order))} of {len(order)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return answers
