"""Reads and writes safetensors files with numpy alone.

numpy knows neither BF16 nor FP8, so a tensor here is its raw bytes plus a dtype name of the format
("BF16", "F8_E4M3", "F8_E8M0", "U8", "F32", ...). The writer is deterministic: equal tensors in
equal order give equal bytes.
"""

import json
import pathlib
import struct
from dataclasses import dataclass

import numpy as np

ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E8M0": 1, "F8_E5M2": 1,
    "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4,
    "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip

NUMPY_DTYPE = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "F8_E4M3": "u1", "F8_E8M0": "u1", "F8_E5M2": "u1",
    "I16": "<i2", "U16": "<u2", "F16": "<f2", "BF16": "<u2",
    "I32": "<i4", "U32": "<u4", "F32": "<f4",
    "I64": "<i8", "U64": "<u8", "F64": "<f8",
}  # fmt: skip


@dataclass
class Tensor:
    """Raw items: BF16 as uint16 bit patterns, the 8-bit float formats as uint8."""

    dtype: str
    data: np.ndarray

    @property
    def shape(self):
        return tuple(self.data.shape)


def bf16_from_f32(values):
    """Rounds FP32 to BF16 (nearest, ties to even); returns uint16 bit patterns. NaN stays NaN."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    bits = values.view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) >> 16
    out = rounded.astype(np.uint16)
    nan = np.isnan(values)
    if nan.any():
        out[nan] = ((bits[nan] >> 16) | 0x40).astype(np.uint16)
    return out


def f32_from_bf16(bits):
    """Widens uint16 BF16 bit patterns to FP32, exactly."""
    return (np.ascontiguousarray(bits, dtype=np.uint16).astype(np.uint32) << 16).view(np.float32)


def bf16(values):
    """A BF16 tensor from FP32 values."""
    return Tensor("BF16", bf16_from_f32(values))


def write(path, tensors, metadata=None):
    """Writes {name: Tensor} in dict order; the header is padded so that data starts 8-aligned."""
    header = {"__metadata__": metadata or {"format": "pt"}}
    offset = 0
    for name, tensor in tensors.items():
        size = tensor.data.size * ITEM_BYTES[tensor.dtype]
        header[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for name, tensor in tensors.items():
            items = np.ascontiguousarray(tensor.data, dtype=NUMPY_DTYPE[tensor.dtype])
            file.write(items.tobytes())


def read(path):
    """Reads a whole file into {name: Tensor}, in the header's order."""
    blob = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        raw = blob[8 + length + begin : 8 + length + end]
        items = np.frombuffer(raw, dtype=NUMPY_DTYPE[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = Tensor(entry["dtype"], items)
    return tensors


def read_checkpoint(folder):
    """Reads every tensor of a checkpoint folder, sharded or not."""
    folder = pathlib.Path(folder)
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return read(folder / "model.safetensors")
    files = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    tensors = {}
    for name in files:
        tensors.update(read(folder / name))
    return tensors
