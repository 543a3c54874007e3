"""Muon (Jordan et al. 2024) for the weight matrices and Adam for everything else.

fp32 masters, working copies in the type that computes, and an exponential average of the masters for export.
"""
import torch

NEWTON_SCHULZ = (3.4445, -4.775, 2.0315)
NEWTON_SCHULZ_STEPS = 5


def is_matrix(name):
    return '.W' in name


class Muon:
    """Steps the `working` weights {name: tensor that requires grad}; weights without a gradient stay as they are."""
    LR, DECAY, ADAM_LR, MEAN_DECAY = .015, .02, 1.5e-3, .9985

    def __init__(self, working):
        self.work, self.step_count = working, 0
        self.master = {k: v.detach().float().clone() for k, v in working.items()}
        self.mean = {k: v.clone() for k, v in self.master.items()}
        self.first = {k: torch.zeros_like(v) for k, v in self.master.items()}
        self.second = {k: torch.zeros_like(v) for k, v in self.master.items() if not is_matrix(k)}

    def state(self):
        return dict(master=self.master, mean=self.mean, first=self.first, second=self.second, step=self.step_count)

    def copy_of_state(self):
        return {k: {n: v.clone() for n, v in d.items()} if isinstance(d, dict) else d for k, d in self.state().items()}

    @torch.no_grad()
    def load(self, state):
        for name in ('master', 'mean', 'first', 'second'):
            for k, v in getattr(self, name).items():
                v.copy_(state[name][k])
        self.step_count = state['step']
        self.refresh()

    def refresh(self):
        torch._foreach_copy_(list(self.work.values()), list(self.master.values()))

    @staticmethod
    def orthogonal(x):
        """The nearest (about) semi-orthogonal matrix to each of a stack, by Newton-Schulz iteration."""
        a, b, c = NEWTON_SCHULZ
        x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
        for _ in range(NEWTON_SCHULZ_STEPS):
            s = x @ x.mT
            x = a * x + (b * s + c * s @ s) @ x
        return x

    @torch.no_grad()
    def step(self, rate):
        """One step with all learning rates multiplied by `rate`; clears the gradients."""
        self.step_count += 1
        have = [k for k, v in self.work.items() if v.grad is not None]
        self._step_matrices([k for k in have if is_matrix(k)], rate)
        self._step_others([k for k in have if not is_matrix(k)], rate)
        keep = min(self.MEAN_DECAY, self.step_count / (self.step_count + 50))
        torch._foreach_lerp_(list(self.mean.values()), list(self.master.values()), 1 - keep)
        self.refresh()
        for v in self.work.values():
            v.grad = None

    def _step_matrices(self, names, rate):
        if not names:
            return
        torch._foreach_lerp_([self.first[k] for k in names], [self.work[k].grad.float() for k in names], .05)
        torch._foreach_mul_([self.master[k] for k in names], 1 - rate * self.LR * self.DECAY)
        shapes = {}  # one batched product for all matrices of a shape
        for k in names:
            update = torch.lerp(self.work[k].grad.float(), self.first[k], .95).flatten(0, -3).bfloat16()
            tall = update.shape[1] > update.shape[2]
            shapes.setdefault(tuple(sorted(update.shape[1:])), []).append((k, tall, update.mT if tall else update))
        for group in shapes.values():
            stacked = self.orthogonal(torch.cat([update for *_, update in group]))
            for (k, tall, update), o in zip(group, stacked.split([len(update) for *_, update in group])):
                o = o.mT if tall else o
                scale = max(1, o.shape[1] / o.shape[2]) ** .5
                self.master[k].sub_(o.reshape(self.master[k].shape), alpha=rate * self.LR * scale)

    def _step_others(self, names, rate):
        if not names:
            return
        gradients = [self.work[k].grad.float() for k in names]
        master, first, second = ([d[k] for k in names] for d in (self.master, self.first, self.second))
        torch._foreach_lerp_(first, gradients, .1)
        torch._foreach_mul_(second, .95)
        torch._foreach_addcmul_(second, gradients, gradients, .05)
        root = torch._foreach_sqrt(torch._foreach_div(second, 1 - .95 ** self.step_count))
        torch._foreach_add_(root, 1e-8)
        torch._foreach_addcdiv_(master, first, root, -rate * self.ADAM_LR / (1 - .9 ** self.step_count))
