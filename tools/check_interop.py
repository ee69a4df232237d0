#!/usr/bin/env python3
"""Checks that other libraries read what `mx8 quantize` writes. Run by scripts/interop.

For each tiny model, in compressed-tensors format:
  config    the package's own classes parse the quantization section
  tensors   the package's mxfp8 decompressor gives, bit for bit, what our numpy oracle expects
  logits    transformers loads the folder and computes the golden logits (dense models: transformers
            itself can't load per-expert group scales)
In ModelOpt format the folder must hold what ModelOpt itself wrote for the same weights: the same
tensors byte for byte and the same quantisation fields.
With models/SmolLM2-135M-Instruct present, transformers must give the probabilities that mx8 gives.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("TQDM_DISABLE", "1")

import numpy as np
import torch
import transformers
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig

import safetensors_io
import tiny_models

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/data"
MODEL = ROOT / "models/SmolLM2-135M-Instruct"
RULES = ("rceil", "floor", "compressed-tensors")
MAX_LOGIT_ERROR = 1e-4  # of the logits' standard deviation: both sides compute in FP32

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


class Failure(Exception):
    """Something differs; the message says what."""


def quantize(mx8, source, goal, *flags):
    command = [mx8, "quantize", str(source), str(goal), *flags]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        reason = result.stderr.strip()
        raise Failure(f"{' '.join(command)} ended with {result.returncode}: {reason}")


def to_torch(tensor):
    data = torch.from_numpy(np.array(tensor.data))
    if tensor.dtype == "F8_E4M3":
        return data.view(torch.float8_e4m3fn)
    return data.view(torch.bfloat16) if tensor.dtype == "BF16" else data


def check_tensors(folder, expected):
    """Decompresses each module with the package and compares with {name: FP32 values}."""
    section = json.loads((folder / "config.json").read_text())["quantization_config"]
    config = QuantizationConfig.model_validate(section)
    (scheme,) = config.config_groups.values()
    compressor = BaseCompressor.get_value_from_registry(config.format)
    tensors = safetensors_io.read_checkpoint(folder)
    for name, want in expected.items():
        found = to_torch(tensors[name])
        if found.dtype == torch.float8_e4m3fn:
            state = {"weight": found, "weight_scale": to_torch(tensors[f"{name}_scale"])}
            found = compressor.decompress(state, scheme)["weight"]
        if not np.array_equal(found.float().numpy(), want):
            raise Failure(f"{folder.name}: {name} is not what the oracle expects")
    extra = {n for n in tensors if n not in expected and n.removesuffix("_scale") not in expected}
    if extra:
        raise Failure(f"{folder.name}: unexpected tensors {sorted(extra)}")


def load_in_f32(folder):
    """What transformers makes of the folder. It loads and decompresses to BF16, which holds the
    weights exactly, but won't widen a quantised model: so its weights move to a plain FP32 one."""
    loaded = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    loaded(torch.tensor([[1]]))  # decompresses
    config = transformers.AutoConfig.from_pretrained(folder)
    del config.quantization_config
    plain = transformers.AutoModelForCausalLM.from_config(
        config, dtype=torch.float32, attn_implementation="eager"
    )
    names = set(plain.state_dict())
    state = {name: value for name, value in loaded.state_dict().items() if name in names}
    plain.load_state_dict(state)
    return plain.eval()


@torch.no_grad()
def check_logits(folder, golden_file):
    golden = safetensors_io.read(golden_file)
    ids = torch.tensor(golden["prompt1.ids"].data[None].astype(np.int64))
    found = load_in_f32(folder)(ids, use_cache=False).logits[0].numpy()
    want = golden["prompt1.logits"].data
    error = np.abs(found - want).max() / want.std()
    if not error < MAX_LOGIT_ERROR:
        raise Failure(f"{folder.name}: logits differ by {error:.2e} of their standard deviation")
    return error


def check_tiny_models(mx8, scratch):
    for name, config in tiny_models.MODELS.items():
        params = tiny_models.parameters(name)
        for rule in RULES:
            folder = scratch / f"{name}-{rule}"
            quantize(mx8, DATA / "tiny" / name, folder, "--format", "compressed-tensors",
                     "--scale-rule", rule)  # fmt: skip
            check_tensors(folder, tiny_models.dequantised(params, rule))
            report = f"{name} {rule}: tensors equal"
            if rule == "rceil" and "moe" not in name and name != "mixtral":
                error = check_logits(folder, DATA / "tiny" / f"{name}_mxfp8/goldens.safetensors")
                report += f", logits within {error:.1e}"
            print(report, flush=True)


def check_modelopt(mx8, scratch):
    folder, theirs = scratch / "modelopt", DATA / "checkpoints/modelopt"
    quantize(mx8, DATA / "checkpoints/base", folder, "--format", "modelopt")
    found, want = (safetensors_io.read_checkpoint(path) for path in (folder, theirs))
    if set(found) != set(want):
        raise Failure(f"modelopt: tensors differ: {sorted(set(found) ^ set(want))}")
    for name in want:
        same = found[name].dtype == want[name].dtype
        if not same or not np.array_equal(found[name].data, want[name].data):
            raise Failure(f"modelopt: {name} is not what ModelOpt wrote")
    side = "hf_quant_config.json"
    sections = [json.loads((path / side).read_text())["quantization"] for path in (folder, theirs)]
    for key in ("quant_algo", "kv_cache_quant_algo", "group_size"):
        if sections[0].get(key) != sections[1][key]:
            raise Failure(f"modelopt: {side}: {key} is {sections[0].get(key)!r}")
    if "exclude_modules" not in sections[0]:
        raise Failure(f"modelopt: {side} has no exclude_modules")
    inline = json.loads((folder / "config.json").read_text()).get("quantization_config", {})
    if inline.get("quant_method") != "modelopt" or inline.get("quant_algo") != "MXFP8":
        raise Failure(f"modelopt: config.json's quantization_config is {inline}")
    print("modelopt: tensors and fields as ModelOpt writes them", flush=True)


def check_real_model(mx8, scratch):
    if not MODEL.is_dir():
        print(f"skipped: {MODEL} is not there (tools/fetch_smollm2.py makes it)")
        return
    folder = scratch / "smollm2"
    quantize(mx8, MODEL, folder, "--format", "compressed-tensors")
    model = load_in_f32(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for question in ("What is the capital of Germany?", "What is 2+2?", "Name three colours."):
        chat = [{"role": "user", "content": question}]
        inputs = tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        with torch.no_grad():
            theirs = torch.log_softmax(model(**inputs).logits[0, -1].float(), dim=-1)
        answer = json.loads(
            subprocess.run(
                [mx8, "generate", folder, "--prompt", question, "--max-tokens", "1", "--json",
                 "--temperature", "0", "--logprobs", "5", "--kv-cache-dtype", "f32"],
                check=True, capture_output=True, text=True,
            ).stdout
        )  # fmt: skip
        if answer["prompt_tokens"] != inputs["input_ids"].shape[1]:
            raise Failure(f"{question} {answer['prompt_tokens']} prompt tokens")
        for token in answer["logprobs"][0]["top"]:
            if abs(theirs[token["id"]].item() - token["logprob"]) > 1e-3:
                raise Failure(f"{question} {token} is {theirs[token['id']].item()} there")
    print("smollm2: transformers on our checkpoint gives the probabilities that mx8 gives")


def main():
    mx8 = sys.argv[1]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        try:
            check_tiny_models(mx8, scratch)
            check_modelopt(mx8, scratch)
            check_real_model(mx8, scratch)
        except Failure as failure:
            print(f"interop: {failure}", file=sys.stderr)
            return 1
    print("interop: all passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
