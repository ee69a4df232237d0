"""MXFP8 in numpy: an oracle that shares no trick with the C++ code.

E4M3 codes come from a table of the 256 values and the midpoints between them, block exponents from
frexp, everything in FP64, which holds every quotient exactly.

Rules for what the formats leave open:
- a block with a NaN or an infinity: scale 255, code 0x7F at those places, 0 elsewhere
- a block of zeros (of either sign): scale 0, codes 0
- magnitudes above 448 after scaling saturate to 448; the sign of a zero code is the value's
"""

import numpy as np

BLOCK = 32
RULES = ("rceil", "floor", "compressed-tensors")
NAN_SCALE = 255
NAN_CODE = 0x7F


def _decode_table():
    values = np.empty(256)
    for code in range(256):
        exponent, mantissa = (code >> 3) & 15, code & 7
        magnitude = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
        values[code] = -magnitude if code & 0x80 else magnitude
    values[0x7F] = values[0xFF] = np.nan
    return values


E4M3 = _decode_table()  # value of each code, FP64
_POSITIVE = E4M3[:0x7F]  # ascending: 0, 2^-9, ..., 448
_MIDPOINTS = (_POSITIVE[:-1] + _POSITIVE[1:]) / 2


def encode(values):
    """Nearest codes (uint8), ties to the even code, saturating; no NaN may be given."""
    values = np.asarray(values, dtype=np.float64)
    magnitudes = np.abs(values)
    codes = np.searchsorted(_MIDPOINTS, magnitudes, side="left")
    below = np.minimum(codes, len(_MIDPOINTS) - 1)
    tie = (codes < len(_MIDPOINTS)) & (magnitudes == _MIDPOINTS[below])
    codes = codes + (tie & (codes % 2 == 1))
    return (codes | (np.signbit(values) * 0x80)).astype(np.uint8)


def scale_bytes(amax, rule):
    """The E8M0 byte of each block maximum; 0 for 0, 255 for NaN and infinity."""
    amax = np.asarray(amax, dtype=np.float64)
    finite = np.isfinite(amax)
    fraction, power = np.frexp(np.where(finite, amax, 1.0))  # amax = fraction * 2^power, in [.5, 1)
    exponent = power - 1 - 8
    if rule == "rceil":
        exponent = exponent + (fraction > 0.875)  # 448 = 0.875 * 2^9
    elif rule == "compressed-tensors":
        exponent = exponent + (fraction >= 0.875)
    elif rule != "floor":
        raise ValueError(f"scale rule {rule!r}; want one of {RULES}")
    biased = np.where(amax == 0, 0, np.clip(exponent + 127, 0, 254))
    return np.where(finite, biased, NAN_SCALE).astype(np.uint8)


def quantize(values, rule="rceil"):
    """(codes, scales) of an array [..., K], K a multiple of 32: uint8 [..., K] and [..., K/32]."""
    values = np.asarray(values, dtype=np.float64)
    blocks = values.reshape(*values.shape[:-1], values.shape[-1] // BLOCK, BLOCK)
    bad = ~np.isfinite(blocks)
    broken = bad.any(axis=-1, keepdims=True)
    amax = np.where(broken[..., 0], np.inf, np.abs(np.where(bad, 0, blocks)).max(axis=-1))
    scales = scale_bytes(amax, rule)
    quotients = np.ldexp(np.where(bad, 0, blocks), 127 - scales[..., None].astype(int))
    codes = encode(np.where(broken | (amax == 0)[..., None], 0.0, quotients))
    codes = np.where(bad, NAN_CODE, codes).astype(np.uint8)
    return codes.reshape(values.shape), scales


def dequantize(codes, scales):
    """FP64 values of codes [..., K] under scales [..., K/32]; exact."""
    values = E4M3[np.asarray(codes)]
    exponents = np.repeat(np.asarray(scales).astype(int) - 127, BLOCK, axis=-1)
    values = np.ldexp(values, exponents[..., : values.shape[-1]])
    return np.where(exponents[..., : values.shape[-1]] == 128, np.nan, values)
