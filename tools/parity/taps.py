"""Hooks that keep the named tensors of a forward pass; the names stand in README.md."""


def _first(value):
    return value[0] if isinstance(value, tuple) else value


class Taps:
    """While entered, records the taps of one forward pass of a LLaVA or a text model."""

    def __init__(self, model):
        inner = model.model
        self.decoder = getattr(inner, "language_model", inner)
        self.tower = getattr(inner, "vision_tower", None)
        self.projector = getattr(inner, "multi_modal_projector", None)
        self.config = model.config
        self.tensors = {}
        self.handles = []

    def __enter__(self):
        for number, block in enumerate(self.decoder.layers):
            self._watch(block, f"decoder.block.{number}", "decoder.embeddings" if number == 0 else None)
        self._watch(self.decoder.norm, "decoder.norm")
        if self.tower is not None:
            for number, block in enumerate(self.tower.encoder.layers):
                name = "vision_tower.embeddings" if number == 0 else None
                self._watch(block, f"vision_tower.block.{number}", name)
            self._watch(self.projector, "projector.out", "vision_tower.out")
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()

    def _watch(self, module, out_name, in_name=None):
        def hook(_, args, kwargs, output):
            if in_name:
                self.tensors[in_name] = args[0] if args else kwargs["hidden_states"]
            self.tensors[out_name] = _first(output)

        self.handles.append(module.register_forward_hook(hook, with_kwargs=True))

    def result(self):
        """The taps; the decoder's without the batch axis, the tower's only as deep as the chosen layers."""
        deepest = self._deepest_tower_block()
        kept = {}
        for name, tensor in self.tensors.items():
            if name.startswith("vision_tower.block.") and int(name.rsplit(".", 1)[1]) > deepest:
                continue
            kept[name] = tensor[0] if name.startswith("decoder.") else tensor
        return kept

    def _deepest_tower_block(self):
        """hidden_states[0] is the tower's input, hidden_states[k] the output of block k - 1."""
        if self.tower is None:
            return -1
        layers = self.config.vision_feature_layer
        layers = [layers] if isinstance(layers, int) else layers
        n_states = len(self.tower.encoder.layers) + 1
        return max(layer % n_states for layer in layers) - 1
