"""What happens to a picture between its maker and the model: contrast, brightness, JPEG, a trip through another size.

All steps are matrix products on whole 384 x 384 batches, so that they cost little beside a training step. Resizing one
axis is a product with a fixed matrix, and so is the 8 x 8 block DCT of JPEG (tables of ITU-T T.81, annex K).
"""
import math

import numpy as np
import torch
from PIL import Image

from scenes import CANVAS

LUMA = [16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
        14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
        49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99]
CHROMA = ([17, 18, 24, 47] + [99] * 4 + [18, 21, 26, 66] + [99] * 4 + [24, 26, 56] + [99] * 5
          + [47, 66] + [99] * 38)
YCC = [[.299, .587, .114], [-.1687, -.3313, .5], [.5, -.4187, -.0813]]


def resize_matrix(sizes_and_filters):
    """[384, 384]: the columns of the identity resized through the given sizes are the columns of the matrix."""
    image = Image.fromarray(np.eye(CANVAS, dtype=np.float32))
    for size, resample in sizes_and_filters:
        image = image.resize((CANVAS, size), resample)
    return np.array(image)


def blur_matrix(sigma):
    offset = torch.arange(CANVAS)[:, None] - torch.arange(CANVAS)
    weight = torch.exp(-offset * offset / (2 * sigma * sigma))
    return (weight / weight.sum(1, keepdim=True)).numpy()


def resampling_bank():
    """Identity (four times, to be likelier), down and up again, up and down again, and slight blurs."""
    back = (CANVAS, Image.Resampling.BICUBIC)
    bank = [np.eye(CANVAS, dtype=np.float32)] * 4
    for size in range(276, CANVAS, 12):
        for down in (Image.Resampling.BOX, Image.Resampling.BICUBIC):
            bank.append(resize_matrix([(size, down), back]))
    bank += [resize_matrix([(size, Image.Resampling.BILINEAR), back]) for size in (480, 560, 640, 800)]
    return np.stack(bank + [blur_matrix(sigma) for sigma in (.5, .7, .9)])


def block_dct():
    i = torch.arange(8.)
    dct = torch.cos((2 * i[None] + 1) * i[:, None] * math.pi / 16) / 2
    dct[0] /= math.sqrt(2)
    return torch.block_diag(*[dct] * (CANVAS // 8))


class Augment:
    """Call with pictures [n, 3, 384, 384] in 0..1 and a generator; returns the model's pixels in -1..1."""

    def __init__(self, device, compile=False):
        dtype = torch.float16 if str(device).startswith('cuda') else torch.float32
        self.bank = torch.from_numpy(resampling_bank()).to(device, dtype)
        self.dct = block_dct().to(device, dtype)
        tables = torch.tensor([LUMA, CHROMA, CHROMA]).float().view(1, 3, 8, 8)
        self.table = tables.repeat(1, 1, CANVAS // 8, CANVAS // 8).to(device) / 255
        self.to_ycc = torch.tensor(YCC, device=device)
        self.to_rgb = torch.linalg.inv(self.to_ycc)
        maybe = (lambda f: torch.compile(f, dynamic=False)) if compile else (lambda f: f)
        self.begin, self.quantise, self.finish = maybe(self._begin), maybe(self._quantise), maybe(self._finish)

    @staticmethod
    def mix(matrix, x):
        return torch.stack([row[0] * x[:, 0] + row[1] * x[:, 1] + row[2] * x[:, 2] for row in matrix], 1)

    def _begin(self, x, contrast, brightness):
        return self.mix(self.to_ycc, ((x - .5) * contrast + brightness).clamp(-.5, .5)).to(self.dct.dtype)

    def _quantise(self, coefficients, strength):
        table = self.table * strength
        return (torch.round(coefficients.float() / table) * table).to(self.dct.dtype)

    def _finish(self, plain, compressed, use_compressed):
        x = torch.where(use_compressed, compressed, plain).float()
        return self.mix(self.to_rgb, x).clamp(-.5, .5).to(self.dct.dtype)

    def __call__(self, x, g):
        def uniform(low, high):
            return torch.rand(x.shape[0], 1, 1, 1, device=x.device, generator=g) * (high - low) + low

        plain, dct = self.begin(x, uniform(.75, 1.15), uniform(-.08, .08)), self.dct
        compressed = dct.T @ self.quantise(dct @ plain @ dct.T, uniform(.06, .9)) @ dct  # quality 55 to 97
        which = torch.randint(0, len(self.bank), (x.shape[0], 1), device=x.device, generator=g)
        resize = self.bank[which]
        return resize @ self.finish(plain, compressed, uniform(0, 1) < .7) @ resize.transpose(-1, -2) * 2
