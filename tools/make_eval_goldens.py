#!/usr/bin/env python3
"""Writes tests/data/eval/smollm2_persuasion.json: what `mx8 eval` must find on the real model.

The model runs in PyTorch FP32 with its BF16 weights, and with fake-quantised ones (MXFP8, every
linear of the blocks; the embedding and the head it is tied to keep BF16 unless `head` is true).

The text is tokenised whole without special tokens and cut into windows of `context` tokens without
overlap. Each window is scored from its second token, so positions 0 .. context-2 predict.
  perplexity      exp(mean negative log likelihood of the scored tokens)
  bits_per_byte   that likelihood in bits, summed, over the UTF-8 bytes of the scored tokens
  kl              mean over scored positions of KL(P || Q) in nats; P: BF16 model, Q: quantised
  top1            share of scored positions where both models' likeliest token is the same
`*_by_window` hold sums over one window (kl, nll) or counts (top1, bytes), so that a test may take
fewer windows.

Needs the environment of requirements/goldens.txt, tools/fetch_smollm2.py and tools/fetch_texts.py.
"""

import argparse
import hashlib
import json
import math
import pathlib

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer

import mxfp8_numpy as mx
import tiny_models

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "models/SmolLM2-135M-Instruct"
TEXT = ROOT / "models/texts/persuasion.txt"
OUT = ROOT / "tests/data/eval/smollm2_persuasion.json"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def byte_lengths(tokenizer, ids):
    """UTF-8 bytes of each token: in a byte-level vocabulary a character stands for a byte."""
    return np.array([len(tokenizer.id_to_token(i)) for i in ids])


def load_model():
    return transformers.AutoModelForCausalLM.from_pretrained(
        MODEL, dtype=torch.float32, attn_implementation="eager"
    ).eval()


@torch.no_grad()
def quantise(model, rule, head):
    """Fake-quantises the linears in place."""
    for name, parameter in model.named_parameters():
        values = parameter.numpy()
        if tiny_models.is_quantised(name, values):
            values = mx.dequantize(*mx.quantize(values, rule)).astype(np.float32)
            parameter.copy_(torch.from_numpy(values))
    if head:
        # The head gets a quantised copy; the embedding that it is tied to stays as it is.
        values = mx.dequantize(*mx.quantize(model.lm_head.weight.numpy(), rule))
        untied = torch.from_numpy(values.astype(np.float32))
        model.lm_head.weight = torch.nn.Parameter(untied)


@torch.no_grad()
def log_probabilities(model, window):
    """[context - 1, vocab] FP64 of the positions that predict a token of the window."""
    logits = model(torch.tensor(window[None], dtype=torch.long), use_cache=False).logits[0, :-1]
    return torch.log_softmax(logits.double(), dim=-1)


class Scores:
    """Collects the sums of one model over the windows."""

    def __init__(self):
        self.nll, self.kl, self.same = [], [], []

    def add(self, window, reference, found):
        targets = torch.tensor(window[1:], dtype=torch.long)
        self.nll.append(float(-found.gather(1, targets[:, None]).sum()))
        if reference is not None:
            self.kl.append(float((reference.exp() * (reference - found)).sum()))
            self.same.append(int((reference.argmax(-1) == found.argmax(-1)).sum()))

    def result(self, windows, byte_counts):
        scored = windows.shape[0] * (windows.shape[1] - 1)
        total = sum(self.nll)
        result = {
            "perplexity": math.exp(total / scored),
            "bits_per_byte": total / math.log(2) / int(byte_counts.sum()),
            "nll_by_window": self.nll,
        }
        if self.kl:
            result.update(kl=sum(self.kl) / scored, top1=sum(self.same) / scored,
                          kl_by_window=self.kl, same_by_window=self.same)  # fmt: skip
        return result


QUANTISED = (
    dict(rule="rceil", head=False),
    dict(rule="rceil", head=True),
    dict(rule="floor", head=False),
    dict(rule="compressed-tensors", head=False),
)


def evaluate(windows, byte_counts):
    models = [load_model() for _ in range(1 + len(QUANTISED))]
    for model, how in zip(models[1:], QUANTISED):
        quantise(model, **how)
    scores = [Scores() for _ in models]
    for i, window in enumerate(windows):
        reference = log_probabilities(models[0], window)
        scores[0].add(window, None, reference)
        for model, score in zip(models[1:], scores[1:]):
            score.add(window, reference, log_probabilities(model, window))
        print(f"window {i + 1} of {len(windows)}", flush=True)
    original, *quantised = (score.result(windows, byte_counts) for score in scores)
    return original, [{**how, **result} for how, result in zip(QUANTISED, quantised)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--windows", type=int, default=16)
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    text = TEXT.read_bytes()
    ids = np.array(tokenizer.encode(text.decode("utf-8"), add_special_tokens=False).ids)
    used = ids[: args.windows * args.context].astype("<i4")
    windows = used.reshape(args.windows, args.context)
    byte_counts = np.stack([byte_lengths(tokenizer, window[1:]) for window in windows]).sum(axis=1)
    original, quantised = evaluate(windows, byte_counts)
    result = {
        "text": TEXT.name,
        "text_sha256": sha256(text),
        "text_tokens": len(ids),
        "weights_sha256": sha256((MODEL / "model.safetensors").read_bytes()),
        "context": args.context,
        "windows": args.windows,
        "scored_tokens": args.windows * (args.context - 1),
        "scored_bytes": int(byte_counts.sum()),
        "bytes_by_window": byte_counts.tolist(),
        "ids_sha256": sha256(used.tobytes()),
        "first_ids": used[:32].tolist(),
        "made_with": f"torch {torch.__version__}, transformers {transformers.__version__}, FP32",
        "original": original,
        "quantised": quantised,
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    tiny_models.write_json(OUT, result)
    print(json.dumps({"original": original["perplexity"]}))
    for entry in quantised:
        print({key: value for key, value in entry.items() if not key.endswith("_by_window")})


if __name__ == "__main__":
    main()
