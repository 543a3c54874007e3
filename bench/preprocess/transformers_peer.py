"""The processors of transformers on one picture: a child process that answers one line a request.

    transformers_peer.py PICTURE MODEL_DIR THREADS

Reads the name of a route a line and prints the milliseconds it took. Routes: "default" (the class
that AutoImageProcessor takes, given a picture opened with Pillow), "default_file" (the same, given
the path, so that it decodes by its own means), "pil" (the Pillow-backed class).
"""

import argparse
import sys
import time

import torch
from PIL import Image
from transformers import AutoImageProcessor
from transformers.utils import logging


def main():
    """Loads the processors, says what they are, serves until the end of input."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("picture")
    parser.add_argument("model_dir")
    parser.add_argument("threads", type=int)
    arguments = parser.parse_args()
    logging.set_verbosity_error()
    torch.set_num_threads(arguments.threads)
    default = AutoImageProcessor.from_pretrained(arguments.model_dir)
    pillow = AutoImageProcessor.from_pretrained(arguments.model_dir, backend="pil")

    def opened():
        return Image.open(arguments.picture)

    routes = {
        "default": lambda: default(images=[opened()], return_tensors="pt"),
        "default_file": lambda: default(images=[arguments.picture], return_tensors="pt"),
        "pil": lambda: pillow(images=[opened()], return_tensors="pt"),
    }
    print(f"{type(default).__name__} {default.backend}, {type(pillow).__name__}", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        routes[line.strip()]()
        print((time.perf_counter() - start) * 1e3, flush=True)


if __name__ == "__main__":
    main()
