#!/usr/bin/env python3
"""Turns requirements/NAME.in into a hash-pinned requirements/NAME.txt, for this Python and machine.

pip resolves without installing; each package that it would take becomes `name==version` with the
sha256 of the one file that it would take. Needs pip 22.2 or newer and the package index.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def resolve(source):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed",
             "--report", str(report), "--requirement", str(source)],
            check=True,
        )  # fmt: skip
        return json.loads(report.read_text())["install"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path, help="a file like requirements/interop.in")
    args = parser.parse_args()
    version = ".".join(str(part) for part in sys.version_info[:2])
    source = args.source.name
    lines = [f"# Made from {source} by tools/lock_requirements.py: Python {version}, Linux."]
    for entry in sorted(resolve(args.source), key=lambda e: e["metadata"]["name"].lower()):
        digest = entry["download_info"]["archive_info"]["hashes"]["sha256"]
        name, number = entry["metadata"]["name"].lower(), entry["metadata"]["version"]
        lines.append(f"{name}=={number} --hash=sha256:{digest}")
    goal = args.source.with_suffix(".txt")
    goal.write_text("\n".join(lines) + "\n")
    print(f"wrote {goal}: {len(lines) - 1} packages")


if __name__ == "__main__":
    main()
