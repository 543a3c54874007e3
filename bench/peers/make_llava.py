"""Writes a LLaVA checkpoint with random bf16 weights: CLIP ViT-L/14 at 336 pixels and a Llama of 1.1 billion parameters (TinyLlama's shape)."""

import argparse
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

from triptych_cli import PEERS, ROOT

TOWER = {
    "model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
    "num_attention_heads": 16, "image_size": 336, "patch_size": 14, "projection_dim": 768,
}  # fmt: skip
DECODER = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 32064, "hidden_size": 2048,
    "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4,
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3,
}  # fmt: skip
TINY = ROOT / "tests" / "parity" / "goldens" / "llava_clip" / "checkpoint"  # its tokenizer and template will do


def tensor_shapes():
    """Names and shapes as LLaVA-1.5's files have them."""
    width, hidden = TOWER["hidden_size"], DECODER["hidden_size"]
    n_positions = (TOWER["image_size"] // TOWER["patch_size"]) ** 2 + 1
    tower = "vision_tower.vision_model."
    shapes = {
        tower + "embeddings.class_embedding": (width,),
        tower + "embeddings.patch_embedding.weight": (width, 3, TOWER["patch_size"], TOWER["patch_size"]),
        tower + "embeddings.position_embedding.weight": (n_positions, width),
    }
    for norm in ("pre_layrnorm", "post_layernorm"):
        shapes |= {tower + norm + ".weight": (width,), tower + norm + ".bias": (width,)}
    for layer in range(TOWER["num_hidden_layers"]):
        block = f"{tower}encoder.layers.{layer}."
        linears = {f"self_attn.{name}_proj": (width, width) for name in ("q", "k", "v", "out")}
        linears |= {"mlp.fc1": (TOWER["intermediate_size"], width), "mlp.fc2": (width, TOWER["intermediate_size"])}
        for name, shape in linears.items():
            shapes |= {f"{block}{name}.weight": shape, f"{block}{name}.bias": shape[:1]}
        for norm in ("layer_norm1", "layer_norm2"):
            shapes |= {f"{block}{norm}.weight": (width,), f"{block}{norm}.bias": (width,)}
    shapes |= {"multi_modal_projector.linear_1.weight": (hidden, width), "multi_modal_projector.linear_1.bias": (hidden,)}
    shapes |= {"multi_modal_projector.linear_2.weight": (hidden, hidden), "multi_modal_projector.linear_2.bias": (hidden,)}
    kv_width = hidden // DECODER["num_attention_heads"] * DECODER["num_key_value_heads"]
    inner = DECODER["intermediate_size"]
    shapes["language_model.model.embed_tokens.weight"] = (DECODER["vocab_size"], hidden)
    shapes["language_model.lm_head.weight"] = (DECODER["vocab_size"], hidden)
    shapes["language_model.model.norm.weight"] = (hidden,)
    for layer in range(DECODER["num_hidden_layers"]):
        block = f"language_model.model.layers.{layer}."
        shapes |= {block + "input_layernorm.weight": (hidden,), block + "post_attention_layernorm.weight": (hidden,)}
        for name, shape in {"q": (hidden, hidden), "k": (kv_width, hidden), "v": (kv_width, hidden), "o": (hidden, hidden)}.items():
            shapes[f"{block}self_attn.{name}_proj.weight"] = shape
        for name, shape in {"gate": (inner, hidden), "up": (inner, hidden), "down": (hidden, inner)}.items():
            shapes[f"{block}mlp.{name}_proj.weight"] = shape
    return shapes


def write_processor(folder):
    """LLaVA-1.5's preprocessing."""
    image_processor = {
        "image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"shortest_edge": 336}, "resample": 3,
        "do_center_crop": True, "crop_size": {"height": 336, "width": 336}, "do_rescale": True, "do_normalize": True,
        "do_convert_rgb": True, "rescale_factor": 0.00392156862745098,
        "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
    }  # fmt: skip
    processor = {
        "processor_class": "LlavaProcessor", "image_token": "<image>", "patch_size": 14,
        "num_additional_image_tokens": 1, "vision_feature_select_strategy": "default",
    }  # fmt: skip
    (folder / "processor_config.json").write_text(json.dumps(processor))
    (folder / "preprocessor_config.json").write_text(json.dumps(image_processor))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=PEERS / "llava-1.1b")
    folder = parser.parse_args().out
    if (folder / "model.safetensors").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(TINY / name, folder / name)
    write_processor(folder)
    config = {
        "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "torch_dtype": "bfloat16",
        "image_token_index": 6, "image_seq_length": 576, "projector_hidden_act": "gelu", "vision_feature_layer": -2,
        "vision_feature_select_strategy": "default", "tie_word_embeddings": False, "vision_config": TOWER, "text_config": DECODER,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    generator = torch.Generator().manual_seed(0)
    tensors = {}
    for name, shape in tensor_shapes().items():
        if "norm" in name and name.endswith("weight"):
            tensors[name] = torch.ones(shape, dtype=torch.bfloat16)
        else:
            tensors[name] = torch.randn(shape, generator=generator).mul_(0.02).bfloat16()
    save_file(tensors, folder / "model.safetensors.part", metadata={"format": "pt"})
    (folder / "model.safetensors.part").rename(folder / "model.safetensors")
    print(f"{folder}: {sum(tensor.numel() for tensor in tensors.values()) / 1e6:.0f} M parameters")


if __name__ == "__main__":
    main()
