"""Trains the demo model, from scratch or on from a checkpoint, or only a new projector onto a frozen model.

  python train.py --base models/demo --state s.pt --out out --seconds 540 --until .55      first part of a schedule
  python train.py --base models/demo --state s.pt --out out --seconds 540 --resume         the rest of it
  torchrun --nproc-per-node 4 train.py ...                                                  on four GPUs
  python train.py --base models/demo --projector linear_layernorm --out adapter --seconds 120
  python train.py --base models/demo --out out --device cpu --steps 2 --pictures 8          does it run at all

Pictures are painted on the device while it trains (render.py), questions are made by worker processes (batches.py).
With several processes each has its own data, and gradients are averaged.
"""
import argparse
import csv
import math
import multiprocessing
import os
import time

import torch
import torch.distributed
import torch.nn.attention
from tokenizers import Tokenizer

import checkpoint
import easy_vqa_data
import model as network
from augment import Augment
from batches import Batches
from muon import Muon
from render import Renderer, character_patches
from vocabulary import TASKS

WARM_UP_STEPS = 200
CLOCK_STEPS = 10      # how often the processes agree on the time
BROKEN = .25          # by how much the share of right answers may fall before the last good state is taken up again
# What a line of the curves tells of the losses besides the answers: shares of right kinds, colours and characters in the
# tower's features; losses over places of patches, looks at what is named and told, places, and offsets (0 where a batch asks nothing).
WATCHED = ('tower_kind', 'tower_color', 'tower_char', 'patch_loss', 'look_loss', 'tell_loss', 'place_loss', 'offset_loss')
TASK_WEIGHT = {'describe': .4, 'read': .85}  # long answers must not outweigh short ones


def arguments():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--base', required=True, help='checkpoint folder: start weights, tokenizer and processor files')
    ap.add_argument('--from-scratch', action='store_true', help='random start weights; from the base only its files')
    ap.add_argument('--projector', choices=network.PROJECTORS, default='mlp',
                    help='linear_layernorm: train only a new projector of this kind; tower and decoder stay frozen')
    ap.add_argument('--freeze-tower', action='store_true', help='train projector and decoder only')
    ap.add_argument('--dropout', type=float, default=.05, help='after a linear_layernorm projector, in training')
    ap.add_argument('--out', required=True, help='checkpoint folder to write (averaged weights)')
    ap.add_argument('--state', help='file of the whole training state, to resume from')
    ap.add_argument('--resume', action='store_true', help='go on from --state')
    ap.add_argument('--seconds', type=float, default=1e9, help='training time of this run, compiling not counted')
    ap.add_argument('--steps', type=int, default=0, help='stop after so many steps (0: by time)')
    ap.add_argument('--until', type=float, default=1., help='share of the schedule done at the end of this run')
    ap.add_argument('--peak', type=float, default=1., help='highest learning rate, as a multiple of that in muon.py')
    ap.add_argument('--object-loss', type=float, default=.3, help='first weight of the dense loss on the tower (0: none)')
    ap.add_argument('--place-loss', type=float, default=.1,
                    help='weight of the losses on places: of patches, of objects that questions name (looking at them,'
                         ' knowing where they are), looking at what answers tell, and offsets (0: none)')
    ap.add_argument('--pictures', type=int, default=128, help='pictures a step and process')
    ap.add_argument('--workers', type=int, default=14, help='worker processes that make questions, a process')
    ap.add_argument('--device', default='cuda', choices=('cuda', 'cpu'))
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--curves', help='CSV file of the curves, appended to')
    return ap.parse_args()


class Processes:
    """The processes that train together (one, unless started by torchrun)."""

    def __init__(self, device):
        self.rank, self.count = int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1))
        self.device = torch.device('cuda', int(os.environ.get('LOCAL_RANK', 0))) if device == 'cuda' else torch.device('cpu')

    def connect(self):
        """After the data workers were forked: they must not inherit an initialised device."""
        if self.device.type == 'cuda':
            torch.cuda.set_device(self.device)
        if self.count > 1:
            torch.distributed.init_process_group('nccl' if self.device.type == 'cuda' else 'gloo')

    def average(self, tensors):
        """Averages tensors over the processes, in place, in one message."""
        if self.count > 1:
            flat = torch.cat([t.flatten().float() for t in tensors])
            torch.distributed.all_reduce(flat)
            flat /= self.count
            for t, part in zip(tensors, flat.split([t.numel() for t in tensors])):
                t.copy_(part.view_as(t))

    def average_gradients(self, weights):
        if self.count > 1:
            for v in weights.values():
                if v.grad is None:  # another process may have one: their batches differ in kind
                    v.grad = torch.zeros_like(v)
            self.average([v.grad for v in weights.values()])

    def same(self, value):
        """The first process's value, on all of them."""
        if self.count == 1:
            return value
        t = torch.tensor([value], dtype=torch.float64, device=self.device)
        torch.distributed.broadcast(t, 0)
        return t.item()

    def copy_first(self, weights):
        if self.count > 1:
            for v in weights.values():
                torch.distributed.broadcast(v, 0)


class Curves:
    """Prints a line now and then and appends it to a CSV file."""

    def __init__(self, path):
        self.path, self.next_at = path, 5.

    def due(self, elapsed):
        if elapsed < self.next_at:
            return False
        self.next_at += 10 if elapsed < 60 else 20
        return True

    def write(self, row):
        print(' '.join(f'{k} {v}' for k, v in row.items()), flush=True)
        if self.path:
            fresh = not os.path.exists(self.path)
            with open(self.path, 'a', newline='') as f:
                writer = csv.DictWriter(f, row)
                if fresh:
                    writer.writeheader()
                writer.writerow(row)


class Trainer:
    def __init__(self, a):
        self.a, self.processes = a, Processes(a.device)
        self.only_projector = a.projector != 'mlp'
        self.tower_frozen = self.only_projector or a.freeze_tower
        saved = torch.load(a.state, map_location='cpu', weights_only=True) if a.resume else None
        self.begin = saved['share'] if saved else 0.
        self.progress = multiprocessing.Value('d', self.begin)
        self.data = self.start_data(Tokenizer.from_file(os.path.join(a.base, 'tokenizer.json')))
        self.processes.connect()
        dev, cuda = self.processes.device, a.device == 'cuda'
        torch.manual_seed(a.seed + self.processes.rank)
        torch.set_float32_matmul_precision('high')
        number = int(1000 * self.begin) + 100003 * a.seed + 7919 * self.processes.rank
        self.generator = torch.Generator(dev).manual_seed(number)
        start = network.initial_weights(a.projector)
        if not a.from_scratch:
            kept = checkpoint.from_hugging_face(a.base)
            start |= {k: v for k, v in kept.items() if not (self.only_projector and k.startswith('p.'))}
        dtype = torch.bfloat16 if cuda else torch.float32
        self.weights = {k: v.to(dev, dtype) for k, v in start.items()}
        trained = {k: v.requires_grad_() for k, v in self.weights.items() if self.is_trained(k)}
        self.optimiser = Muon(trained)
        if not saved and not a.from_scratch:
            for k, v in trained.items():  # masters start from the exact weights, not from their working copies
                self.optimiser.master[k].copy_(start[k])
                self.optimiser.mean[k].copy_(start[k])
        if saved:
            self.optimiser.load(saved['optimiser'])
        self.model = network.Model(self.weights, cuda, a.dropout)
        self.renderer, self.augment = Renderer(dev, compile=cuda), Augment(dev, compile=cuda)
        self.easy_vqa = easy_vqa_data.Pictures(easy_vqa_data.load('train')[0], dev)
        self.task_weight = torch.tensor([TASK_WEIGHT.get(t, 1.) for t in TASKS], device=dev)
        self.tally = torch.zeros(2, len(TASKS), device=dev)

    def is_trained(self, name):
        if self.only_projector:
            return name.startswith('p.')
        return not (self.tower_frozen and name.startswith('v.'))

    def start_data(self, tokenizer):
        a = self.a
        phases = dict(tower_until=.04, easy_until=.12) if a.from_scratch else dict(tower_until=0., easy_until=0.)
        seed = f'train{a.seed}-{self.begin:.3f}-{self.processes.rank}' + ('-projector' if self.only_projector else '')
        batches = Batches(tokenizer, self.progress, seed, a.pictures, **phases)
        loader = torch.utils.data.DataLoader(
            batches, batch_size=None, num_workers=a.workers, prefetch_factor=3 if a.workers else None,
            pin_memory=a.device == 'cuda', multiprocessing_context='fork' if a.workers else None)
        return iter(loader)

    def loss(self, batch, share):
        kind_color, chars, length, geometry, shown, rows = (t.to(self.processes.device, non_blocking=True) for t in batch)
        with torch.no_grad():
            chance = self.renderer.sample(kind_color, self.generator)
            pictures = self.renderer.paint(kind_color, chars, length, geometry, chance)
            if len(shown):
                kind_color[:len(shown)], length[:len(shown)] = -1, 0
                pictures[:len(shown)] = self.easy_vqa.large(shown)
            pixels = self.augment(pictures, self.generator)
            object_patch, char_patch = character_patches(kind_color, length, geometry, network.PATCH)
        with torch.set_grad_enabled(not self.tower_frozen):
            features = self.model.tower(pixels)
        loss, watched = 0., torch.zeros(len(WATCHED), device=self.processes.device)
        if not self.tower_frozen:
            loss, watched[:3] = self.model.object_loss(features, kind_color, chars, length, object_patch, char_patch)
        if rows.shape[2]:
            asked, places, by_task = self.model.question_loss(features, rows, self.task_weight)
            self.tally += by_task
            watched[3:] = places.detach()
            objects, loss = loss, asked
            if self.a.place_loss and not self.only_projector:  # the heads for it are not trained
                loss = loss + self.a.place_loss * places.sum()
            if self.a.object_loss:
                loss = loss + self.a.object_loss * max(.1, 1 - share / .7) * objects
        return loss, watched

    def warm_up(self):
        """Compiles every kind of step before the clock starts. The progress is moved so that each kind comes up."""
        start, seen = time.time(), set()
        stages = [(self.begin, 1), (max(self.begin, .5), 3 if self.a.from_scratch and self.begin < .04 else 2)]
        for share, kinds in stages:
            self.progress.value = share
            while len(seen) < kinds:
                batch = next(self.data)
                if batch[-1].shape not in seen:
                    seen.add(batch[-1].shape)
                    self.loss(batch, share)[0].backward()
                    torch.cuda.synchronize()
                    if self.processes.rank == 0:
                        print('compiled', tuple(batch[-1].shape), f'{time.time() - start:.0f} s', flush=True)
        for v in self.weights.values():
            v.grad = None
        self.tally.zero_()
        self.progress.value = self.begin

    def run(self):
        a, processes, optimiser = self.a, self.processes, self.optimiser
        if a.device == 'cuda':
            self.warm_up()
        curves, steps, share, elapsed = Curves(a.curves), 0, self.begin, 0.
        scale, best, good = 1., 0., None
        start = time.time()
        while not a.steps or steps < a.steps:
            if steps % CLOCK_STEPS == 0:
                elapsed = processes.same(time.time() - start)
                if elapsed >= a.seconds:
                    break
                share = self.progress.value = self.begin + (a.until - self.begin) * min(1., elapsed / a.seconds)
            warm = min(1., (optimiser.step_count + 1) / WARM_UP_STEPS)
            rate = scale * a.peak * warm * (.02 + .98 * .5 * (1 + math.cos(math.pi * share)))
            loss, watched = self.loss(next(self.data), share)
            loss.backward()
            processes.average_gradients(optimiser.work)
            optimiser.step(rate)
            steps += 1
            if steps % 500 == 0:
                processes.copy_first(optimiser.master)
            if not curves.due(elapsed) and not a.steps:
                continue
            right = self.report(curves, elapsed, share, steps, rate, loss.detach(), watched)
            if right > best - BROKEN:
                best, good = max(best, right), optimiser.copy_of_state()
            elif good:  # training broke: the last good state, at a lower rate
                print('falling back', flush=True)
                optimiser.load(good)
                scale *= .6
        seconds = time.time() - start
        if processes.rank == 0:
            self.save(a.until if not a.steps else share, steps, seconds)
        if processes.count > 1:
            torch.distributed.destroy_process_group()

    def report(self, curves, elapsed, share, steps, rate, loss, watched):
        """Writes a line of the curves (means over the processes); returns the share of right answers since the last."""
        self.processes.average([loss, watched, self.tally])
        pictures = self.a.pictures * self.processes.count * steps
        right, asked = self.tally.tolist()
        row = dict(seconds=round(elapsed, 1), share=round(share, 4), step=self.optimiser.step_count, pictures=pictures,
                   rate=round(rate, 4), loss=round(loss.item(), 4))
        row |= {name: round(v, 4) for name, v in zip(WATCHED, watched.tolist())}
        row |= {task: round(x / max(1., y), 4) for task, x, y in zip(TASKS, right, asked)}
        self.tally.zero_()
        if self.processes.rank == 0:
            curves.write(row)
        return sum(right) / max(1., sum(asked))

    def save(self, share, steps, seconds):
        a = self.a
        pictures = a.pictures * self.processes.count * steps
        print(f'{pictures} pictures, {steps} steps in {seconds:.0f} s, {pictures / seconds:.0f} pictures/s', flush=True)
        if a.state:
            torch.save(dict(optimiser=self.optimiser.state(), share=share), a.state)
        mean = {k: v.float() for k, v in self.weights.items()} | self.optimiser.mean
        checkpoint.write(a.out, {k: v for k, v in mean.items() if not k.startswith('aux.')}, a.base,
                         only_projector=self.only_projector)


def main():
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'
    kernels = [torch.nn.attention.SDPBackend.CUDNN_ATTENTION, torch.nn.attention.SDPBackend.FLASH_ATTENTION,
               torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION, torch.nn.attention.SDPBackend.MATH]
    with torch.nn.attention.sdpa_kernel(kernels, set_priority=True):
        Trainer(arguments()).run()


if __name__ == '__main__':
    main()
