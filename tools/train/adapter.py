"""A whole checkpoint with the linear_layernorm projector, from a checkpoint and the adapter's own tensors.

  python adapter.py ../../models/demo ../../models/demo-adapter OUT
"""
import argparse

import checkpoint


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('base', help='checkpoint folder that the adapter was trained on')
    ap.add_argument('adapter', help='folder with adapter.safetensors')
    ap.add_argument('out', help='checkpoint folder to write')
    a = ap.parse_args()
    weights = checkpoint.with_adapter(checkpoint.from_hugging_face(a.base), a.adapter)
    checkpoint.write(a.out, weights, a.base)


if __name__ == '__main__':
    main()
