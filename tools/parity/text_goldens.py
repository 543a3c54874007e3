#!/usr/bin/env python3
"""Makes the goldens of src/text: token ids, decoded texts and rendered chat templates.

Everything is made with Hugging Face tokenizers and transformers, whose versions are recorded. The
tokenizers are tiny ones of the kinds that model families use, trained here on a fixed text; the
templates are short ones in the styles of those families. Output, all of it
committed: tests/parity/goldens/text/, where the templates and conversations lie too.

    python tools/parity/text_goldens.py                 # from the repository's root
    python tools/parity/text_goldens.py --gguf FILE     # also the ids of a real GGUF vocabulary
"""

import argparse
import importlib.metadata
import json
import pathlib
import shutil

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/parity/goldens/text"

LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_SPLIT = LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")

CORPUS = [
    "The quick brown fox jumps over the lazy dog while 12 wizards watch 345 stars in 2026.",
    "What colour is the small square in the upper left corner of the picture?",
    "A user asks a question and the assistant answers: there are three red circles, isn't it?",
    "Größe, café, naïve, jalapeño: letters with marks. Ελληνικά και русский текст тоже.",
    "日本語の文章と中文句子 and 한국어 문장 in one line.",
    "def main(argv):\n    for index, value in enumerate(argv):\n        print(index, value)\n",
    "Numbers 0 1 2 3 10 100 1000 3.14159 and dates 2026-11-30 at 12:34:56.",
    "They're sure we'll see that I'd said you've won; it's fine, I'm here, don't worry.",
]


def f40_strings():
    """200 strings: special tokens glued and spaced, blanks, emoji, scripts, control characters."""
    specials = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<image>", "<bos>", "<|end|>",
                "<|user|>", "<tool>", "<|begin_of_text|>", "<|eot_id|>", "<|image_pad|>"]
    strings = ["", " ", "  ", "   ", "\n", "\n\n", " \n ", "\t", "\r\n", "a", " a", "a ", " a ",
               "  a  b  ", "\u00a0", "\u3000x", "x\u200by", "x\u200dy"]
    for token in specials:
        strings += [token, f"{token} x", f"x {token}", f"{token}x", f" {token} ",
                    f"a{token}b", f"{token}{token}", f"{token}\nuser\n", f"  {token}  y"]
    strings += [
        "Hello, world!", "hello world", "Hello  world", "HELLO World 123", "it's don't I'LL We'Ve",
        "user", "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n",
        "<s>[INST] Hi [/INST] Hello </s><s>[INST] more [/INST]", "USER: <image>\nWhat? ASSISTANT:",
        "1", "12", "123", "1234", "12345678901234567890", " 1 22 333 4444", "3.14", "1,000,000.00",
        "٣٤٥ १२३ ⅷ ½", "😀", "😀😃👨‍👩‍👧‍👦🏳️‍🌈", "a😀b", " 😀 ", "👍🏽 ok", "héllo", "he\u0301llo", "Å Å ﬁ ﬀ",
        "日本語", "中文，标点。", "한국어 문장", "Привет, мир!", "Ελλάδα", "مرحبا بالعالم", "שלום עולם", "नमस्ते", "ไทย",
        "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "\U0001f1e9\U0001f1ea", "\ufeffbom", "\ufffd", "nul\x00byte", "\x01\x02\x1b[0m", "\x7f",
        "tab\tsep\tvalues", "line\r\nbreaks\rmixed\n", "trailing   ", "   leading", "a\n\n\nb", "\n  indented\n",
        "{\"key\": [1, 2.5, null, true], \"s\": \"a\\\"b\"}", "<html><body class=\"x\">&amp;</body></html>",
        "if (a && b || !c) { return x->y[0] * 2; }", "https://example.org/path?q=1&r=%20#frag", "user@example.org",
        "snake_case camelCase PascalCase SCREAMING_CASE", "!!!???...---***", "''''\"\"\"\"````", "$100 €50 £20 ¥5",
        "a/b\\c|d", "x" * 100, "ab" * 50, " " * 40, "\n" * 20, "word " * 20, "▁", "▁a▁b", "Ġ", "ĠĊ", "<0x0A>", "<0x41>",
        "<extra>a <extra> b", "a <strip>  b<strip>c", " <mask>  x<mask>y", "Fox users user superuser user!", "fox FOX Fox",
        "<late>", "<pad><unk>", "</think>a <tool>", "< s >", "<s", "s>", "<<s>>", "<|im_start", "|im_end|>", "<imag", "<image", "image>", "< image >", "<IMAGE>",
    ]
    strings = list(dict.fromkeys(strings))
    extra = 0
    while len(strings) < 200:
        strings.append(f"filler {extra} é{extra}\n<s>{extra}")
        extra += 1
    return strings[:max(200, len(strings))]


def special(*contents):
    return [AddedToken(c, special=True, normalized=False) for c in contents]


def train(tokenizer, size, tokens, **options):
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=tokens, show_progress=False, **options)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def byte_level(pre_tokenizer, normalizer=None, **model_options):
    tokenizer = Tokenizer(models.BPE(**model_options))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def split_then_bytes(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def make_llama3():
    tokens = special("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>",
                     "<|image|>")
    tokenizer = byte_level(split_then_bytes(LLAMA3_SPLIT), ignore_merges=True)
    train(tokenizer, 480, tokens, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    bos = "<|begin_of_text|>"
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1",
                                      special_tokens=[(bos, tokenizer.token_to_id(bos))])])
    config = {"bos_token": bos, "eos_token": "<|eot_id|>", "image_token": "<|image|>"}
    return tokenizer, config


def make_qwen2():
    tokens = special("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>",
                     "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    tokenizer = byte_level(split_then_bytes(QWEN2_SPLIT), normalizers.NFC())
    train(tokenizer, 470, tokens, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.add_tokens([AddedToken("<tool>", special=False, normalized=False),
                          AddedToken("</think>", special=False, normalized=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    config = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "add_bos_token": False,
              "additional_special_tokens": [str(t) for t in tokens[1:]]}
    return tokenizer, config


def make_smollm():
    tokens = special("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    pre = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer = byte_level(pre)
    train(tokenizer, 450, tokens, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return tokenizer, {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "unk_token": "<|endoftext|>"}


def make_llama2(legacy):
    """SentencePiece BPE with byte fallback; `legacy` puts the prefix space in the normalizer."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if legacy:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                           decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    # Trained on words, as SentencePiece does; used without that split.
    words = Tokenizer(models.BPE(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    train(words, 520, names)
    learned = json.loads(words.to_str())["model"]
    state = json.loads(tokenizer.to_str())
    state["model"]["vocab"], state["model"]["merges"] = learned["vocab"], learned["merges"]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.add_special_tokens(special("<unk>", "<s>", "</s>", "<image>", "<pad>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    config = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>",
              "add_bos_token": True, "add_eos_token": False,
              "extra_special_tokens": {"image_token": "<image>"}}
    return tokenizer, config


def make_unigram():
    """Unigram with special tokens in the model's own vocabulary, and tokens that strip spaces."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=["<unk>", "</s>", "<image>"],
                                      unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True),
                                  AddedToken("<s>", rstrip=True, special=True)])
    tokenizer.add_tokens([AddedToken("fox", normalized=True), AddedToken("user", single_word=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))])
    return tokenizer, {"eos_token": "</s>", "unk_token": "<unk>"}


def make_frame():
    """Flags of tokenizer_config.json that replace the post-processor, and tokens only it declares."""
    tokenizer, config = make_smollm()
    n = tokenizer.get_vocab_size()
    config |= {"add_bos_token": True, "add_eos_token": True, "mask_token": "<late>",
               "added_tokens_decoder": {
                   str(n): {"content": "<extra>", "lstrip": False, "rstrip": False, "single_word": False,
                            "normalized": False, "special": False},
                   str(n + 1): {"content": "<strip>", "lstrip": True, "rstrip": True, "single_word": False,
                                "normalized": False, "special": True}}}
    return tokenizer, config


KINDS = {"llama2": lambda: make_llama2(False), "llama2_legacy": lambda: make_llama2(True),
         "llama3": make_llama3, "qwen2": make_qwen2, "smollm": make_smollm, "unigram": make_unigram,
         "frame": make_frame}


def save(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=None, separators=(",", ":")) + "\n")


def encode_all(tokenizer, strings):
    plain = [tokenizer.encode(s, add_special_tokens=False) for s in strings]
    return {
        "plain": plain,
        "special": [tokenizer.encode(s, add_special_tokens=True) for s in strings],
        "decoded": [tokenizer.decode(ids, clean_up_tokenization_spaces=False) for ids in plain],
        "decoded_skip": [tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
                         for ids in plain],
        "vocab_size": max(tokenizer.get_vocab().values()) + 1,
    }


def make_tokenizers(strings):
    loaded = {}
    for kind, make in KINDS.items():
        backend, config = make()
        folder = OUT / "tokenizers" / kind
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        state = json.loads(backend.to_str())
        (folder / "tokenizer.json").write_text(json.dumps(state, ensure_ascii=False, separators=(",", ":")))
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 2048,
                  "clean_up_tokenization_spaces": False, **config}
        (folder / "tokenizer_config.json").write_text(json.dumps(config, ensure_ascii=False, indent=1) + "\n")
        # transformers 5 reads these flags from its caller only where there is a tokenizer.json;
        # version 4 took them from the file, and so do we.
        flags = {k: config[k] for k in ("add_bos_token", "add_eos_token") if k in config}
        loaded[kind] = PreTrainedTokenizerFast.from_pretrained(folder, **flags)
        save(OUT / "ids" / f"{kind}.json", encode_all(loaded[kind], strings))
    loaded["demo"] = PreTrainedTokenizerFast.from_pretrained(ROOT / "models/demo")
    save(OUT / "ids" / "demo.json", encode_all(loaded["demo"], strings))
    return loaded


def hf_message(message, forms):
    """A message as a user of transformers would write it for a template that takes `forms`."""
    message = dict(message)
    parts = message.get("content", [])
    if isinstance(parts, str):
        parts = [{"type": "text", "text": parts}]
    only_text = all(p["type"] == "text" for p in parts)
    if "string" in forms and only_text and (len(parts) <= 1 or "list" not in forms):
        message["content"] = "\n".join(p["text"] for p in parts)
    else:
        message["content"] = parts
    calls = []
    for call in message.get("tool_calls", []):
        function = dict(call["function"])
        if isinstance(function.get("arguments"), str):
            function["arguments"] = json.loads(function["arguments"])
        calls.append({**call, "function": function})
    if calls:
        message["tool_calls"] = calls
    return message


def make_templates(tokenizers):
    """Renders each template with each conversation that it is meant for."""
    index = json.loads((OUT / "templates/index.json").read_text())
    conversations = json.loads((OUT / "templates/conversations.json").read_text())
    cases = []
    for entry in index:
        text = (ROOT / entry["file"]).read_text()
        tokenizer = tokenizers[entry["tokenizer"]]
        for name in entry["conversations"]:
            prompt = conversations[name]
            messages = [hf_message(m, entry["content"]) for m in prompt["messages"]]
            options = {"chat_template": text, "tools": prompt.get("tools"),
                       "add_generation_prompt": prompt.get("add_generation_prompt", True),
                       **prompt.get("variables", {})}
            case = {"template": entry["file"], "tokenizer": entry["tokenizer"],
                    "image_token": entry.get("image_token"), "conversation": name, "prompt": prompt}
            try:
                case["text"] = tokenizer.apply_chat_template(messages, tokenize=False, **options)
                ids = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False, **options)
                case["ids"] = ids
            except Exception as error:  # the templates' own refusals are goldens too
                case["error"] = str(error)
            cases.append(case)
    save(OUT / "chat_cases.json", cases)
    return len(cases)


def make_gguf(path, strings):
    """Ids of a real vocabulary as transformers converts it from GGUF; the file itself is not kept."""
    path = pathlib.Path(path)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    golden = encode_all(tokenizer, strings)
    chat = [{"role": "user", "content": "What is 12 times 34?"}]
    golden["chat_text"] = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    golden["chat_ids"] = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    save(OUT / "ids" / "smollm2_gguf.json", golden)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", help="SmolLM2-135M-Instruct as GGUF (tools/setup/fetch_testdata.sh fetches it)")
    arguments = parser.parse_args()
    strings = f40_strings()
    save(OUT / "strings.json", strings)
    tokenizers = make_tokenizers(strings)
    n_cases = make_templates(tokenizers)
    if arguments.gguf:
        make_gguf(arguments.gguf, strings)
    packages = ["tokenizers", "transformers", "jinja2"] + (["gguf"] if arguments.gguf else [])
    save(OUT / "versions.json", {p: importlib.metadata.version(p) for p in packages})
    print(f"{len(strings)} strings, {len(tokenizers)} tokenizers, {n_cases} chat cases in {OUT}")


if __name__ == "__main__":
    main()
