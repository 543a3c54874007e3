"""12-megapixel JPEG to pixel tensor: ours beside the processors of transformers, in turns.

Read the figures only when nothing else runs on the machine. Ends with a RESULT line; its
`preprocess_ratio_12mp` is the time of the faster of transformers' two processors, each given a
picture opened with Pillow, over ours, for the demo model's SigLIP recipe; `..._file` takes instead
the route on which transformers decodes the file itself, and `clip_...` is the same for CLIP-L/14-336.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy
import PIL
import torch
import torchvision
import transformers
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUTES = ("default", "default_file", "pil")
CLIP = {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 336},
        "crop_size": {"height": 336, "width": 336}}  # fmt: skip


def make_photo(path):
    """A picture of 4000 x 3000 with the spectrum of a photo (noise at five scales and grain), as a
    JPEG of quality 90 with half-resolution chroma: about 2.4 MB."""
    random = numpy.random.default_rng(7)
    width, height = 4000, 3000
    pixels = numpy.zeros((height, width, 3), numpy.float32)
    for size, amplitude in [(8, 60), (32, 40), (128, 25), (512, 14), (1500, 8)]:
        small = random.normal(size=(size * 3 // 4 + 2, size, 3)).astype(numpy.float32)
        planes = [
            numpy.asarray(Image.fromarray(small[..., c]).resize((width, height), Image.BICUBIC))
            for c in range(3)
        ]
        luma = numpy.mean(planes, axis=0)
        for channel in range(3):
            pixels[..., channel] += amplitude * (0.7 * luma + 0.3 * planes[channel])
    pixels += random.normal(size=pixels.shape) * 2.5
    picture = Image.fromarray(numpy.clip(pixels + 120, 0, 255).astype(numpy.uint8))
    picture.save(path, quality=90, subsampling=2)


def ours(program, picture, model_dir, threads):
    """Our figures for one round."""
    environment = {**os.environ, "TRIPTYCH_THREADS": str(threads)}
    command = [str(program), str(picture), str(model_dir), "5"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    line = [text for text in done.stdout.splitlines() if text.startswith("RESULT ")][-1]
    return json.loads(line[len("RESULT ") :])


def compare(program, picture, model_dir, threads, rounds):
    """Medians of all routes, in milliseconds."""
    peer_script = pathlib.Path(__file__).with_name("transformers_peer.py")
    command = [sys.executable, str(peer_script), str(picture), str(model_dir), str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    times = {name: [] for name in ("decode", "resize", "whole", *ROUTES)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as peer:
        print(f"\n{model_dir.name}: {peer.stdout.readline().strip()}")
        for number in range(rounds + 1):
            figures = ours(program, picture, model_dir, threads)
            theirs = {}
            for route in ROUTES:
                print(route, file=peer.stdin, flush=True)
                theirs[route] = float(peer.stdout.readline())
            if number == 0:  # warm-up
                continue
            times["whole"].append(figures["preprocess_12mp_ms"])
            times["decode"].append(figures["decode_ms"])
            times["resize"].append(figures["resize_ms"])
            for route in ROUTES:
                times[route].append(theirs[route])
        peer.stdin.close()
    medians = {name: statistics.median(values) for name, values in times.items()}
    labels = {
        "whole": "ours, file to pixel tensor",
        "decode": "  decode alone, one thread",
        "resize": "  resize and normalise alone",
        "default": "transformers default, Pillow picture",
        "default_file": "transformers default, from the file",
        "pil": "transformers PIL backend",
    }
    for name, label in labels.items():
        ratio = "" if name in ("decode", "resize") else f"{medians[name] / medians['whole']:8.2f}x"
        print(f"{label:40}{medians[name]:8.1f} ms{ratio}")
    return medians


def main():
    """Runs both recipes and prints RESULT."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--picture", type=pathlib.Path, help="another picture to measure with")
    arguments = parser.parse_args()
    program = arguments.build / "preprocess_bench"
    if not program.exists():
        raise SystemExit(f"{program} is not there: build the release preset first (make release)")
    print(f"{arguments.threads} threads; transformers {transformers.__version__}, torch "
          f"{torch.__version__}, torchvision {torchvision.__version__}, Pillow {PIL.__version__}")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        picture = arguments.picture
        if picture is None:
            picture = pathlib.Path(folder) / "photo_12mp.jpg"
            make_photo(picture)
        clip_dir = pathlib.Path(folder) / "clip-336"
        clip_dir.mkdir()
        (clip_dir / "preprocessor_config.json").write_text(json.dumps(CLIP))
        settings = (arguments.threads, arguments.rounds)
        demo = compare(program, picture, ROOT / "models/demo", *settings)
        clip = compare(program, picture, clip_dir, *settings)
    result = {}
    for prefix, medians in (("", demo), ("clip_", clip)):
        opened = min(medians["default"], medians["pil"])
        result[f"{prefix}preprocess_ratio_12mp"] = round(opened / medians["whole"], 2)
        result[f"{prefix}preprocess_ratio_12mp_file"] = round(
            medians["default_file"] / medians["whole"], 2
        )
    result["preprocess_12mp_ms"] = round(demo["whole"], 2)
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
