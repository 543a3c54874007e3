"""transformers' models as the parity tools use them: float32, eager, with our projector kind added."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.models.llava import modeling_llava

transformers.utils.logging.disable_progress_bar()
_LlavaProjector = modeling_llava.LlavaMultiModalProjector


class LinearLayerNormProjector(torch.nn.Module):
    """The adapter projector: Linear, then LayerNorm (dropout at training only)."""

    def __init__(self, config):
        super().__init__()
        self.linear = torch.nn.Linear(config.vision_config.hidden_size, config.text_config.hidden_size)
        self.layer_norm = torch.nn.LayerNorm(
            config.text_config.hidden_size, eps=getattr(config, "projector_layer_norm_eps", 1e-5)
        )

    def forward(self, image_features):
        return self.layer_norm(self.linear(image_features))


def _projector(config):
    if getattr(config, "projector_type", None) == "linear_layernorm":
        return LinearLayerNormProjector(config)
    return _LlavaProjector(config)


modeling_llava.LlavaMultiModalProjector = _projector


def is_multimodal(config):
    """True when a config (object or dict) has a vision part."""
    return "vision_config" in (config if isinstance(config, dict) else config.to_dict())


def new_model(config):
    """A model with unset weights from a config as a dict."""
    config = dict(config)
    hf_config = AutoConfig.for_model(config.pop("model_type"), **config)
    auto = AutoModelForImageTextToText if is_multimodal(hf_config) else AutoModelForCausalLM
    return auto.from_config(hf_config, attn_implementation="eager", dtype=torch.float32)


def load_model(folder, **config_changes):
    """A checkpoint folder, weights widened to float32. Missing or unexpected tensors are errors."""
    config = AutoConfig.from_pretrained(folder)
    for dotted, value in config_changes.items():
        *parents, key = dotted.split(".")
        target = config
        for parent in parents:
            target = target[parent] if isinstance(target, dict) else getattr(target, parent)
        if isinstance(target, dict):
            target[key] = value
        else:
            setattr(target, key, value)
    auto = AutoModelForImageTextToText if is_multimodal(config) else AutoModelForCausalLM
    model, info = auto.from_pretrained(
        folder, config=config, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    wrong = {key: value for key, value in info.items() if value and key in ("missing_keys", "mismatched_keys")}
    if wrong and not config_changes:
        raise SystemExit(f"{folder}: {wrong}")
    return model.eval()


def class_defaults(config):
    """The defaults of the config classes that `config` names, in the shape of config.json."""
    config_class = type(AutoConfig.for_model(config["model_type"]))
    defaults = {key: value for key, value in config_class().to_dict().items()}
    for part in ("text_config", "vision_config"):
        if part in config:
            defaults[part] = class_defaults(config[part])
    return defaults


def versions():
    """What the goldens were made with."""
    import numpy
    import PIL
    import tokenizers

    return {
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
        "Pillow": PIL.__version__,
        "tokenizers": tokenizers.__version__,
        "numpy": numpy.__version__,
    }
