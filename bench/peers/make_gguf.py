"""SmolLM2-135M with 16-bit weights: dequantises the Q4_1 GGUF of the test data to F16 and BF16 GGUF files; norms stay F32, as llama.cpp stores them."""

import argparse
from pathlib import Path

import gguf
import numpy as np

from triptych_cli import PEERS, smollm2_gguf

KINDS = {"F16": gguf.GGMLQuantizationType.F16, "BF16": gguf.GGMLQuantizationType.BF16}
FILE_TYPES = {"F16": gguf.LlamaFileType.MOSTLY_F16, "BF16": gguf.LlamaFileType.MOSTLY_BF16}


def copy_metadata(reader, writer):
    """Every key but those that the writer makes itself."""
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=element)


def convert(source, target, kind):
    """Writes `target` with every matrix in `kind`."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, str(reader.fields["general.architecture"].contents()))
    copy_metadata(reader, writer)
    writer.add_file_type(FILE_TYPES[kind])
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if tensor.tensor_type == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(tensor.name, values)
        else:
            writer.add_tensor(tensor.name, gguf.quants.quantize(values, KINDS[kind]), raw_dtype=KINDS[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=PEERS)
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        target = folder / f"smollm2-135m-{kind}.gguf"
        if not target.exists():
            convert(smollm2_gguf(), target.with_suffix(".part"), kind)
            target.with_suffix(".part").rename(target)
            print(f"{target}: {target.stat().st_size / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
