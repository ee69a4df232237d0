#!/usr/bin/env python3
"""Checks mxfp8_numpy against PyTorch's E4M3 cast and the compressed-tensors package.

Needs the environment of requirements/goldens.txt. Prints a line a check; exit code 1 if one fails.
torchao 0.18 was compared by hand: its RCEIL and FLOOR scale bytes equal ours for every BF16 block
maximum, its codes too but for blocks of scale byte 0, where it clamps the divisor.
"""

import sys

import numpy as np
import torch
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import quantize
from compressed_tensors.quantization.quant_scheme import MXFP8A16
from compressed_tensors.quantization.utils import compute_dynamic_scales_and_zp

import mxfp8_numpy as mx
import safetensors_io

_failed = []


def report(name, good):
    print(f"{'ok  ' if good else 'FAIL'} {name}")
    if not good:
        _failed.append(name)


def all_bf16():
    bits = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    return safetensors_io.f32_from_bf16(bits)


def check_codes():
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).to(torch.float64).numpy()
    report("256 codes decode as in torch", np.array_equal(codes, mx.E4M3, equal_nan=True))
    values = all_bf16()
    values = values[np.abs(values) <= 448]
    theirs = torch.from_numpy(values).to(torch.float8_e4m3fn).view(torch.uint8).numpy()
    report("all BF16 up to 448 encode as in torch", np.array_equal(theirs, mx.encode(values)))
    rng = np.random.default_rng(1)
    values = np.ldexp(rng.standard_normal(1 << 20), rng.integers(-14, 7, 1 << 20))
    values = values.astype(np.float32)
    values = values[np.abs(values) <= 448]
    theirs = torch.from_numpy(values).to(torch.float8_e4m3fn).view(torch.uint8).numpy()
    report("1M random FP32 encode as in torch", np.array_equal(theirs, mx.encode(values)))


def compressed_tensors_quantize(values):
    """Codes and scale bytes as the package makes them, in the dtype of `values`."""
    weights = MXFP8A16["weights"]
    args = QuantizationArgs(**{**weights.model_dump(), "dynamic": True, "observer": None})
    scale, zero_point = compute_dynamic_scales_and_zp(values, args, module=None)
    codes = quantize(values, scale, zero_point, args, dtype=torch.float8_e4m3fn)
    scale_bytes = 127 + torch.floor(torch.log2(scale.double())).to(torch.int32)
    return codes.view(torch.uint8).numpy(), scale_bytes.to(torch.uint8).numpy()


def check_compressed_tensors():
    values = all_bf16()
    # From 1.75 * 2^127 on the package's own arithmetic overflows to a scale of 1; ours saturates.
    values = np.where(np.abs(values) < 1.75 * 2.0**127, values, 1.0).astype(np.float32)
    blocks = np.stack([values * np.float32(f) for f in (1, 0.37, -0.9, 0.011)], axis=-1)
    blocks = safetensors_io.f32_from_bf16(safetensors_io.bf16_from_f32(blocks))
    blocks = np.concatenate([blocks, np.zeros((1 << 16, 28), np.float32)], axis=-1)
    rng = np.random.default_rng(2)
    weights = safetensors_io.bf16_from_f32(rng.standard_normal((2048, 1024)) * 0.02)
    for name, data in (
        ("every BF16 below 1.75 * 2^127 as block maximum", blocks),
        ("a gaussian BF16 matrix", safetensors_io.f32_from_bf16(weights)),
    ):
        codes, scales = mx.quantize(data, "compressed-tensors")
        their_codes, their_scales = compressed_tensors_quantize(
            torch.from_numpy(data).to(torch.bfloat16)
        )
        report(f"{name}: scales as in compressed-tensors", np.array_equal(their_scales, scales))
        same = (their_codes == codes) | ((their_codes & 0x7F == 0) & (codes & 0x7F == 0))
        report(f"{name}: codes as in compressed-tensors (zeros of either sign)", same.all())


def main():
    check_codes()
    check_compressed_tensors()
    return 1 if _failed else 0


if __name__ == "__main__":
    sys.exit(main())
