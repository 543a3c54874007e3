"""Answers held-out sets through Hugging Face transformers (AutoProcessor, greedy `generate`), with the picture and blind.

  python evaluate.py CKPT tests/eval/demo tests/eval/free --out results

Blind: each picture is replaced by its mean colour. Scoring as tests/eval/README.md says. A checkpoint with the
linear_layernorm projector is run with that module put in the place of LLaVA's own. Needs transformers and Pillow.
"""
import argparse
import json
import os
from collections import defaultdict

import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor

from scoring import mean_picture, score
from vocabulary import TASKS


def load(folder, device):
    processor = AutoProcessor.from_pretrained(folder)
    processor.tokenizer.padding_side = 'left'
    dtype = torch.bfloat16 if device == 'cuda' else torch.float32
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=dtype)
    with open(os.path.join(folder, 'config.json')) as f:
        config = json.load(f)
    if config.get('projector_type') == 'linear_layernorm':
        put_adapter(model, folder, config, dtype)
    return processor, model.to(device).eval()


def put_adapter(model, folder, config, dtype):
    from safetensors.torch import load_file
    width, out = config['vision_config']['hidden_size'], config['text_config']['hidden_size']
    prefix, module = 'multi_modal_projector.', torch.nn.Sequential()
    module.add_module('linear', torch.nn.Linear(width, out))
    module.add_module('layer_norm', torch.nn.LayerNorm(out, eps=config['projector_layer_norm_eps']))
    tensors = load_file(os.path.join(folder, 'model.safetensors'))
    module.load_state_dict({k[len(prefix):]: v for k, v in tensors.items() if k.startswith(prefix)})
    (model.model if hasattr(model, 'model') else model).multi_modal_projector = module.to(dtype)


def messages(row):
    content = [dict(type='image')] * len(row['images'])
    turns = [*row.get('history', []), [row['question'], None]]
    out = []
    for asked, answered in turns:
        out.append(dict(role='user', content=content + [dict(type='text', text=asked)]))
        if answered is not None:
            out.append(dict(role='assistant', content=[dict(type='text', text=answered)]))
        content = []
    return out


def answer_all(processor, model, folder, rows, blind, batch):
    """Greedy answers in the order of `rows`. Rows of like length are batched together."""
    order = sorted(range(len(rows)), key=lambda i: (len(rows[i]['images']), len(rows[i]['answer']), len(rows[i]['question'])))
    out = [None] * len(rows)
    for start in range(0, len(order), batch):
        chosen = [i for i in order[start:start + batch]]
        for count in sorted({len(rows[i]['images']) for i in chosen}):
            part = [i for i in chosen if len(rows[i]['images']) == count]
            text = [processor.apply_chat_template(messages(rows[i]), add_generation_prompt=True) for i in part]
            images = [[Image.open(os.path.join(folder, name)) for name in rows[i]['images']] for i in part]
            if blind:
                images = [[mean_picture(image) for image in group] for group in images]
            x = processor(text=text, images=images, padding=True, return_tensors='pt').to(model.device)
            x['pixel_values'] = x['pixel_values'].to(model.dtype)
            longest = max(len(processor.tokenizer(rows[i]['answer'])['input_ids']) for i in part)
            with torch.inference_mode():
                y = model.generate(**x, do_sample=False, max_new_tokens=longest + 8)
            answers = processor.batch_decode(y[:, x['input_ids'].shape[1]:], skip_special_tokens=True)
            for i, answer in zip(part, answers):
                out[i] = answer
    return out


def evaluate(processor, model, folder, batch, limit):
    with open(os.path.join(folder, 'questions.jsonl')) as f:
        rows = [json.loads(line) for line in f]
    with open(os.path.join(folder, 'set.json')) as f:
        chance = json.load(f)['tasks']
    rows = rows[::max(1, len(rows) // limit)] if limit else rows
    result = {}
    for mode in ('sighted', 'blind'):
        by_task = defaultdict(list)
        for row, answer in zip(rows, answer_all(processor, model, folder, rows, mode == 'blind', batch)):
            row[mode] = answer
            by_task[row['task']].append(score(row['task'], answer, row['answer']))
        result[mode] = {t: round(100 * sum(by_task[t]) / len(by_task[t]), 2) for t in TASKS if by_task[t]}
        print(os.path.basename(os.path.normpath(folder)), mode, result[mode], flush=True)
    result['chance'] = {t: round(100 * chance[t]['chance'], 2) for t in result['sighted']}
    result['blind_excess_max'] = round(max(result['blind'][t] - result['chance'][t] for t in result['blind']), 2)
    exact = [r['sighted'] == r['answer'] for r in rows if r['task'] == 'describe']
    if exact:
        result['describe_exact'] = round(100 * sum(exact) / len(exact), 2)
    every = [score(r['task'], r['sighted'], r['answer']) for r in rows]
    result['all'] = round(100 * sum(every) / len(every), 2)
    print(json.dumps({k: result[k] for k in result if k not in ('sighted', 'blind', 'chance')}), flush=True)
    return result, rows


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('checkpoint')
    ap.add_argument('sets', nargs='+', help='folders with questions.jsonl, set.json and images')
    ap.add_argument('--out', help='folder for results.json and the answers of each set')
    ap.add_argument('--device', default='cuda' if torch.cuda.is_available() else 'cpu', choices=('cuda', 'cpu'))
    ap.add_argument('--batch', type=int, default=100)
    ap.add_argument('--limit', type=int, default=0, help='about so many questions a set (0: all)')
    a = ap.parse_args()
    processor, model = load(a.checkpoint, a.device)
    for folder in a.sets:
        name = os.path.basename(os.path.normpath(folder))
        result, rows = evaluate(processor, model, folder, a.batch, a.limit)
        if a.out:
            os.makedirs(a.out, exist_ok=True)
            with open(os.path.join(a.out, name + '.json'), 'w') as f:
                f.write(json.dumps(result, indent=1) + '\n')
            with open(os.path.join(a.out, name + '.answers.jsonl'), 'w') as f:
                f.writelines(json.dumps(row) + '\n' for row in rows)


if __name__ == '__main__':
    main()
