#!/usr/bin/env python3
"""Writes a Llama-family BF16 folder as a GGUF file with Q8_0 matrices, for llama.cpp as a benchmark peer.

The file has no vocabulary (tokenizer "no_vocab"), which is all that llama-bench needs. Needs numpy alone.

    write_gguf_q8.py models/SmolLM2-135M-Instruct out.gguf
"""
import json
import pathlib
import struct
import sys

import numpy as np

import safetensors_io

ALIGNMENT = 32
F32, Q8_0 = 0, 8
UINT32, FLOAT32, STRING = 4, 6, 8


def q8_0(values):
    """ggml's Q8_0: blocks of 32 along the row, an FP16 scale and 32 signed bytes each."""
    blocks = values.reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1) / 127
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    codes = np.rint(blocks * inverse[:, None]).astype(np.int8)
    out = np.empty((blocks.shape[0], 34), dtype=np.uint8)
    out[:, :2] = scale.astype(np.float16).view(np.uint8).reshape(-1, 2)
    out[:, 2:] = codes.view(np.uint8)
    return out.tobytes()


def interleave_rotary(weight, heads):
    """llama.cpp rotates neighbouring pairs where Hugging Face rotates halves: the rows are reordered."""
    rows, cols = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, cols).swapaxes(1, 2).reshape(rows, cols)


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key, value):
    kind = {str: STRING, int: UINT32, float: FLOAT32}[type(value)]
    body = string(value) if kind == STRING else struct.pack("<I" if kind == UINT32 else "<f", value)
    return string(key) + struct.pack("<I", kind) + body


def metadata(config):
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    return {
        "general.architecture": "llama", "llama.context_length": config["max_position_embeddings"],
        "llama.embedding_length": config["hidden_size"], "llama.block_count": config["num_hidden_layers"],
        "llama.feed_forward_length": config["intermediate_size"], "llama.vocab_size": config["vocab_size"],
        "llama.rope.dimension_count": head_dim, "llama.rope.freq_base": float(config["rope_theta"]),
        "llama.attention.head_count": heads, "llama.attention.head_count_kv": config["num_key_value_heads"],
        "llama.attention.key_length": head_dim, "llama.attention.value_length": head_dim,
        "llama.attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "tokenizer.ggml.model": "no_vocab",
    }  # fmt: skip


LAYER = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    config = json.loads((folder / "config.json").read_text())
    weights = safetensors_io.read_checkpoint(folder)
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
    for i in range(config["num_hidden_layers"]):
        names.update({f"blk.{i}.{g}": f"model.layers.{i}.{h}" for g, h in LAYER.items()})
    if not config.get("tie_word_embeddings"):
        names["output"] = "lm_head"

    infos, blobs, offset = b"", [], 0
    for gguf_name, name in names.items():
        w = safetensors_io.f32_from_bf16(weights[name + ".weight"].data)
        if gguf_name.endswith("attn_q"):
            w = interleave_rotary(w, config["num_attention_heads"])
        elif gguf_name.endswith("attn_k"):
            w = interleave_rotary(w, config["num_key_value_heads"])
        kind = F32 if w.ndim == 1 else Q8_0
        data = w.astype("<f4").tobytes() if kind == F32 else q8_0(np.ascontiguousarray(w, dtype=np.float32))
        infos += string(gguf_name + ".weight") + struct.pack("<I", w.ndim)
        infos += struct.pack(f"<{w.ndim}Q", *reversed(w.shape)) + struct.pack("<IQ", kind, offset)
        blobs.append(data + b"\0" * (-len(data) % ALIGNMENT))
        offset += len(blobs[-1])
    pairs = [pair(k, v) for k, v in metadata(config).items()]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(blobs), len(pairs)) + b"".join(pairs) + infos
    with open(out, "wb") as file:
        file.write(head + b"\0" * (-len(head) % ALIGNMENT))
        for blob in blobs:
            file.write(blob)


if __name__ == "__main__":
    main()
