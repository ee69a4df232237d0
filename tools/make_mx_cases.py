#!/usr/bin/env python3
"""Writes tests/data/mx/quantize_cases.json: blocks, and what each scale rule must make of them.

Each case: `name`; `values`, the block's FP32 bit patterns as hex (8 digits each, 1 to 32 values);
`rules`: for each rule the scale byte and the codes (hex, 2 digits each). Needs numpy alone.
"""

import json
import pathlib

import numpy as np

import mxfp8_numpy as mx
import safetensors_io

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/mx/quantize_cases.json"


def block(*head):
    """A block of 32 that starts with `head`, zeros behind."""
    values = np.zeros(mx.BLOCK, dtype=np.float32)
    values[: len(head)] = head
    return values


def bf16_steps(value, steps):
    """The BF16 number `steps` representable numbers above `value`, as FP32."""
    bits = safetensors_io.bf16_from_f32([value]).astype(np.int32) + steps
    return safetensors_io.f32_from_bf16(bits.astype(np.uint16))[0]


def f32_steps(value, steps):
    bits = np.array([value], dtype=np.float32).view(np.int32) + steps
    return bits.view(np.float32)[0]


def edge_cases():
    yield "zeros", block()
    yield "negative zeros", np.full(mx.BLOCK, -0.0, dtype=np.float32)
    yield "zeros of both signs beside one", block(1.0, -0.0, 0.0, -0.0)
    yield "smallest fp32 subnormal", block(f32_steps(0.0, 1), -f32_steps(0.0, 1))
    yield "smallest bf16 subnormal", block(bf16_steps(0.0, 1), -bf16_steps(0.0, 1))
    yield "largest bf16 subnormal", block(bf16_steps(2.0**-126, -1))
    yield "smallest normal", block(2.0**-126, 2.0**-127, 2.0**-128, -(2.0**-126))
    yield "largest fp32", block(f32_steps(np.inf, -1), 1.0, -1e30)
    yield "largest bf16", block(bf16_steps(np.inf, -1), -bf16_steps(np.inf, -1))
    yield "one outlier", block(1e30, 1.0, 1e-30, 1e24, -1e25)
    for name, value in (("nan", np.nan), ("infinity", np.inf), ("minus infinity", -np.inf)):
        yield f"{name} first", block(value, 1.0, -2.0, 3.0)
        yield f"{name} last", np.concatenate([np.linspace(-4, 4, 31), [value]]).astype(np.float32)
    yield "nan among zeros", block(0.0, np.nan)
    yield "nan and infinity", block(np.inf, np.nan, -np.inf, 5.0)
    for k in (-140, -136, -135, -134, -127, -120, -20, -1, 0, 1, 5, 100, 118, 119):
        for steps in (-1, 0, 1):
            value = float(f32_steps(np.ldexp(448.0, k), steps))
            yield f"448 * 2^{k} {steps:+d} ulp", block(value, 0.3 * value, -value)
    for k in (-130, -30, 0, 30):
        for mantissa in (1.0, 1.5, 1.7421875, 1.75, 1.7578125, 1.9921875):
            value = float(np.ldexp(mantissa, k))
            yield f"amax {mantissa} * 2^{k}", block(-value, 0.77 * value, 0.011 * value)


def rounding_cases():
    """Every E4M3 value and every midpoint, under a block maximum of 448 (scale 2^0)."""
    positive = mx.E4M3[:0x7F]
    midpoints = (positive[:-1] + positive[1:]) / 2
    for kind, values in (("value", positive), ("midpoint", midpoints)):
        for sign in (1, -1):
            for i in range(0, len(values), mx.BLOCK - 1):
                part = sign * values[i : i + mx.BLOCK - 1]
                yield f"e4m3 {kind}s from {i}, sign {sign:+d}", block(448.0, *part)
    for i in range(0, len(midpoints), 15):
        part = midpoints[i : i + 15].astype(np.float32)
        beside = np.stack([np.nextafter(part, np.float32(0)), np.nextafter(part, np.float32(999))])
        yield f"beside midpoints from {i}", block(448.0, *beside.T.reshape(-1))


def random_cases(rng):
    for i in range(24):
        yield f"gaussian {i}", (rng.standard_normal(mx.BLOCK) * 0.02).astype(np.float32)
    for i in range(24):
        wide = np.ldexp(rng.standard_normal(mx.BLOCK), rng.integers(-24, 12, mx.BLOCK))
        yield f"wide range {i}", wide.astype(np.float32)
    for i in range(16):
        bits = rng.integers(0, 2**16, mx.BLOCK).astype(np.uint16)
        yield f"any bf16 bits {i}", safetensors_io.f32_from_bf16(bits)
    for i in range(24):
        bits = rng.integers(0, 2**16, mx.BLOCK).astype(np.uint16)
        bits = np.where((bits & 0x7F80) == 0x7F80, bits & 0xBFFF, bits).astype(np.uint16)
        yield f"any finite bf16 bits {i}", safetensors_io.f32_from_bf16(bits)
    for i in range(12):
        bits = rng.integers(0, 0x100, mx.BLOCK).astype(np.uint16)
        yield f"bf16 subnormals {i}", safetensors_io.f32_from_bf16(bits)
    for length in (1, 7, 16, 31):
        yield f"short block of {length}", rng.standard_normal(length).astype(np.float32)


def expected(values, rule):
    padded = np.concatenate([values, np.zeros(mx.BLOCK - len(values), dtype=np.float32)])
    codes, scales = mx.quantize(padded, rule)
    return {"scale": int(scales[0]), "codes": codes[: len(values)].tobytes().hex()}


def main():
    rng = np.random.default_rng(20260101)
    cases = []
    for name, values in [*edge_cases(), *rounding_cases(), *random_cases(rng)]:
        bits = "".join(f"{word:08x}" for word in values.view(np.uint32).tolist())
        rules = {rule: expected(values, rule) for rule in mx.RULES}
        cases.append({"name": name, "values": bits, "rules": rules})
    OUT.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    OUT.write_text(f'{{"cases":[\n{lines}\n]}}\n')
    print(f"wrote {len(cases)} cases to {OUT}")


if __name__ == "__main__":
    main()
