#!/usr/bin/env python3
"""Derives a checkpoint from the demo model with another context, picture size or width; standard library only.

Weights stay, but for the tower's position embeddings, of which every n-th row and column is kept, and for a wider model, whose
tensors are those of the base, repeated along every axis that grows. Answers of the result make no sense; what it costs
to compute them does, and equal requests still get equal answers.
"""

import argparse
import json
import pathlib
import shutil
import struct

POSITIONS = "position_embedding.weight"
PATCHES = "patch_embedding.weight"  # [width, channels, side, side]
TABLES = (POSITIONS, "embed_tokens.weight")  # [entries, width]
WIDTHS = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")


def thinned(data, entry, old_side, new_side):
    """Bytes of the position embeddings [old_side^2, D] on a grid of new_side^2."""
    begin, end = entry["data_offsets"]
    row = (end - begin) // (old_side * old_side)
    step = old_side // new_side
    rows = (begin + (y * step * old_side + x * step) * row for y in range(new_side) for x in range(new_side))
    return b"".join(data[at : at + row] for at in rows)


def widened(data, entry, name, times):
    """The tensor repeated `times` along both axes of a matrix and the only one of a vector; `entry` gets its shape."""
    shape = entry["shape"]
    out = bytes(data)
    if len(shape) > 1 and not name.endswith(PATCHES):
        row = len(out) // shape[0]
        out = b"".join(out[at : at + row] * times for at in range(0, len(out), row))
        shape[-1] *= times
    if not name.endswith(TABLES):
        out *= times
        shape[0] *= times
    return out


def write_weights(source, target, old_side, new_side, times):
    """A safetensors file with thinned position embeddings and every width `times` the base's."""
    raw = source.read_bytes()
    (n_header,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + n_header])
    data = memoryview(raw)[8 + n_header :]
    parts, at = [], 0
    for name, entry in sorted(header.items(), key=lambda item: item[1].get("data_offsets", [-1])[0]):
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        part = data[begin:end]
        if name.endswith(POSITIONS):
            part = thinned(data, entry, old_side, new_side)
            entry["shape"][0] = new_side * new_side
        part = widened(part, entry, name, times)
        entry["data_offsets"] = [at, at + len(part)]
        at += len(part)
        parts.append(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with target.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.writelines(parts)


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--context", type=int, help="tokens (default: the base's)")
    parser.add_argument("--picture", type=int, help="side in pixels, a divisor of the base's (default: the base's)")
    parser.add_argument("--widen", type=int, default=1, metavar="N", help="N times the width: heads, feed-forward, all of it")
    args = parser.parse_args()
    base = json.loads((args.base / "config.json").read_text())
    vision = base["vision_config"]
    args.context = args.context or base["text_config"]["max_position_embeddings"]
    args.picture = args.picture or vision["image_size"]
    if vision["image_size"] % args.picture or args.picture % vision["patch_size"]:
        raise SystemExit(f"--picture {args.picture}: a multiple of {vision['patch_size']} that divides {vision['image_size']}")
    side = args.picture // vision["patch_size"]
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    for file in args.base.iterdir():
        if file.suffix in (".json", ".jinja"):
            shutil.copy(file, args.out)

    def change_config(config):
        config["image_seq_length"] = side * side
        config["vision_config"]["image_size"] = args.picture
        config["text_config"]["max_position_embeddings"] = args.context
        for part in (config["vision_config"], config["text_config"]):
            part.update({key: part[key] * args.widen for key in WIDTHS if key in part})

    edit(args.out / "config.json", change_config)
    edit(args.out / "preprocessor_config.json",
         lambda content: content.update(size={"height": args.picture, "width": args.picture}))
    write_weights(args.base / "model.safetensors", args.out / "model.safetensors",
                  vision["image_size"] // vision["patch_size"], side, args.widen)


if __name__ == "__main__":
    main()
