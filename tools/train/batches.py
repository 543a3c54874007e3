"""Training rows: many short conversations packed behind the pictures they are about.

Encoding a picture costs far more than asking about it, so each picture is encoded once and some 20 questions share it.
A row holds what follows the pictures; a token sees the pictures and its own conversation, at the position that the
chat template would give it: <bos><|user|>IMAGE question<|assistant|>answer<|end|><|user|>...
"""
import random
import re

import numpy as np
import torch

import easy_vqa_data
from questions import MIX, Asker
from render import scene_arrays
from scenes import CANVAS, Scene
from vocabulary import ASSISTANT, END, TASKS, USER

IMAGE_TOKENS = 576
PREFIX, ROW = 2 + IMAGE_TOKENS, 446             # tokens before and after one picture's features; their sum is 1,024
PAIR_PREFIX, PAIR_ROW = 2 + 2 * IMAGE_TOKENS, 254  # of two pictures; the sum is 1,408
EASY_VQA_PICTURES = 8                           # how many pictures of a batch come from easy-VQA (none in pairs)
NEAR_SHARE = .5                                 # how many relations are asked of objects that are close together
ALIKE_SHARE = .4                                # how many pictures have texts that are easily taken for each other
MAX_TURNS = 64                                  # answers a row may hold

TOKEN, POSITION, CONVERSATION, TURN, TASK, PLACE, TOLD, OFFSET = range(8)  # what the channels of a row hold
CHANNELS = 8
PLACE_GRID = 24  # the place of an object that a question names is the patch that holds its centre
CHARACTER = PLACE_GRID * PLACE_GRID  # what TOLD adds to the patch of a character, which is smaller than an object
OFFSETS = 32     # steps, of 24 pixels, in which the offset between two compared objects is told, by axis

PIECES = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


class PieceTokenizer:
    """Ids of ASCII text. Byte-level BPE never crosses the pieces of its pre-tokeniser, so each is encoded once."""

    def __init__(self, tokenizer):
        self.tokenizer, self.cache = tokenizer, {}

    def __call__(self, text):
        return self.with_ends(text)[0]

    def with_ends(self, text):
        """The ids, and {index behind a token in the text: number of ids up to there}."""
        ids, ends, at = [], {0: 0}, 0
        for piece in PIECES.findall(text):
            known = self.cache.get(piece)
            if known is None:
                encoding = self.tokenizer.encode(piece)
                known = encoding.ids, [end for _, end in encoding.offsets]
                if len(self.cache) < 200000:
                    self.cache[piece] = known
            ends |= {at + end: len(ids) + i + 1 for i, end in enumerate(known[1])}
            ids += known[0]
            at += len(piece)
        return ids, ends


def place_of(thing):
    """The patch that holds the centre of an object or place."""
    return int(thing.cy * PLACE_GRID / CANVAS) * PLACE_GRID + int(thing.cx * PLACE_GRID / CANVAS)


def told_in(question, ends):
    """(number of answer tokens before it, where to look) of each object and character that an answer tells."""
    answer, at = question.answer, 0
    for thing in question.told:
        begin = answer.find(thing.item(), at)
        if begin >= 0:
            at = begin
            yield ends[begin] if begin in ends else ends[begin - 1], place_of(thing)  # a token may begin with a blank
        begin = answer.find(thing.text, at)
        for i in range(len(thing.text)):
            yield ends[begin + i], CHARACTER + place_of(thing.character(i))


def offset_of(a, b):
    """How far b's centre is from a's: the step in y times OFFSETS plus the step in x."""
    y, x = (int((d + CANVAS) * OFFSETS / (2 * CANVAS)) for d in (b.cy - a.cy, b.cx - a.cx))
    return y * OFFSETS + x


class RowPacker:
    """Fills one row [8, S] with conversations about one subject until it is full."""

    def __init__(self, r, ids, asker, mix, lead_tasks):
        self.r, self.ids, self.asker = r, ids, asker
        self.tasks, self.weights, self.lead_tasks = list(mix), list(mix.values()), lead_tasks

    def fill(self, out, start, *subject):
        r, room, used, turn = self.r, out.shape[1] - 1, 0, 0
        for conversation in range(60):
            position, last = start, None
            for _ in range(1 if r.random() < .65 else r.randint(2, 4)):
                question = self.next_question(conversation == 0 and last is None, last, subject)
                if question is None:
                    continue
                (asked, ends), (answer, answer_ends) = self.ids.with_ends(question.text), self.ids.with_ends(question.answer)
                tokens = ([USER] if last else []) + asked + [ASSISTANT] + answer + [END]
                n, n_answer = len(tokens), len(answer) + 1
                if used + n > room or turn >= MAX_TURNS:
                    return
                span, learned = slice(used, used + n), slice(used + n - 1 - n_answer, used + n - 1)
                out[TOKEN, span], out[POSITION, span] = tokens, range(position, position + n)
                out[CONVERSATION, span] = conversation
                text = question.text.lower()
                for phrases, thing in question.mentions:
                    behind = max(text.find(phrase.lower()) + len(phrase) for phrase in phrases)
                    if all(phrase.lower() in text for phrase in phrases) and behind in ends:
                        out[PLACE, used + (last is not None) + ends[behind] - 1] = place_of(thing)
                for before, patch in told_in(question, answer_ends):
                    out[TOLD, learned.start + before] = patch
                if len(question.mentions) == 2:
                    out[OFFSET, learned.start] = offset_of(*(thing for _, thing in question.mentions))
                out[TURN, learned], out[TASK, learned] = turn, TASKS.index(question.task)
                used, position, turn, last = used + n, position + n, turn + 1, question
            if used > room - 12:
                return

    def next_question(self, leads, last, subject):
        r = self.r
        if last and last.topic and r.random() < .6:
            follow_up = self.asker.follow_up(*subject, last)
            if follow_up:
                return follow_up
        tasks = self.lead_tasks if leads and self.lead_tasks and r.random() < .6 else None
        task = r.choice(tasks) if tasks else r.choices(self.tasks, self.weights)[0]
        return self.asker.ask(task, *subject)


class Batches(torch.utils.data.IterableDataset):
    """Yields (scene arrays..., easy-VQA picture indices [8 or 0], rows [n, 8, S]).

    In `rows`, TASK is 0 or more where the next token is part of an answer, and PLACE at the last token of a
    phrase that names one object (the patch that holds its centre), TOLD at the token before each object or character that
    an answer tells (its patch; CHARACTER is added for a character), and OFFSET at the last token before the answer where
    two objects are compared. S is 0 while only the tower trains
    (`progress` below `tower_until`); n is half the number of pictures when questions are about two. The first eight
    pictures of a batch of single pictures are to be replaced by the easy-VQA pictures named.
    """

    def __init__(self, tokenizer, progress, seed, pictures, *, tower_until=.04, easy_until=.12, pair_share=.16):
        self.tokenizer, self.progress, self.seed, self.pictures = tokenizer, progress, seed, pictures
        self.tower_until, self.easy_until, self.pair_share = tower_until, easy_until, pair_share

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        r = random.Random(f'{self.seed}-{worker.id if worker else 0}')
        ids = PieceTokenizer(self.tokenizer)
        single = RowPacker(r, ids, Asker(r, near=NEAR_SHARE), MIX, ['describe'])
        pair = RowPacker(r, ids, Asker(r), {'two': 1}, None)
        _, easy_questions = easy_vqa_data.load('train')
        easy = RowPacker(r, ids, easy_vqa_data.Asker(r, easy_questions), {'easy_vqa': 1}, None)
        while True:
            progress = self.progress.value
            early = progress < self.easy_until
            scenes = [Scene(r, easy=early and r.random() < .8, alike=ALIKE_SHARE) for _ in range(self.pictures)]
            if progress < self.tower_until:
                yield *scene_arrays(scenes), torch.zeros(0, dtype=torch.long), torch.zeros(self.pictures, CHANNELS, 0)
            elif not early and r.random() < self.pair_share:
                rows = self.empty_rows(self.pictures // 2, PAIR_ROW)
                for i, row in enumerate(rows):
                    pair.fill(row, PAIR_PREFIX, *scenes[2 * i:2 * i + 2])
                yield *scene_arrays(scenes), torch.zeros(0, dtype=torch.long), torch.from_numpy(rows)
            else:
                rows = self.empty_rows(self.pictures, ROW)
                shown = r.sample(list(easy_questions), min(EASY_VQA_PICTURES, self.pictures))
                for i, row in enumerate(rows):
                    if i < len(shown):
                        easy.fill(row, PREFIX, shown[i])
                    else:
                        single.fill(row, PREFIX, scenes[i])
                yield *scene_arrays(scenes), torch.tensor(shown), torch.from_numpy(rows)

    @staticmethod
    def empty_rows(n, length):
        rows = np.zeros((n, CHANNELS, length), np.int16)
        rows[:, [CONVERSATION, TASK, PLACE, TOLD, OFFSET]] = -1
        return rows
