#!/usr/bin/env python3
"""Writes tests/data/tiny: random tiny models of every family with Hugging Face's FP32 logits.

For each model of tiny_models.MODELS two checkpoints, `<name>` (BF16) and `<name>_mxfp8` (the same
weights quantised, RCEIL, in the layout of compressed-tensors), for each of VARIANTS one that shares
the weights by a link. Beside each lies goldens.safetensors with, for prompt i:
  prompt<i>.ids     I32 [n]
  prompt<i>.logits  F32 [n, vocab]  all positions, whole prompt at once, weights dequantised to FP32
  prompt<i>.greedy  I32 [8]         what greedy decoding appends
Prompts are drawn until no router choice and no greedy choice hangs on a rounding error.

Needs the environment of requirements/goldens.txt.
"""

import pathlib
import shutil
import zlib

import numpy as np

import safetensors_io
import tiny_models
from hf_goldens import Golden
from safetensors_io import Tensor

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/tiny"
PROMPT_LENGTHS = (12, 29)
GREEDY = 8
MIN_ROUTER_GAP = 0.02  # of logits with a spread of about 2
MIN_GREEDY_GAP = 0.02  # of the logits' standard deviation


def draw_prompt(golden, rng, length):
    vocab = golden.model.config.vocab_size
    for _ in range(1000):
        ids = rng.integers(3, vocab, length).tolist()
        logits = golden.logits(ids)
        tail, greedy_gap = golden.greedy(ids, GREEDY)
        steady = greedy_gap > MIN_GREEDY_GAP * logits.std()
        if steady and golden.router_gap(ids + tail) > MIN_ROUTER_GAP:
            return ids, logits, tail
    raise RuntimeError("no prompt keeps its distance from a tie")


def goldens(config, params, seed):
    golden, rng, tensors = Golden(config, params), np.random.default_rng(seed), {}
    for i, length in enumerate(PROMPT_LENGTHS):
        ids, logits, tail = draw_prompt(golden, rng, length)
        tensors[f"prompt{i}.ids"] = Tensor("I32", np.array(ids))
        tensors[f"prompt{i}.logits"] = Tensor("F32", logits)
        tensors[f"prompt{i}.greedy"] = Tensor("I32", np.array(tail))
    return tensors


def describe(folder, tensors):
    logits = tensors["prompt1.logits"].data
    top = len(set(logits.argmax(axis=-1).tolist()))
    print(f"{folder.name}: logits std {logits.std():.2f}, {top} different best tokens of 29")


def write_model(folder, config, params, tensors, seed):
    folder.mkdir(parents=True)
    tiny_models.write_json(folder / "config.json", config)
    safetensors_io.write(folder / "model.safetensors", tensors)
    golden = goldens(config, params, seed)
    safetensors_io.write(folder / "goldens.safetensors", golden)
    describe(folder, golden)


def write_variant(name):
    base, _ = tiny_models.VARIANTS[name]
    folder, config = OUT / name, tiny_models.variant_config(name)
    folder.mkdir(parents=True)
    tiny_models.write_json(folder / "config.json", config)
    (folder / "model.safetensors").symlink_to(f"../{base}/model.safetensors")
    params = tiny_models.parameters(base)
    golden = goldens(config, params, zlib.crc32(base.encode()))
    safetensors_io.write(folder / "goldens.safetensors", golden)
    describe(folder, golden)
    unchanged = Golden(tiny_models.MODELS[base], params).logits(golden["prompt1.ids"].data.tolist())
    change = np.abs(golden["prompt1.logits"].data - unchanged).max()
    print(f"  largest change of a logit against {base}: {change:.3f}")
    # A variant that changes nothing would test nothing; "dynamic" says why it doesn't.
    if (change < 0.1) != name.endswith("_dynamic"):
        raise RuntimeError(f"{name}: unexpected change of {change} against {base}")


def main():
    if OUT.exists():
        shutil.rmtree(OUT)
    for name, config in tiny_models.MODELS.items():
        params, seed = tiny_models.parameters(name), zlib.crc32(name.encode())
        plain = {key: safetensors_io.bf16(values) for key, values in params.items()}
        write_model(OUT / name, config, params, plain, seed)
        write_model(
            OUT / f"{name}_mxfp8",
            tiny_models.compressed_tensors_config(config),
            tiny_models.dequantised(params),
            tiny_models.quantised_tensors(params),
            seed,
        )
    for name in tiny_models.VARIANTS:
        write_variant(name)


if __name__ == "__main__":
    main()
