"""The blob program (labs/storage/blob) for the guest and for this machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from labs.storage.fsx import ROOT
from labs.storage.linux_program import COMPILER
from labs.tools.guest.initramfs import Entry, regular

LIBRARY = [ROOT / f"labs/storage/blob/{name}.c" for name in ("log", "index")]
LIBRARY += [ROOT / "fs/jbd2/checksum.c"]
SOURCES = [*LIBRARY, *(ROOT / f"labs/storage/blob/{name}.c" for name in ("main", "device"))]
MEAN_BYTES = 4865  # of a record, with its head and up to a sector


def build(directory: Path) -> Path:
    """A static program for the i386, which Linux's guests and 64-bit hosts run, too."""
    program = directory / "blob"
    words = [*COMPILER, "-Wno-unused-parameter", f"-I{ROOT}", *map(str, SOURCES)]
    subprocess.run([*words, "-o", str(program)], check=True)
    return program


def entry(program: Path) -> Entry:
    """The program in the guest's /bin."""
    return regular("bin/blob", program.read_bytes())


def call(program: Path, *words: object) -> dict[str, int]:
    """Runs it here; the figures that it says."""
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=True)
    return {name: int(value) for name, value in re.findall(r"(\w+) (\d+)", done.stdout)}


def new_store(program: Path, path: Path, objects: int) -> Path:
    """A store with objects, made here; a quarter of each half is free."""
    with path.open("wb") as file:
        file.truncate(int(2 * objects * MEAN_BYTES * 1.3) // 4096 * 4096 + (1 << 16))
    call(program, "fill", path, objects)
    return path
