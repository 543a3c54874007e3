"""The public easy-VQA set (4,000 training and 1,000 test pictures of 64 x 64 pixels; PyPI `easy-vqa`, MIT licence).

Its yes and no become "Yes." and "No.", as this model answers; the questions stay as they are.
"""
from collections import defaultdict

import numpy as np
import torch
from PIL import Image

from questions import Question
from scenes import CANVAS
from vocabulary import NO, YES

SIDE = 64


def load(split):
    """(picture paths in the order of their number, {picture index: [(question, answer)]}) of 'train' or 'test'."""
    import easy_vqa
    questions, answers, ids = getattr(easy_vqa, f'get_{split}_questions')()
    files = getattr(easy_vqa, f'get_{split}_image_paths')()
    order = sorted(files)
    index = {number: i for i, number in enumerate(order)}
    by_picture = defaultdict(list)
    for question, answer, number in zip(questions, answers, ids):
        by_picture[index[number]].append((question, {'yes': YES, 'no': NO}.get(answer, answer)))
    return [files[number] for number in order], by_picture


def kind_of(question, answer):
    """Question kinds of easy-VQA, for the statement of chance."""
    if answer not in (YES, NO):
        return 'easy_color' if 'color' in question else 'easy_shape'
    absent = ' not ' in question or question.startswith('is no ')
    what = 'color' if 'shape' in question else 'shape'
    return f'easy_{what}_{"absent" if absent else "present"}'


class Pictures:
    """All training pictures on the device; `large(index)` gives [n, 3, 384, 384] in 0..1, resized bicubically."""

    def __init__(self, paths, device):
        pixels = np.stack([np.array(Image.open(p).convert('RGB')) for p in paths])
        self.pixels = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous().to(device)
        eye = Image.fromarray(np.eye(SIDE, dtype=np.float32))
        self.enlarge = torch.from_numpy(np.array(eye.resize((SIDE, CANVAS), Image.Resampling.BICUBIC))).to(device)

    def large(self, index):
        x = self.pixels[index].float() / 255
        return (self.enlarge @ x @ self.enlarge.T).clamp(0, 1)


class Asker:
    """Questions about easy-VQA pictures, with the interface of questions.Asker."""

    def __init__(self, r, by_picture):
        self.r, self.by_picture = r, by_picture

    def ask(self, task, picture):
        question, answer = self.r.choice(self.by_picture[picture])
        return Question(task, kind_of(question, answer), question, answer)
