"""A small GGUF v2/v3 reader: metadata, and tensors of type F32, F16, Q4_1 and Q8_0 as FP32."""

import mmap
import struct

import numpy as np

_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9

# ggml type id -> (name, items in a block, bytes of a block)
_TENSOR_TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    3: ("Q4_1", 32, 20),
    8: ("Q8_0", 32, 34),
}


class GgufError(Exception):
    """The file is not what this reader understands; the message says what was found."""


class GgufFile:
    """`metadata` is {key: value}; `tensor(name)` gives FP32 in row-major [rows, columns] order."""

    def __init__(self, path):
        self._file = open(path, "rb")
        self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        self._pos = 0
        magic, version = self._unpack("<4sI")
        if magic != b"GGUF" or version not in (2, 3):
            raise GgufError(f"{path}: magic {magic!r}, version {version}; want GGUF 2 or 3")
        tensor_count, pair_count = self._unpack("<QQ")
        self.metadata = {}
        for _ in range(pair_count):
            key = self._string()
            (kind,) = self._unpack("<I")
            self.metadata[key] = self._value(kind)
        self._tensors = dict(self._tensor_entry() for _ in range(tensor_count))
        alignment = self.metadata.get("general.alignment", 32)
        self._data = -(-self._pos // alignment) * alignment

    @property
    def names(self):
        return list(self._tensors)

    def tensor(self, name):
        shape, (kind, block_items, block_bytes), offset = self._tensors[name]
        count = int(np.prod(shape))
        size = count // block_items * block_bytes
        begin = self._data + offset
        raw = np.frombuffer(self._map[begin : begin + size], dtype=np.uint8)
        return _DECODERS[kind](raw.reshape(-1, block_bytes)).reshape(shape)

    def _unpack(self, layout):
        values = struct.unpack_from(layout, self._map, self._pos)
        self._pos += struct.calcsize(layout)
        return values

    def _string(self):
        (length,) = self._unpack("<Q")
        text = self._map[self._pos : self._pos + length].decode("utf-8")
        self._pos += length
        return text

    def _value(self, kind):
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            item_kind, count = self._unpack("<IQ")
            return [self._value(item_kind) for _ in range(count)]
        if kind not in _SCALARS:
            raise GgufError(f"metadata value of unknown kind {kind}")
        return self._unpack(_SCALARS[kind])[0]

    def _tensor_entry(self):
        name = self._string()
        (rank,) = self._unpack("<I")
        dims = self._unpack(f"<{rank}Q")
        kind, offset = self._unpack("<IQ")
        if kind not in _TENSOR_TYPES:
            raise GgufError(f"tensor {name}: ggml type {kind}; want F32, F16, Q4_1 or Q8_0")
        # GGUF lists the fastest dimension first.
        return name, (tuple(reversed(dims)), _TENSOR_TYPES[kind], offset)


def _f16(raw):
    return raw.copy().view("<f2").astype(np.float32)


def _decode_q4_1(blocks):
    scale, minimum, packed = _f16(blocks[:, 0:2]), _f16(blocks[:, 2:4]), blocks[:, 4:]
    codes = np.concatenate([packed & 0x0F, packed >> 4], axis=1).astype(np.float32)
    return scale * codes + minimum


def _decode_q8_0(blocks):
    return _f16(blocks[:, 0:2]) * blocks[:, 2:].view(np.int8).astype(np.float32)


_DECODERS = {
    "F32": lambda blocks: blocks.copy().view("<f4"),
    "F16": _f16,
    "Q4_1": _decode_q4_1,
    "Q8_0": _decode_q8_0,
}
