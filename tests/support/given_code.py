"""What a kernel's given code has done, by QEMU's record. Anyone can print the line of a command; to
run it takes calls, from the given code itself, of what it measures."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol

from labs.tools.grading.lab import Lab
from tests.support.told import fail, require

CALL, CALL_BYTES = 0xE8, 5  # followed by the distance to the function
MASK = 0xFFFFFFFF
# The address has 8 digits in QEMU 7.2 and 8.2, 16 in QEMU 9 and later.
BLOCK = re.compile(r"^Trace .*?\[[^/]*/(?:0{8})?([0-9a-f]{8})/", re.MULTILINE)
STATE = re.compile(r" ESP=([0-9a-f]{8}).*? CR3=([0-9a-f]{8})", re.DOTALL)


@dataclass(frozen=True)
class Unit:
    """The functions of one given source file in a kernel: address and code of each. names: the
    addresses of the functions that all files know."""

    functions: dict[int, bytes]
    names: dict[str, int]

    def holds(self, address: int) -> bool:
        """Whether this is an address of its code."""
        return any(at <= address < at + len(code) for at, code in self.functions.items())

    def returns_of(self, name: str) -> list[int]:
        """Where a function returns to that this code calls."""
        if name not in self.names:
            fail(f"the kernel has no function {name}")
        ends = [
            (at + offset + CALL_BYTES, struct.unpack_from("<i", code, offset + 1)[0])
            for at, code in self.functions.items()
            for offset in range(len(code) - CALL_BYTES + 1)
            if code[offset] == CALL
        ]
        return [end for end, distance in ends if (end + distance) & MASK == self.names[name]]


def unit_of(kernel: Path, source: str) -> Unit:
    """The functions of a source file, by its name, that no other file of the kernel may have."""
    with kernel.open("rb") as stream:
        elf = ELFFile(stream)
        entries = list(elf.get_section_by_name(".symtab").iter_symbols())
        own = [entry for entry in local_to(entries, source) if kind(entry) == "STT_FUNC"]
        functions = {entry["st_value"]: code_of(elf, entry) for entry in own}
    names = {
        entry.name: entry["st_value"]
        for entry in entries
        if entry["st_info"]["bind"] == "STB_GLOBAL"
    }
    return Unit(functions, names)


def local_to(entries: Sequence[Symbol], source: str) -> list[Symbol]:
    """The symbols between a source file's own and the next one."""
    files = [at for at, entry in enumerate(entries) if kind(entry) == "STT_FILE"]
    begins = [at for at in files if entries[at].name == source]
    require(len(begins) == 1, f"the kernel has {len(begins)} files {source}, not one")
    end = next((at for at in files if at > begins[0]), len(entries))
    return entries[begins[0] + 1 : end]


def kind(entry: Symbol) -> str:
    """What a symbol names."""
    return entry["st_info"]["type"]


def code_of(elf: ELFFile, entry: Symbol) -> bytes:
    """The bytes of a function."""
    section = elf.get_section(entry["st_shndx"])
    start = entry["st_value"] - section["sh_addr"]
    return section.data()[start : start + entry["st_size"]]


@dataclass(frozen=True)
class Watch:
    """QEMU's record of one run. Without `function` it has traps and interrupts; with it, each
    return of that function to the unit's code."""

    lab: Lab
    unit: Unit
    function: str = ""

    @property
    def log(self) -> Path:
        """The record's file."""
        return self.lab.scratch / "record"

    def options(self) -> tuple[str, ...]:
        """QEMU's, for a run that begins now."""
        self.log.unlink(missing_ok=True)
        if not self.function:
            return ("-d", "int", "-D", str(self.log))
        places = self.unit.returns_of(self.function)
        ranges = ",".join(f"{place:#x}+1" for place in places)
        return ("-d", "exec,cpu", "-dfilter", ranges, "-D", str(self.log))

    def text(self) -> str:
        """What was recorded."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def states(record: str) -> list[tuple[int, int]]:
    """ESP and CR3 at each return."""
    return [(int(esp, 16), int(cr3, 16)) for esp, cr3 in STATE.findall(record)]


def changes(values: Sequence[int]) -> int:
    """How often a value is another one than before."""
    return sum(one != other for one, other in pairwise(values))
