"""The beginnings of ELF files, honest and otherwise."""

from __future__ import annotations

import struct
from dataclasses import dataclass

HEADER = struct.Struct("<IBBB9sHHIIIIIHHHHHH")
SEGMENT = struct.Struct("<8I")
MAGIC = 0x464C457F
EXECUTABLE, SHARED_OBJECT = 2, 3
LOAD, DYNAMIC, INTERPRET, NOTE = 1, 2, 3, 4
LINK_ADDRESS = 0x08048000
BEGINNING = 1024  # bytes in which the program headers must be
MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Segment:
    """A program header."""

    type: int = LOAD
    offset: int = 0
    vaddr: int = LINK_ADDRESS
    filesz: int = 64
    memsz: int = 64

    def bytes(self) -> bytes:
        """As it is in a file."""
        fields = (self.type, self.offset, self.vaddr, self.vaddr, self.filesz, self.memsz, 7, 4096)
        return SEGMENT.pack(*(each & MASK for each in fields))


@dataclass(frozen=True)
class Image:
    """An ELF file's beginning. bytes_there: how much of it exec could read."""

    segments: tuple[Segment, ...] = (Segment(),)
    magic: int = MAGIC
    bits: int = 1
    order: int = 1
    type: int = EXECUTABLE
    machine: int = 3
    phoff: int = 52
    phentsize: int = 32
    phnum: int | None = None
    entry: int = LINK_ADDRESS
    bytes_there: int = BEGINNING

    @property
    def count(self) -> int:
        """phnum, as the header has it."""
        return len(self.segments) if self.phnum is None else self.phnum

    def bytes(self) -> bytes:
        """The whole beginning, zeros where nothing else is."""
        head = HEADER.pack(
            self.magic, self.bits, self.order, 1, bytes(9), self.type, self.machine, 1,
            self.entry, self.phoff & MASK, 0, 0, 52, self.phentsize, self.count, 40, 0, 0,
        )  # fmt: skip
        data = bytearray(BEGINNING)
        for i, segment in enumerate(self.segments):
            at = self.phoff + SEGMENT.size * i
            if 0 <= at <= BEGINNING - SEGMENT.size:
                data[at : at + SEGMENT.size] = segment.bytes()
        data[: len(head)] = head  # even where a false field puts segments into it
        return bytes(data)

    def bias(self) -> int:
        """What is added to the addresses of a position-independent program."""
        return LINK_ADDRESS if self.type == SHARED_OBJECT else 0


def question(image: Image) -> str:
    """The image, as tests/lesson3/host/elf_check.c reads it."""
    return f"{image.bytes_there} {image.bytes().hex()}"
