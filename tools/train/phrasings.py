"""How training asks. Every kind of question has bare questions, commands and clauses; frames turn them into sentences.

`say` picks a wording and a frame at random and now and then drops the capital or the final mark, or makes a slip of
the keyboard outside the slots, so that the model learns what is asked and not one way of asking. The wordings used to
measure unseen phrasing are in free_phrasings.py, which training never reads.
"""

QUESTIONS, COMMANDS, CLAUSES = 'questions', 'commands', 'clauses'

# Slots: a, b objects ("the red circle"); c a colour; p, q groups ("red circles"); r a relation; i, j row and column.
WORDINGS = {
    'color': {
        QUESTIONS: ['what color is {a}', 'what colour is {a}', 'which color does {a} have', 'which colour has {a}',
                    'what is the color of {a}', "what's the colour of {a}", 'in what color is {a} drawn',
                    'what color does {a} have', 'which color is {a}', '{a} is what color', 'of what color is {a}',
                    'what color was used for {a}', 'how is {a} colored'],
        COMMANDS: ['tell me the color of {a}', 'name the colour of {a}', 'give the color of {a}', 'say the colour of {a}',
                   'give me the color that {a} has', 'look at {a} and name its color', 'find {a} and tell me its colour',
                   'state the color of {a}', 'identify the color of {a}'],
        CLAUSES: ['what color {a} is', 'the color of {a}', 'which colour {a} has', 'what the colour of {a} is',
                  'which color {a} is', 'the colour that {a} has'],
    },
    'shape': {
        QUESTIONS: ['what shape is {c}', 'what is the {c} shape', 'which shape is {c}', 'what kind of shape is the {c} one',
                    'what is the shape of the {c} object', 'which shape has the color {c}', 'what shape is the {c} object',
                    'what is {c} as a shape', 'the {c} one is what shape', 'what sort of shape is {c}',
                    'what form does the {c} object have', 'which of the shapes is {c}'],
        COMMANDS: ['name the {c} shape', 'tell me which shape is {c}', 'give the name of the {c} shape',
                   'say what shape is {c}', 'name the shape of the {c} object', 'identify the {c} shape',
                   'tell me the shape of the {c} one'],
        CLAUSES: ['which shape is {c}', 'what the {c} shape is', 'what shape the {c} object has',
                  'the shape of the {c} object', 'what kind of shape the {c} one is', 'which shape the {c} one is'],
    },
    'count': {
        QUESTIONS: ['how many {p} are there', 'how many {p} can you see', 'what is the number of {p}',
                    'how many {p} does the picture show', 'how many {p} are in the image', 'how many {p} do you see',
                    'how many {p} does this image contain', 'how many {p} can be seen', 'how many {p} are shown',
                    'how many {p} do you count', 'how many {p} did you find', 'what number of {p} is there',
                    'how many of the objects are {p}'],
        COMMANDS: ['count the {p}', 'tell me how many {p} there are', 'count all {p}', 'give the number of {p}',
                   'count how many {p} there are', 'say how many {p} you see', 'find the number of {p}',
                   'look for {p} and count them'],
        CLAUSES: ['how many {p} there are', 'the number of {p}', 'how many {p} you can see', 'how many {p} are shown',
                  'how many {p} the picture has'],
    },
    'exist': {
        QUESTIONS: ['is there {a}', 'is there {a} in the picture', 'can you see {a}', 'does the picture show {a}',
                    'do you see {a} anywhere', 'does this image contain {a}', 'does the image have {a} in it',
                    'is {a} present', 'do you see {a}', 'is {a} shown', 'can {a} be seen', 'is there {a} anywhere',
                    'does the picture have {a}', 'can you find {a}', 'is {a} visible'],
        COMMANDS: ['tell me if there is {a}', 'say whether you see {a}', 'check if there is {a}',
                   'tell me whether the picture shows {a}', 'look for {a} and tell me if it is there',
                   'answer yes or no: is there {a}'],
        CLAUSES: ['if there is {a}', 'whether there is {a}', 'if you can see {a}', 'whether {a} is present',
                  'if the picture shows {a}'],
    },
    'exist_many': {
        QUESTIONS: ['are there any {p}', 'are there {p}', 'can you see any {p}', 'do you see any {p}', 'do you see {p}',
                    'does the picture show any {p}', 'does this image contain {p}', 'are any {p} present',
                    'are any {p} shown', 'can you find any {p}', 'does the image have any {p}'],
        COMMANDS: ['tell me if there are any {p}', 'say whether you see any {p}', 'check if there are {p}',
                   'tell me whether there are any {p}'],
        CLAUSES: ['if there are any {p}', 'whether there are {p}', 'if you can see any {p}', 'whether any {p} are shown'],
    },
    'exist_text': {
        QUESTIONS: ['is there any text', 'is there text', 'is there a text', 'do you see any text', 'is any text present',
                    'does the picture contain text', 'does the image show any text', 'can you see any writing',
                    'is anything written', 'is something written', 'are there any letters', 'is there any writing',
                    'does the picture have any words in it'],
        COMMANDS: ['tell me if there is any text', 'say whether there is text', 'check if anything is written',
                   'tell me whether you see any text'],
        CLAUSES: ['if there is any text', 'whether there is text', 'if anything is written', 'whether you see any text'],
    },
    'spatial': {
        QUESTIONS: ['is {a} {r} {b}', 'does {a} lie {r} {b}', 'do you see {a} {r} {b}', 'can {a} be found {r} {b}',
                    'is {a} placed {r} {b}', 'would you say that {a} is {r} {b}', 'is it true that {a} is {r} {b}',
                    'is {a} located {r} {b}', 'does {a} appear {r} {b}', 'is the place of {a} {r} {b}',
                    'looking at {b}, is {a} {r} it', 'compared with {b}, is {a} {r} it', 'does {a} stand {r} {b}'],
        COMMANDS: ['tell me if {a} is {r} {b}', 'say whether {a} is {r} {b}', 'check if {a} lies {r} {b}',
                   'answer yes or no: is {a} {r} {b}', 'decide whether {a} is {r} {b}', 'tell me whether {a} lies {r} {b}'],
        CLAUSES: ['if {a} is {r} {b}', 'whether {a} is {r} {b}', 'whether {a} lies {r} {b}', 'if {a} appears {r} {b}'],
    },
    'further': {
        QUESTIONS: ['which is {r}, {a} or {b}', 'what is {r} in the picture, {a} or {b}', 'which one is {r}: {a} or {b}',
                    'which is {r}: {a} or {b}', 'which of the two is {r}, {a} or {b}', 'what lies {r}, {a} or {b}',
                    'which object is {r}, {a} or {b}', 'of {a} and {b}, which is {r}', 'between {a} and {b}, which is {r}',
                    'is {a} or {b} {r}', 'which stands {r}, {a} or {b}', 'which one do you see {r}, {a} or {b}'],
        COMMANDS: ['tell me which is {r}, {a} or {b}', 'name the one that is {r}: {a} or {b}',
                   'say which one is {r}, {a} or {b}', 'compare {a} and {b} and tell me which is {r}',
                   'choose the one that is {r}: {a} or {b}', 'look at {a} and {b} and say which is {r}'],
        CLAUSES: ['which is {r}, {a} or {b}', 'which one lies {r}, {a} or {b}', 'whether {a} or {b} is {r}',
                  'which of {a} and {b} is {r}'],
    },
    'locate': {
        QUESTIONS: ['where is {a}', 'in which row and column is {a}', 'what is the position of {a}',
                    'where can I find {a}', 'where do you see {a}', 'in what row and column is {a}',
                    'where does {a} stand', 'at which position is {a}', 'where is {a} located', 'what is the place of {a}',
                    'which row and column is {a} in', 'whereabouts is {a}'],
        COMMANDS: ['give the row and column of {a}', 'locate {a}', 'find {a} in the picture', 'tell me where {a} is',
                   'say in which row and column {a} is', 'find {a}', 'give me the position of {a}', 'point to {a}',
                   'name the row and the column of {a}'],
        CLAUSES: ['where {a} is', 'in which row and column {a} is', 'the position of {a}', 'the row and column of {a}',
                  'where you see {a}'],
    },
    'cell': {
        QUESTIONS: ['what is in row {i}, column {j}', 'what do you see in row {i}, column {j}',
                    'which object is in row {i}, column {j}', 'what is at row {i}, column {j}',
                    'what can be found in row {i}, column {j}', 'what does row {i}, column {j} hold',
                    'what is there in column {j} of row {i}', 'in row {i}, column {j}, what is there',
                    'what stands in row {i} and column {j}', 'what is shown in row {i}, column {j}',
                    'what object can you see at row {i}, column {j}', 'what is in column {j} of row {i}'],
        COMMANDS: ['name what is at row {i}, column {j}', 'look at row {i}, column {j} and tell me what is there',
                   'tell me what is in row {i}, column {j}', 'name the object in row {i}, column {j}',
                   'say what you see in row {i}, column {j}', 'go to row {i}, column {j} and name what is there',
                   'describe row {i}, column {j}'],
        CLAUSES: ['what is in row {i}, column {j}', 'what row {i}, column {j} holds', 'what you see at row {i}, column {j}',
                  'which object is in row {i}, column {j}'],
    },
    'read': {
        QUESTIONS: ['what does the text say', 'what is written in the picture', 'which characters are shown',
                    'what does it say', 'what text is shown', 'what is written', 'which letters can you read',
                    'what can you read', 'what does the writing say', 'what is the text', 'which text do you see',
                    'what characters are in the text', 'what text does the picture contain'],
        COMMANDS: ['read the text', 'transcribe the text', 'tell me what the text says', 'read what is written',
                   'give me the text', 'spell out the text', 'copy the text', 'read the writing', 'say what is written'],
        CLAUSES: ['what the text says', 'what is written', 'which characters are shown', 'what it says',
                  'what you can read'],
    },
    'read_color': {
        QUESTIONS: ['what does the {c} text say', 'what is written in {c}', 'which characters are in the {c} text',
                    'what does the text in {c} say', 'what is the {c} text', 'what can you read in {c}',
                    'what does the {c} writing say', 'which letters does the {c} text have', 'what text is {c}',
                    'which text is written in {c}', 'what do the {c} letters say'],
        COMMANDS: ['read the {c} text', 'transcribe the {c} text', 'tell me what the {c} text says',
                   'read what is written in {c}', 'spell out the {c} text', 'give me the text in {c}',
                   'copy the {c} text', 'read the {c} letters', 'say what the {c} text says'],
        CLAUSES: ['what the {c} text says', 'what is written in {c}', 'which characters the {c} text has',
                  'what you can read in {c}'],
    },
    'more': {
        QUESTIONS: ['are there more {p} than {q}', 'does the picture show more {p} than {q}', 'do the {p} outnumber the {q}',
                    'can you see more {p} than {q}', 'is the number of {p} larger than the number of {q}',
                    'do you see more {p} than {q}', 'are the {p} more than the {q}', 'is it true that there are more {p} than {q}',
                    'does the image contain more {p} than {q}', 'do you count more {p} than {q}',
                    'are more {p} shown than {q}', 'is the number of {p} greater than that of {q}'],
        COMMANDS: ['tell me if there are more {p} than {q}', 'say whether there are more {p} than {q}',
                   'check if the {p} outnumber the {q}', 'answer yes or no: are there more {p} than {q}',
                   'count and tell me if there are more {p} than {q}'],
        CLAUSES: ['if there are more {p} than {q}', 'whether there are more {p} than {q}', 'if the {p} outnumber the {q}',
                  'whether you see more {p} than {q}'],
    },
    'which': {
        QUESTIONS: ['which are there more of, {p} or {q}', 'what is more common, {p} or {q}', 'are there more {p} or more {q}',
                    'which are more common, {p} or {q}', 'what are there more of, {p} or {q}', 'which do you see more of, {p} or {q}',
                    'are there more {p} or {q}', 'which group is larger, {p} or {q}', 'what do you see more often, {p} or {q}',
                    'of {p} and {q}, which are there more of', 'which are in the majority, {p} or {q}'],
        COMMANDS: ['tell me which there are more of, {p} or {q}', 'say which is more common, {p} or {q}',
                   'name the larger group: {p} or {q}', 'compare the {p} and the {q} and name the larger group',
                   'count the {p} and the {q} and tell me which are more'],
        CLAUSES: ['which there are more of, {p} or {q}', 'what is more common, {p} or {q}', 'whether there are more {p} or {q}',
                  'which group is larger, {p} or {q}'],
    },
    'describe': {
        QUESTIONS: ['what is in the picture', 'what can you see', 'what does this picture show', 'what do you see',
                    'what is shown here', 'what objects are there', 'what is in this image', 'which objects can you see',
                    'what does the image contain', 'what is there', 'what all is in the picture', 'which objects are shown'],
        COMMANDS: ['describe the picture', 'list the objects', 'name everything in the image', 'describe the image',
                   'list everything you see', 'tell me what you see', 'name all objects', 'describe what you see',
                   'describe this photo', 'give a list of the objects', 'tell me everything that is in the picture'],
        CLAUSES: ['what is in the picture', 'what you see', 'which objects there are', 'what the image shows',
                  'everything that you see'],
    },
    'rows': {
        QUESTIONS: ['what is in each row', 'what does each row hold', 'which objects are in each row',
                    'what do you see in each row', 'what is in every row', 'row by row, what do you see'],
        COMMANDS: ['describe the picture row by row', 'list the objects row by row', 'go through the picture row by row',
                   'describe each row of the picture', 'tell me what each row holds', 'name the objects row by row',
                   'list what is in each row', 'describe the image one row at a time'],
        CLAUSES: ['what is in each row', 'which objects each row holds', 'what you see row by row'],
    },
    'places': {
        QUESTIONS: ['what is where in the picture', 'where is each object', 'which objects do you see and where are they',
                    'what is there and where', 'where is everything'],
        COMMANDS: ['list the objects with their positions', 'name every object and where it is', 'give the position of every object',
                   'describe where everything is', 'list every object with its row and column',
                   'tell me the position of each object', 'say where each object is'],
        CLAUSES: ['where everything is', 'the position of every object', 'where each object is', 'what is where'],
    },
    'two_more': {
        QUESTIONS: ['which picture has more {p}, the first or the second', 'which image shows more {p}, the first or the second',
                    'are there more {p} in the first or in the second picture', 'in which picture do you see more {p}',
                    'where are there more {p}, in the first or the second image', 'which of the two pictures has more {p}',
                    'which picture contains more {p}', 'does the first or the second picture have more {p}',
                    'in which image are there more {p}', 'which of the images shows more {p}',
                    'where do you count more {p}, in the first or in the second picture'],
        COMMANDS: ['tell me which picture has more {p}', 'name the picture with more {p}', 'say which image shows more {p}',
                   'compare the pictures and tell me which has more {p}', 'choose the picture with more {p}'],
        CLAUSES: ['which picture has more {p}', 'in which image there are more {p}',
                  'whether the first or the second picture has more {p}'],
    },
    'two_which': {
        QUESTIONS: ['which picture shows {a}, the first or the second', 'is {a} in the first or the second picture',
                    'in which picture can you see {a}', 'where do you see {a}, in the first or in the second image',
                    'which image contains {a}', 'which of the two pictures has {a}', 'in which image is {a}',
                    'which picture has {a} in it', 'does the first or the second picture show {a}',
                    'which of the pictures contains {a}', 'where is {a}, in the first or the second picture'],
        COMMANDS: ['tell me which picture shows {a}', 'name the picture with {a}', 'find the picture that has {a}',
                   'say in which image you see {a}', 'choose the picture that contains {a}'],
        CLAUSES: ['which picture shows {a}', 'in which image you see {a}', 'whether {a} is in the first or the second picture'],
    },
    'two_exist': {
        QUESTIONS: ['is there {a} in the {n} picture', 'does the {n} picture show {a}', 'can you see {a} in the {n} picture',
                    'in the {n} picture, is there {a}', 'does the {n} image contain {a}', 'do you see {a} in the {n} image',
                    'is {a} present in the {n} picture', 'does the {n} picture have {a}'],
        COMMANDS: ['tell me if the {n} picture shows {a}', 'say whether there is {a} in the {n} image',
                   'look at the {n} picture and tell me if there is {a}'],
        CLAUSES: ['if there is {a} in the {n} picture', 'whether the {n} picture shows {a}'],
    },
    'two_color': {
        QUESTIONS: ['what color is {a} in the {n} picture', 'in the {n} picture, what color is {a}',
                    'which colour does {a} have in the {n} image', 'what is the color of {a} in the {n} picture',
                    'what colour is {a} in the {n} image', 'in the {n} image, which color is {a}'],
        COMMANDS: ['tell me the color of {a} in the {n} picture', 'name the colour of {a} in the {n} image',
                   'look at the {n} picture and name the color of {a}'],
        CLAUSES: ['what color {a} is in the {n} picture', 'the color of {a} in the {n} image'],
    },
    'two_count': {
        QUESTIONS: ['how many {p} are there in the {n} picture', 'how many {p} can you see in the {n} picture',
                    'in the {n} picture, how many {p} are there', 'how many {p} does the {n} image show',
                    'what is the number of {p} in the {n} picture', 'how many {p} does the {n} picture have'],
        COMMANDS: ['count the {p} in the {n} picture', 'tell me how many {p} there are in the {n} image',
                   'look at the {n} picture and count the {p}'],
        CLAUSES: ['how many {p} there are in the {n} picture', 'the number of {p} in the {n} image'],
    },
    'two_read': {
        QUESTIONS: ['what does the text in the {n} picture say', 'what is written in the {n} picture',
                    'in the {n} picture, what does the text say', 'which characters are shown in the {n} image',
                    'what can you read in the {n} picture'],
        COMMANDS: ['read the text in the {n} picture', 'transcribe the text of the {n} image',
                   'look at the {n} picture and read the text'],
        CLAUSES: ['what the text in the {n} picture says', 'what is written in the {n} image'],
    },
    'two_read_color': {
        QUESTIONS: ['what does the {c} text in the {n} picture say', 'what is written in {c} in the {n} picture',
                    'in the {n} picture, what does the {c} text say', 'which characters are in the {c} text of the {n} image'],
        COMMANDS: ['read the {c} text in the {n} picture', 'transcribe the {c} text of the {n} image'],
        CLAUSES: ['what the {c} text in the {n} picture says'],
    },
}

# Questions that lean on the turn before: `it` is the object just spoken of.
FOLLOW_UPS = {
    'it_color': ['What color is it?', 'And what color is it?', 'Which color does it have?', 'What is its color?',
                 'And its colour?', 'Tell me its color.', 'What colour does it have?'],
    'it_place': ['Where is it?', 'And where is it?', 'In which row and column is it?', 'What is its position?',
                 'Where do you see it?', 'Tell me where it is.', 'And its position?'],
    'other': ['And {a}?', 'What about {a}?', 'And what about {a}?', 'How about {a}?', 'The same for {a}, please.'],
}

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
                  'okay, ', 'have a look: ', 'look closely: ', 'next question: ', 'and ', 'quickly, ', 'take a look at this: ']
QUESTION_TAILS = ['please', 'do you know', 'can you tell', 'tell me', 'thanks']
COMMAND_FRAMES = ['please {x}.', 'please {x}.', 'could you {x}?', 'can you {x}?', 'would you {x}?', 'could you please {x}?',
                  'can you please {x}?', 'would you please {x}?', 'I want you to {x}.', 'I would like you to {x}.', 'now {x}.',
                  '{x}, please.', 'your task is to {x}.', 'you should {x}.', 'try to {x}.', 'kindly {x}.', 'help me to {x}.']
CLAUSE_FRAMES = ['do you know {x}?', 'I would like to know {x}.', 'please tell me {x}.', 'can you tell me {x}?',
                 'could you tell me {x}?', 'I want to know {x}.', 'let me know {x}.', 'could you say {x}?', 'I wonder {x}.',
                 'tell me {x}, please.', 'I need to know {x}.', 'can you say {x}?', 'would you tell me {x}?',
                 'please say {x}.', "I'd like to know {x}.", 'show me that you know {x}.', 'are you able to tell me {x}?',
                 'I am asking {x}.', 'my question is {x}.', 'please let me know {x}.', 'do you see {x}?', 'explain {x}.']

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
    """A sentence of training with its slots still open."""
    forms = WORDINGS[kind]
    form = rng.choices((QUESTIONS, COMMANDS, CLAUSES), (60, 22, 18))[0]
    core = rng.choice(forms[form])
    placed = kind in NO_PLACE or any(word in core for word in HAS_PLACE)
    if form == CLAUSES:
        if not placed and rng.random() < .3:
            core += ' ' + rng.choice(PLACES)
        return rng.choice(CLAUSE_FRAMES).format(x=core)
    if not placed and rng.random() < .25:
        core += ' ' + rng.choice(PLACES)
        placed = True
    x = rng.random()
    if form == COMMANDS:
        return core + '.' if x < .45 else rng.choice(COMMAND_FRAMES).format(x=core)
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


def say(rng, kind, **slots):
    """A question of a kind in one of the ways of training."""
    sentence = framed(rng, kind)
    if rng.random() < .04:
        sentence = slip(rng, sentence)
    sentence = sentence.format(**slots)  # after the slip, so that a slot is never touched
    x = rng.random()
    sentence = sentence if x <= .06 else capitalised(sentence)
    return sentence.rstrip('.?') if x < .03 or x > .95 else sentence
