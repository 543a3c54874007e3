"""Writes the held-out question sets of tests/eval (their format is described there).

  python heldout.py ../../tests/eval [demo] [free] [easy_vqa] [turns]

demo: template questions (plain wordings of training); free: wording that training never uses; easy_vqa: a question about each test picture;
turns: questions that lean on the turn before. The seeds are used nowhere else. Needs Pillow, torch and easy-vqa.
"""
import argparse
import json
import os
import random
from collections import Counter, defaultdict

import torch
from PIL import Image

import easy_vqa_data
import free_phrasings
import phrasings
from questions import Asker
from render import Renderer, scene_arrays
from scenes import Scene
from vocabulary import TASKS

SIZES = [320, 336, 360, 384, 400, 420, 448, 480, 512]
SINGLE_TASKS = [t for t in TASKS if t not in ('two', 'easy_vqa')]
CHOICES = {'further': ('a', 'b'), 'which': ('p', 'q')}  # kinds whose answer is one of two slots of the question


class PictureMaker:
    """Scenes painted at many sizes with some change of light, saved as PNG (plain ones) or JPEG of quality 80 to 93."""

    def __init__(self, folder, seed):
        self.folder, self.r = folder, random.Random(seed)
        self.generator = torch.Generator().manual_seed(self.r.randrange(1 << 30))
        self.renderers = {}
        os.makedirs(os.path.join(folder, 'images'), exist_ok=True)

    def save(self, index, scene):
        """The picture's path relative to the set."""
        r = self.r
        size = r.choice(SIZES)
        renderer = self.renderers.setdefault(size, Renderer('cpu', size))
        arrays = scene_arrays([scene])
        chance = renderer.sample(arrays[0], self.generator)
        x = renderer.paint(*arrays, chance)
        x = ((x - .5) * r.uniform(.8, 1.12) + .5 + r.uniform(-.06, .06)).clamp(0, 1)
        image = Image.fromarray((x[0].permute(1, 2, 0) * 255).round().byte().numpy())
        plain = chance['kind'].item() == 0
        name = f'images/{index:03d}.' + ('png' if plain else 'jpg')
        image.save(os.path.join(self.folder, name), **({'optimize': True} if plain else {'quality': r.randint(80, 93)}))
        return name


class Recorder:
    """Wraps a `say` and keeps the slots last filled, for the questions whose answer is one of two things named."""

    def __init__(self, say):
        self.say, self.slots = say, {}

    def __call__(self, rng, kind, **slots):
        self.slots = slots
        return self.say(rng, kind, **slots)


def row_of(question, images, recorder=None, **more):
    row = dict(task=question.task, kind=question.kind, images=images, question=question.text, answer=question.answer)
    if question.kind in CHOICES:
        row['choices'] = [recorder.slots[slot] for slot in CHOICES[question.kind]]
    return row | more


def chance_by_task(rows):
    """Share of right answers of the best blind strategy: for each kind of question the answer given most often, or,
    where the question names the two possible answers, always its first or always its second."""
    by_kind = defaultdict(list)
    for row in rows:
        given = row['choices'].index(row['answer']) if 'choices' in row else row['answer']
        by_kind[row['task'], row['kind']].append(given)
    right, asked = Counter(), Counter()
    for (task, _), answers in by_kind.items():
        right[task] += Counter(answers).most_common(1)[0][1]
        asked[task] += len(answers)
    return {task: dict(questions=asked[task], chance=0. if task == 'describe' else round(right[task] / asked[task], 4))
            for task in TASKS if asked[task]}


def write_set(folder, name, description, rows):
    for i, row in enumerate(rows):
        rows[i] = dict(id=i) | row
    with open(os.path.join(folder, 'questions.jsonl'), 'w') as f:
        f.writelines(json.dumps(row) + '\n' for row in rows)
    about = dict(name=name, description=description, questions=len(rows), tasks=chance_by_task(rows))
    with open(os.path.join(folder, 'set.json'), 'w') as f:
        f.write(json.dumps(about, indent=2) + '\n')
    print(name, len(rows), 'questions', {k: v['questions'] for k, v in about['tasks'].items()})


def generated_rows(folder, seed, pictures, say, *, per_picture, pairs, at_least):
    """Questions of all single-picture tasks (`per_picture` tasks a picture, drawn at random), topped up to
    `at_least` of a task, and `pairs` questions about two pictures."""
    maker = PictureMaker(folder, seed)
    r, recorder = maker.r, Recorder(say)
    asker, scenes, names, rows = Asker(r, recorder), [], [], []
    tasks = list(SINGLE_TASKS)
    for i in range(pictures):
        scenes.append(Scene(r))
        names.append(maker.save(i, scenes[-1]))
        r.shuffle(tasks)
        done = set()
        for task in tasks + tasks:  # a second round makes up for questions that were refused to keep the balance
            if len(done) == per_picture:
                break
            question = asker.ask(task, scenes[-1]) if task not in done else None
            if question:
                rows.append(row_of(question, [names[-1]], recorder))
                done.add(task)
    asked = Counter(row['task'] for row in rows)
    for task in SINGLE_TASKS:
        while asked[task] < at_least:
            i = r.randrange(pictures)
            question = asker.ask(task, scenes[i])
            if question:
                rows.append(row_of(question, [names[i]], recorder))
                asked[task] += 1
    while pairs:
        i, j = r.sample(range(pictures), 2)
        question = asker.ask('two', scenes[i], scenes[j])
        if question:
            rows.append(row_of(question, [names[i], names[j]]))
            pairs -= 1
    return rows


def demo(folder):
    rows = generated_rows(folder, 'held-out demo', 260, phrasings.template,
                          per_picture=len(SINGLE_TASKS), pairs=260, at_least=220)
    write_set(folder, 'demo', 'Generated pictures of 1 to 16 objects and template questions; seeds that training never uses.', rows)


def free(folder):
    rows = generated_rows(folder, 'held-out free', 90, free_phrasings.say, per_picture=4, pairs=40, at_least=32)
    write_set(folder, 'free', 'Generated pictures; questions in wording that training never uses.', rows)


def easy_vqa(folder):
    r = random.Random('held-out easy-VQA')
    os.makedirs(os.path.join(folder, 'images'), exist_ok=True)
    paths, by_picture = easy_vqa_data.load('test')
    rows = []
    for i, path in enumerate(paths):
        question, answer = r.choice(by_picture[i])
        name = f'images/{os.path.basename(path)}'
        Image.open(path).save(os.path.join(folder, name), optimize=True)
        rows.append(dict(task='easy_vqa', kind=easy_vqa_data.kind_of(question, answer), images=[name],
                         question=question, answer=answer))
    write_set(folder, 'easy_vqa', 'The test split of easy-VQA (MIT licence, Copyright 2019 Victor Zhou): one random '
              'question of each of its 1,000 pictures; "yes" and "no" are written "Yes." and "No.".', rows)


def turns(folder):
    maker = PictureMaker(folder, 'held-out turns')
    asker, rows, picture = Asker(maker.r), [], 0
    while len(rows) < 120:
        scene = Scene(maker.r)
        if not scene.things:
            continue
        name = None
        for task in ('color', 'locate', 'shape', 'read'):
            first = asker.ask(task, scene)
            then = first and asker.follow_up(scene, first)
            if then:
                name = name or maker.save(picture, scene)
                rows.append(row_of(then, [name], history=[[first.text, first.answer]]))
        picture += name is not None
    write_set(folder, 'turns', 'Questions that lean on the turn before, which stands in `history`.', rows)


def main():
    makers = {f.__name__: f for f in (demo, free, easy_vqa, turns)}
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('out', help='folder of the sets')
    ap.add_argument('sets', nargs='*', help=f'which to write: {", ".join(makers)} (all)')
    a = ap.parse_args()
    for name in a.sets or makers:
        folder = os.path.join(a.out, name)
        os.makedirs(folder, exist_ok=True)
        makers[name](folder)


if __name__ == '__main__':
    main()
