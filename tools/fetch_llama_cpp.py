#!/usr/bin/env python3
"""Unpacks the llama.cpp sources out of the pinned llama-cpp-python source package; prints their folder.

The package is downloaded by pip with its hash checked, and never built or installed.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements/peers.lock"


def download(folder):
    """pip asks a source package for its metadata, which needs the package's build backend; so that comes first."""
    backend = folder / "backend"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", str(backend),
                    "scikit-build-core==0.11.6"], check=True, stdout=sys.stderr)
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation",
                    "--no-binary", ":all:", "--require-hashes", "-d", str(folder), "-r", str(LOCK)],
                   check=True, stdout=sys.stderr, env={**os.environ, "PYTHONPATH": str(backend)})
    return next(folder.glob("llama_cpp_python-*.tar.gz"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the sources")
    args = parser.parse_args()
    found = list(args.out.glob("llama_cpp_python-*/vendor/llama.cpp/CMakeLists.txt"))
    if not found:
        with tempfile.TemporaryDirectory() as folder:
            try:
                archive = download(pathlib.Path(folder))
            except (subprocess.CalledProcessError, StopIteration):
                sys.exit("fetch_llama_cpp: the package index cannot be reached, or the package changed")
            with tarfile.open(archive) as tar:
                tar.extractall(args.out)
        found = list(args.out.glob("llama_cpp_python-*/vendor/llama.cpp/CMakeLists.txt"))
    print(found[0].parent)


if __name__ == "__main__":
    main()
