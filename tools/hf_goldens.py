"""Runs Hugging Face transformers in FP32 to make golden logits. Needs requirements/goldens.txt."""

import pathlib
import tempfile

import numpy as np
import torch
import transformers

import safetensors_io
import tiny_models
from safetensors_io import Tensor

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.manual_seed(0)


class Golden:
    """A model loaded from a config and FP32 parameters; every parameter must find its place."""

    def __init__(self, config, params):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            plain = {k: v for k, v in config.items() if k != "quantization_config"}
            tiny_models.write_json(folder / "config.json", plain)
            tensors = {name: Tensor("F32", values) for name, values in params.items()}
            safetensors_io.write(folder / "model.safetensors", tensors)
            self.model, info = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
            )
        problems = {key: value for key, value in info.items() if value}
        if problems:
            raise RuntimeError(f"{config['model_type']}: {problems}")
        self.model.eval()
        self._config = config

    @torch.no_grad()
    def logits(self, ids):
        """[len(ids), vocab] FP32: the whole prompt in one forward pass."""
        return self.model(torch.tensor([ids], dtype=torch.long), use_cache=False).logits[0].numpy()

    @torch.no_grad()
    def router_gap(self, ids):
        """The smallest gap between the last chosen and the first refused router logit."""
        top_k = self._config.get("num_experts_per_tok")
        if top_k is None:
            return np.inf
        output = self.model(torch.tensor([ids]), use_cache=False, output_router_logits=True)
        ordered = [torch.sort(x, dim=-1, descending=True).values for x in output.router_logits]
        return min(float((x[:, top_k - 1] - x[:, top_k]).min()) for x in ordered)

    def greedy(self, ids, count):
        """`count` greedy tokens, and the smallest gap between the best and the second logit."""
        ids, gap = list(ids), np.inf
        for _ in range(count):
            last = self.logits(ids)[-1]
            second, best = np.sort(last)[-2:]
            gap = min(gap, float(best - second))
            ids.append(int(last.argmax()))
        return ids[-count:], gap
