#!/usr/bin/env python3
"""Checks that source files include only their own layer and lower ones (docs/architecture.md).

Also checks that the core layers (base .. kernels) include nothing but the standard library, system headers, CUDA
headers inside kernels/cuda and runtime, and our own core; and that installed headers include no third party.
Prints each violation and exits with 1 if there is any.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A layer may include itself and everything in the tuple.
CORE = ("base", "mx", "tensor", "runtime", "pack", "kernels")
ALLOWED = {
    "base": (),
    "mx": ("base",),
    "tensor": ("base", "mx"),
    "runtime": ("base", "mx", "tensor"),
    "pack": ("base", "mx", "tensor", "runtime"),
    "checkpoint": ("base", "mx", "tensor", "runtime"),
    "text": ("base", "runtime"),
    "kernels": ("base", "mx", "tensor", "runtime", "pack"),
    "ops": ("base", "mx", "tensor", "runtime", "pack", "kernels"),
    "model": ("base", "mx", "tensor", "runtime", "pack", "kernels", "ops", "checkpoint"),
    "quantizer": ("base", "mx", "tensor", "runtime", "pack", "checkpoint"),
    "engine": ("base", "mx", "tensor", "runtime", "ops", "model", "text", "kernels", "pack", "checkpoint"),
    "server": ("base", "mx", "tensor", "runtime", "ops", "model", "text", "engine", "checkpoint", "kernels", "pack"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)
STD = re.compile(r"^[a-z_0-9]+$")  # <vector>, <cstdint>
SYSTEM = re.compile(r"^(sys/|unistd|fcntl|sched|immintrin|cpuid|dlfcn|pthread|x86intrin|xmmintrin|stdint|stddef)")
CUDA = re.compile(r"^(cuda|cublas|cub/|cutlass/|cute/|mma\.h|cooperative_groups|nccl)")
TEST = re.compile(r"(_test|_bench)\.(cc|cu)$|^test_|_testing\.h$|fake_")


def main() -> int:
    bad = []
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".h", ".cc", ".cu", ".cuh", ".inl"):
            continue
        layer = path.relative_to(ROOT / "src").parts[0]
        name = path.relative_to(ROOT)
        is_test = bool(TEST.search(path.name))
        for quote, target in INCLUDE.findall(path.read_text()):
            first = target.split("/")[0]
            if quote == '"':
                if first in ALLOWED:
                    if first != layer and first not in ALLOWED[layer]:
                        bad.append(f'{name} includes "{target}": {layer} may include only {", ".join(ALLOWED[layer])}')
                elif "/" in target and not target.startswith(("mx8/", "gtest/", "generated/")) and not is_test:
                    bad.append(f'{name} includes "{target}", which is in no layer')
            elif layer in CORE and not is_test:
                if STD.match(target) or SYSTEM.match(target):
                    continue
                if CUDA.match(target) and (layer == "runtime" or "cuda" in name.parts):
                    continue
                bad.append(f"{name} includes <{target}>: base .. kernels use the standard library and CUDA alone")
    for path in sorted((ROOT / "include").rglob("*.h")):
        for quote, target in INCLUDE.findall(path.read_text()):
            if not (target.startswith("mx8/") or STD.match(target) or target in ("stdint.h", "stddef.h")):
                bad.append(f"{path.relative_to(ROOT)} includes {target}: installed headers use nothing else")
    for line in bad:
        print(line)
    print(f"layers: {len(bad)} violations" if bad else "layers: every include goes down")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
