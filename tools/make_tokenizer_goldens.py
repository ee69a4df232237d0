#!/usr/bin/env python3
"""Writes tests/data/tokenizers: two small base models and what the package makes of them.

    make_tokenizer_goldens.py FOLDERS

FOLDERS is the output of make_tokenizers.py (smollm2, mistral-v1). The bases are the heads of these two
vocabularies (both Apache-2.0): the special tokens, the single bytes or characters, and the first
merges, so that words of real text split as real tokenizers split them, in a few kilobytes.
`goldens.json` combines the bases with the node structures of the families and with every other node
that the reader knows; each text has the ids and the decoded text of the package `tokenizers` 0.23.3.
"""
import argparse
import json
import pathlib
import random

from make_tokenizers import (LLAMA3, QWEN2, SPACE, added, byte_level, split, template)

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/tokenizers"
MERGES = 1200

TEXTS = [
    "", " ", "  ", "\n", "a", "Hello, world!", " Hello", "Hello  ", "Hello\n\nworld\t!", "   three",
    "The quick brown fox jumps over the lazy dog.", "don't I'LL we've it's 'S 's\u017f",
    "2024-12-31 3.14159 1000000", "x = foo(bar[0]) + baz; // comment\n    return x;",
    "Zürich naïve café Ångström", "e\u0301\u0323 A\u030a \uac00\u11a7 \u1100\u1161\u11a8 \ufb01",
    "日本語のテキスト。中文字符", "Привет, мир!", "مرحبا بالعالم ١٢٣", "हिन्दी ไทย 한국어",
    "👍🏽 👨‍👩‍👧‍👦 🇫🇷", "½ ² ① Ⅷ 𝟙 １２３", "a\u00a0b\u2003c\u3000d\u200be\u180ef", "\r\n\r\n \r x",
    "<s>hi</s>", "<|im_start|>user\nhi<|im_end|>", "<|im_end|", "x<|endoftext|>y", "<0x41><0xE2>",
    "▁already ▁▁meta", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "word<sep>word <sep> word", "sepia sep <one> one stone one's", "UPPER lower MiXeD İstanbul",
    "trailing space ", "a-b--c---d", "1a22b333", "Hello <mask> there", "Hello<mask>there",
    "tab\tand\vvertical\fform\u0085next", "\u07fd\u0334\u0301 \U00011938 \u1abf\u0301",
    "\U0002ebf0\U00031350 \U0001fae8 \u1c89", "nul\u0000byte",
]
RANDOM_TEXTS = 6


def random_text(rng):
    pools = ["etaoin shrdlu ", "0123456789.,", "\n\t  ", "äöüßéèñ", "日本語中文", "привет", "\u0301\u0323",
             "👍🏽🇫🇷", "<>|_/'", "▁Ġ"]
    return "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randint(5, 60)))


def byte_base(model, specials):
    vocab = {t: i for i, t in enumerate(specials)}
    merges = [m.split(" ") for m in model["merges"][:MERGES]]
    for token in sorted((t for t in model["vocab"] if len(t) == 1), key=model["vocab"].get):
        vocab[token] = len(vocab)
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    return dict(vocab=vocab, merges=[" ".join(m) for m in merges])


def char_base(model):
    by_id = sorted(model["vocab"], key=model["vocab"].get)
    kept = by_id[:259 + MERGES]
    kept += [t for t in by_id[259 + MERGES:] if len(t) == 1 and ord(t) < 0x250] + list(SPACE + "日本語🇫")
    vocab = {}
    for token in kept:
        vocab.setdefault(token, len(vocab))
    merges = [m.split(" ") for m in model["merges"]]
    merges = [m for m in merges if all(t in vocab for t in (*m, "".join(m)))]
    return dict(vocab=vocab, merges=[" ".join(m) for m in merges])


def configs(byte, char):
    """Name, base, and the fields that make a tokenizer.json of it."""
    b, c = byte["vocab"], char["vocab"]
    n = max(b.values()) + 1
    chatml = [added(b[t], t) for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")]
    sentence = [added(c[t], t) for t in ("<unk>", "<s>", "</s>")]
    sequence = lambda key, *nodes: {"type": "Sequence", key: list(nodes)}
    pre = lambda *nodes: sequence("pretokenizers", *nodes)
    norm = lambda *nodes: sequence("normalizers", *nodes)
    fallback = dict(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    replace = lambda kind, a, content: dict(type="Replace", pattern={kind: a}, content=content)
    llama_decoder = sequence("decoders", replace("String", SPACE, " "), dict(type="ByteFallback"),
                             dict(type="Fuse"), dict(type="Strip", content=" ", start=1, stop=0))
    legacy = norm(dict(type="Prepend", prepend=SPACE), replace("String", " ", SPACE))
    meta = lambda scheme, do_split: dict(type="Metaspace", replacement=SPACE, prepend_scheme=scheme,
                                         split=do_split)
    cut = lambda pattern, behavior, invert=False: dict(
        type="Split", pattern=pattern, behavior=behavior, invert=invert)

    yield "smollm2", "byte", dict(
        added_tokens=chatml, decoder=byte_level(True),
        pre_tokenizer=pre(dict(type="Digits", individual_digits=True), byte_level(True)))
    yield "llama3", "byte", dict(
        model=dict(ignore_merges=True), added_tokens=chatml, decoder=byte_level(True),
        pre_tokenizer=pre(split(LLAMA3), byte_level(False)),
        post_processor=sequence("processors", byte_level(False),
                                template("<|im_start|>", b["<|im_start|>"])))
    yield "qwen2", "byte", dict(
        normalizer=dict(type="NFC"), decoder=byte_level(False), post_processor=byte_level(False),
        added_tokens=chatml + [added(n, "<sep>", special=False), added(b["one"], "one", special=False)],
        pre_tokenizer=pre(split(QWEN2), byte_level(False)))
    yield "gpt2-prefix-space", "byte", dict(pre_tokenizer=byte_level(True, prefix=True),
                                            decoder=byte_level(True), added_tokens=chatml)
    yield "byte-level-alone", "byte", dict(pre_tokenizer=byte_level(False), decoder=byte_level(False))
    yield "byte-level-then-split", "byte", dict(
        pre_tokenizer=pre(byte_level(False), cut(dict(String="Ġ"), "MergedWithNext")))
    yield "mistral-legacy", "char", dict(model=fallback, normalizer=legacy, added_tokens=sentence,
                                         decoder=llama_decoder, post_processor=template("<s>", 1))
    yield "mistral-first", "char", dict(model=fallback, pre_tokenizer=meta("first", False),
                                        added_tokens=sentence, decoder=llama_decoder,
                                        post_processor=template("<s>", 1))
    yield "metaspace-always", "char", dict(model=fallback, pre_tokenizer=meta("always", True),
                                           decoder=meta("always", True), added_tokens=sentence)
    yield "metaspace-never", "char", dict(model=fallback, pre_tokenizer=meta("never", True),
                                          decoder=meta("never", True))
    yield "metaspace-first-after-split", "char", dict(
        model=fallback, pre_tokenizer=pre(dict(type="WhitespaceSplit"), meta("first", True)),
        decoder=sequence("decoders", dict(type="ByteFallback"), meta("first", True)))
    yield "normalized-added", "char", dict(
        model=fallback, normalizer=legacy, decoder=llama_decoder,
        added_tokens=[added(i, t, normalized=True) for i, t in enumerate(("<unk>", "<s>", "</s>"))])
    yield "unknown-fused", "char", dict(model=dict(unk_token="<unk>", fuse_unk=True),
                                        pre_tokenizer=dict(type="Whitespace"))
    yield "unknown-single", "char", dict(model=dict(unk_token="<unk>"),
                                         pre_tokenizer=dict(type="WhitespaceSplit"))
    yield "unknown-dropped", "char", dict(pre_tokenizer=dict(type="Punctuation", behavior="Isolated"))
    yield "fallback-missing", "byte", dict(model=dict(byte_fallback=True, unk_token="<|endoftext|>"))
    yield "added-flags", "byte", dict(
        pre_tokenizer=byte_level(True), decoder=byte_level(True),
        added_tokens=[added(n, "<mask>", lstrip=True), added(b["one"], "one", single_word=True, special=False),
                      added(n + 1, "<sep>", lstrip=True, rstrip=True, special=False),
                      added(n + 2, "<|im", special=False), added(b["<|im_end|>"], "<|im_end|>")])
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        yield f"split-{behavior}", "byte", dict(
            pre_tokenizer=pre(cut(dict(String="-"), behavior), byte_level(False)),
            decoder=byte_level(False))
        yield f"split-inverted-{behavior}", "byte", dict(
            pre_tokenizer=pre(cut(dict(Regex=r"[a-z]+|\d"), behavior, True), byte_level(False)),
            decoder=byte_level(False))
    yield "digits-runs", "byte", dict(
        pre_tokenizer=pre(dict(type="Digits", individual_digits=False), byte_level(True)))
    yield "expressions", "byte", dict(decoder=byte_level(False), pre_tokenizer=pre(
        cut(dict(Regex=r"\p{Han}+|\p{Hiragana}|[\u0400-\u04ff]+"), "Isolated"),
        cut(dict(Regex=r"(?<=\w)\W|^\s|\h{2}(?i:B)?"), "Isolated"), byte_level(False)))
    yield "compatibility", "byte", dict(
        normalizer=norm(dict(type="NFKC"), dict(type="Lowercase"),
                        dict(type="Strip", strip_left=True, strip_right=False),
                        replace("Regex", r"\s+", " ")),
        pre_tokenizer=byte_level(True), decoder=byte_level(True))
    yield "decomposed", "byte", dict(normalizer=norm(dict(type="NFD"), dict(type="NFKD")),
                                     pre_tokenizer=byte_level(False), decoder=byte_level(False))
    yield "decoder-strip", "char", dict(
        model=fallback, normalizer=legacy,
        decoder=sequence("decoders", replace("Regex", SPACE + "+", "_"), dict(type="ByteFallback"),
                         dict(type="Strip", content="e", start=0, stop=1), dict(type="Fuse"),
                         dict(type="Strip", content="a", start=2, stop=0)))


def build(base, fields):
    model = dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None,
                 end_of_word_suffix=None, fuse_unk=False, byte_fallback=False, ignore_merges=False)
    model.update(base)
    model.update(fields.get("model", {}))
    data = dict(version="1.0", truncation=None, padding=None, added_tokens=[], normalizer=None,
                pre_tokenizer=None, post_processor=None, decoder=None)
    data.update({k: v for k, v in fields.items() if k != "model"}, model=model)
    return data


# The package spells a special token that is matched in normalised text as its normalised self and then
# no longer skips it when decoding. mx8 skips every special token, so only the ids are compared.
IDS_ONLY = {"normalized-added"}


def golden(tokenizer, text):
    tokenizer.encode_special_tokens = True
    plain = tokenizer.encode(text, add_special_tokens=False).ids
    tokenizer.encode_special_tokens = False
    special = tokenizer.encode(text, add_special_tokens=True).ids
    case = dict(text=text, ids=special, decoded=tokenizer.decode(special, skip_special_tokens=False))
    if plain != special:
        case["plain"] = plain
    skipped = tokenizer.decode(special, skip_special_tokens=True)
    if skipped != case["decoded"]:
        case["skipped"] = skipped
    return case


def main():
    from tokenizers import Tokenizer
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folders", type=pathlib.Path)
    args = parser.parse_args()
    smollm2 = json.loads((args.folders / "smollm2/tokenizer.json").read_text())
    mistral = json.loads((args.folders / "mistral-v1/tokenizer.json").read_text())
    bases = dict(byte=byte_base(smollm2["model"], [t["content"] for t in smollm2["added_tokens"]]),
                 char=char_base(mistral["model"]))
    OUT.mkdir(parents=True, exist_ok=True)
    for name, base in bases.items():
        (OUT / f"{name}_base.json").write_text(
            json.dumps(base, ensure_ascii=False, separators=(",", ":")) + "\n")
    rng = random.Random(7)
    texts = TEXTS + [random_text(rng) for _ in range(RANDOM_TEXTS)]
    lines = []
    for name, base, fields in configs(bases["byte"], bases["char"]):
        tokenizer = Tokenizer.from_str(json.dumps(build(bases[base], fields)))
        head = json.dumps(dict(name=name, base=base, ids_only=name in IDS_ONLY, fields=fields))
        cases = [json.dumps(golden(tokenizer, t), separators=(",", ":")) for t in texts]
        lines.append(head[:-1] + ', "cases": [\n' + ",\n".join(cases) + "\n]}")
    (OUT / "goldens.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    real = Tokenizer.from_str(json.dumps(smollm2))
    cases = [json.dumps(golden(real, t), separators=(",", ":")) for t in texts]
    (OUT / "smollm2_full.json").write_text("[\n" + ",\n".join(cases) + "\n]\n")


if __name__ == "__main__":
    main()
