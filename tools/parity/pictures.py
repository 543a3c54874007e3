"""Pictures made by formula, so that goldens need no photographs and anyone can make them again."""

import numpy as np
from PIL import Image

from paths import PICTURES


def waves(width, height, seed):
    """Smooth colour waves with a sharp-edged disc and a checkered corner: [height, width, 3] uint8."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    phase = 0.7 * seed
    red = 127.5 + 127.5 * np.sin(x * (0.11 + 0.01 * seed) + phase)
    green = 127.5 + 127.5 * np.cos(y * 0.17 - x * 0.05 + 2 * phase)
    blue = 127.5 + 127.5 * np.sin((x * 0.5 + y) * 0.09 + 3 * phase)
    picture = np.stack([red, green, blue], axis=-1)
    disc = (x - 0.6 * width) ** 2 + (y - 0.4 * height) ** 2 < (0.2 * min(width, height)) ** 2
    picture[disc] = (250, 40 * (seed % 6), 10)
    corner = (x < width / 4) & (y >= height - height / 4) & ((x.astype(int) + y.astype(int)) % 2 == 0)
    picture[corner] = 0
    return np.rint(picture).clip(0, 255).astype(np.uint8)


def noise(width, height, seed):
    """Bytes of a linear congruential generator (Numerical Recipes constants), the hardest resize input."""
    state = np.uint32(seed * 2654435761 & 0xFFFFFFFF)
    values = np.empty(width * height * 3, dtype=np.uint8)
    for index in range(values.size):
        state = np.uint32((int(state) * 1664525 + 1013904223) & 0xFFFFFFFF)
        values[index] = int(state) >> 24
    return values.reshape(height, width, 3)


MAKERS = {"waves": waves, "noise": noise}


def picture_path(name):
    """Path of the picture called KIND_WIDTHxHEIGHT[_SEED], made if it is not there yet."""
    path = PICTURES / f"{name}.png"
    if not path.exists():
        kind, size, *seed = name.split("_")
        width, height = (int(side) for side in size.split("x"))
        pixels = MAKERS[kind](width, height, int(seed[0]) if seed else 1)
        PICTURES.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels, "RGB").save(path, optimize=True)
    return path
