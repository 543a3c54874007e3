"""How training asks: the wordings of wordings.py put into frames, with synonyms, context, fillers and slips.

`say` picks all of these at random, so that the model learns what is asked and not one way of asking. The wordings used
to measure unseen phrasing are in free_phrasings.py, which training never reads.
"""
from wordings import CLAUSES, COMMANDS, QUESTIONS, SENTENCES, WORDINGS

RELATIONS = [['to the left of', 'left of', 'on the left of', 'further left than'],
             ['to the right of', 'right of', 'on the right of', 'further right than'],
             ['above', 'higher than', 'higher up than', 'further up than'],
             ['below', 'lower than', 'lower down than', 'further down than']]
FURTHER = [['further left', 'more to the left', 'nearer to the left side', 'farther to the left'],
           ['further right', 'more to the right', 'nearer to the right side', 'farther to the right'],
           ['higher up', 'nearer to the top', 'higher', 'further up', 'closer to the top'],
           ['lower down', 'nearer to the bottom', 'lower', 'further down', 'closer to the bottom']]

PLACES = ['in the picture', 'in this picture', 'in the image', 'in this image', 'in the photo', 'in this photo', 'here',
          'in the drawing', 'in the scene']
QUESTION_LEADS = ['{place}, ', 'please answer: ', 'please look: ', 'tell me, ', 'tell me: ', 'hello, ', 'hi! ', 'question: ',
                  'so, ', 'now, ', 'look at the picture: ', 'looking at the picture, ', 'can you tell me, ', 'one question: ',
                  'okay, ', 'have a look: ', 'look closely: ', 'next question: ', 'and ', 'quickly, ', 'take a look at this: ',
                  'as far as you can tell, ', 'in your view, ', 'judging by the picture, ', 'if you had to say, ', 'well, ',
                  'excuse me, ', 'here is one: ', 'one for you: ', 'to be sure, ', 'my question: ', 'help me out: ']
QUESTION_TAILS = ['please', 'do you know', 'can you tell', 'tell me', 'thanks']
COMMAND_FRAMES = ['please {x}.', 'please {x}.', 'could you {x}?', 'can you {x}?', 'would you {x}?', 'could you please {x}?',
                  'can you please {x}?', 'would you please {x}?', 'I want you to {x}.', 'I would like you to {x}.', 'now {x}.',
                  '{x}, please.', 'your task is to {x}.', 'you should {x}.', 'try to {x}.', 'kindly {x}.', 'help me to {x}.']
CLAUSE_FRAMES = ['do you know {x}?', 'I would like to know {x}.', 'please tell me {x}.', 'can you tell me {x}?',
                 'could you tell me {x}?', 'I want to know {x}.', 'let me know {x}.', 'could you say {x}?', 'I wonder {x}.',
                 'tell me {x}, please.', 'I need to know {x}.', 'can you say {x}?', 'would you tell me {x}?',
                 'please say {x}.', "I'd like to know {x}.", 'show me that you know {x}.', 'are you able to tell me {x}?',
                 'I am asking {x}.', 'my question is {x}.', 'please let me know {x}.', 'do you see {x}?', 'explain {x}.',
                 'people want to know {x}.', 'my teacher asks {x}.', 'somebody asks {x}.', 'a friend of mine wants to know {x}.',
                 'he asks me {x}.', 'she would like to hear {x}.', 'you are asked {x}.', 'the question is {x}.', 'find out {x}.',
                 'please find out {x} for me.', 'I have been asked {x}.', 'work out {x}.', 'I must find out {x}.',
                 'it is not clear to me {x}.', 'we wonder {x}.', 'we were asked {x}.', 'I have to say {x}.', 'help me see {x}.',
                 'I want you to find out {x}.', 'who can tell me {x}?', 'are you sure {x}?', 'I have no idea {x}.',
                 'the others ask {x}.', 'give an answer: {x}?', 'answer me this: {x}?', 'think about {x}.', 'look and tell me {x}.']
CLAUSE_TAILS = ['What do I say?', 'What do I tell them?', 'Can you help me?', 'How do I reply?', 'What is the answer?',
                'Do you know?', 'Please help.', 'What is right?', 'What would you say?', 'What is your answer?',
                'Could you help out?', 'Any idea?', 'What do you think?', 'You tell me.', 'Answer for me.',
                'What can I tell her?', 'What is a good reply?', 'Help me to reply.']

CONTEXTS = ['I have a question.', 'Here is my question.', 'Help me, please.', 'Hi there!', 'Good morning.', 'I am curious.',
            'I cannot see it myself.', 'This is for my homework.', 'Let us play a game.', 'Listen.', 'Be careful.',
            'I am new here.', 'Have a good look.', 'Try this one.', 'One more thing.', 'All right.', 'I am not sure.']
ENDINGS = ['Thanks!', 'Thank you.', 'Please be exact.', 'Answer briefly.', 'I cannot tell.', 'Take your time.',
           'A short answer is enough.', 'It matters to me.',
           'What do you think?', 'Can you help?', 'What is your answer?', 'Any idea?', 'I am waiting.', 'You can do it.']
FILLERS = ['just', 'really', 'now', 'then', 'also', 'maybe', 'exactly', 'actually', 'perhaps', 'simply', 'again']
SYNONYMS = [
    ['picture', 'image', 'photo', 'drawing', 'scene', 'illustration', 'photograph', 'graphic'],
    ['pictures', 'images', 'photos', 'drawings', 'photographs'],
    ['see', 'spot', 'notice', 'detect', 'perceive'], ['show', 'contain', 'display', 'include', 'feature', 'have'],
    ['shows', 'contains', 'displays', 'includes', 'has', 'features'],
    ['shown', 'drawn', 'visible', 'displayed', 'depicted', 'pictured'], ['object', 'thing', 'item', 'element'],
    ['objects', 'things', 'items', 'elements'], ['placed', 'located', 'positioned', 'situated'],
    ['color', 'colour', 'shade', 'tint'], ['larger', 'greater', 'bigger'],
    ['characters', 'letters', 'symbols', 'signs'], ['position', 'place', 'location'], ['read', 'transcribe', 'decipher'],
    ['number', 'amount', 'total'], ['say', 'state', 'report'], ['says', 'states', 'reads'], ['find', 'discover', 'locate'],
    ['check', 'verify', 'examine'], ['written', 'printed', 'noted'], ['common', 'frequent', 'numerous'],
    ['correct', 'right', 'true', 'accurate'], ['someone', 'somebody', 'anybody'], ['kind', 'sort', 'type'],
    ['look', 'peek'], ['picked', 'chosen'], ['anything', 'something'],
]
SYNONYMS_OF = {word: words for words in SYNONYMS for word in words}

NO_PLACE = {kind for kind in WORDINGS if kind.startswith('two_')}  # "in this picture" would be wrong of two pictures
HAS_PLACE = ('picture', 'image', 'photo', 'here')


def capitalised(sentence):
    return sentence[0].upper() + sentence[1:]


def slip(rng, sentence):
    """A slip of the keyboard in one word that is not a slot: a letter lost, doubled or swapped with the next."""
    words = sentence.split(' ')
    places = [i for i, w in enumerate(words) if len(w) > 3 and w.isalpha()]
    if not places:
        return sentence
    word = words[i := rng.choice(places)]
    k, x = rng.randrange(1, len(word) - 1), rng.random()
    words[i] = (word[:k] + word[k + 1:] if x < .4 else word[:k] + word[k] + word[k:] if x < .6
                else word[:k] + word[k + 1] + word[k] + word[k + 2:])
    return ' '.join(words)


def framed(rng, kind):
    """A sentence of training with its slots still open, before synonyms and the like."""
    forms = WORDINGS[kind]
    form = rng.choices((QUESTIONS, COMMANDS, CLAUSES, SENTENCES), (34, 14, 20, 32))[0]
    core = rng.choice(forms[form])
    if form == SENTENCES:
        return core
    placed = kind in NO_PLACE or any(word in core for word in HAS_PLACE)
    if form == CLAUSES:
        if not placed and rng.random() < .3:
            core += ' ' + rng.choice(PLACES)
        sentence = rng.choice(CLAUSE_FRAMES).format(x=core)
        return f'{sentence} {rng.choice(CLAUSE_TAILS)}' if rng.random() < .3 else sentence
    if not placed and rng.random() < .25:
        core += ' ' + rng.choice(PLACES)
        placed = True
    if form == COMMANDS:
        return core + '.' if rng.random() < .45 else rng.choice(COMMAND_FRAMES).format(x=core)
    return questioned(rng, core, placed)


def questioned(rng, core, placed):
    x = rng.random()
    if x < .7:
        return core + '?'
    if x < .8:
        return f'{core}, {rng.choice(QUESTION_TAILS)}?'
    lead = rng.choice(QUESTION_LEADS)
    if '{place}' in lead:
        if placed:
            return core + '?'
        lead = lead.format(place=rng.choice(PLACES[:7]))
    return f'{lead}{core}?'


def varied(rng, sentence):
    """The sentence with words replaced by others of like meaning, and now and then a filler, a context or an ending."""
    words = []
    for word in sentence.split(' '):
        bare = word.rstrip('.,?!:')
        others = SYNONYMS_OF.get(bare)
        words.append(rng.choice(others) + word[len(bare):] if others and rng.random() < .14 else word)
    if rng.random() < .06:
        words.insert(rng.randrange(1, len(words) + 1) if len(words) > 2 else len(words), rng.choice(FILLERS))
    sentence = ' '.join(words)
    x = rng.random()
    if x < .05:
        return f'{rng.choice(CONTEXTS)} {capitalised(sentence)}'
    return f'{sentence} {rng.choice(ENDINGS)}' if x > .96 else sentence


def template(rng, kind, **slots):
    """A plain question or command of training, without any variation: what the template questions are made of."""
    forms = WORDINGS[kind]
    form = rng.choices((QUESTIONS, COMMANDS), (3, 1))[0]
    sentence = capitalised(rng.choice(forms[form]).format(**slots))
    return sentence + ('.' if form == COMMANDS and 'yes or no' not in sentence else '?')


def say(rng, kind, **slots):
    """A question of a kind in one of the ways of training."""
    sentence = varied(rng, framed(rng, kind))
    if rng.random() < .04:
        sentence = slip(rng, sentence)
    sentence = sentence.format(**slots)  # after the slip, so that a slot is never touched
    x = rng.random()
    sentence = sentence if x <= .06 else capitalised(sentence)
    return sentence.rstrip('.?') if x < .03 or x > .95 else sentence
