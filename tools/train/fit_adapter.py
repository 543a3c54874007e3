"""Fits the linear_layernorm projector to what a checkpoint's own two-layer projector puts out, on generated pictures.

  python fit_adapter.py --base ../../models/demo --out ../../models/demo-adapter

A start for the adapter that needs no accelerator: the mean squared difference is brought down by Adam over the tower's
features of some pictures. Writes adapter.safetensors and config.json; adapter.py makes a whole checkpoint of them.
"""
import argparse
import random

import torch
import torch.nn.functional as F

import checkpoint
import model as network
from render import Renderer, scene_arrays
from scenes import Scene


def tower_features(weights, pictures, seed):
    """[pictures * 576, 256] of pictures that only this script draws."""
    r, generator = random.Random(f'adapter {seed}'), torch.Generator().manual_seed(seed)
    renderer, tower = Renderer('cpu'), network.Model(weights, compile=False).tower
    out = []
    with torch.inference_mode():
        for _ in range(pictures // 4):
            arrays = scene_arrays([Scene(r) for _ in range(4)])
            x = renderer.paint(*arrays, renderer.sample(arrays[0], generator))
            out.append(tower(x * 2 - 1).flatten(0, 1))
    return torch.cat(out).clone()


def fit(weights, features, steps, seed):
    """The trainer's weights with the fitted projector, and the share of the variance that it leaves unexplained."""
    generator = torch.Generator().manual_seed(seed)
    adapter = network.initial_projector('linear_layernorm', generator)
    with torch.no_grad():
        target = network.Model(weights, compile=False).project(features)
    centred = features - features.mean(0)
    solution = torch.linalg.lstsq(centred, target - target.mean(0)).solution  # the best start without the norm
    adapter['p.W'], adapter['p.b'] = solution.T[None].contiguous(), target.mean(0) - features.mean(0) @ solution
    adapter['p.norm_w'] = target.std(0)
    for v in adapter.values():
        v.requires_grad_()
    student = network.Model(adapter, compile=False)
    optimiser = torch.optim.Adam(adapter.values(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        chosen = torch.randint(len(features), (4096,), generator=generator)
        loss = F.mse_loss(student.project(features[chosen]), target[chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        left = F.mse_loss(student.project(features), target) / target.var()
    kept = {k: v for k, v in weights.items() if not k.startswith('p.')}
    return kept | {k: v.detach() for k, v in adapter.items()}, left.item()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--base', required=True, help='checkpoint folder with a two-layer projector')
    ap.add_argument('--out', required=True, help='folder for adapter.safetensors and config.json')
    ap.add_argument('--pictures', type=int, default=96)
    ap.add_argument('--steps', type=int, default=1500)
    ap.add_argument('--seed', type=int, default=1)
    a = ap.parse_args()
    weights = checkpoint.from_hugging_face(a.base)
    fitted, left = fit(weights, tower_features(weights, a.pictures, a.seed), a.steps, a.seed)
    checkpoint.write(a.out, fitted, a.base, only_projector=True)
    print(f'share of the variance left: {left:.4f}')


if __name__ == '__main__':
    main()
