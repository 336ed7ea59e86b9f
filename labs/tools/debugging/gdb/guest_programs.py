"""Which files of this host hold the symbols of the guest's programs. Runs outside of gdb.

The guest's files come in an archive (labs/tools/guest/initramfs.py). A program in it is mostly
stripped; the file that it was made of is known by its contents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAGIC = b"070701"
HEADER = 110  # the magic, and 13 fields of 8 hexadecimal digits
LAST = b"TRAILER!!!"
ELF, POSITION_INDEPENDENT = b"\x7fELF", 3  # Tool Interface Standard, ELF 1.2: e_type
LINK_ADDRESS = 0x08048000  # where the kernel puts such a program: kernel/process/exec_elf.c
LIST = "programs"


class Program(NamedTuple):
    """A program of the guest: the file with its symbols, and what is added to the addresses in
    that file. Kept as JSON."""

    file: str
    bias: int


def write_programs(archive: Path, unstripped: Path, directory: Path) -> None:
    """Writes the list of programs, by path in the guest, to `directory`.

    `unstripped` is a folder whose bin/ has the same programs, stripped. What is not found there is
    copied out of the archive.
    """
    copies = directory / "guest"
    copies.mkdir()
    originals = {path.read_bytes(): unstripped / path.name for path in unstripped.glob("bin/*")}
    programs = {}
    for number, (path, content) in enumerate(elf_files(archive.read_bytes())):
        file = originals.get(content)
        if not file or not file.exists():
            file = copies / f"{number}-{Path(path).name}"
            file.write_bytes(content)
        moves = int.from_bytes(content[16:18], "little") == POSITION_INDEPENDENT
        programs[path] = Program(str(file.resolve()), LINK_ADDRESS if moves else 0)
    (directory / LIST).write_text(json.dumps(programs))


def read_programs(directory: Path) -> dict[str, Program]:
    """The list, by path in the guest; empty when there is none."""
    path = directory / LIST
    entries = json.loads(path.read_text()) if path.exists() else {}
    return {name: Program(*entry) for name, entry in entries.items()}


def elf_files(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """The programs in an archive (cpio, format newc): path and contents. An archive that is cut, or
    none, ends it: the kernel complains about that."""
    at = 0
    while archive.startswith(MAGIC, at) and len(archive) >= at + HEADER:
        size, name_size = (int(archive[at + field : at + field + 8], 16) for field in (54, 94))
        name = archive[at + HEADER : at + HEADER + name_size].rstrip(b"\0")
        start = aligned(at + HEADER + name_size)
        content = archive[start : start + size]
        if name == LAST:
            return
        if content.startswith(ELF):
            yield "/" + name.decode(errors="replace").lstrip("./"), content
        at = aligned(start + size)


def aligned(position: int) -> int:
    """The next multiple of four bytes."""
    return (position + 3) & -4
