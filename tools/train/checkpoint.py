"""Between the trainer's stacked weights and a checkpoint in Hugging Face layout (LlavaForConditionalGeneration).

LLaVA reads the last but one layer of the tower, so the written tower has one layer more, which adds nothing.
"""
import json
import os
import shutil

import torch

import model as network
from model import DECODER_FF, DECODER_LAYERS, HEAD, PATCH, TOWER_LAYERS, VOCAB, WIDTH
from scenes import CANVAS
from vocabulary import BOS, END, IMAGE, PAD

TOWER, DECODER, PROJECTOR = 'vision_tower.vision_model.', 'language_model.model.', 'multi_modal_projector.'
TOWER_PARTS = (('self_attn.out_proj', 'Wo', 'bo'), ('mlp.fc1', 'W1', 'b1'), ('mlp.fc2', 'W2', 'b2'),
               ('layer_norm1', 'n1w', 'n1b'), ('layer_norm2', 'n2w', 'n2b'))
COPIED = ('tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja', 'preprocessor_config.json',
          'processor_config.json', 'generation_config.json')


def config(projector):
    """config.json as a dictionary. `projector_type` and `projector_layer_norm_eps` are this project's own keys; a
    checkpoint without them has LLaVA's two-layer projector."""
    ids = dict(pad_token_id=PAD, bos_token_id=BOS, eos_token_id=END)
    own = {} if projector == 'mlp' else dict(projector_type=projector,
                                             projector_layer_norm_eps=network.PROJECTOR_LAYER_NORM_EPS)
    return dict(
        architectures=['LlavaForConditionalGeneration'], model_type='llava', dtype='bfloat16', torch_dtype='bfloat16',
        image_token_id=IMAGE, image_token_index=IMAGE, image_seq_length=(CANVAS // PATCH) ** 2, projector_hidden_act='gelu',
        multimodal_projector_bias=True, **own, vision_feature_layer=-2, vision_feature_select_strategy='full',
        tie_word_embeddings=True, **ids,
        vision_config=dict(
            model_type='siglip_vision_model', hidden_size=WIDTH, intermediate_size=4 * WIDTH,
            num_hidden_layers=TOWER_LAYERS + 1, num_attention_heads=WIDTH // HEAD, num_channels=3, image_size=CANVAS,
            patch_size=PATCH, hidden_act='gelu_pytorch_tanh', layer_norm_eps=network.LAYER_NORM_EPS, attention_dropout=0.,
            vision_use_head=False),
        text_config=dict(
            architectures=['LlamaForCausalLM'], model_type='llama', vocab_size=VOCAB, hidden_size=WIDTH,
            intermediate_size=DECODER_FF, num_hidden_layers=DECODER_LAYERS, num_attention_heads=WIDTH // HEAD,
            num_key_value_heads=WIDTH // HEAD // 2, head_dim=HEAD, hidden_act='silu', max_position_embeddings=2048,
            rms_norm_eps=network.RMS_EPS, rope_theta=network.ROPE_THETA, attention_bias=False, mlp_bias=False,
            tie_word_embeddings=True, **ids))


def projector_weights(w):
    if 'p.norm_w' in w:
        return {PROJECTOR + 'linear.weight': w['p.W'][0], PROJECTOR + 'linear.bias': w['p.b'],
                PROJECTOR + 'layer_norm.weight': w['p.norm_w'], PROJECTOR + 'layer_norm.bias': w['p.norm_b']}
    return {f'{PROJECTOR}linear_{i}.{part}': w[f'p.{short}{i}'][0] if short == 'W' else w[f'p.{short}{i}']
            for i in (1, 2) for part, short in (('weight', 'W'), ('bias', 'b'))}


def to_hugging_face(w):
    """{Hugging Face name: bf16 tensor} of the trainer's weights."""
    out = {TOWER + 'embeddings.patch_embedding.weight': w['v.patch'].view(WIDTH, 3, PATCH, PATCH),
           TOWER + 'embeddings.patch_embedding.bias': w['v.patch_b'],
           TOWER + 'embeddings.position_embedding.weight': w['v.pos'],
           TOWER + 'post_layernorm.weight': torch.ones(WIDTH), TOWER + 'post_layernorm.bias': torch.zeros(WIDTH)}
    for i in range(TOWER_LAYERS + 1):
        layer = f'{TOWER}encoder.layers.{i}.'
        extra = i == TOWER_LAYERS
        at = lambda name: torch.zeros_like(w['v.' + name][0]) if extra else w['v.' + name][i]
        for j, name in enumerate(('q_proj', 'k_proj', 'v_proj')):
            out[f'{layer}self_attn.{name}.weight'], out[f'{layer}self_attn.{name}.bias'] = at('Wqkv')[j], at('bqkv')[j]
        for name, weight, bias in TOWER_PARTS:
            value = torch.ones(WIDTH) if extra and 'norm' in name else at(weight)
            out[f'{layer}{name}.weight'], out[f'{layer}{name}.bias'] = value, at(bias)
    out |= projector_weights(w)
    out[DECODER + 'embed_tokens.weight'], out[DECODER + 'norm.weight'] = w['l.embed'], w['l.norm']
    for i in range(DECODER_LAYERS):
        layer = f'{DECODER}layers.{i}.'
        key, value = w['l.Wqkv'][i, 1].chunk(2)
        gate, up = w['l.Wgu'][i]
        for name, tensor in (('self_attn.q_proj', w['l.Wqkv'][i, 0]), ('self_attn.k_proj', key), ('self_attn.v_proj', value),
                             ('self_attn.o_proj', w['l.Wo'][i]), ('mlp.gate_proj', gate), ('mlp.up_proj', up),
                             ('mlp.down_proj', w['l.Wd'][i]), ('input_layernorm', w['l.n1'][i]),
                             ('post_attention_layernorm', w['l.n2'][i])):
            out[f'{layer}{name}.weight'] = tensor
    return {k: t.detach().cpu().to(torch.bfloat16).clone().contiguous() for k, t in out.items()}


def from_hugging_face(folder):
    """The trainer's weights (fp32, without the `aux.` heads) of a checkpoint with LLaVA's two-layer projector."""
    from safetensors.torch import load_file
    f = {k: v.float() for k, v in load_file(os.path.join(folder, 'model.safetensors')).items()}

    def stack(prefix, layers, *names):
        tensors = [torch.stack([f[f'{prefix}layers.{i}.{n}'] for n in names]) for i in range(layers)]
        return torch.stack(tensors) if len(names) > 1 else torch.cat(tensors)

    w = {'v.patch': f[TOWER + 'embeddings.patch_embedding.weight'].reshape(WIDTH, -1),
         'v.patch_b': f[TOWER + 'embeddings.patch_embedding.bias'],
         'v.pos': f[TOWER + 'embeddings.position_embedding.weight'],
         'l.embed': f[DECODER + 'embed_tokens.weight'], 'l.norm': f[DECODER + 'norm.weight']}
    tower, qkv = TOWER + 'encoder.', ('q_proj', 'k_proj', 'v_proj')
    w['v.Wqkv'] = stack(tower, TOWER_LAYERS, *(f'self_attn.{n}.weight' for n in qkv))
    w['v.bqkv'] = stack(tower, TOWER_LAYERS, *(f'self_attn.{n}.bias' for n in qkv))
    for name, weight, bias in TOWER_PARTS:
        w['v.' + weight] = stack(tower, TOWER_LAYERS, name + '.weight')
        w['v.' + bias] = stack(tower, TOWER_LAYERS, name + '.bias')
    for i in (1, 2):
        w[f'p.W{i}'], w[f'p.b{i}'] = f[f'{PROJECTOR}linear_{i}.weight'][None], f[f'{PROJECTOR}linear_{i}.bias']
    attention = {n: stack(DECODER, DECODER_LAYERS, f'self_attn.{n}_proj.weight') for n in 'qkvo'}
    w['l.Wqkv'] = torch.stack([attention['q'], torch.cat([attention['k'], attention['v']], 1)], 1)
    w['l.Wo'], w['l.Wd'] = attention['o'], stack(DECODER, DECODER_LAYERS, 'mlp.down_proj.weight')
    w['l.Wgu'] = stack(DECODER, DECODER_LAYERS, 'mlp.gate_proj.weight', 'mlp.up_proj.weight')
    w['l.n1'] = stack(DECODER, DECODER_LAYERS, 'input_layernorm.weight')
    w['l.n2'] = stack(DECODER, DECODER_LAYERS, 'post_attention_layernorm.weight')
    return w


def with_adapter(weights, folder):
    """The trainer's weights with the linear_layernorm projector of the folder's adapter.safetensors in place of theirs."""
    from safetensors.torch import load_file
    f = {k: v.float() for k, v in load_file(os.path.join(folder, 'adapter.safetensors')).items()}
    kept = {k: v for k, v in weights.items() if not k.startswith('p.')}
    return kept | {'p.W': f[PROJECTOR + 'linear.weight'][None], 'p.b': f[PROJECTOR + 'linear.bias'],
                   'p.norm_w': f[PROJECTOR + 'layer_norm.weight'], 'p.norm_b': f[PROJECTOR + 'layer_norm.bias']}


def write(folder, weights, base, *, only_projector=False):
    """A checkpoint folder with `weights`; tokenizer, template and processor files are copied from the folder `base`.
    `only_projector` leaves tower and decoder out of the tensors (they are those of the base; see adapter.py)."""
    from safetensors.torch import save_file
    os.makedirs(folder, exist_ok=True)
    projector = 'linear_layernorm' if 'p.norm_w' in weights else 'mlp'
    with open(os.path.join(folder, 'config.json'), 'w') as f:
        f.write(json.dumps(config(projector), indent=2) + '\n')
    tensors = to_hugging_face(weights)
    name = 'model.safetensors'
    if only_projector:
        name, tensors = 'adapter.safetensors', {k: v for k, v in tensors.items() if k.startswith(PROJECTOR)}
    elif os.path.abspath(base) != os.path.abspath(folder):
        for file in COPIED:
            shutil.copy(os.path.join(base, file), folder)
    save_file(tensors, os.path.join(folder, name), metadata={'format': 'pt'})
