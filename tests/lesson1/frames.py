"""Stack frames in the guest: read by the host, or made to order; and the names that addresses have
in the kernel's file."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tests.support.remote import Guest
from tests.support.told import expect, fail

FRAMES_AT_MOST = 32
FRAME_SIZE = 8
STACK_SIZE = 16384
# Made to order in the lower part of the boot stack, which is not in use at kmain's beginning.
FIRST_FRAME = 0x400
MARKS = {"text_start", "text_end", "kernel_start"}  # of the linker script: no functions


class Code:
    """The functions of a kernel's file, as `nm` lists them."""

    def __init__(self, kernel: Path) -> None:
        with kernel.open("rb") as stream:
            elf = ELFFile(stream)
            symbols = list(elf.get_section_by_name(".symtab").iter_symbols())
            text = elf.get_section_by_name(".text")
            self.start, size = text["sh_addr"], text["sh_size"]
            code = {i for i, s in enumerate(elf.iter_sections()) if s["sh_flags"] & 4}
        values = {each.name: each["st_value"] for each in symbols}
        self.end = values.get("text_end", self.start + size)
        self.names: dict[int, set[str]] = {}
        for each in symbols:
            is_function = each["st_shndx"] in code and each["st_info"]["type"] != "STT_SECTION"
            if is_function and each.name and each.name not in MARKS:
                self.names.setdefault(each["st_value"], set()).add(each.name)
        self.starts = sorted(start for start in self.names if self.start <= start < self.end)

    def function(self, address: int) -> int:
        """Where the function begins that holds an address of the code."""
        return self.starts[bisect_right(self.starts, address) - 1]

    def described(self, address: int) -> str:
        """The text that names an address."""
        if not self.start <= address < self.end:
            return f"{address:#010x}"
        start = self.function(address)
        return f"{address:#010x} {' or '.join(sorted(self.names[start]))}+{address - start:#x}"

    def is_described(self, address: int, text: str) -> bool:
        """Whether the text names the address: "0xc0101234 kmain+0x24", or only the number where no
        function is."""
        number, _, place = text.partition(" ")
        if number != f"{address:#010x}":
            return False
        if not self.start <= address < self.end:
            return not place
        start = self.function(address)
        name, _, offset = place.rpartition("+")
        return name in self.names[start] and offset == f"{address - start:#x}"


def walk(guest: Guest, ebp: int) -> list[int]:
    """The return addresses of the frames from `ebp` on, up to the end of the chain."""
    found = []
    while ebp and len(found) < FRAMES_AT_MOST:
        ebp, address = struct.unpack("<II", guest.read(ebp, FRAME_SIZE))
        found.append(address)
    return found


def printed(text: str) -> list[str]:
    """What is in the lines of a backtrace."""
    prefix = "backtrace: "
    return [line.removeprefix(prefix) for line in text.splitlines() if line.startswith(prefix)]


def require_lines(code: Code, text: str, returns: Sequence[int]) -> None:
    """The text is a backtrace of these return addresses: each line names the call before it."""
    lines = printed(text)
    for line, address in zip(lines, returns, strict=False):
        call = address - 1 & 0xFFFFFFFF
        if not code.is_described(call, line):
            fail(f"a line of the backtrace: expected {code.described(call)}, seen {line}")
    expect("lines of the backtrace", len(lines), len(returns))


def put_frame(guest: Guest, at: int, caller: int, address: int) -> None:
    """Makes a frame at this place of the boot stack."""
    guest.write(at, struct.pack("<II", caller & 0xFFFFFFFF, address & 0xFFFFFFFF))


def backtrace_from(guest: Guest, ebp: int) -> str:
    """Calls backtrace, and returns what it printed. The serial port must be ready."""
    before = len(guest.said())
    guest.call("backtrace", ebp)
    return guest.said()[before:]
