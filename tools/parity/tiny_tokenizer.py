"""A byte-level BPE of about 350 words, with the special tokens of a small chat model."""

import json

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

SPECIAL_TOKENS = ["<unk>", "<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>", "<image>"]
IMAGE_TOKEN_ID = SPECIAL_TOKENS.index("<image>")

TEXT = """
The river runs past the old mill and under the stone bridge. What is in the picture? There is a red circle above
a green square, and a small blue triangle on the left. How many shapes are there? There are three shapes. Describe
the image in detail. Is the circle larger than the square? No, it is smaller. Which of the two pictures shows more
triangles? The second one does. In the morning the market opens, the garden is wet, and the lamps are put out. One,
two, three, four, five, six, seven, eight, nine, ten. Count the windows, then count the doors, and say the number.
"""

# Plain: one line a turn, BOS written by the template. Without BOS: as LLaVA-1.5 has it. ChatML: as Qwen has it.
TURNS = (
    "{% for message in messages %}{{ message['role'] | upper }}: "
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] if part['type'] == 'image' %}{{ '<image>\n' }}{% endfor %}"
    "{% for part in message['content'] if part['type'] == 'text' %}{{ part['text'] }}{% endfor %}{% endif %}"
    "{{ ' ' }}{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
TEMPLATES = {
    "turns": "{{ bos_token }}" + TURNS,
    "turns_without_bos": TURNS,
    "chatml": (
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
        "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
        "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
        "{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    ),
}


def tokenizer_json(adds_bos):
    """The tokenizer's JSON text; `adds_bos` gives it the post-processor that puts <s> in front."""
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=352,
        special_tokens=[AddedToken(text, normalized=False, special=True) for text in SPECIAL_TOKENS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT.strip().split("\n"), trainer)
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", SPECIAL_TOKENS.index("<s>"))]
        )
    return json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))


def tokenizer_config(has_images, spelling):
    """tokenizer_config.json as transformers v4 or v5 writes it."""
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "model_max_length": 2048,
        "clean_up_tokenization_spaces": False,
    }
    if has_images:
        config["processor_class"] = "LlavaProcessor"
        config["image_token"] = "<image>"
        if spelling == "v5":
            config["extra_special_tokens"] = {"image_token": "<image>"}
        else:
            config["additional_special_tokens"] = ["<image>"]
    return config


def n_tokens():
    """Words of the tokenizer; config.json may say more."""
    return Tokenizer.from_str(tokenizer_json(False)).get_vocab_size()
