"""Damaged ELF files, and an independent judge of them, for the hidden tests of exercise 3.6."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from tests.lesson3.executables import (
    DYNAMIC,
    EXECUTABLE,
    HEADER,
    INTERPRET,
    LINK_ADDRESS,
    LOAD,
    MAGIC,
    MASK,
    NOTE,
    SEGMENT,
    SHARED_OBJECT,
    Image,
    Segment,
)
from tests.lesson3.support import SHARED_PAGE, SPACE_START

REFUSED = -8


def verdict(image: Image) -> int:
    """What elf_check must return."""
    known = (MAGIC, 1, 1, 3)
    if image.bytes_there < HEADER.size:
        return REFUSED
    if (image.magic, image.bits, image.order, image.machine) != known:
        return REFUSED
    if image.type not in (EXECUTABLE, SHARED_OBJECT):
        return REFUSED
    if image.phentsize != SEGMENT.size or not image.count or image.phoff % 4:
        return REFUSED
    if image.phoff + image.count * SEGMENT.size > image.bytes_there:
        return REFUSED
    found = [segment_of(image, i) for i in range(image.count)]
    loaded = [each for each in found if each.type == LOAD and each.memsz]
    if any(each.type == INTERPRET for each in found) or not loaded:
        return REFUSED
    return 0 if all(fits(image, each) for each in loaded) else REFUSED


def segment_of(image: Image, index: int) -> Segment:
    """A program header, as it is in the file."""
    kind, offset, vaddr, _, filesz, memsz, *_ = SEGMENT.unpack_from(
        image.bytes(), image.phoff + SEGMENT.size * index
    )
    return Segment(kind, offset, vaddr, filesz, memsz)


def fits(image: Image, segment: Segment) -> bool:
    """Whether a segment's place is in order; Python's numbers do not wrap."""
    start = segment.vaddr + image.bias()
    return (
        segment.filesz <= segment.memsz
        and start >= SPACE_START
        and start + segment.memsz <= SHARED_PAGE
    )


def edges(*places: int) -> list[int]:
    """Numbers around these, in 32 bits."""
    return [place + step & MASK for place in places for step in (-1, 0, 1)]


ADDRESSES = edges(0, SPACE_START, LINK_ADDRESS, SHARED_PAGE, 0xC0000000, 0xFFFFF000)
ADDRESSES += [(SPACE_START - LINK_ADDRESS) & MASK, (-LINK_ADDRESS) & MASK, 0x1000]
LENGTHS = edges(0, 64, 0x1000, 0x400000, SHARED_PAGE - LINK_ADDRESS, 0x80000000)


def damaged(seeded: random.Random) -> Image:
    """A good file with one or two false fields."""
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


def damaged_files(seed: int, count: int) -> Iterator[Image]:
    """This many damaged files."""
    seeded = random.Random(seed)
    return (damaged(seeded) for _ in range(count))
