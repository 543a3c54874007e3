"""Accuracy on held-out sets with the trainer's own network: much cheaper than evaluate.py, the same answers.

  python quick_eval.py --base ../../models/demo ../../tests/eval/demo [--blind] [--adapter ../../models/demo-adapter]

Each picture is encoded once and all its questions are answered in one pass. An answer counts as right when each of its
tokens is the likeliest one given the true tokens before it, which is so exactly when greedy decoding gives the answer.
Only wrong descriptions can differ: their items are taken from the likeliest tokens, not from a decoding of its own.
"""
import argparse
import json
import os
from collections import defaultdict

import numpy as np
import torch
from PIL import Image
from tokenizers import Tokenizer

import checkpoint
import model as network
from batches import PieceTokenizer
from scenes import CANVAS
from scoring import mean_picture, score
from vocabulary import ASSISTANT, END, TASKS, USER


class Reader:
    def __init__(self, base, adapter, dtype):
        weights = checkpoint.from_hugging_face(base)
        weights = checkpoint.with_adapter(weights, adapter) if adapter else weights
        self.weights = {k: v.to(dtype) for k, v in weights.items()}
        self.model, self.dtype = network.Model(self.weights, compile=False), dtype
        self.tokenizer = Tokenizer.from_file(os.path.join(base, 'tokenizer.json'))
        self.ids = PieceTokenizer(self.tokenizer)

    def features(self, image):
        """[576, 256]"""
        image = image.convert('RGB').resize((CANVAS, CANVAS), Image.Resampling.BICUBIC)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].to(self.dtype) / 127.5 - 1
        return self.model.project(self.model.tower(pixels))[0]

    def answers(self, pictures, rows):
        """The likeliest tokens, as text, of each row's answer; the rows share the pictures [k * 576, 256]."""
        tokens, positions, conversations, spans = [], [], [], []
        start = 2 + len(pictures)
        for number, row in enumerate(rows):
            asked = []
            for question, answer in row.get('history', []):
                asked += self.ids(question) + [ASSISTANT] + self.ids(answer) + [END, USER]
            asked += self.ids(row['question']) + [ASSISTANT]
            answer = self.ids(row['answer']) + [END]
            spans.append((len(tokens) + len(asked) - 1, len(answer)))
            positions += range(start, start + len(asked) + len(answer))
            conversations += [number] * (len(asked) + len(answer))
            tokens += asked + answer
        batch = [torch.tensor(t)[None] for t in (tokens, positions, conversations)]
        unnamed = torch.full_like(batch[0], -1)  # places matter to the losses alone
        h, *_ = self.model.hidden(pictures[None], *batch, unnamed, unnamed)
        likeliest = (network.rms_norm(h, self.weights['l.norm']) @ self.weights['l.embed'].T).argmax(-1)[0].tolist()
        for at, n in spans:
            said = likeliest[at:at + n]
            ends = said.index(END) if END in said else n
            # An answer that does not stop where the true one does is wrong, whatever its text.
            yield self.tokenizer.decode(said[:ends]) + ('' if ends == n - 1 else ' ...')


def evaluate(reader, folder, blind, limit):
    with open(os.path.join(folder, 'questions.jsonl')) as f:
        rows = [json.loads(line) for line in f]
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row['images'])].append(row)
    by_task, known = defaultdict(list), {}
    chosen = list(groups)[::max(1, len(groups) // limit)] if limit else list(groups)
    for names in chosen:
        for name in names:
            if name not in known:
                image = Image.open(os.path.join(folder, name))
                known[name] = reader.features(mean_picture(image) if blind else image)
        for row, answer in zip(groups[names], reader.answers(torch.cat([known[n] for n in names]), groups[names])):
            by_task[row['task']].append(score(row['task'], answer, row['answer']))
            by_task['kind ' + row['kind']].append(score(row['task'], answer, row['answer']))
    return {t: (round(100 * sum(v) / len(v), 2), len(v)) for t, v in by_task.items()}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('sets', nargs='+', help='folders with questions.jsonl and images')
    ap.add_argument('--base', required=True, help='checkpoint folder')
    ap.add_argument('--adapter', help='folder with adapter.safetensors, in place of the projector of the base')
    ap.add_argument('--blind', action='store_true', help='pictures replaced by their mean colour')
    ap.add_argument('--limit', type=int, default=0, help='about so many pictures or pairs a set (0: all)')
    ap.add_argument('--bf16', action='store_true', help='compute in bf16')
    a = ap.parse_args()
    reader = Reader(a.base, a.adapter, torch.bfloat16 if a.bf16 else torch.float32)
    for folder in a.sets:
        with torch.inference_mode():
            result = evaluate(reader, folder, a.blind, a.limit)
        tasks = {t: result[t] for t in TASKS if t in result}
        print(os.path.basename(os.path.normpath(folder)), 'blind' if a.blind else 'sighted', json.dumps(tasks), flush=True)
        print('   ', json.dumps({k[5:]: v for k, v in sorted(result.items()) if k.startswith('kind ')}), flush=True)


if __name__ == '__main__':
    main()
