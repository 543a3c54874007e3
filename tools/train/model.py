"""The network of the demo model: SigLIP tower, projector and Llama decoder, written over stacked weights.

Weights of all layers of a part are one tensor with the layer in front, so that one compiled block serves every layer
and the optimiser orthogonalises whole stacks at once; checkpoint.py writes and reads them under Hugging Face names.
Architectures: SigLIP (Zhai et al. 2023) without its head, LLaVA-1.5 (Liu et al. 2023), Llama (Touvron et al. 2023).
"""
import math

import torch
import torch.nn.functional as F

from batches import CHARACTER, CONVERSATION, MAX_TURNS, OFFSET, OFFSETS, PLACE, PLACE_GRID, POSITION, TASK, TOKEN, TOLD, TURN
from scenes import CANVAS
from vocabulary import BOS, CHARS, COLORS, MAX_TEXT, SHAPES, TASKS, USER

WIDTH, HEAD = 256, 64
TOWER_LAYERS, DECODER_LAYERS = 8, 8
DECODER_FF = 704
VOCAB = 704
PATCH = 16
GRID = CANVAS // PATCH
LAYER_NORM_EPS, RMS_EPS, ROPE_THETA = 1e-6, 1e-5, 10000.
PROJECTORS = ('mlp', 'linear_layernorm')
PROJECTOR_LAYER_NORM_EPS = 1e-5
LOOK_LAYER = 4        # in this decoder layer LOOK_HEADS must look at the object that a token names (in training),
TELL_LAYER = 6        # and in this one at the object or character that the next token tells
LOOK_HEADS = 2        # the first ones: those of one key-value head
LOOK_PATCHES = 2      # how many patches around an object's centre count as looking at it
PLACE_LAYER = 5       # after so many decoder layers a named object's place must be known,
OFFSET_LAYER = 7      # and after so many how far two compared objects are apart


def initial_weights(projector='mlp', seed=0):
    """{name: tensor}. Names with a capital W are matrices; `v.` tower, `p.` projector, `l.` decoder, `aux.` heads that
    only training needs."""
    g = torch.Generator().manual_seed(seed)
    one, zero, out = torch.ones, torch.zeros, .03 / math.sqrt(2 * 8)

    def matrix(*shape, std=.03):
        return torch.randn(*shape, generator=g) * std

    d, tl, dl, ff = WIDTH, TOWER_LAYERS, DECODER_LAYERS, DECODER_FF
    weights = {
        'v.patch': matrix(d, 3 * PATCH * PATCH, std=.02), 'v.patch_b': zero(d), 'v.pos': sine_positions(),
        'v.n1w': one(tl, d), 'v.n1b': zero(tl, d), 'v.Wqkv': matrix(tl, 3, d, d), 'v.bqkv': zero(tl, 3, d),
        'v.Wo': matrix(tl, d, d, std=out), 'v.bo': zero(tl, d), 'v.n2w': one(tl, d), 'v.n2b': zero(tl, d),
        'v.W1': matrix(tl, 4 * d, d), 'v.b1': zero(tl, 4 * d), 'v.W2': matrix(tl, d, 4 * d, std=out), 'v.b2': zero(tl, d),
        'l.embed': matrix(VOCAB, d, std=.02), 'l.norm': one(d), 'l.n1': one(dl, d), 'l.Wqkv': matrix(dl, 2, d, d),
        'l.Wo': matrix(dl, d, d, std=out), 'l.n2': one(dl, d), 'l.Wgu': matrix(dl, 2, ff, d), 'l.Wd': matrix(dl, d, ff, std=out),
        'aux.kind': matrix(len(SHAPES) + 1, d), 'aux.color': matrix(len(COLORS), d), 'aux.char': matrix(len(CHARS), d),
        'aux.place': matrix(2 * PLACE_GRID, d), 'aux.offset': matrix(2 * OFFSETS, d),
        'aux.patch': matrix(2 * GRID, d),
    }
    return weights | initial_projector(projector, g)


def initial_projector(kind, g):
    if kind == 'linear_layernorm':
        return {'p.W': torch.randn(1, WIDTH, WIDTH, generator=g) * .06, 'p.b': torch.zeros(WIDTH),
                'p.norm_w': torch.full((WIDTH,), .3), 'p.norm_b': torch.zeros(WIDTH)}
    return {'p.W1': torch.randn(1, WIDTH, WIDTH, generator=g) * .03, 'p.b1': torch.zeros(WIDTH),
            'p.W2': torch.randn(1, WIDTH, WIDTH, generator=g) * .03, 'p.b2': torch.zeros(WIDTH)}


def sine_positions():
    """[patches, width]: half of the width speaks of the row, half of the column."""
    n = WIDTH // 4
    angle = torch.arange(GRID)[:, None] * torch.exp(-torch.arange(n) * math.log(200) / n)
    wave = torch.cat([angle.sin(), angle.cos()], 1)
    rows = wave[:, None].expand(GRID, GRID, WIDTH // 2)
    columns = wave[None].expand(GRID, GRID, WIDTH // 2)
    return torch.cat([rows, columns], -1).reshape(GRID * GRID, WIDTH) * .3


def rms_norm(x, weight):
    return F.rms_norm(x, (WIDTH,), weight, RMS_EPS)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


def tower_block(x, n1w, n1b, Wqkv, bqkv, Wo, bo, n2w, n2b, W1, b1, W2, b2):
    h = F.linear(F.layer_norm(x, (WIDTH,), n1w, n1b, LAYER_NORM_EPS), Wqkv.view(-1, WIDTH), bqkv.view(-1))
    q, k, v = h.unflatten(-1, (3, WIDTH // HEAD, HEAD)).permute(2, 0, 3, 1, 4).unbind(0)
    x = x + F.linear(merge_heads(F.scaled_dot_product_attention(q, k, v)), Wo, bo)
    h = F.layer_norm(x, (WIDTH,), n2w, n2b, LAYER_NORM_EPS)
    return x + F.linear(F.gelu(F.linear(h, W1, b1), approximate='tanh'), W2, b2)


def decoder_block(x, cos, sin, mask, prefix, last, n1, Wqkv, Wo, n2, Wgu, Wd):
    """The first `prefix` tokens (the pictures) are causal; the others see them all, and what `mask` allows among
    themselves. Nothing reads the prefix after the last layer, which therefore leaves it out."""
    n, t, _ = x.shape
    q, k, v = F.linear(rms_norm(x, n1), Wqkv.view(-1, WIDTH)).split((WIDTH, WIDTH // 2, WIDTH // 2), -1)
    q, k, v = (h.view(n, t, -1, HEAD).transpose(1, 2) for h in (q, k, v))
    q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    a = F.scaled_dot_product_attention(q[:, :, prefix:].contiguous(), k, v, attn_mask=mask)
    if last:
        x = x[:, prefix:]
    else:
        before = F.scaled_dot_product_attention(q[:, :, :prefix], k[:, :, :prefix], v[:, :, :prefix], is_causal=True)
        a = torch.cat([before, a], 2)
    x = x + F.linear(merge_heads(a), Wo)
    gate, up = F.linear(rms_norm(x, n2), Wgu.view(-1, WIDTH)).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, Wd)


def answer_loss(h, norm, embed, label, weight):
    """Weighted cross entropy of the next token, and whether each is the likeliest."""
    logits = F.linear(rms_norm(h, norm), embed).float()
    loss = F.cross_entropy(logits.flatten(0, 1), label.flatten(), reduction='none')
    return (loss * weight.flatten()).sum() / weight.sum(), logits.argmax(-1) == label


class Model:
    """The network over a dictionary of working weights. `dropout` acts on the output of a linear_layernorm projector."""

    def __init__(self, weights, compile=True, dropout=0.):
        self.weights, self.dropout = weights, dropout
        maybe = (lambda f: torch.compile(f, dynamic=False)) if compile else (lambda f: f)
        self.tower_block, self.decoder_block = maybe(tower_block), maybe(decoder_block)
        self.answer_loss = maybe(answer_loss)

    def layers(self, prefix, names):
        return zip(*(self.weights[prefix + name].unbind(0) for name in names.split()))

    def tower(self, pixels):
        """[n, 3, 384, 384] in -1..1 -> [n, 576, 256]"""
        w = self.weights
        x = pixels.unfold(2, PATCH, PATCH).unfold(3, PATCH, PATCH).permute(0, 2, 3, 1, 4, 5)
        x = x.reshape(pixels.shape[0], GRID * GRID, -1).to(w['v.patch'].dtype)
        x = F.linear(x, w['v.patch'], w['v.patch_b']) + w['v.pos']
        for layer in self.layers('v.', 'n1w n1b Wqkv bqkv Wo bo n2w n2b W1 b1 W2 b2'):
            x = self.tower_block(x, *layer)
        return x

    def project(self, features):
        w = self.weights
        if 'p.norm_w' in w:
            x = F.linear(features, w['p.W'][0], w['p.b'])
            x = F.layer_norm(x, (WIDTH,), w['p.norm_w'], w['p.norm_b'], PROJECTOR_LAYER_NORM_EPS)
            return F.dropout(x, self.dropout)
        return F.linear(F.gelu(F.linear(features, w['p.W1'][0], w['p.b1'])), w['p.W2'][0], w['p.b2'])

    def object_loss(self, features, kind_color, chars, length, object_patch, char_patch):
        """Dense targets on the tower: kind and colour at the patch in the middle of each object, and each character
        at the patch that holds its centre. Also returns the three shares of right answers."""
        w = self.weights

        def logits(index, head):
            at = features.gather(1, index.flatten(1)[..., None].expand(-1, -1, WIDTH))
            return F.linear(at, w[head]).float().flatten(0, 1)

        kind, color = kind_color.flatten(0, 1).unbind(-1)
        in_text = torch.arange(MAX_TEXT, device=features.device) < length[..., None]
        char = torch.where(in_text, chars, -1).flatten()
        pairs = ((logits(object_patch, 'aux.kind'), kind), (logits(object_patch, 'aux.color'), color),
                 (logits(char_patch, 'aux.char'), char))
        loss = sum(F.cross_entropy(x, y, ignore_index=-1, reduction='sum') / (y >= 0).sum().clamp(min=1) for x, y in pairs)
        right = [((x.argmax(-1) == y) & (y >= 0)).sum() / (y >= 0).sum().clamp(min=1) for x, y in pairs]
        return loss, torch.stack(right).detach()

    def hidden(self, pictures, token, position, conversation, place, told):
        """At the tokens behind the pictures [n, k * 576, 256] (projected features): the outputs [n, S, 256] of the last
        layer, of PLACE_LAYER and of OFFSET_LAYER; and the look losses of what questions name and of what answers tell."""
        (n, length), dev = token.shape, token.device
        embed = self.weights['l.embed']
        begin = F.embedding(torch.tensor([BOS, USER], device=dev), embed).expand(n, 2, WIDTH)
        x = torch.cat([begin, pictures, F.embedding(token, embed)], 1)
        prefix = x.shape[1] - length
        position = torch.cat([torch.arange(prefix, device=dev).expand(n, prefix), position], 1)
        angle = position[..., None] * (ROPE_THETA ** (-torch.arange(0, HEAD, 2, device=dev) / HEAD))
        cos, sin = (torch.cat([f, f], -1)[:, None].to(x.dtype) for f in (angle.cos(), angle.sin()))
        earlier = torch.ones(length, length, dtype=torch.bool, device=dev).tril()
        see = (conversation[:, :, None] == conversation[:, None]) & earlier
        mask = torch.cat([torch.zeros(n, length, prefix, device=dev, dtype=x.dtype),
                          torch.where(see, 0., -3e4).to(x.dtype)], 2)[:, None]
        for i, layer in enumerate(self.layers('l.', 'n1 Wqkv Wo n2 Wgu Wd')):
            if i + 1 == LOOK_LAYER:
                look = self.look_loss(x, cos, sin, prefix, place, *layer[:2])
            elif i + 1 == TELL_LAYER:
                tell = self.look_loss(x, cos, sin, prefix, told, *layer[:2])
            x = self.decoder_block(x, cos, sin, mask, prefix, i == DECODER_LAYERS - 1, *layer)
            if i + 1 == PLACE_LAYER:
                placed = x[:, prefix:]
            elif i + 1 == OFFSET_LAYER:
                compared = x[:, prefix:]
        return x, placed, compared, look, tell

    @staticmethod
    def look_loss(x, cos, sin, prefix, place, n1, Wqkv):
        """-log of the share of the attention to the picture that rests on the patches `place` names (an object's centre and
        those around it, or exactly a character's), by LOOK_HEADS of the layer with these weights together: left alone, a
        small decoder answers from what many patches tell of the whole picture, and never looks at one object. 0 where
        nothing is named (two pictures)."""
        known = place >= 0
        if not known.any():
            return x.new_zeros((), dtype=torch.float)
        width = LOOK_HEADS * HEAD
        W = Wqkv.view(-1, WIDTH)
        h = rms_norm(x, n1)
        q = F.linear(h[:, prefix:], W[:width]).unflatten(-1, (LOOK_HEADS, HEAD)).transpose(1, 2)
        k = F.linear(h[:, prefix - GRID * GRID:prefix], W[WIDTH:WIDTH + HEAD])[:, None]
        q = rotate(q, cos[:, :, prefix:], sin[:, :, prefix:])
        k = rotate(k, cos[:, :, prefix - GRID * GRID:prefix], sin[:, :, prefix - GRID * GRID:prefix])
        share = (q @ k.mT / math.sqrt(HEAD)).transpose(1, 2)[known].float().log_softmax(-1)
        patch = torch.arange(GRID * GRID, device=x.device)
        at = place[known][:, None] % CHARACTER
        reach = torch.where(place[known] < CHARACTER, LOOK_PATCHES, 0)[:, None]
        on = ((patch // GRID - at // GRID).abs() <= reach) & ((patch % GRID - at % GRID).abs() <= reach)
        return math.log(LOOK_HEADS) - share.masked_fill(~on[:, None], -math.inf).logsumexp((1, 2)).mean()

    def patch_loss(self, pictures):
        """Whether each patch's projected feature still tells its own row and column [n, 576, 256]. Without this the
        tower forgets where it is at the patches that show something, and the decoder cannot compare places."""
        own = torch.arange(GRID * GRID, device=pictures.device).expand(pictures.shape[0], -1)
        return self.grid_loss(pictures, 'aux.patch', own, GRID)

    def grid_loss(self, h, head, target, size):
        """Cross entropy of the two indices that `target` [n, S] combines (first * size + second; -1: nothing to say)."""
        logits = F.linear(F.rms_norm(h, (WIDTH,)), self.weights[head]).float().flatten(0, 1)
        known = (target >= 0).flatten()
        first, second = target.flatten() // size, target.flatten() % size
        loss = sum(F.cross_entropy(x, torch.where(known, y, -1), ignore_index=-1, reduction='sum')
                   for x, y in zip(logits.split(size, -1), (first, second)))
        return loss / known.sum().clamp(min=1)

    def question_loss(self, features, rows, task_weight):
        """Loss over the answers; losses [5] over the places of patches, looking at what is named and at what is told, the
        places of named objects and the offsets of compared ones; by task the number of answers wholly right and of all answers [2, tasks]."""
        rows = rows.long()
        channels = (TOKEN, POSITION, CONVERSATION, TURN, TASK, PLACE, TOLD, OFFSET)
        token, position, conversation, turn, task, place, told, offset = (rows[:, i] for i in channels)
        n = rows.shape[0]
        pictures = self.project(features)
        h, placed, compared, look, tell = self.hidden(pictures.reshape(n, -1, WIDTH), token, position, conversation, place, told)
        label = F.pad(token[:, 1:], (0, 1))
        weight = task_weight[task] * (task >= 0)
        loss, hit = self.answer_loss(h, self.weights['l.norm'], self.weights['l.embed'], label, weight)
        right = torch.ones(n, MAX_TURNS, device=token.device)
        right = right.scatter_reduce(1, turn, (hit | (task < 0)).float(), 'amin').flatten()
        kind = torch.full((n, MAX_TURNS), -1, device=token.device).scatter_reduce(1, turn, task, 'amax').flatten()
        by_task = F.one_hot(kind.clamp(min=0), len(TASKS)).float() * (kind >= 0)[:, None]
        places = torch.stack([self.patch_loss(pictures), look, tell, self.grid_loss(placed, 'aux.place', place, PLACE_GRID),
                              self.grid_loss(compared, 'aux.offset', offset, OFFSETS)])
        return loss, places, torch.stack([(by_task * right[:, None]).sum(0), by_task.sum(0)])
