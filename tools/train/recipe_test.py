"""Checks of the recipe that need no training: python -m unittest recipe_test (from this folder).

What must hold for the held-out figures to mean something: unseen wording is unseen, answers are true and balanced, and
the trainer's weights are exactly those of the checkpoint.
"""
import json
import os
import random
import tempfile
import unittest
from collections import Counter
from itertools import chain

import torch
from PIL import Image
from tokenizers import Tokenizer

import checkpoint
import free_phrasings
import phrasings
import quick_eval
from batches import CHARACTER, PLACE_GRID, PREFIX, ROW, TASK, TOKEN, Batches, PieceTokenizer, place_of, told_in
from questions import MIX, Asker
from render import Renderer, scene_arrays
from scenes import GAP, Scene
from vocabulary import ASSISTANT, END, NO, TASKS, YES
from wordings import CLAUSES, COMMANDS, QUESTIONS, SENTENCES, WORDINGS

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
DEMO, HELD_OUT = os.path.join(ROOT, 'models', 'demo'), os.path.join(ROOT, 'tests', 'eval', 'demo')


ADDED = set(' '.join(phrasings.FILLERS).split())


def normal(sentence):
    """The sentence without synonyms, fillers, case, marks and double spaces."""
    words = ''.join(c if c.isalnum() or c in '{}' else ' ' for c in sentence.lower()).split()
    return ' '.join(phrasings.SYNONYMS_OF.get(w, [w])[0] for w in words if w not in ADDED)


ASIDES = sorted(map(normal, phrasings.CONTEXTS + phrasings.ENDINGS + phrasings.CLAUSE_TAILS), key=len, reverse=True)


def plain(sentence):
    """What is left of the normal form when asides do not count."""
    sentence = f' {normal(sentence)} '
    for aside in ASIDES:
        sentence = sentence.replace(f' {aside} ', ' ')
    return sentence.strip()


def training_sentences(kind):
    """Every sentence that phrasings.framed can give for a kind, slots open."""
    forms = WORDINGS[kind]
    placed = lambda core: [core] + [f'{core} {place}' for place in phrasings.PLACES]
    yield from forms[SENTENCES]
    for core in chain.from_iterable(map(placed, forms[CLAUSES])):
        yield from (frame.format(x=core) for frame in phrasings.CLAUSE_FRAMES)
    for core in chain.from_iterable(map(placed, forms[COMMANDS])):
        yield core
        yield from (frame.format(x=core) for frame in phrasings.COMMAND_FRAMES)
    for core in chain.from_iterable(map(placed, forms[QUESTIONS])):
        yield core
        yield from (f'{core} {tail}' for tail in phrasings.QUESTION_TAILS)
        for lead in phrasings.QUESTION_LEADS:
            yield from (lead.format(place=place) + core for place in phrasings.PLACES)


class Phrasings(unittest.TestCase):
    def test_unseen_wording_is_unseen(self):
        seen = {plain(s) for kind in WORDINGS for s in training_sentences(kind)}
        self.assertGreater(len(seen), 10000)
        for kind, sentences in free_phrasings.WORDINGS.items():
            self.assertEqual([s for s in sentences if plain(s) in seen], [], kind)

    def test_the_enumeration_covers_what_training_says(self):
        r = random.Random(1)
        for kind in WORDINGS:
            possible = {plain(s) for s in training_sentences(kind)}
            for _ in range(300):
                self.assertIn(plain(phrasings.varied(r, phrasings.framed(r, kind))), possible)

    def test_both_know_the_same_kinds(self):
        self.assertEqual(set(WORDINGS), set(free_phrasings.WORDINGS))


class Scenes(unittest.TestCase):
    def test_objects_stay_apart_and_on_the_canvas(self):
        r = random.Random(2)
        for _ in range(500):
            boxes = []
            for t in Scene(r).things:
                w, h = t.half_extent()
                boxes.append((t.cx - w, t.cy - h, t.cx + w, t.cy + h))
            for i, a in enumerate(boxes):
                self.assertTrue(min(a) >= GAP - .01 and max(a) <= 384 - GAP + .01, a)
                for b in boxes[:i]:
                    apart = max(b[0] - a[2], a[0] - b[2], b[1] - a[3], a[1] - b[3])
                    self.assertGreaterEqual(apart, 2 * GAP - .01)

    def test_alike_texts_share_characters_and_differ(self):
        r, confusable, pairs = random.Random(6), 0, 0
        for _ in range(200):
            texts = [t.text for t in Scene(r, alike=1.).texts]
            self.assertEqual(len(texts), len(set(texts)))
            confusable += sum(bool(set(a[:-1]) & set(b)) for a in texts for b in texts if a != b)
            pairs += len(texts) * (len(texts) - 1)
        self.assertGreater(confusable, .7 * pairs)

    def test_pictures_of_any_size_hold_the_colours(self):
        r = random.Random(3)
        scene = Scene(r, easy=True, in_grid=True)
        for size in (280, 384):
            renderer = Renderer('cpu', size)
            arrays = scene_arrays([scene])
            picture = renderer.paint(*arrays, renderer.sample(arrays[0], torch.Generator().manual_seed(1)))
            self.assertEqual(tuple(picture.shape), (1, 3, size, size))
            for t in scene.shapes:
                if t.kind in (0, 1, 3, 5):  # shapes that cover their centre
                    at = picture[0, :, int(t.cy * size / 384), int(t.cx * size / 384)]
                    self.assertLess((at - renderer.rgb[t.color]).abs().max(), .25)


class Questions(unittest.TestCase):
    def test_yes_and_no_are_balanced(self):
        r = random.Random(4)
        ask, given = Asker(r), Counter()
        for _ in range(2000):
            a, b = Scene(r), Scene(r)
            for task in [*MIX, 'two']:
                q = ask.ask(task, *((a, b) if task == 'two' else (a,)))
                if q and q.answer in (YES, NO):
                    given[q.kind, q.answer] += 1
        for kind in {k for k, _ in given}:
            yes, no = given[kind, YES], given[kind, NO]
            self.assertLessEqual(abs(yes - no), 1 + .02 * (yes + no), kind)

    def test_counts_are_true(self):
        r = random.Random(5)
        for _ in range(300):
            scene = Scene(r)
            self.assertEqual(sum(scene.by_kind), len(scene.shapes))
            self.assertEqual(len(scene.shapes) + len(scene.texts), len(scene.things))


class Rows(unittest.TestCase):
    def test_pieces_give_the_tokenizers_ids(self):
        tokenizer = Tokenizer.from_file(os.path.join(DEMO, 'tokenizer.json'))
        ids, r = PieceTokenizer(tokenizer), random.Random(6)
        ask = Asker(r)
        for _ in range(200):
            scene = Scene(r)
            for task in MIX:
                q = ask.ask(task, scene)
                for text in (q.text, q.answer) if q else ():
                    self.assertEqual(ids(text), tokenizer.encode(text).ids)

    def test_answers_point_at_what_comes_next(self):
        ids, r = PieceTokenizer(Tokenizer.from_file(os.path.join(DEMO, 'tokenizer.json'))), random.Random(8)
        ask, told = Asker(r), Counter()
        for _ in range(200):
            scene = Scene(r)
            for q in filter(None, (ask.ask(task, scene) for task in ('cell', 'read', 'describe'))):
                tokens, ends = ids.with_ends(q.answer)
                for before, patch in told_in(q, ends):
                    where = divmod(patch % CHARACTER, PLACE_GRID)
                    token = ids.tokenizer.decode([tokens[before]]).strip()
                    if patch >= CHARACTER:
                        there = [c for t in scene.texts for i, c in enumerate(t.text)
                                 if divmod(place_of(t.character(i)), PLACE_GRID) == where]
                        self.assertIn(token, there)
                    else:
                        self.assertTrue(token in ('a', 'an') and any(divmod(place_of(t), PLACE_GRID) == where for t in q.told))
                    told[q.task, patch >= CHARACTER] += 1
        self.assertEqual(len(told), 5)  # objects of cells and descriptions, characters of all three

    def test_rows_hold_whole_answers(self):
        class Progress:
            value = .5
        batches = iter(Batches(Tokenizer.from_file(os.path.join(DEMO, 'tokenizer.json')), Progress, 'test', 16))
        for _ in range(4):
            *_, shown, rows = next(batches)
            self.assertTrue(rows.shape[2] != ROW or rows[:, 1].max() >= PREFIX)
            learned = rows[:, TASK] >= 0
            self.assertTrue(learned.any(1).all())
            follows = torch.roll(rows[:, TOKEN], -1, 1)
            ends = learned & ~torch.roll(learned, -1, 1)
            self.assertTrue((follows[ends] == END).all())
            begins = learned & ~torch.roll(learned, 1, 1)
            self.assertTrue((rows[:, TOKEN][begins] == ASSISTANT).all())
            self.assertLess(int(rows[:, TASK].max()), len(TASKS))


class Checkpoints(unittest.TestCase):
    def test_reading_and_writing_are_inverse(self):
        from safetensors.torch import load_file
        weights = checkpoint.from_hugging_face(DEMO)
        with tempfile.TemporaryDirectory() as folder:
            checkpoint.write(folder, weights, DEMO)
            a, b = (load_file(os.path.join(f, 'model.safetensors')) for f in (folder, DEMO))
        self.assertEqual(a.keys(), b.keys())
        self.assertTrue(all(torch.equal(a[k], b[k]) for k in a))

    def test_the_quick_evaluation_reads_answers_off_the_network(self):
        with open(os.path.join(HELD_OUT, 'questions.jsonl')) as f:
            rows = [row for row in map(json.loads, f) if row['task'] == 'shape'][:2]
        reader = quick_eval.Reader(DEMO, None, torch.float32)
        with torch.inference_mode():
            for row in rows:
                picture = reader.features(Image.open(os.path.join(HELD_OUT, row['images'][0])))
                self.assertEqual(list(reader.answers(picture, [row])), [row['answer']])


if __name__ == '__main__':
    unittest.main()
