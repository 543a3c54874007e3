"""The adapter projector (Linear, LayerNorm) at its public shape, [1, 257, 1024] -> [1, 257, 512].

Nothing large is committed: inputs and weights come from a formula that the C++ test repeats (README.md, "Values by
formula"), and of the output some rows and the sums of all are kept. Computed by torch in float64 from the float32 values.
"""

import json

import numpy as np
import torch
from safetensors.numpy import save_file

import hf_model
import paths

N_TOKENS, N_IN, N_OUT = 257, 1024, 512
EPSILON = 1e-5
ROWS = [0, 1, 100, 255, 256]
# name: (stream, shape, scale, offset)
VALUES = {
    "input": (1, (1, N_TOKENS, N_IN), 2.0, 0.0),
    "linear.weight": (2, (N_OUT, N_IN), 1 / 16, 0.0),
    "linear.bias": (3, (N_OUT,), 0.5, 0.0),
    "layer_norm.weight": (4, (N_OUT,), 0.25, 1.0),
    "layer_norm.bias": (5, (N_OUT,), 0.25, 0.0),
}


def formula(stream, shape, scale, offset):
    """offset + scale * u with u in [-1, 1) from the upper 24 bits of splitmix64(stream * 2^32 + index); exact in float32."""
    index = np.arange(int(np.prod(shape)), dtype=np.uint64) + (np.uint64(stream) << np.uint64(32))
    with np.errstate(over="ignore"):
        bits = (index + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    unit = (bits >> np.uint64(40)).astype(np.float64) / 2**23 - 1
    return torch.from_numpy((offset + scale * unit).astype(np.float32).reshape(shape))


def main():
    values = {name: formula(*spec) for name, spec in VALUES.items()}
    linear = torch.nn.Linear(N_IN, N_OUT, dtype=torch.float64)
    norm = torch.nn.LayerNorm(N_OUT, eps=EPSILON, dtype=torch.float64)
    with torch.no_grad():
        for module, prefix in ((linear, "linear"), (norm, "layer_norm")):
            module.weight.copy_(values[f"{prefix}.weight"])
            module.bias.copy_(values[f"{prefix}.bias"])
        output = norm(linear(values["input"].double()))[0]
    home = paths.GOLDENS / "linear_layernorm"
    home.mkdir(parents=True, exist_ok=True)
    tensors = {
        "rows": output[ROWS].float().numpy(),
        "row_sums": output.sum(1).float().numpy(),
        "column_sums": output.sum(0).float().numpy(),
    }
    save_file(tensors, home / "golden.safetensors")
    (home / "golden.safetensors").chmod(0o644)
    golden = {
        "description": "Linear(1024 -> 512), LayerNorm(512) on [1, 257, 1024]",
        "versions": hf_model.versions(),
        "epsilon": EPSILON,
        "values": {
            name: {"stream": stream, "shape": list(shape), "scale": scale, "offset": offset}
            for name, (stream, shape, scale, offset) in VALUES.items()
        },
        "first_values": {name: values[name].flatten()[:4].tolist() for name in values},
        "rows": ROWS,
        "tensors": paths.relative(home / "golden.safetensors"),
        "tolerance": 3e-5,
    }
    (home / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(f"rms {float(output.square().mean().sqrt()):.4f}, files in {paths.relative(home)}")


if __name__ == "__main__":
    main()
