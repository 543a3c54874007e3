"""The closed world of the demo model: colours, shapes, readable characters, number words, tasks and special tokens."""

RGB = {
    'red': (220, 40, 40), 'green': (40, 170, 60), 'blue': (45, 80, 220), 'yellow': (235, 205, 40),
    'purple': (150, 60, 190), 'orange': (240, 135, 30), 'white': (247, 247, 247), 'black': (15, 15, 15),
}
COLORS = list(RGB)
SHAPES = ['circle', 'square', 'triangle', 'diamond', 'ring', 'cross', 'star', 'bar']
PLURALS = [shape + ('es' if shape == 'cross' else 's') for shape in SHAPES]
TEXT = len(SHAPES)  # the object kind of a piece of text, after the shapes
CHARS = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'  # no 0/O and no 1/I: a reader must be able to be right
MAX_TEXT = 5
NUMBERS = ('zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen '
           'fifteen sixteen').split()
YES, NO = 'Yes.', 'No.'
FIRST, SECOND = 'the first', 'the second'

SPECIAL_TOKENS = ['<pad>', '<bos>', '<|end|>', '<|user|>', '<|assistant|>', '<image>']
PAD, BOS, END, USER, ASSISTANT, IMAGE = range(6)

TASKS = ['color', 'shape', 'count', 'exist', 'spatial', 'locate', 'cell', 'read', 'more', 'describe',
         'two', 'easy_vqa']


def with_article(phrase):
    """'orange star' -> 'an orange star'."""
    return ('an ' if phrase[0] in 'aeiou' else 'a ') + phrase


def group(kind, color):
    """Plural name of a group: 'red circles', 'circles' (colour None) or 'red shapes' (kind None)."""
    noun = 'shapes' if kind is None else PLURALS[kind]
    return noun if color is None else f'{COLORS[color]} {noun}'
