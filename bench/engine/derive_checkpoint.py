#!/usr/bin/env python3
"""Derives a checkpoint from the demo model with another context and picture size; standard library only.

Weights stay, but for the tower's position embeddings, of which every n-th row and column is kept. Answers of the result
make no sense; what it costs to compute them does, and equal requests still get equal answers.
"""

import argparse
import json
import pathlib
import shutil
import struct

POSITIONS = "position_embedding.weight"


def thinned(data, entry, old_side, new_side):
    """Bytes of the position embeddings [old_side^2, D] on a grid of new_side^2."""
    begin, end = entry["data_offsets"]
    row = (end - begin) // (old_side * old_side)
    step = old_side // new_side
    rows = (begin + (y * step * old_side + x * step) * row for y in range(new_side) for x in range(new_side))
    return b"".join(data[at : at + row] for at in rows)


def write_weights(source, target, old_side, new_side):
    """A safetensors file with thinned position embeddings; everything else byte for byte."""
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
    parser.add_argument("--context", type=int, required=True, help="tokens")
    parser.add_argument("--picture", type=int, required=True, help="side in pixels, a divisor of the base's")
    args = parser.parse_args()
    vision = json.loads((args.base / "config.json").read_text())["vision_config"]
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

    edit(args.out / "config.json", change_config)
    edit(args.out / "preprocessor_config.json",
         lambda content: content.update(size={"height": args.picture, "width": args.picture}))
    write_weights(args.base / "model.safetensors", args.out / "model.safetensors",
                  vision["image_size"] // vision["patch_size"], side)


if __name__ == "__main__":
    main()
