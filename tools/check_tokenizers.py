#!/usr/bin/env python3
"""Compares mx8's tokenizer with the Python package `tokenizers` on mixed-script text.

    check_tokenizers.py BENCH FOLDER... [--text FILE...] [--megabytes 2.5] [--corpus OUT]

BENCH is the built program tokenizer_bench; each FOLDER holds a tokenizer.json (make_tokenizers.py
builds some). The text: the given files (.gz too), the translations installed on this machine
(/usr/share/locale, about a hundred languages), source code of Python, and seeded random Unicode. It is
cut into chunks of 1 byte to 64 KiB. Compared for each chunk: ids of plain text with special tokens
off, ids with special tokens parsed and added, the decoded text of the latter, and that streaming gives
the same text. Exit code 1 at the first tokenizer with a difference, which is printed.

Needs the package tokenizers 0.23.3.
"""
import argparse
import gettext
import gzip
import json
import pathlib
import random
import struct
import subprocess
import sys
import sysconfig
import tempfile


def read(path):
    raw = pathlib.Path(path).read_bytes()
    return (gzip.decompress(raw) if str(path).endswith(".gz") else raw).decode("utf-8", "replace")


def translations(rng, size):
    files = sorted(pathlib.Path("/usr/share/locale").glob("*/LC_MESSAGES/*.mo"))
    rng.shuffle(files)
    out = []
    for path in files:
        if size <= 0:
            break
        try:
            with open(path, "rb") as f:
                catalog = gettext.GNUTranslations(f)._catalog
        except (OSError, UnicodeError, ValueError):
            continue
        text = "\n".join(v for v in catalog.values() if isinstance(v, str))[:20000]
        out.append(text)
        size -= len(text.encode())
    return "".join(out)


def code(rng, size):
    files = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    rng.shuffle(files)
    out = ""
    for path in files:
        if len(out) > size:
            break
        out += read(path)[:20000]
    return out


def random_unicode_blocks():
    """Every block of 256 code points that holds characters, and some that hold none."""
    blocks = [range(max(1, b << 8), (b + 1) << 8) for b in range(0x335) if not 0xD8 <= b < 0xE0]
    return blocks + [range(0xE0000, 0xE01F0), range(0x10FF00, 0x110000)]


def random_unicode(rng, size, specials):
    blocks = random_unicode_blocks()
    out = []
    while size > 0:
        block = rng.choice(blocks)
        kind = rng.random()
        if kind < 0.5:
            piece = "".join(chr(rng.choice(block)) for _ in range(rng.randint(1, 12)))
        elif kind < 0.6:
            piece = rng.choice(" \t\n\r\v\f\u00a0\u2003\u3000\u0085\u200b\u180e") * rng.randint(1, 9)
        elif kind < 0.7:
            piece = rng.choice(["e\u0301\u0323", "\u1100\u1161\u11a8", "\uac00\u11a7", "ﬁ", "Å", "\u0958",
                                "👨‍👩‍👧‍👦", "🇫🇷", "👍🏽", "don't", "I'LL", "'\u017f", "x²", "½", "١٢٣", "１２３"])
        elif kind < 0.8:
            piece = str(rng.randint(0, 10 ** rng.randint(1, 12)))
        elif kind < 0.85 and specials:
            piece = rng.choice(specials)
        else:
            piece = rng.choice(["the ", " of", "Zürich", "naïve", "日本語", "привет", "مرحبا", "<s>", "▁",
                                "<0x41>", "Ġ", "\\n", "''", "...", "==", "/*"])
        out.append(piece)
        size -= len(piece.encode())
    return "".join(out)


def build_corpus(files, size, specials):
    rng = random.Random(20250101)
    given = "".join(read(f) for f in files)
    texts = {
        "files": given.encode()[: int(size * 0.35)].decode("utf-8", "ignore"),
        "translations": translations(rng, int(size * 0.4)),
        "code": code(rng, int(size * 0.1)),
    }
    missing = size - sum(len(t.encode()) for t in texts.values())
    texts["random"] = random_unicode(rng, max(missing, int(size * 0.15)), specials)
    chunks = []
    for text in texts.values():
        text = text.replace("\0", "")
        while text:
            n = rng.choice([1, 3, 10, 40, 200, 1000, 4000, 20000])
            chunks.append(text[:n])
            text = text[n:]
    return chunks


class Dump:
    def __init__(self, data):
        self.data, self.at = data, 0

    def count(self):
        self.at += 4
        return struct.unpack_from("<I", self.data, self.at - 4)[0]

    def ids(self):
        n = self.count()
        self.at += 4 * n
        return list(struct.unpack_from(f"<{n}i", self.data, self.at - 4 * n))

    def text(self):
        n = self.count()
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8", "replace")

    def flag(self):
        self.at += 1
        return self.data[self.at - 1] == 1


def first_difference(expected, found):
    n = next((i for i, (a, b) in enumerate(zip(expected, found)) if a != b),
             min(len(expected), len(found)))
    return f"at {n}: expected {expected[max(0, n - 3):n + 5]!r}, found {found[max(0, n - 3):n + 5]!r}"


def compare(bench, folder, chunks):
    from tokenizers import Tokenizer
    reference = Tokenizer.from_file(str(folder / "tokenizer.json"))
    with tempfile.TemporaryDirectory() as scratch:
        text, dump = pathlib.Path(scratch, "text"), pathlib.Path(scratch, "dump")
        text.write_bytes(b"".join(c.encode() + b"\0" for c in chunks))
        subprocess.run([bench, str(folder), str(text), "--dump", str(dump)], check=True)
        found = Dump(dump.read_bytes())
    tokens, differences = 0, []
    for chunk in chunks:
        reference.encode_special_tokens = True
        plain = reference.encode(chunk, add_special_tokens=False).ids
        reference.encode_special_tokens = False
        special = reference.encode(chunk, add_special_tokens=True).ids
        decoded = reference.decode(special, skip_special_tokens=False)
        tokens += len(plain) + len(special)
        for what, expected, got in [("plain ids", plain, found.ids()),
                                    ("special ids", special, found.ids()),
                                    ("decoded text", decoded, found.text()),
                                    ("streaming equals whole", True, found.flag())]:
            if expected != got:
                detail = "" if isinstance(expected, bool) else first_difference(expected, got)
                differences.append(f"{what} {detail} in {chunk[:200]!r}")
    return tokens, differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("bench")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--text", nargs="*", default=[])
    parser.add_argument("--megabytes", type=float, default=2.5)
    parser.add_argument("--show", type=int, default=5, help="differences to print")
    parser.add_argument("--corpus", help="also write the text there")
    args = parser.parse_args()
    failed = False
    for folder in args.folders:
        added = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
        chunks = build_corpus(args.text, int(args.megabytes * 1e6),
                              [t["content"] for t in added][:40])
        size = sum(len(c.encode()) for c in chunks)
        if args.corpus:
            pathlib.Path(args.corpus).write_text("".join(chunks))
        tokens, differences = compare(args.bench, folder, chunks)
        print(f"{folder.name}: {size / 1e6:.2f} MB in {len(chunks)} chunks, {tokens} ids, "
              f"{len(differences)} differences", flush=True)
        for line in differences[:args.show]:
            print("  " + line)
        failed = failed or bool(differences)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
