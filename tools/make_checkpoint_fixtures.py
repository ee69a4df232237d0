#!/usr/bin/env python3
"""Writes tests/data/checkpoints: one tiny Llama in every quantisation dialect, by real producers.

  base, base_f16, base_f32    the unquantised model (the FP16 and FP32 values equal the BF16 ones)
  ct_w8a8, ct_w8a16           written by the compressed-tensors package (presets MXFP8, MXFP8A16)
  modelopt                    written by nvidia-modelopt (hf_quant_config.json and inline section)
  the others                  the same codes and scales under another config, or other names, dtypes
                              and shards; weights that are equal byte for byte are links

All quantised folders mean the same weights: the model has no block whose largest magnitude has
mantissa 1.75, where the scale rules of the two producers differ. So one file of logits serves all:
goldens.safetensors (from the quantised weights) and goldens_base.safetensors (from the BF16 ones),
laid out as in tests/data/tiny.

Needs the environment of requirements/goldens.txt.
"""

import json
import pathlib
import shutil

import numpy as np

import mxfp8_numpy as mx
import safetensors_io
import tiny_models
from safetensors_io import Tensor

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/checkpoints"
NAME = "checkpoint_base"
CONFIG = tiny_models.llama(hidden_size=64, intermediate_size=96, num_attention_heads=4,
                           num_key_value_heads=2, vocab_size=128, rope_theta=10000.0)  # fmt: skip
SEED = 4


def base_parameters():
    """Random weights that FP16 holds exactly too, without a block maximum of mantissa 1.75."""
    params = tiny_models.build_parameters(NAME, CONFIG)
    for name, values in params.items():
        values = np.where(np.abs(values) < 2.0**-16, 0, values).astype(np.float32)
        if tiny_models.is_quantised(name, values):
            blocks = values.reshape(-1, mx.BLOCK)
            rows, columns = np.arange(len(blocks)), np.abs(blocks).argmax(axis=-1)
            fraction, _ = np.frexp(np.abs(blocks[rows, columns]))
            rows, columns = rows[fraction == 0.875], columns[fraction == 0.875]
            blocks[rows, columns] *= np.float32(1.7578125 / 1.75)  # the next BF16
        params[name] = values
    return params


def write_base(params):
    for folder, dtype, convert in (
        ("base", "bfloat16", safetensors_io.bf16),
        ("base_f16", "float16", lambda values: Tensor("F16", values.astype(np.float16))),
        ("base_f32", "float32", lambda values: Tensor("F32", values)),
    ):
        tensors = {name: convert(values) for name, values in params.items()}
        write_folder(folder, {**CONFIG, "torch_dtype": dtype}, tensors)


def write_folder(name, config, tensors=None, link=None, side_file=None):
    """A folder of config.json, weights (written, or a link to another folder's) and side file."""
    folder = OUT / name
    folder.mkdir(parents=True)
    tiny_models.write_json(folder / "config.json", config)
    if tensors is not None:
        safetensors_io.write(folder / "model.safetensors", tensors)
    else:
        (folder / "model.safetensors").symlink_to(f"../{link}/model.safetensors")
    if side_file is not None:
        tiny_models.write_json(folder / "hf_quant_config.json", side_file)


def load_base():
    import torch
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(OUT / "base", dtype=torch.bfloat16)


def write_by_compressed_tensors(name, preset):
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import (
        QuantizationConfig,
        apply_quantization_config,
        preset_name_to_scheme,
    )
    from compressed_tensors.quantization.utils import compute_dynamic_scales_and_zp

    model = load_base()
    scheme = preset_name_to_scheme(preset, ["Linear"])
    groups = QuantizationConfig(config_groups={"group_0": scheme}, ignore=["lm_head"])
    apply_quantization_config(model, groups)
    for module in model.modules():
        scheme = getattr(module, "quantization_scheme", None)
        if scheme is not None and scheme.weights is not None:
            # What llm-compressor's observer does: scales from each block's extremes.
            scale, _ = compute_dynamic_scales_and_zp(module.weight.data, scheme.weights, module)
            module.weight_scale.data.copy_(scale)
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(OUT / name)
    compressor.update_config(OUT / name)


def write_by_modelopt(name):
    import modelopt.torch.quantization as mtq
    from modelopt.torch.export import export_hf_checkpoint

    model = load_base()
    mtq.quantize(model, mtq.MXFP8_DEFAULT_CFG, forward_loop=None)
    export_hf_checkpoint(model, export_dir=OUT / name)


def modelopt_mixed(layers):
    """Both carriers of a MIXED_PRECISION checkpoint; the inline one by modelopt's own function."""
    from modelopt.torch.export.convert_hf_config import convert_hf_quant_config_format

    algo = {"quant_algo": "MXFP8", "group_size": 32}
    quantization = dict(quant_algo="MIXED_PRECISION", kv_cache_quant_algo=None,
                        quantized_layers={layer: algo for layer in layers})  # fmt: skip
    side = {"producer": {"name": "modelopt", "version": "0.47.0"}, "quantization": quantization}
    return side, {**convert_hf_quant_config_format(side), "quant_method": "modelopt"}


def write_modelopt_variants(layers):
    side = json.loads((OUT / "modelopt/hf_quant_config.json").read_text())
    inline = json.loads((OUT / "modelopt/config.json").read_text())["quantization_config"]
    write_folder("modelopt_side_file_only", CONFIG, link="modelopt", side_file=side)
    write_folder("modelopt_inline_only", with_section(inline), link="modelopt")
    wildcards = {**side["quantization"], "exclude_modules": ["lm_*", "model.embed_tokens*"]}
    write_folder("modelopt_wildcards", CONFIG, link="modelopt",
                 side_file={**side, "quantization": wildcards})  # fmt: skip
    mixed_side, mixed_inline = modelopt_mixed(layers)
    write_folder("modelopt_mixed", with_section(mixed_inline), link="modelopt",
                 side_file=mixed_side)  # fmt: skip
    write_folder("modelopt_mixed_inline_only", with_section(mixed_inline), link="modelopt")


def with_section(section):
    return {**CONFIG, "quantization_config": section}


def write_compressed_tensors_variants(tensors):
    section = json.loads((OUT / "ct_w8a16/config.json").read_text())["quantization_config"]
    weights = section["config_groups"]["group_0"]["weights"]
    group = dict(format="mxfp8-quantized", input_activations=None, output_activations=None,
                 weights=weights)  # fmt: skip
    by_name = [f"model.layers.{layer}.mlp.{part}_proj"
               for layer in range(2) for part in ("gate", "up", "down")]  # fmt: skip
    groups = {
        "attention": {**group, "targets": ["re:.*self_attn\\.(q|k|v|o)_proj$"]},
        "feed forward": {**group, "targets": by_name},
    }
    write_folder("ct_groups", with_section({**section, "config_groups": groups, "ignore": []}),
                 link="ct_w8a16")  # fmt: skip
    ignore = ["re:.*lm_head"]
    write_folder("ct_ignore_regex", with_section({**section, "ignore": ignore}), link="ct_w8a16")
    e8m0 = {k: Tensor("F8_E8M0", t.data) if t.dtype == "U8" else t for k, t in tensors.items()}
    write_folder("ct_e8m0_dtype", with_section(section), tensors=e8m0)
    write_sharded("ct_sharded", with_section(section), tensors)


def write_sharded(name, config, tensors):
    """Three shards, dealt tensor by tensor, so that codes and their scales lie in two files."""
    folder, count = OUT / name, 3
    folder.mkdir(parents=True)
    tiny_models.write_json(folder / "config.json", config)
    files = [f"model-{i + 1:05d}-of-{count:05d}.safetensors" for i in range(count)]
    weight_map = {tensor: files[i % count] for i, tensor in enumerate(tensors)}
    for file in files:
        part = {k: t for k, t in tensors.items() if weight_map[k] == file}
        safetensors_io.write(folder / file, part)
    size = sum(t.data.nbytes for t in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(weight_map.items()))}
    tiny_models.write_json(folder / "model.safetensors.index.json", index)


def write_mxfp8_dialects(tensors):
    section = dict(quant_method="mxfp8", activation_scheme="dynamic", weight_block_size=[1, 32],
                   scale_fmt="ue8m0")  # fmt: skip
    renamed = {k.replace(".weight_scale", ".weight_scale_inv"): t for k, t in tensors.items()}
    write_folder("mxfp8_scale_inv", with_section({**section, "ignored_layers": ["lm_head"]}),
                 tensors=renamed)  # fmt: skip
    skipped = {**section, "modules_to_not_convert": ["lm_head", "model.embed_tokens"]}
    write_folder("mxfp8_not_convert", with_section(skipped), link="ct_w8a16")
    auto_round = dict(
        quant_method="auto-round", bits=8, data_type="mx_fp", group_size=32, sym=True, act_bits=8,
        act_data_type="mx_fp", act_group_size=32, act_sym=True, act_dynamic=True,
        enable_quanted_input=False, packing_format="auto_round:llm_compressor",
        block_name_to_quantize="model.layers", autoround_version="0.9.0", iters=0,
    )  # fmt: skip
    write_folder("auto_round", with_section(auto_round), link="ct_w8a16")


def meaning(folder):
    """{name without dialect: FP64 values} of a checkpoint folder."""
    tensors, values = safetensors_io.read_checkpoint(folder), {}
    for name, tensor in tensors.items():
        if tensor.dtype == "F8_E4M3":
            scale = tensors.get(f"{name}_scale") or tensors[f"{name}_scale_inv"]
            values[name] = mx.dequantize(tensor.data, scale.data)
        elif tensor.dtype == "BF16":
            values[name] = safetensors_io.f32_from_bf16(tensor.data).reshape(tensor.shape)
        elif tensor.dtype in ("F16", "F32"):
            values[name] = tensor.data
    return {name: values[name].astype(np.float64) for name in sorted(values)}


def check_meanings(params):
    """Every folder means the base model's weights, quantised by our own oracle or not at all."""
    quantised = tiny_models.dequantised(params)
    for folder in sorted(path for path in OUT.iterdir() if path.is_dir()):
        want = params if folder.name.startswith("base") else quantised
        found = meaning(folder)
        if set(found) != set(want):
            raise RuntimeError(f"{folder.name}: other tensors: {set(found) ^ set(want)}")
        for name, values in want.items():
            if not np.array_equal(found[name], values.astype(np.float64)):
                raise RuntimeError(f"{folder.name}: {name} differs")
        print(f"{folder.name}: {len(found)} tensors mean what they should")


def main():
    from make_tiny_goldens import goldens

    if OUT.exists():
        shutil.rmtree(OUT)
    params = base_parameters()
    write_base(params)
    write_by_compressed_tensors("ct_w8a8", "MXFP8")
    write_by_compressed_tensors("ct_w8a16", "MXFP8A16")
    write_by_modelopt("modelopt")
    tensors = tiny_models.quantised_tensors(params)
    layers = [k.removesuffix(".weight") for k, t in tensors.items() if t.dtype == "F8_E4M3"]
    write_modelopt_variants(layers)
    write_compressed_tensors_variants(tensors)
    write_mxfp8_dialects(tensors)
    check_meanings(params)
    base = goldens(CONFIG, params, SEED)
    safetensors_io.write(OUT / "goldens_base.safetensors", base)
    quantised = goldens(CONFIG, tiny_models.dequantised(params), SEED)
    safetensors_io.write(OUT / "goldens.safetensors", quantised)
    for path in OUT.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o644)


if __name__ == "__main__":
    main()
