#!/usr/bin/env python3
"""Runs llama-bench and `mx8 bench model` in turn and prints medians, spreads and ratios.

The two take turns round by round, so that a machine that slows down slows both. Ratios are of medians.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

PROMPT, GENERATE = 256, 64


def llama(args):
    """One round of llama-bench: prompt and decode rates in tokens/s."""
    out = subprocess.run(
        [args.llama, "-m", args.gguf, "-t", str(args.threads), "-p", str(PROMPT), "-n", str(GENERATE), "-r", "2",
         "-o", "json"], check=True, capture_output=True, text=True).stdout
    rows = json.loads(out)
    prompt = next(r["avg_ts"] for r in rows if r["n_gen"] == 0)
    decode = next(r["avg_ts"] for r in rows if r["n_prompt"] == 0)
    return prompt, decode


def ours(args, model):
    out = subprocess.run(
        [args.mx8, "bench", "model", model, "--prompt", str(PROMPT), "--generate", str(GENERATE), "--threads",
         str(args.threads), "--reps", "2", "--json"],
        check=True, capture_output=True, text=True, env={**os.environ, "MX8_ISA": args.isa}).stdout
    row = json.loads(out)
    return row["prompt_tokens_per_s"], row["decode_tokens_per_s"]


def summary(values):
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("llama", "gguf", "mx8", "isa", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()

    runs = {"llama.cpp Q8_0": []}
    names = {m: "mx8 " + pathlib.Path(m).name for m in args.models}
    runs.update({n: [] for n in names.values()})
    for r in range(args.rounds):
        runs["llama.cpp Q8_0"].append(llama(args))
        for model, name in names.items():
            runs[name].append(ours(args, model))
        print(f"round {r + 1} of {args.rounds}", file=sys.stderr)

    table = {n: {"prompt": summary([p for p, _ in v]), "decode": summary([d for _, d in v])}
             for n, v in runs.items()}
    peer = table["llama.cpp Q8_0"]
    print(f"{cpu_name()}, {args.isa}, {args.threads} threads, {PROMPT} prompt tokens, {GENERATE} generated, tokens/s:"
          " median (min to max)")
    print(f"{'':24} {'prompt':>28} {'ratio':>6} {'decode':>28} {'ratio':>6}")
    for name, row in table.items():
        cells = []
        for what in ("prompt", "decode"):
            s = row[what]
            cells.append(f"{s['median']:10.1f} ({s['min']:.1f} to {s['max']:.1f})".rjust(28))
            cells.append(f"{s['median'] / peer[what]['median']:6.2f}")
        print(f"{name:24} " + " ".join(cells))
    pathlib.Path(args.out).write_text(json.dumps({"cpu": cpu_name(), "isa": args.isa, "threads": args.threads,
                                                  "rates": table, "rounds": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
