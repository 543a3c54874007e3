"""Makes the tiny checkpoints of the parity cases: random weights by seed, in every spelling a case asks for."""

import argparse
import math
import re
import shutil
import zlib

import torch

import checkpoint_files as files
import paths
import tiny_tokenizer
import hf_model

LARGEST_CHECKPOINT = 400 * 1024


def random_tensor(name, shape, seed):
    """Weights by name and seed alone, scaled so that activations stay near 1 and logits lie well apart."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}:{name}".encode()))
    values = torch.randn(shape, generator=generator)
    if re.search(r"norm\w*\.weight$", name) or "layrnorm.weight" in name:
        return 1 + 0.2 * values
    if name.endswith("bias"):
        return 0.2 * values
    if "embed_tokens" in name:
        return 0.5 * values
    if "position_embedding" in name or "class_embedding" in name:
        return 0.5 * values
    fan_in = math.prod(shape[1:])
    gain = 2.0 if re.search(r"(lm_head|patch_embedding)\.weight$", name) else 1.2
    return values * gain / math.sqrt(fan_in)


def random_weights(model, checkpoint):
    """The model's own tensors (tied ones once), filled and rounded to the dtype they are stored in."""
    dtype = getattr(torch, checkpoint["dtype"])
    tied = set(model.all_tied_weights_keys)
    tensors = {}
    for name, tensor in model.state_dict().items():
        if name in tied:
            continue
        values = random_tensor(name, tuple(tensor.shape), checkpoint["seed"])
        if name.endswith(("embed_tokens.weight", "lm_head.weight")):
            values[tiny_tokenizer.n_tokens() :] = 0  # rows past the tokenizer's end never win
        tensors[name] = values.to(dtype).contiguous()
    return tensors


def write_checkpoint(folder, case, layout, tensors):
    """One layout of a case."""
    checkpoint = case["checkpoint"]
    spelling = layout.get("spelling", "v5")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    spelled = files.spelled_names(tensors, spelling)
    spelled.update(files.leftovers(checkpoint["config"], spelling))
    files.write_weights(folder, spelled, layout.get("shards", 1))
    config = paths.merged(checkpoint["config"], layout.get("config", {}))
    config = {key: value for key, value in config.items() if key not in layout.get("without", [])}
    if layout.get("sparse"):
        config = files.without_defaults(config, hf_model.class_defaults(config))
    files.write_json(folder / "config.json", files.spelled_config(config, checkpoint["dtype"], spelling))
    if "image_processor" in checkpoint:
        files.write_processor(folder, checkpoint, spelling)
    files.write_text_files(folder, checkpoint, spelling)
    n_bytes = sum(path.stat().st_size for path in folder.iterdir())
    if n_bytes > LARGEST_CHECKPOINT:
        raise SystemExit(f"{folder}: {n_bytes} bytes, more than {LARGEST_CHECKPOINT}")
    return n_bytes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="case names; all by default")
    for name in paths.case_names(parser.parse_args().cases):
        case = paths.load_case(name)
        model = hf_model.new_model(case["checkpoint"]["config"])
        tensors = random_weights(model, case["checkpoint"])
        for folder_name, layout in paths.layouts_of(case):
            n_bytes = write_checkpoint(paths.GOLDENS / name / folder_name, case, layout, tensors)
            print(f"{name}/{folder_name}: {len(tensors)} tensors, {n_bytes / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
