"""The processor as gdb should see it: which mode it is in, and where it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import gdb

from labs.tools.machine.explain import parse_registers

KERNEL_BASE = 0xC0000000  # kernel/cpu/memory_layout.h
PROTECTION, PAGING = 1 << 0, 1 << 31  # CR0: Intel SDM volume 3, 2.5
VIRTUAL_8086 = 1 << 17  # EFLAGS: Intel SDM volume 3, 2.3
CODE_IS_32_BIT = 1 << 22  # the D flag, in the upper half of a descriptor: 3.4.5

SEGMENT = re.compile(r"^(\w\w) *=(\w{4}) (\w{8}) (\w{8}) (\w{8})", re.MULTILINE)
TABLE = re.compile(r"^([GI]DT) *= +(\w{8}) (\w{8})", re.MULTILINE)
SYMBOL = re.compile(r"^(.+) in section ", re.MULTILINE)  # gdb may put warnings before it


@dataclass(frozen=True)
class Segment:
    """A segment register and what the processor remembers of its descriptor; limit is in bytes."""

    selector: int
    base: int
    limit: int
    flags: int


class Processor:
    """The processor's registers at this stop, as QEMU's monitor tells them."""

    def __init__(self) -> None:
        text = gdb.execute("monitor info registers", to_string=True)
        self.registers = parse_registers(text)
        self.segments = {
            name: Segment(*(int(field, 16) for field in fields))
            for name, *fields in SEGMENT.findall(text)
        }
        self.tables = {
            name: (int(base, 16), int(limit, 16)) for name, base, limit in TABLE.findall(text)
        }

    @property
    def is_16_bit(self) -> bool:
        """How it decodes instructions, whether in real or in protected mode."""
        return not self.segments["CS"].flags & CODE_IS_32_BIT

    @property
    def is_protected(self) -> bool:
        """Whether segments have descriptors: not in real mode, and not in its virtual form."""
        return bool(self.registers["CR0"] & PROTECTION) and not self.is_virtual_8086

    @property
    def is_virtual_8086(self) -> bool:
        """Whether it runs real-mode code under a protected-mode system."""
        return bool(self.registers["EFL"] & VIRTUAL_8086)

    @property
    def has_paging(self) -> bool:
        """Whether linear addresses go through the page directory."""
        return bool(self.registers["CR0"] & PAGING)

    @property
    def linear(self) -> int:
        """The address of the next instruction, with the base of CS; gdb's $pc is without."""
        return (self.segments["CS"].base + self.registers["EIP"]) & 0xFFFFFFFF

    def mode(self) -> str:
        """The mode in words."""
        if self.is_virtual_8086:
            return "16-bit virtual-8086 mode"
        if not self.is_protected:
            return "16-bit real mode" if self.is_16_bit else "32-bit real mode"
        ring = self.segments["CS"].selector & 3
        words = "16-bit protected mode" if self.is_16_bit else "32-bit protected mode"
        words += ", paging on" if self.has_paging else ", paging off"
        return words + (f", ring {ring}" if ring else "")

    def place(self) -> str:
        """The next instruction's address, in real mode also as segment and offset, and its name."""
        name = symbol_at(self.linear)
        place = f"{self.linear:#010x}" + (f" {name}" if name else "")
        if self.is_protected:
            return place
        return f"{self.segments['CS'].selector:04x}:{self.registers['EIP']:04x} = {place}"

    def line(self) -> str:
        """Mode, place and next instruction, in one line."""
        instruction = " ".join(instructions(self.linear, 1)[0][1].split())
        return f"[{self.mode()}]  {self.place()}:  {instruction}"


def symbol_at(address: int) -> str | None:
    """A name for an address, such as "kmain+0x10", code or data."""
    found = SYMBOL.search(gdb.execute(f"info symbol {address:#x}", to_string=True))
    if not found:
        return None
    name, _, offset = found[1].partition(" + ")
    return f"{name}+{int(offset):#x}" if offset else name


def instructions(address: int, count: int) -> list[tuple[int, str]]:
    """`count` instructions from a linear address, decoded in the mode of this stop."""
    try:
        found = gdb.selected_inferior().architecture().disassemble(address, count=count)
    except gdb.MemoryError:
        return [(address, "(no memory here)")]
    return [(int(each["addr"]), str(each["asm"])) for each in found]


def read_linear(address: int, length: int) -> bytes:
    """Bytes at a linear address. Raises gdb.MemoryError."""
    return bytes(gdb.selected_inferior().read_memory(address, length))


def read_physical(address: int, length: int) -> bytes:
    """Bytes at a physical address, past the page tables. Raises gdb.MemoryError."""
    with physical_memory():
        return read_linear(address, length)


@contextmanager
def physical_memory() -> Iterator[None]:
    """Makes QEMU's stub take addresses as physical."""
    gdb.execute("maintenance packet Qqemu.PhyMemMode:1", to_string=True)
    try:
        yield
    finally:
        gdb.execute("maintenance packet Qqemu.PhyMemMode:0", to_string=True)


class ArchitectureFollower:
    """Keeps gdb's idea of the instruction set equal to the processor's.

    QEMU's description of its registers names the i386, and gdb takes an architecture only if the
    description agrees. So 16-bit code gets the same description with another name in it.
    """

    def __init__(self, directory: Path) -> None:
        self._description = directory / "i8086.xml"
        self._is_16_bit = False

    def follow(self, processor: Processor) -> None:
        """To be called at each stop."""
        if processor.is_16_bit != self._is_16_bit:
            self._is_16_bit = processor.is_16_bit
            self._switch()

    def _switch(self) -> None:
        if not self._is_16_bit:
            quiet("unset tdesc filename")
            quiet("set architecture i386")
            return
        if not self._description.exists():
            text = gdb.execute("maintenance print xml-tdesc", to_string=True)
            text = re.sub(r"<osabi>.*?</osabi>", "", text)
            self._description.write_text(text.replace(">i386<", ">i8086<", 1))
        quiet(f"set tdesc filename {self._description}")
        quiet("set architecture i8086")


def quiet(command: str) -> str:
    """Runs a gdb command and returns what it would have printed."""
    return gdb.execute(command, to_string=True)
