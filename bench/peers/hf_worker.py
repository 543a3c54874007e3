"""Hugging Face transformers as a peer process: hf_worker.py CHECKPOINT DTYPE THREADS. Times are milliseconds, inputs new in each call."""

import argparse
import io
import os
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import torch
import transformers
from PIL import Image

from peer_process import serve

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def milliseconds(function):
    """(result, time) of one call."""
    started = time.perf_counter()
    result = function()
    return result, (time.perf_counter() - started) * 1e3


class TokenClock:
    """A streamer that keeps the time of each new token."""

    def __init__(self):
        self.times = []

    def put(self, _):
        self.times.append(time.perf_counter())

    def end(self):
        pass


class Worker:
    """One checkpoint in one dtype."""

    def __init__(self, folder, dtype):
        auto = transformers.AutoModelForImageTextToText
        config = transformers.AutoConfig.from_pretrained(folder)
        if not hasattr(config, "vision_config"):
            auto = transformers.AutoModelForCausalLM
        # SDPA is transformers' default and its fastest attention on a CPU.
        self.model, self.load_ms = milliseconds(
            lambda: auto.from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation="sdpa").eval()
        )
        self.folder = folder
        self.processor = None
        self.vocabulary = config.get_text_config().vocab_size

    def _random_ids(self, n_tokens):
        return torch.randint(10, self.vocabulary - 10, (1, n_tokens))

    def _inputs(self, image_bytes, text):
        """Decode, preprocess and tokenise with the processor that transformers takes by default."""
        if self.processor is None:
            self.processor = transformers.AutoProcessor.from_pretrained(self.folder)
        picture = Image.open(io.BytesIO(image_bytes)).convert("RGB")
        messages = [{"role": "user", "content": [{"type": "image", "image": picture}, {"type": "text", "text": text}]}]
        inputs = self.processor.apply_chat_template(
            messages, tokenize=True, return_dict=True, return_tensors="pt", add_generation_prompt=True
        )
        return inputs.to(self.model.dtype)

    def _generate(self, inputs, n_tokens, **more):
        # No end token before the last: exactly n_tokens are made, as in our benchmark.
        return self.model.generate(
            **inputs, max_new_tokens=n_tokens, min_new_tokens=n_tokens, do_sample=False, pad_token_id=0, **more
        )

    @torch.inference_mode()
    def info(self):
        return {"load_ms": self.load_ms, "transformers": transformers.__version__, "torch": torch.__version__}

    @torch.inference_mode()
    def prefill(self, n_tokens):
        """The decoder over `n_tokens` rows, logits of the last only."""
        ids = self._random_ids(n_tokens)
        _, ms = milliseconds(lambda: self.model(input_ids=ids, use_cache=True, logits_to_keep=1))
        return {"ms": ms}

    @torch.inference_mode()
    def decode(self, n_tokens, prompt_tokens):
        """Milliseconds a token after a prompt: from the first new token to the last."""
        ids = self._random_ids(prompt_tokens)
        clock = TokenClock()
        self._generate({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, n_tokens + 1, streamer=clock)
        first, last = clock.times[1], clock.times[-1]  # times[0] is the prompt
        return {"ms_per_token": (last - first) * 1e3 / n_tokens}

    @torch.inference_mode()
    def tower(self, image):
        """Tower and projector for one preprocessed picture."""
        inputs = self._inputs(open(image, "rb").read(), "x")
        _, ms = milliseconds(lambda: self.model.get_image_features(pixel_values=inputs["pixel_values"]))
        return {"ms": ms}

    @torch.inference_mode()
    def first_token(self, image, text):
        """From a picture file and a question to the first token."""
        def whole():
            with open(image, "rb") as file:
                inputs = self._inputs(file.read(), text)
            self._generate(inputs, 1)
            return inputs["input_ids"].shape[1]

        prompt_tokens, ms = milliseconds(whole)
        return {"ms": ms, "prompt_tokens": prompt_tokens}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("dtype", choices=["float32", "bfloat16"])
    parser.add_argument("threads", type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(os.getpid())
    worker = Worker(arguments.checkpoint, arguments.dtype)
    names = ("info", "prefill", "decode", "tower", "first_token")
    serve({name: getattr(worker, name) for name in names})


if __name__ == "__main__":
    sys.exit(main())
