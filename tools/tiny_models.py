"""Random tiny checkpoints of every model family, in the layout that published checkpoints have.

A model is a config (the text of config.json) and its parameters {HF name: FP32 values that BF16
holds exactly}. Weights depend on the model's name and the tensor's name alone.
"""

import json
import zlib

import numpy as np

import mxfp8_numpy as mx
import safetensors_io
from safetensors_io import Tensor

DENSE = dict(hidden_act="silu", rms_norm_eps=1e-6, max_position_embeddings=512, vocab_size=256,
             num_hidden_layers=2, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2,
             initializer_range=0.02, attention_dropout=0.0, use_cache=True,
             torch_dtype="bfloat16")  # fmt: skip


def _config(model_type, architecture, **fields):
    return {"architectures": [architecture], "model_type": model_type, **DENSE, **fields}


def llama(**fields):
    return _config("llama", "LlamaForCausalLM", **fields)


_LLAMA = dict(hidden_size=96, intermediate_size=160, num_attention_heads=6, num_key_value_heads=2,
              rope_theta=10000.0, rms_norm_eps=1e-5)  # fmt: skip
_MISTRAL = dict(hidden_size=64, intermediate_size=128, num_attention_heads=4,
                num_key_value_heads=1, head_dim=48, rope_theta=1000000.0)  # fmt: skip
_QWEN2 = dict(hidden_size=128, intermediate_size=96, num_attention_heads=2, num_key_value_heads=1,
              vocab_size=272, rope_theta=1000000.0, tie_word_embeddings=True, sliding_window=9,
              max_window_layers=1)  # fmt: skip
_QWEN3 = dict(hidden_size=64, intermediate_size=160, num_attention_heads=4, num_key_value_heads=2,
              head_dim=32, rope_theta=1000000.0, attention_bias=False, use_sliding_window=False,
              sliding_window=None, max_window_layers=2)  # fmt: skip
_QWEN2_MOE = dict(hidden_size=64, intermediate_size=96, moe_intermediate_size=32,
                  shared_expert_intermediate_size=64, num_attention_heads=4,
                  num_key_value_heads=4, num_experts=5, num_experts_per_tok=3,
                  decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=False,
                  rope_theta=1000000.0, use_sliding_window=False, sliding_window=None,
                  max_window_layers=2, output_router_logits=False)  # fmt: skip
_QWEN3_MOE = dict(hidden_size=64, intermediate_size=128, moe_intermediate_size=32,
                  num_attention_heads=4, num_key_value_heads=1, head_dim=32, num_experts=8,
                  num_experts_per_tok=2, decoder_sparse_step=1, mlp_only_layers=[],
                  norm_topk_prob=True, rope_theta=1000000.0, attention_bias=False,
                  use_sliding_window=False, sliding_window=None, max_window_layers=2,
                  output_router_logits=False)  # fmt: skip
_MIXTRAL = dict(hidden_size=96, intermediate_size=32, num_attention_heads=3,
                num_key_value_heads=1, num_local_experts=4, num_experts_per_tok=2,
                rope_theta=1000000.0, sliding_window=None, output_router_logits=False,
                router_aux_loss_coef=0.02, rms_norm_eps=1e-5)  # fmt: skip


def _qwen(model_type, architecture, fields, **changes):
    return _config(model_type, architecture, **{**fields, **changes})


# Models with weights of their own.
MODELS = {
    "llama": llama(**_LLAMA),
    "llama_bias_tied": llama(
        hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=4,
        head_dim=32, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
        rope_theta=500000.0, rope_scaling=None,
    ),
    # Sizes that no vector width divides: 20 a head, 40 key rows, 250 tokens.
    "llama_odd": llama(
        hidden_size=32, intermediate_size=64, num_attention_heads=8, num_key_value_heads=2,
        head_dim=20, vocab_size=250, rope_theta=10000.0,
    ),
    "mistral": _config("mistral", "MistralForCausalLM", sliding_window=None, **_MISTRAL),
    "qwen2": _qwen("qwen2", "Qwen2ForCausalLM", _QWEN2, use_sliding_window=False),
    "qwen3": _qwen("qwen3", "Qwen3ForCausalLM", _QWEN3),
    "qwen2_moe": _qwen("qwen2_moe", "Qwen2MoeForCausalLM", _QWEN2_MOE),
    "qwen2_moe_some_dense": _qwen(
        "qwen2_moe", "Qwen2MoeForCausalLM", _QWEN2_MOE, num_hidden_layers=4, num_experts=4,
        num_experts_per_tok=2, decoder_sparse_step=2, mlp_only_layers=[3], norm_topk_prob=True,
    ),
    "qwen3_moe": _qwen("qwen3_moe", "Qwen3MoeForCausalLM", _QWEN3_MOE),
    "mixtral": _config("mixtral", "MixtralForCausalLM", **_MIXTRAL),
}  # fmt: skip

# Models that differ from one of MODELS in the config alone and share its weights:
# name -> (base, fields to set). `None` for a field means: leave it out.
_LLAMA3_SCALING = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                       original_max_position_embeddings=64)  # fmt: skip
VARIANTS = {
    "llama_rope_llama3": ("llama", dict(rope_scaling=_LLAMA3_SCALING)),
    "llama_rope_linear": ("llama", dict(rope_scaling={"type": "linear", "factor": 4.0})),
    # Only prompts within max_position_embeddings: there the dynamic type changes nothing.
    "llama_rope_dynamic": ("llama", dict(rope_scaling={"rope_type": "dynamic", "factor": 2.0})),
    "llama_rope_yarn": (
        "llama",
        dict(rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)),
    ),
    "llama_rope_yarn_all_fields": (
        "llama",
        dict(rope_scaling=dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=32,
                               attention_factor=1.3, beta_fast=8.0, beta_slow=0.5)),
    ),
    # The spelling of transformers 5: rope_parameters instead of rope_theta and rope_scaling.
    "llama_rope_parameters": (
        "llama",
        dict(rope_theta=None, torch_dtype=None, dtype="bfloat16",
             rope_parameters=dict(_LLAMA3_SCALING, rope_theta=20000.0)),
    ),
    "llama_gelu": ("llama", dict(hidden_act="gelu_pytorch_tanh")),
    "mistral_window": ("mistral", dict(sliding_window=7)),
    "qwen2_window": ("qwen2", dict(use_sliding_window=True)),
    "qwen2_moe_norm_topk": ("qwen2_moe", dict(norm_topk_prob=True)),
    "qwen3_moe_no_norm_topk": ("qwen3_moe", dict(norm_topk_prob=False)),
}  # fmt: skip


def variant_config(name):
    base, fields = VARIANTS[name]
    config = {**MODELS[base], **fields}
    return {key: value for key, value in config.items() if not (key in fields and value is None)}


def head_dim(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def _is_sparse(config, layer):
    if config["model_type"] == "mixtral":
        return True
    if config["model_type"] not in ("qwen2_moe", "qwen3_moe"):
        return False
    in_step = (layer + 1) % config["decoder_sparse_step"] == 0
    return in_step and layer not in config["mlp_only_layers"]


class _Builder:
    """Collects a model's parameters under their published names."""

    def __init__(self, name, config):
        self._name = name
        self._config = config
        self.parameters = {}

    def build(self):
        config, hidden = self._config, self._config["hidden_size"]
        tied = config["tie_word_embeddings"]
        # A tied embedding is the head as well, so its size sets that of the logits.
        self._add("model.embed_tokens.weight", (config["vocab_size"], hidden),
                  2 / np.sqrt(hidden) if tied else 1.0)  # fmt: skip
        for layer in range(config["num_hidden_layers"]):
            prefix = f"model.layers.{layer}"
            self._norm(f"{prefix}.input_layernorm", hidden)
            self._attention(f"{prefix}.self_attn")
            self._norm(f"{prefix}.post_attention_layernorm", hidden)
            self._feed_forward(prefix, layer)
        self._norm("model.norm", hidden)
        if not tied:
            self._linear("lm_head", config["vocab_size"], hidden, gain=2.0)
        return self.parameters

    def _add(self, name, shape, spread, centre=0.0):
        rng = np.random.default_rng(zlib.crc32(f"{self._name}/{name}".encode()))
        values = (centre + spread * rng.standard_normal(shape)).astype(np.float32)
        values = safetensors_io.f32_from_bf16(safetensors_io.bf16_from_f32(values))
        self.parameters[name] = values

    def _norm(self, name, size):
        self._add(f"{name}.weight", (size,), 0.2, centre=1.0)

    def _linear(self, name, rows, columns, gain=1.0, bias=False):
        self._add(f"{name}.weight", (rows, columns), gain / np.sqrt(columns))
        if bias:
            self._add(f"{name}.bias", (rows,), 0.3)

    def _attention(self, prefix):
        config, hidden, size = self._config, self._config["hidden_size"], head_dim(self._config)
        query, key = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
        qwen2 = config["model_type"] in ("qwen2", "qwen2_moe")
        bias = qwen2 or config.get("attention_bias", False)
        # A gain of 1.4 gives attention scores with a spread of about 2: neither flat nor one-hot.
        self._linear(f"{prefix}.q_proj", query, hidden, gain=1.4, bias=bias)
        self._linear(f"{prefix}.k_proj", key, hidden, gain=1.4, bias=bias)
        self._linear(f"{prefix}.v_proj", key, hidden, bias=bias)
        self._linear(f"{prefix}.o_proj", hidden, query, bias=bias and not qwen2)
        if config["model_type"] in ("qwen3", "qwen3_moe"):
            self._norm(f"{prefix}.q_norm", size)
            self._norm(f"{prefix}.k_norm", size)

    def _mlp(self, prefix, intermediate, names=("gate_proj", "up_proj", "down_proj")):
        hidden, bias = self._config["hidden_size"], self._config.get("mlp_bias", False)
        gate, up, down = names
        self._linear(f"{prefix}.{gate}", intermediate, hidden, gain=1.4, bias=bias)
        self._linear(f"{prefix}.{up}", intermediate, hidden, gain=1.4, bias=bias)
        self._linear(f"{prefix}.{down}", hidden, intermediate, gain=1.4, bias=bias)

    def _feed_forward(self, prefix, layer):
        config, hidden = self._config, self._config["hidden_size"]
        if not _is_sparse(config, layer):
            self._mlp(f"{prefix}.mlp", config["intermediate_size"])
            return
        if config["model_type"] == "mixtral":
            block, experts = f"{prefix}.block_sparse_moe", config["num_local_experts"]
            intermediate, names = config["intermediate_size"], ("w1", "w3", "w2")
        else:
            block, experts = f"{prefix}.mlp", config["num_experts"]
            intermediate = config["moe_intermediate_size"]
            names = ("gate_proj", "up_proj", "down_proj")
        self._linear(f"{block}.gate", experts, hidden, gain=2.0)
        for expert in range(experts):
            self._mlp(f"{block}.experts.{expert}", intermediate, names)
        if config["model_type"] == "qwen2_moe":
            self._mlp(f"{block}.shared_expert", config["shared_expert_intermediate_size"])
            self._linear(f"{block}.shared_expert_gate", 1, hidden)


def build_parameters(name, config):
    """{HF name: FP32 values} for a config; `name` is the seed."""
    return _Builder(name, config).build()


def parameters(name):
    """{HF name: FP32 values} of one of MODELS."""
    return build_parameters(name, MODELS[name])


UNQUANTISED = ("lm_head", "model.embed_tokens", ".mlp.gate", ".shared_expert_gate",
               ".block_sparse_moe.gate")  # fmt: skip


def is_quantised(name, values):
    """Linear weights of the blocks; routers, gates, head, embedding, norms and biases are not."""
    module, _, leaf = name.rpartition(".")
    return leaf == "weight" and values.ndim == 2 and not module.endswith(UNQUANTISED)


def quantised_tensors(params, rule="rceil"):
    """The tensors of a compressed-tensors checkpoint: E4M3 codes and U8 scales, the rest BF16."""
    tensors = {}
    for name, values in params.items():
        if is_quantised(name, values):
            codes, scales = mx.quantize(values, rule)
            tensors[name] = Tensor("F8_E4M3", codes)
            tensors[f"{name}_scale"] = Tensor("U8", scales)
        else:
            tensors[name] = safetensors_io.bf16(values)
    return tensors


def dequantised(params, rule="rceil"):
    """What the quantised checkpoint means: {name: FP32 values}."""
    return {
        name: mx.dequantize(*mx.quantize(values, rule)).astype(np.float32)
        if is_quantised(name, values)
        else values
        for name, values in params.items()
    }


def compressed_tensors_config(config, activations=False):
    """The config with the section that the compressed-tensors package writes."""
    args = dict(num_bits=8, type="float", strategy="group", group_size=32, symmetric=True,
                dynamic=False, block_structure=None, actorder=None, scale_dtype="torch.uint8",
                zp_dtype=None, observer="memoryless_minmax", observer_kwargs={})  # fmt: skip
    inputs = {**args, "dynamic": True, "observer": None} if activations else None
    group = dict(targets=["Linear"], format="mxfp8-quantized", weights=args,
                 input_activations=inputs, output_activations=None)  # fmt: skip
    ignore = ["lm_head"]
    if config["model_type"] in ("qwen2_moe", "qwen3_moe"):
        ignore += ["re:.*mlp\\.gate$", "re:.*mlp\\.shared_expert_gate$"]
    elif config["model_type"] == "mixtral":
        ignore += ["re:.*block_sparse_moe\\.gate$"]
    section = dict(quant_method="compressed-tensors", format="mxfp8-quantized",
                   quantization_status="compressed", global_compression_ratio=None,
                   ignore=ignore, kv_cache_scheme=None, config_groups={"group_0": group},
                   sparsity_config={}, transform_config={}, version="0.20.1")  # fmt: skip
    return {**config, "quantization_config": section}


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")
