#!/usr/bin/env python3
"""Makes src/kernels/cuda/gemm_plan_table.inc from a run of mx8_gemm_bench, and checks it.

  mx8_gemm_bench --json bench/tables/h200_gemm.json --csv bench/tables/h200_gemm.csv
  tools/make_gemm_plan_table.py            # writes the table
  tools/make_gemm_plan_table.py --check    # the table is what the data gives, and no cell's kernel is
                                           # more than 3 % slower than the fastest measured there

The CSV holds the screening time of every candidate (shape, M, mode, kernel, us), one after another; the
fastest few were then timed round-robin with cuBLAS, and the JSON has those medians and the winner. Screening
times of finalists are superseded by the finals: the order of a sweep alone moves them by several per cent.
"""
import csv
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "bench" / "tables"
TABLE = ROOT / "src" / "kernels" / "cuda" / "gemm_plan_table.inc"
SHAPES = {
    "q30b.qkv": (5120, 2048), "q30b.o": (2048, 4096), "q32b.qkv": (10240, 5120), "q32b.o": (5120, 8192),
    "q32b.gate_up": (51200, 5120), "q32b.down": (5120, 25600), "l8b.qkv": (6144, 4096), "l8b.o": (4096, 4096),
    "l8b.gate_up": (28672, 4096), "l8b.down": (4096, 14336), "l70b.gate_up": (57344, 8192),
    "l70b.down": (8192, 28672)}
ACTS = {"bf16": "kBf16", "fp8": "kFp8"}
LIMIT = 1.03


def rows():
    return json.loads((DATA / "h200_gemm.json").read_text())["rows"]


def table(data):
    lines = ["// Made by tools/make_gemm_plan_table.py from bench/tables/h200_gemm.json: act, rows, k, m, kernel,",
             "// us, cuBLAS BF16 us. One NVIDIA H200, programmatic dependent launch, interleaved medians."]
    for r in data:
        n, k = SHAPES[r["shape"]]
        lines.append('{Act::%s, %d, %d, %d, "%s", %.2ff, %.2ff},' %
                     (ACTS[r["mode"]], n, k, r["m"], r["kernel"], r["us"], r["cublas_bf16"]))
    return "\n".join(lines) + "\n"


def slow_cells(data):
    """Cells whose kernel is more than LIMIT slower than another one measured in the same way."""
    screening = {}
    with open(DATA / "h200_gemm.csv", newline="") as f:
        for shape, m, mode, kernel, us in csv.reader(f):
            screening.setdefault((shape, int(m), mode), {})[kernel] = float(us)
    bad = []
    for r in data:
        cell, finals = (r["shape"], r["m"], r["mode"]), r["finalists"]
        others = [us for k, us in screening[cell].items() if k not in finals]
        ratio = max([r["us"] / min(finals.values())] + [screening[cell][r["kernel"]] / us for us in others])
        if ratio > LIMIT:
            bad.append(cell + (r["kernel"], ratio))
    return bad


def main():
    data = rows()
    if "--check" not in sys.argv:
        TABLE.write_text(table(data))
        return 0
    bad = 0
    if TABLE.read_text() != table(data):
        print(f"{TABLE.name} is not what bench/tables/h200_gemm.json gives: run tools/make_gemm_plan_table.py")
        bad = 1
    for cell in slow_cells(data):
        print("%s M=%d %s: %s takes %.3f of the time of the fastest" % cell)
        bad = 1
    print("gemm plan table: %d cells%s" % (len(data), "" if bad else ", each within 3 % of its fastest kernel"))
    return bad


if __name__ == "__main__":
    sys.exit(main())
