"""Reads the data sets of an installed R package without R: integers, logicals, strings and lists.

An R package keeps its data in Rdata.rdx (an index, gzip-packed) and Rdata.rdb (for each object a
big-endian length, then zlib). Both hold R's binary serialisation, format version 2 or 3.
"""

import gzip
import pathlib
import struct
import zlib

_SYMBOL, _PAIR_LIST, _CHARS, _LOGICAL, _INTEGER, _STRINGS, _LIST = 1, 2, 9, 10, 13, 16, 19
_NIL, _REFERENCE = 254, 255
_HAS_ATTRIBUTES, _HAS_TAG = 1 << 9, 1 << 10


class RDataError(Exception):
    """The file holds something this reader doesn't know."""


class _Stream:
    def __init__(self, data):
        self._data = data
        self._pos = 2
        self._symbols = []
        if data[:2] != b"X\n":
            raise RDataError(f"starts with {data[:2]!r}; want R's binary format")
        version, _, _ = self._integers(3)
        if version not in (2, 3):
            raise RDataError(f"serialisation version {version}; want 2 or 3")
        if version == 3:
            self._bytes(self._integers(1)[0])  # the native encoding's name

    def item(self):
        """A value, or (value, attributes) for a list that has attributes."""
        (flags,) = self._integers(1)
        kind = flags & 0xFF
        if kind == _NIL:
            return None
        if kind == _REFERENCE:
            return self._symbols[(flags >> 8) - 1]
        if kind == _SYMBOL:
            self._symbols.append(self.item())
            return self._symbols[-1]
        if kind == _CHARS:
            (length,) = self._integers(1)
            return None if length == -1 else self._bytes(length).decode("utf-8")
        if kind == _PAIR_LIST:
            return self._pair_list(flags)
        return self._vector(kind, flags)

    def _vector(self, kind, flags):
        (count,) = self._integers(1)
        if kind in (_LOGICAL, _INTEGER):
            value = list(self._integers(count))
        elif kind in (_STRINGS, _LIST):
            value = [self.item() for _ in range(count)]
        else:
            raise RDataError(f"an R object of kind {kind}")
        attributes = self.item() if flags & _HAS_ATTRIBUTES else {}
        return dict(zip(attributes["names"], value)) if "names" in attributes else value

    def _pair_list(self, flags):
        if flags & _HAS_ATTRIBUTES:
            self.item()
        key = self.item() if flags & _HAS_TAG else None
        pairs = {key: self.item()}
        pairs.update(self.item() or {})
        return pairs

    def _integers(self, count):
        values = struct.unpack_from(f">{count}i", self._data, self._pos)
        self._pos += 4 * count
        return values

    def _bytes(self, count):
        value = self._data[self._pos : self._pos + count]
        self._pos += count
        return value


def read_data_sets(folder):
    """{name: value} of every data set in an installed package's data/ folder."""
    folder = pathlib.Path(folder)
    index = _Stream(gzip.decompress((folder / "Rdata.rdx").read_bytes())).item()
    packed = (folder / "Rdata.rdb").read_bytes()
    values = {}
    for name, (offset, size) in index["variables"].items():
        # The first four bytes say the unpacked length.
        values[name] = _Stream(zlib.decompress(packed[offset + 4 : offset + size])).item()
    return values
