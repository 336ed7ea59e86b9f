"""ELF files, honest and otherwise, and what exec shall say of them."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.lesson3.support import SHARED_PAGE, SPACE_START

HEADER = struct.Struct("<IBBB9sHHIIIIIHHHHHH")
SEGMENT = struct.Struct("<8I")
MAGIC = 0x464C457F
EXECUTABLE, SHARED_OBJECT = 2, 3
LOAD, DYNAMIC, INTERPRET, NOTE = 1, 2, 3, 4
LINK_ADDRESS = 0x08048000
BEGINNING = 1024  # bytes in which the program headers must lie
REFUSED = -8
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
        """As it lies in a file."""
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
    code: bytes = field(default=b"", repr=False)

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
        data[: len(head)] = head  # even where a lie puts segments into it
        return bytes(data)

    def verdict(self) -> int:
        """What elf_check shall return."""
        known = (MAGIC, 1, 1, 3)
        if self.bytes_there < HEADER.size:
            return REFUSED
        if (self.magic, self.bits, self.order, self.machine) != known:
            return REFUSED
        if self.type not in (EXECUTABLE, SHARED_OBJECT):
            return REFUSED
        if self.phentsize != SEGMENT.size or not self.count or self.phoff % 4:
            return REFUSED
        if self.phoff + self.count * SEGMENT.size > self.bytes_there:
            return REFUSED
        found = [self._segment(i) for i in range(self.count)]
        loaded = [each for each in found if each.type == LOAD and each.memsz]
        if any(each.type == INTERPRET for each in found) or not loaded:
            return REFUSED
        return 0 if all(map(self._fits, loaded)) else REFUSED

    def _segment(self, index: int) -> Segment:
        kind, offset, vaddr, _, filesz, memsz, *_ = SEGMENT.unpack_from(
            self.bytes(), self.phoff + SEGMENT.size * index
        )
        return Segment(kind, offset, vaddr, filesz, memsz)

    def _fits(self, segment: Segment) -> bool:
        start = segment.vaddr + self.bias()
        return (
            segment.filesz <= segment.memsz
            and start >= SPACE_START
            and start + segment.memsz <= SHARED_PAGE
        )

    def bias(self) -> int:
        """What is added to the addresses of a position-independent program."""
        return LINK_ADDRESS if self.type == SHARED_OBJECT else 0


def edges(*places: int) -> list[int]:
    """Numbers around these, in 32 bits."""
    return [place + step & MASK for place in places for step in (-1, 0, 1)]


ADDRESSES = edges(0, SPACE_START, LINK_ADDRESS, SHARED_PAGE, 0xC0000000, 0xFFFFF000)
ADDRESSES += [(SPACE_START - LINK_ADDRESS) & MASK, (-LINK_ADDRESS) & MASK, 0x1000]
LENGTHS = edges(0, 64, 0x1000, 0x400000, SHARED_PAGE - LINK_ADDRESS, 0x80000000)


def damaged(seeded: random.Random) -> Image:
    """An honest file with one or two lies."""
    segments = [Segment(), Segment(vaddr=LINK_ADDRESS + 0x1000), Segment(type=NOTE, vaddr=4)]
    image = Image(tuple(segments[: seeded.randint(1, 3)]))
    if seeded.random() < 0.4:
        moved = (replace(each, vaddr=each.vaddr - LINK_ADDRESS & MASK) for each in image.segments)
        image = replace(image, type=SHARED_OBJECT, segments=tuple(moved))
    for _ in range(seeded.randint(0, 2)):
        image = seeded.choice((damaged_header, damaged_segment, damaged_segment))(seeded, image)
    return image


def damaged_header(seeded: random.Random, image: Image) -> Image:
    """One field of the header is wrong, or at its edge."""
    offsets = [0, 4, 51, 52, 53, 54, 56, 60, 900, 928, 960, 991, 992, 996, 1023, 1024, 1025]
    offsets += [0x7FFFFFFC, 0x80000000, 0xFFFFFFE0, 0xFFFFFFFC, 0xFFFFFC00]
    changes = {
        "magic": [0, MAGIC ^ 1 << 31],
        "bits": [0, 2],
        "order": [0, 2],
        "type": [0, 1, EXECUTABLE, SHARED_OBJECT, 4],
        "machine": [0, 62],
        "phoff": offsets,
        "phentsize": [0, 4, 31, 33, 40, 64, 0xFFE0],
        "phnum": [0, 1, 2, 30, 31, 0x800, 0xFFFF],
        "bytes_there": [0, 1, 51, 52, 53, 83, 84, 85, 115, 116, 148, 1023],
    }
    name = seeded.choice([*changes, "phoff", "phnum", "bytes_there"])
    return replace(image, **{name: seeded.choice(changes[name])})


def damaged_segment(seeded: random.Random, image: Image) -> Image:
    """One field of one segment is wrong, or at its edge."""
    index = seeded.randrange(len(image.segments))
    name = seeded.choice(("type", "vaddr", "vaddr", "filesz", "memsz", "memsz", "offset"))
    values = {
        "type": [0, LOAD, DYNAMIC, INTERPRET, NOTE],
        "vaddr": ADDRESSES,
        "filesz": LENGTHS,
        "memsz": LENGTHS,
        "offset": [0, MASK],
    }[name]
    segments = list(image.segments)
    segments[index] = replace(segments[index], **{name: seeded.choice(values)})
    if name == "memsz" and seeded.random() < 0.7:
        segments[index] = replace(segments[index], filesz=0)
    if name == "vaddr" and seeded.random() < 0.5:
        length = SHARED_PAGE - segments[index].vaddr + seeded.randint(-1, 1) & MASK
        segments[index] = replace(segments[index], filesz=0, memsz=length)
    return replace(image, segments=tuple(segments))


def question(image: Image) -> str:
    """The image, as tests/lesson3/host/elf_check.c reads it."""
    return f"{image.bytes_there} {image.bytes().hex()}"


def questions(seed: int, count: int) -> Iterator[Image]:
    """So many damaged files, each judged independently."""
    seeded = random.Random(seed)
    return (damaged(seeded) for _ in range(count))
