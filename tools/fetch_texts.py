#!/usr/bin/env python3
"""Puts public-domain prose into models/texts: six Austen novels, or the Jargon File.

The novels come out of Debian's package r-cran-janeaustenr (R's data format, read here without R),
the Jargon File out of jargon-text. A package that isn't installed is downloaded with apt-get and
unpacked beside, so neither R nor root is needed. Needs Python 3.9 alone.

Exit code: 0 done (or already there), 1 neither package can be had.
"""

import argparse
import gzip
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zlib

import r_data_reader

ROOT = pathlib.Path(__file__).resolve().parent.parent
AUSTEN_PACKAGE = "r-cran-janeaustenr"
AUSTEN_DATA = "usr/lib/R/site-library/janeaustenr/data"
JARGON_PACKAGE = "jargon-text"
JARGON_FILE = "usr/share/doc/jargon-text/jargon.txt.gz"
# Of r-cran-janeaustenr 1.0.0; goldens in tests/data name the text that they were made from.
NOVELS = {
    "emma.txt": "7c67b5985c6d0de1efaeb5d342d52cb82c38083c40e2295129e30e87ee690ebe",
    "mansfieldpark.txt": "98bc90519cdf4ef663ad7de2734bb529435ef24f7abbde6bb1a50898871dafe9",
    "northangerabbey.txt": "51f91bbe0517db8e65cff009b097ce0a1836124c4e0532ac19e6c0cad982abed",
    "persuasion.txt": "8061549557aebd2fd6e353d18d9197cb707029112bd52d4d8b174583a925848a",
    "prideprejudice.txt": "dfc684d4f857fa938268f9ab9c5567b64bd0691251eca959644adeabe6287a4d",
    "sensesensibility.txt": "105e1651fe93bed7130078578efd31e0c557d68667ba672ddc876f735b30fe09",
}


class FetchError(Exception):
    """Ends the program with its message and exit code 1."""


def run(command, folder):
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["no reason given"]
        raise FetchError(f"{' '.join(command[:2])} failed: {lines[-1]}")


def package_file(package, member, scratch):
    """The path of a package's file: where it is installed, else out of a downloaded package."""
    installed = pathlib.Path("/") / member
    if installed.exists():
        return installed
    try:
        run(["apt-get", "download", package], scratch)
    except FileNotFoundError as error:
        raise FetchError("apt-get isn't here") from error
    (archive,) = scratch.glob(f"{package}_*.deb")
    run(["dpkg-deb", "-x", str(archive), package], scratch)
    return scratch / package / member


def austen(scratch):
    """{file name: text}; a line of the book a line, as the package has it."""
    books = r_data_reader.read_data_sets(package_file(AUSTEN_PACKAGE, AUSTEN_DATA, scratch))
    return {f"{name}.txt": "\n".join(lines) + "\n" for name, lines in sorted(books.items())}


def jargon(scratch):
    packed = package_file(JARGON_PACKAGE, JARGON_FILE, scratch).read_bytes()
    return {"jargon.txt": gzip.decompress(packed).decode("utf-8")}


def write(texts, out):
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        data = text.encode("utf-8")
        found = hashlib.sha256(data).hexdigest()
        (out / name).write_bytes(data)
        print(f"{name}: {len(data)} bytes, sha256 {found}")
        if NOVELS.get(name, found) != found:
            print(f"{name}: not the text that the goldens were made from", file=sys.stderr)


def is_complete(out):
    return all(
        (out / name).is_file() and hashlib.sha256((out / name).read_bytes()).hexdigest() == pin
        for name, pin in NOVELS.items()
    )


def fetch(out):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        try:
            write(austen(scratch), out)
        except (FetchError, r_data_reader.RDataError, zlib.error, OSError) as error:
            print(f"fetch_texts: no Austen ({error}); trying {JARGON_PACKAGE}", file=sys.stderr)
            write(jargon(scratch), out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "models/texts")
    parser.add_argument("--jargon", action="store_true", help="write the Jargon File as well")
    args = parser.parse_args()
    try:
        if is_complete(args.out):
            print(f"{args.out}: the novels are already there")
        else:
            fetch(args.out)
        if args.jargon:
            with tempfile.TemporaryDirectory() as scratch:
                write(jargon(pathlib.Path(scratch)), args.out)
    except (FetchError, OSError) as error:
        print(f"fetch_texts: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
