"""What a generated picture holds: coloured shapes and short texts, with the places and counts that questions need.

A picture is a 384 x 384 canvas (other sizes are scaled from it). Rows and columns always mean the quarters of the
canvas, so that "row 2, column 3" has an answer whether or not the objects stand in a grid. Part of the scenes put
objects into the 4 x 4 cells; the rest cuts the canvas at random into rectangles of different sizes, one an object.
"""
from collections import Counter, namedtuple

from vocabulary import CHARS, COLORS, MAX_TEXT, SHAPES, TEXT, with_article

CANVAS = 384
CELL = CANVAS // 4
GLYPH_ADVANCE, GLYPH_HEIGHT = 18, 28  # of a character at text scale 1, in canvas pixels
MAX_OBJECTS = 16
CLEAR = 14  # how far from a cell's border a centre must be for its row and column to be asked, in pixels
LOOKALIKES = ('5S', '8B', '6G', '2Z', 'MN', 'UV', 'PR', 'EF', 'QG', 'VY', 'HN', '35', '39', 'KX', 'CG', 'UJ', '4A', 'T7')
GAP = 3     # what an object keeps free around it inside its rectangle, in pixels

Place = namedtuple('Place', 'cx cy')


def centre_of_cell(row, column):
    return Place((column + .5) * CELL, (row + .5) * CELL)


class Thing:
    """One object: `kind` and `color` are indices, `text` is what a text says. `cx, cy` is the centre; `size` is the
    radius of a shape (its sides are `size * aspect` and `size / aspect`) or the scale of a text."""
    __slots__ = ('kind', 'color', 'text', 'cx', 'cy', 'size', 'aspect', 'row', 'column', 'clear')

    def __init__(self, kind, color, text, size, aspect):
        self.kind, self.color, self.text, self.size, self.aspect = kind, color, text, size, aspect

    def half_extent(self):
        """Half of the width and of the height that the object covers."""
        if self.kind == TEXT:
            return self.size * GLYPH_ADVANCE * len(self.text) / 2, self.size * GLYPH_HEIGHT / 2
        return self.size * self.aspect, self.size / self.aspect

    def put(self, cx, cy):
        self.cx, self.cy = cx, cy
        self.row, self.column = min(3, int(cy // CELL)), min(3, int(cx // CELL))
        self.clear = all(CLEAR <= v % CELL <= CELL - CLEAR for v in (cx, cy))

    def name(self):
        return f'{COLORS[self.color]} {SHAPES[self.kind] if self.kind < TEXT else "text"}'

    def item(self):
        return with_article(self.name()) + (f' "{self.text}"' if self.kind == TEXT else '')

    def character(self, index):
        """The centre of one character of a text."""
        return Place(self.cx + (index - (len(self.text) - 1) / 2) * GLYPH_ADVANCE * self.size, self.cy)

    def place(self):
        return f'row {self.row + 1}, column {self.column + 1}'


class Scene:
    """Objects in reading order (by row, then from left to right), with the counts that questions need.

    `easy` keeps to few objects, `in_grid` overrides what the random source `r` would choose. `alike` is the share of
    pictures with many texts of few characters and often of one colour: whoever reads on from the character told last,
    and not from its place, goes astray between them.
    """

    def __init__(self, r, easy=False, in_grid=None, alike=0.):
        self.in_grid = r.random() < .55 if in_grid is None else in_grid
        count = self._object_count(r, easy)
        boxes = grid_boxes(r, count) if self.in_grid else free_boxes(r, count)
        text_share = 0 if r.random() < .35 else .3
        theme, pull, favourite = r.random(), r.uniform(.3, .95), r.randrange(8)
        characters, text_color = CHARS, None
        if alike and r.random() < alike:
            text_share, characters, text_color = .6, alike_characters(r), r.randrange(8)
        self.things = []
        for box in boxes:
            kind, color = r.randrange(8), r.randrange(8)
            if theme < .6 and r.random() < pull:  # a common shape or colour makes high counts possible
                kind, color = (favourite, color) if theme < .3 else (kind, favourite)
            if r.random() < text_share:
                kind = TEXT
                if text_color is not None and r.random() < .4:
                    color = text_color
            thing = make_thing(r, box, kind, color, self.in_grid, characters)
            if thing and thing.text not in [t.text for t in self.things if t.text]:
                place_inside(r, thing, box, self.in_grid)
                self.things.append(thing)
        self.things.sort(key=lambda t: (t.row, t.cx))
        self._count()

    @staticmethod
    def _object_count(r, easy):
        if easy:
            return r.randint(1, 5)
        x = r.random()
        return r.randint(2, 9) if x < .7 else r.randint(10, 16) if x < .9 else r.randint(1, 3)

    def _count(self):
        self.shapes = [t for t in self.things if t.kind < TEXT]
        self.texts = [t for t in self.things if t.kind == TEXT]
        self.by_kind, self.by_color, self.by_both = [0] * 8, [0] * 8, Counter()
        for t in self.shapes:
            self.by_kind[t.kind] += 1
            self.by_color[t.color] += 1
            self.by_both[t.kind, t.color] += 1
        text_colors = Counter(t.color for t in self.texts)
        self.clear_texts = [t for t in self.texts if text_colors[t.color] == 1]
        self.unique = self.clear_texts + [t for t in self.shapes if self.by_both[t.kind, t.color] == 1]
        self.rows_clear = all(t.clear for t in self.things)

    def number(self, kind, color):
        """How many shapes there are of a kind, of a colour, or of both (None: any)."""
        if kind is not None and color is not None:
            return self.by_both[kind, color]
        return self.by_color[color] if kind is None else self.by_kind[kind]

    def at(self, row, column):
        """The object in a cell, None if the cell is empty, False if the answer is open to dispute."""
        inside = [t for t in self.things if (t.row, t.column) == (row, column)]
        if len(inside) == 1:
            return inside[0] if inside[0].clear else False
        if inside:
            return False
        left, top = column * CELL, row * CELL
        for t in self.things:
            half_width, half_height = t.half_extent()
            if (left - half_width < t.cx < left + CELL + half_width
                    and top - half_height < t.cy < top + CELL + half_height and not self.in_grid):
                return False
        return None


def grid_boxes(r, count):
    cells = sorted(r.sample(range(16), count))
    return [(c % 4 * CELL, c // 4 * CELL, CELL, CELL) for c in cells]


def free_boxes(r, count):
    """Random rectangles (left, top, width, height) without overlap: the canvas cut again and again across its
    longer side, at a place that gives every object a fair share."""
    boxes, spare = [], r.randint(0, 3)

    def cut(left, top, width, height, n):
        if n == 1:
            boxes.append((left, top, width, height))
            return
        part = min(n - 1, max(1, round(n * r.uniform(.25, .75))))
        at = min(.82, max(.18, part / n + r.uniform(-.1, .1)))
        if width * r.uniform(.7, 1.4) > height:
            cut(left, top, width * at, height, part)
            cut(left + width * at, top, width * (1 - at), height, n - part)
        else:
            cut(left, top, width, height * at, part)
            cut(left, top + height * at, width, height * (1 - at), n - part)

    cut(0., 0., float(CANVAS), float(CANVAS), min(MAX_OBJECTS + 2, count + spare))
    return r.sample(boxes, count)


def alike_characters(r):
    """Five to nine characters, or three or four pairs that look alike."""
    return r.sample(CHARS, r.randint(5, 9)) if r.random() < .5 else ''.join(r.sample(LOOKALIKES, r.randint(3, 4)))


def make_thing(r, box, kind, color, in_grid, characters):
    """An object that fits into `box`, or None when the box is too small for one."""
    _, _, width, height = box
    if kind == TEXT:
        length = r.randint(3, MAX_TEXT)
        fit = lambda n: min((width - 2 * GAP) / (GLYPH_ADVANCE * n), (height - 2 * GAP) / GLYPH_HEIGHT)
        while length > 3 and fit(length) < .9:
            length -= 1
        if fit(length) >= .85:
            text = ''.join(r.choices(characters, k=length))
            return Thing(TEXT, color, text, min(fit(length), r.uniform(.9, 1.35 if in_grid else 2.2)), 1.)
        kind = r.randrange(8)
    aspect = r.uniform(.9, 1.1)
    largest = min((width / 2 - GAP) / aspect, (height / 2 - GAP) * aspect)
    if largest < 15:
        return None
    size = r.uniform(20, 37) if in_grid else r.uniform(max(15, .45 * largest), min(largest, 62))
    return Thing(kind, color, '', min(largest, size), aspect)


def place_inside(r, thing, box, in_grid):
    left, top, width, height = box
    half_width, half_height = thing.half_extent()
    slack_x, slack_y = max(0., width / 2 - GAP - half_width), max(0., height / 2 - GAP - half_height)
    if in_grid:
        slack_x, slack_y = min(16, slack_x), min(16, slack_y)
    cx = left + width / 2 + r.uniform(-slack_x, slack_x)
    cy = top + height / 2 + r.uniform(-slack_y, slack_y)
    # Reading order turns on the row, so a centre stays a little off the border between two rows where it can.
    border = round(cy / CELL) * CELL
    if not in_grid and 0 < border < CANVAS and abs(cy - border) < 6:
        side = 6 if cy >= border else -6
        middle = top + height / 2
        if abs(border + side - middle) <= slack_y:
            cy = border + side
        elif abs(border - side - middle) <= slack_y:
            cy = border - side
    thing.put(cx, cy)
