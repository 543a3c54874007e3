"""Questions with their answers about scenes, balanced so that a reader who does not see the picture stays at chance."""
from collections import Counter, defaultdict, namedtuple

import phrasings
import wordings
from scenes import centre_of_cell
from vocabulary import COLORS, FIRST, NO, NUMBERS, PLURALS, SECOND, SHAPES, TEXT, YES, group, with_article

# `kind` names what was asked more finely than the task does (chance is stated by kind); `topic` is the object spoken of;
# `mentions` lists (phrases, object or place) of what the text names: it is known behind the last of the phrases.
# `told` lists the objects that the answer names or reads, in its order.
Question = namedtuple('Question', 'task kind text answer topic mentions told', defaults=(None, (), ()))

# How often a task is drawn for a question about one picture.
MIX = dict(color=1.6, shape=.9, count=2., exist=1.5, spatial=6., locate=1., cell=4., read=5., more=1.6, describe=.4)
FAR = 56  # pixels by which two centres must differ for left, right, above and below


class Asker:
    """Asks about scenes with the random source `r`. What was answered so far is counted, and rarer answers are preferred.
    `say(r, kind, **slots)` words the questions: phrasings.say for training, free_phrasings.say for unseen wording.
    `near` is the share of relations asked of objects that are close together."""

    def __init__(self, r, say=phrasings.say, near=0.):
        self.r, self.say, self.near, self.seen = r, say, near, Counter()

    def ask(self, task, *scenes):
        """A Question of the task about one scene (`two`: about two), or None when the scene does not allow one."""
        return getattr(self, task)(*scenes)

    def question(self, task, kind, answer, wording=None, topic=None, mentions=(), told=(), **slots):
        return Question(task, kind, self.say(self.r, wording or kind, **slots), answer, topic, mentions, told)

    def least(self, key, options):
        """The answer given least often so far among the keys of `options`, and one of the things asked that have it."""
        answer = min(options, key=lambda a: self.seen[key, a] + 3 * self.r.random())
        self.seen[key, answer] += 1
        return answer, self.r.choice(options[answer])

    def balanced(self, key, answer, others):
        """Whether `answer` may be given once more without running ahead of the other answers; counts it if so."""
        if self.seen[key, answer] > min(self.seen[key, o] for o in others) + 1:
            return False
        self.seen[key, answer] += 1
        return True

    def color(self, scene):
        r = self.r
        subjects = [(t, 'the ' + SHAPES[t.kind]) for t in scene.shapes if scene.by_kind[t.kind] == 1]
        if len(scene.texts) <= 2:
            subjects += [(t, f'the text "{t.text}"') for t in scene.texts if r.random() < .4]
        if len(scene.texts) == 1:
            subjects.append((scene.texts[0], 'the text'))
        if subjects:
            thing, phrase = r.choice(subjects)
            return self.question('color', 'color', COLORS[thing.color], topic=thing, mentions=[([phrase], thing)],
                                 a=phrase)

    def shape(self, scene):
        subjects = [t for t in scene.shapes if scene.by_color[t.color] == 1]
        if subjects:
            thing = self.r.choice(subjects)
            return self.question('shape', 'shape', SHAPES[thing.kind], topic=thing,
                                 mentions=[([COLORS[thing.color]], thing)], c=COLORS[thing.color])

    def count_what(self, scene):
        """(kind of count, number, plural phrase) with the number balanced."""
        r, options = self.r, defaultdict(list)
        what = r.choices(['one_word', 'two_words', 'shapes', 'texts'], [64, 16, 10, 10])[0]
        if what == 'one_word':
            for i in range(8):
                options[scene.by_kind[i]].append(PLURALS[i])
                options[scene.by_color[i]].append(COLORS[i] + ' shapes')
        elif what == 'two_words':
            for pair in [(t.kind, t.color) for t in scene.shapes] + [(r.randrange(8), r.randrange(8))]:
                options[scene.by_both[pair]].append(group(*pair))
        elif what == 'shapes':
            options[len(scene.shapes)] = ['shapes']
        else:
            options[len(scene.texts)] = ['texts', 'pieces of text']
        return f'count_{what}', *self.least(what, options)

    def count(self, scene):
        kind, number, phrase = self.count_what(scene)
        return self.question('count', kind, NUMBERS[number], 'count', p=phrase)

    def presence(self, scene, other=None):
        """(phrase, kind, is it there): a shape that is there, or one that is in `other` only, or a near miss."""
        r = self.r
        wanted, x = r.random() < .5, r.random()
        for _ in range(20):
            if x < .62:
                if wanted and scene.shapes:
                    thing = r.choice(scene.shapes)
                    kind, color = thing.kind, thing.color
                elif other and other.shapes and r.random() < .6:
                    thing = r.choice(other.shapes)
                    kind, color = thing.kind, thing.color
                elif scene.shapes and r.random() < .8:
                    kind, color = r.choice(scene.shapes).kind, r.choice(scene.shapes).color
                else:
                    kind, color = r.randrange(8), r.randrange(8)
                found = (with_article(f'{COLORS[color]} {SHAPES[kind]}'), 'exist_pair', scene.by_both[kind, color] > 0)
            elif x < .77:
                kind = r.randrange(8)
                found = (with_article(SHAPES[kind]), 'exist_shape', scene.by_kind[kind] > 0)
            elif x < .9:
                color = r.randrange(8)
                found = (with_article(COLORS[color] + ' shape'), 'exist_color', scene.by_color[color] > 0)
            else:
                color = r.choice(scene.texts).color if scene.texts and r.random() < .5 else r.randrange(8)
                found = (with_article(COLORS[color] + ' text'), 'exist_colored_text',
                         any(t.color == color for t in scene.texts))
            if found[2] == wanted:
                return found
        return None

    def yes_no(self, task, kind, true, wording=None, **slots):
        answer = YES if true else NO
        if self.balanced(kind, answer, (YES, NO)):
            return self.question(task, kind, answer, wording, **slots)

    def exist(self, scene):
        x = self.r.random()
        if x < .12:
            return self.yes_no('exist', 'exist_text', bool(scene.texts))
        if x < .3:
            pair = self.r.choice([(None, self.r.randrange(8)), (self.r.randrange(8), None)])
            return self.yes_no('exist', 'exist_many', scene.number(*pair) > 0, p=group(*pair))
        found = self.presence(scene)
        if found:
            return self.yes_no('exist', found[1], found[2], 'exist', a=found[0])

    def pair(self, scene):
        """Two objects, for the share `near` the closest along one axis out of a few: far ones are easy."""
        r = self.r
        if self.near and r.random() < self.near:
            a, *others = r.sample(scene.unique, min(len(scene.unique), 5))
            axis = r.choice(('cx', 'cy'))
            apart = lambda t: abs(getattr(t, axis) - getattr(a, axis))
            return a, min(others, key=lambda t: (apart(t) < FAR, apart(t)))
        return r.sample(scene.unique, 2)

    def spatial(self, scene):
        """Yes or no to a relation, or which of two objects is further in a direction."""
        if len(scene.unique) < 2:
            return None
        r = self.r
        a, b = self.pair(scene)
        ways = [w for w, d in ((0, b.cx - a.cx), (2, b.cy - a.cy)) if abs(d) >= FAR]
        if not ways:
            return None
        way = r.choice(ways) + r.randrange(2)  # left, right, above, below
        apart = b.cx - a.cx if way < 2 else b.cy - a.cy
        true = (apart > 0) == (way % 2 == 0)
        name_a, name_b = 'the ' + a.name(), 'the ' + b.name()
        mentions = [([name_a], a), ([name_b], b)]
        if r.random() < .4:
            if self.balanced('further', 0 if true else 1, (0, 1)):
                return self.question('spatial', 'further', name_a if true else name_b,
                                     mentions=mentions,
                                     a=name_a, b=name_b, r=r.choice(phrasings.FURTHER[way]))
            return None
        return self.yes_no('spatial', 'spatial', true, mentions=mentions, a=name_a, b=name_b,
                           r=r.choice(phrasings.RELATIONS[way]))

    def locate(self, scene):
        subjects = [t for t in scene.unique if t.clear]
        if subjects:
            thing = self.r.choice(subjects)
            phrase = 'the ' + thing.name()
            return self.question('locate', 'locate', thing.place(), topic=thing, mentions=[([phrase], thing)], a=phrase)

    def cell(self, scene):
        r = self.r
        row, column = r.randrange(4), r.randrange(4)
        if scene.things and r.random() < .7:
            thing = r.choice(scene.things)
            row, column = thing.row, thing.column
        found = scene.at(row, column)
        if found is not False:
            return self.question('cell', 'cell', found.item() if found else 'nothing',
                                 mentions=[([f'row {row + 1}', f'column {column + 1}'], found or centre_of_cell(row, column))],
                                 told=[found] if found else (), i=row + 1, j=column + 1)

    def read(self, scene):
        if len(scene.texts) == 1 and self.r.random() < .5:
            thing = scene.texts[0]
            return self.question('read', 'read', thing.text, topic=thing, told=[thing])
        if scene.clear_texts:
            thing = self.r.choice(scene.clear_texts)
            return self.question('read', 'read_color', thing.text, topic=thing, mentions=[([COLORS[thing.color]], thing)],
                                 told=[thing], c=COLORS[thing.color])

    def more(self, scene):
        r = self.r
        if r.random() < .5:
            numbers, words = scene.by_kind, PLURALS
        else:
            numbers, words = scene.by_color, [c + ' shapes' for c in COLORS]
        near = r.random() < .65  # both groups present
        pairs = [(i, j) for i in range(8) for j in range(8) if numbers[i] > numbers[j] and (numbers[j] or not near)]
        if not pairs:
            return None
        large, small = r.choice(pairs)
        swap = r.random() < .5
        p, q = (small, large) if swap else (large, small)
        if r.random() < .3:
            return self.question('more', 'which', words[large], p=words[p], q=words[q])
        return self.yes_no('more', 'more', not swap, p=words[p], q=words[q])

    def describe(self, scene):
        if not scene.things:
            return None
        kind = self.r.choices(['describe', 'rows', 'places'], [6, 3, 1])[0]
        if kind != 'describe' and (not scene.rows_clear or kind == 'places' and len(scene.things) > 8):
            kind = 'describe'
        if kind == 'describe':
            answer = ', '.join(t.item() for t in scene.things) + '.'
        elif kind == 'places':
            answer = ', '.join(f'{t.item()} in {t.place()}' for t in scene.things) + '.'
        else:
            rows = defaultdict(list)
            for t in scene.things:
                rows[t.row + 1].append(t.item())
            answer = ' '.join(f'Row {row}: {", ".join(items)}.' for row, items in rows.items())
        return self.question('describe', kind, answer, told=scene.things)

    def two(self, first, second):
        x = self.r.random()
        if x < .45:
            return self.two_more(first, second)
        if x < .65:
            return self.two_which(first, second)
        return self.two_one(first, second)

    def two_more(self, first, second):
        options = defaultdict(list)
        for pair in [(k, None) for k in range(8)] + [(None, c) for c in range(8)]:
            a, b = first.number(*pair), second.number(*pair)
            if a != b:
                options[FIRST if a > b else SECOND].append(group(*pair))
        if options:
            answer, phrase = self.least('two_more', options)
            return self.question('two', 'two_more', answer, p=phrase)

    def two_which(self, first, second):
        options = defaultdict(list)
        for answer, here, there in ((FIRST, first, second), (SECOND, second, first)):
            for t in here.shapes:
                if not there.by_both[t.kind, t.color]:
                    options[answer].append(t)
        if options:
            answer, thing = self.least('two_which', options)
            return self.question('two', 'two_which', answer, a=with_article(thing.name()))

    def two_one(self, first, second):
        """What could be asked about one of the two pictures alone."""
        r = self.r
        which = r.randrange(2)
        here, there, ordinal = (first, second, 'first') if which == 0 else (second, first, 'second')
        what = r.choice(['exist', 'exist', 'color', 'count', 'read'])
        if what == 'exist':
            found = self.presence(here, there)
            return found and self.yes_no('two', 'two_exist', found[2], a=found[0], n=ordinal)
        if what == 'color':
            subjects = [t for t in here.shapes if here.by_kind[t.kind] == 1]
            if subjects:
                thing = r.choice(subjects)
                return self.question('two', 'two_color', COLORS[thing.color], a='the ' + SHAPES[thing.kind], n=ordinal)
        elif what == 'count':
            kind, number, phrase = self.count_what(here)
            return self.question('two', 'two_' + kind, NUMBERS[number], 'two_count', p=phrase, n=ordinal)
        elif len(here.texts) == 1:
            return self.question('two', 'two_read', here.texts[0].text, n=ordinal)
        elif here.clear_texts:
            thing = r.choice(here.clear_texts)
            return self.question('two', 'two_read', thing.text, 'two_read_color', c=COLORS[thing.color], n=ordinal)
        return None

    def follow_up(self, scene, last):
        """A question that only makes sense after `last`, a Question about the same scene."""
        thing = last.topic
        if thing is None:
            return None
        r, options = self.r, []
        if last.task in ('color', 'shape', 'read') and thing.clear:
            options.append(('locate', 'it_place', thing.place()))
        if last.task == 'color' and thing.kind < TEXT:
            others = [t for t in scene.shapes if t is not thing and scene.by_kind[t.kind] == 1]
            if others:
                other = r.choice(others)
                options.append(('color', 'other', COLORS[other.color], other, 'the ' + SHAPES[other.kind]))
        if last.task == 'locate':
            others = [t for t in scene.unique if t is not thing and t.clear]
            if others:
                other = r.choice(others)
                options.append(('locate', 'other', other.place(), other, 'the ' + other.name()))
        if last.task == 'read':
            options.append(('color', 'it_color', COLORS[thing.color]))
        if not options:
            return None
        task, wording, answer, *rest = r.choice(options)
        topic, phrase = rest if rest else (thing, '')
        return Question(task, 'follow_up', r.choice(wordings.FOLLOW_UPS[wording]).format(a=phrase), answer, topic)
