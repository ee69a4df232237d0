#!/usr/bin/env python3
"""Writes tests/data/sampling/hf_processors.json: what transformers' logits processors make of given logits.

Run with the packages of requirements/goldens.txt. Each case holds the input logits, the tokens so far, the
parameters, and the probabilities after RepetitionPenalty, Temperature, TopK, TopP and MinP in the order in which
`generate` applies them.
"""
import json
import pathlib

import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper,
    TopPLogitsWarper)

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/sampling/hf_processors.json"


def case(seed, vocab, spread, tokens, **p):
    g = torch.Generator().manual_seed(seed)
    logits = torch.randn(1, vocab, generator=g) * spread
    ids = torch.tensor([tokens], dtype=torch.long)
    scores = logits.clone()
    if p.get("repetition_penalty", 1) != 1:
        scores = RepetitionPenaltyLogitsProcessor(p["repetition_penalty"])(ids, scores)
    if p.get("temperature", 1) != 1:
        scores = TemperatureLogitsWarper(p["temperature"])(ids, scores)
    if p.get("top_k", 0) > 0:
        scores = TopKLogitsWarper(p["top_k"])(ids, scores)
    if p.get("top_p", 1) < 1:
        scores = TopPLogitsWarper(p["top_p"])(ids, scores)
    if p.get("min_p", 0) > 0:
        scores = MinPLogitsWarper(p["min_p"])(ids, scores)
    probs = torch.softmax(scores.double(), dim=-1)[0]
    return {"tokens": tokens, "params": p, "logits": [float(x) for x in logits[0]],
            "probabilities": [float(x) for x in probs]}


def main():
    cases = []
    for seed, params in enumerate([
        {}, {"temperature": 0.5}, {"temperature": 2.0}, {"top_k": 5}, {"top_k": 1}, {"top_k": 40},
        {"top_p": 0.9}, {"top_p": 0.5}, {"top_p": 0.05}, {"min_p": 0.1}, {"min_p": 0.5},
        {"repetition_penalty": 1.3}, {"repetition_penalty": 0.7},
        {"temperature": 0.8, "top_k": 10, "top_p": 0.8}, {"top_k": 12, "top_p": 0.6, "min_p": 0.2},
        {"temperature": 1.5, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.2},
    ]):
        cases.append(case(seed, 32, 2.0, [1, 5, 5, 9, 31], **params))
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({"cases": cases}) + "\n")


if __name__ == "__main__":
    main()
