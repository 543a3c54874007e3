"""Writes one set of numbers as a checkpoint folder, in any of the spellings that transformers has used."""

import json
import re

import torch
from safetensors.torch import save_file

import tiny_tokenizer

# The module tree of transformers >= 5.6 is what torch gives; older trees are reached from it.
#   v4     language_model.model.*, vision_tower.vision_model.*          (before 4.52, and what hubs hold)
#   v4_52  model.language_model.*, model.vision_tower.vision_model.*    (re-saved by 4.52 to 5.5)
#   v5     model.language_model.*, model.vision_tower.*
RENAMES = {
    "v4": [
        (r"^model\.language_model\.", "language_model.model."),
        (r"^lm_head\.", "language_model.lm_head."),
        (r"^model\.vision_tower\.", "vision_tower.vision_model."),
        (r"^model\.multi_modal_projector\.", "multi_modal_projector."),
    ],
    "v4_52": [(r"^model\.vision_tower\.", "model.vision_tower.vision_model.")],
    "v5": [],
}


def spelled_names(tensors, spelling):
    """The tensors under the names they have on disk in this spelling; text checkpoints have one spelling only."""
    if not any(name.startswith("model.language_model.") for name in tensors):
        return dict(tensors)
    renamed = {}
    for name, tensor in tensors.items():
        for pattern, replacement in RENAMES[spelling]:
            name = re.sub(pattern, replacement, name)
        renamed[name] = tensor
    return renamed


def leftovers(config, spelling):
    """Tensors that old checkpoints carry and that no model needs: position ids and inverse frequencies."""
    if spelling != "v4":
        return {}
    text = config.get("text_config", config)
    head_dim = text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]
    prefix = "language_model.model." if "text_config" in config else "model."
    tensors = {
        f"{prefix}layers.{layer}.self_attn.rotary_emb.inv_freq": torch.full((head_dim // 2,), 0.5)
        for layer in range(text["num_hidden_layers"])
    }
    vision = config.get("vision_config")
    if vision:
        n_positions = (vision["image_size"] // vision["patch_size"]) ** 2 + (
            vision["model_type"] == "clip_vision_model"
        )
        tensors["vision_tower.vision_model.embeddings.position_ids"] = torch.arange(n_positions)[None]
    return tensors


def save_tensors(tensors, path):
    """safetensors with the mode of an ordinary file (the library makes it private)."""
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)


def write_weights(folder, tensors, n_shards):
    """model.safetensors, or shards of about equal bytes with an index and a stale shard that it does not name."""
    names = sorted(tensors)
    if n_shards == 1:
        save_tensors({name: tensors[name] for name in names}, folder / "model.safetensors")
        return
    total = sum(tensor.nbytes for tensor in tensors.values())
    shards = [{} for _ in range(n_shards)]
    n_bytes = 0
    for name in names:
        shards[min(n_shards - 1, n_bytes * n_shards // total)][name] = tensors[name]
        n_bytes += tensors[name].nbytes
    weight_map = {}
    for number, shard in enumerate(shards, start=1):
        file_name = f"model-{number:05d}-of-{n_shards:05d}.safetensors"
        save_tensors(shard, folder / file_name)
        weight_map.update(dict.fromkeys(shard, file_name))
    stale = {names[0]: torch.zeros_like(tensors[names[0]])}
    save_tensors(stale, folder / f"model-{n_shards + 1:05d}-of-{n_shards + 1:05d}.safetensors")
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    write_json(folder / "model.safetensors.index.json", index)


def spelled_text_config(text, spelling):
    """RoPE as `rope_parameters` (v5) or as `rope_theta` and `rope_scaling` (v4)."""
    text = dict(text)
    if spelling == "v5" or "rope_parameters" not in text:
        return text
    rope = dict(text.pop("rope_parameters"))
    text["rope_theta"] = rope.pop("rope_theta", 10000.0)
    rope_type = rope.pop("rope_type", "default")
    # 4.43 renamed "type"; checkpoints with linear and dynamic scaling are mostly older than that.
    key = "type" if rope_type in ("linear", "dynamic") else "rope_type"
    text["rope_scaling"] = None if rope_type == "default" else {key: rope_type, **rope}
    return text


def spelled_config(config, dtype, spelling):
    """config.json in this spelling."""
    config = dict(config)
    if "text_config" in config:
        config["text_config"] = spelled_text_config(config["text_config"], spelling)
    else:
        config = spelled_text_config(config, spelling)
    if spelling == "v5":
        config["dtype"] = dtype
    else:
        config["torch_dtype"] = dtype
        if "image_token_id" in config:
            config["image_token_index"] = config.pop("image_token_id")
    return config


def without_defaults(config, class_defaults):
    """Drops every key whose value is the config class's default, as checkpoints in the wild do."""
    kept = {}
    for key, value in config.items():
        if isinstance(value, dict) and key in ("text_config", "vision_config"):
            kept[key] = without_defaults(value, class_defaults[key])
        elif key == "model_type" or key not in class_defaults or class_defaults[key] != value:
            kept[key] = value
    return kept


def write_processor(folder, checkpoint, spelling):
    """One nested processor_config.json (v5), or the two files of v4."""
    image_processor = dict(checkpoint["image_processor"])
    processor = {"processor_class": "LlavaProcessor", "image_token": "<image>", **checkpoint["processor"]}
    if spelling == "v5":
        write_json(folder / "processor_config.json", {**processor, "image_processor": image_processor})
        return
    write_json(folder / "preprocessor_config.json", {**image_processor, "processor_class": "LlavaProcessor"})
    write_json(folder / "processor_config.json", processor)


def write_text_files(folder, checkpoint, spelling):
    """Tokenizer and chat template; the template's home moved twice."""
    has_images = "image_processor" in checkpoint
    (folder / "tokenizer.json").write_text(tiny_tokenizer.tokenizer_json(checkpoint.get("tokenizer_adds_bos", False)))
    config = tiny_tokenizer.tokenizer_config(has_images, spelling)
    template = tiny_tokenizer.TEMPLATES[checkpoint["template"]]
    if spelling == "v5":
        (folder / "chat_template.jinja").write_text(template)
    elif has_images:
        write_json(folder / "chat_template.json", {"chat_template": template})
    else:
        config["chat_template"] = template
    write_json(folder / "tokenizer_config.json", config)


def write_json(path, value):
    """JSON for people: two spaces, UTF-8."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
