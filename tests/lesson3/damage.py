"""Damaged ELF files, and an independent judge of them, for the hidden tests of exercise 3.6."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from tests.lesson3.executables import (
    BEGINNING,
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


# ---- edges -------------------------------------------------------------------------------------


def headers_at_their_edges(seeded: random.Random) -> list[Image]:
    """Program headers that end with the bytes that were read, or a few further; that wrap; of
    another size; at odd places. Each of some is good."""
    images = []
    for count in (1, 2, seeded.randint(3, 29), 30):
        segments, size = tuple(good(seeded) for _ in range(count)), SEGMENT.size * count
        last = BEGINNING - size
        for phoff in (52, seeded.randrange(52, last + 1, 4), last):
            ends = (phoff + size, phoff + size - 1, phoff + size - seeded.randrange(2, size))
            images += [Image(segments, phoff=phoff, bytes_there=there) for there in ends]
        images += [Image(segments, phoff=last + step) for step in range(-4, 5)]
    image = Image((good(seeded),))
    wrapping = [0xFFFFFFE0, 0xFFFFFFFC, 0xFFFFFC34, 1 << 31, *seeded.sample(range(1025, MASK), 20)]
    images += [replace(image, phoff=phoff & ~3) for phoff in wrapping]
    sizes = [
        0,
        31,
        33,
        64,
        0xFFFF,
        seeded.randrange(34, 0x10000),
        32 | 1 << seeded.randrange(8, 16),
    ]
    images += [replace(image, phentsize=size) for size in sizes]
    counts = [0, 31, 0xFFFF, seeded.randrange(32, 0x10000), 1 << seeded.randrange(8, 16)]
    images += [replace(image, phnum=count) for count in counts]
    images += [replace(image, bytes_there=there) for there in (0, 4, 20, 51, seeded.randrange(52))]
    return shuffled(seeded, images)


def segments_at_their_edges(seeded: random.Random) -> list[Image]:
    """The first and the last byte of user space, sums that wrap, a file larger than memory; with
    and without a bias. The segment in question is one of some good ones, at any place of them."""
    edge_cases = []
    for bias in (0, LINK_ADDRESS):
        inside = seeded.randrange(SPACE_START, SHARED_PAGE)
        for place in (*edges(SPACE_START, SHARED_PAGE, 0, bias), inside, 0xC0000000, 0xFFFFF000):
            rest = SHARED_PAGE - place & MASK
            lengths = {1, seeded.randrange(2, 4096), *edges(rest), -place & MASK, MASK}
            vaddr = place - bias & MASK
            edge_cases += [(bias, Segment(vaddr=vaddr, filesz=0, memsz=each)) for each in lengths]
    length = seeded.randrange(2, 4096)
    nowhere = Segment(vaddr=seeded.choice((MASK, 0, 0xC0000000)), filesz=0, memsz=0)
    others = [
        *(good(seeded, memsz=length, filesz=size) for size in (length, length + 1, MASK)),
        *(nowhere, replace(nowhere, filesz=length), replace(nowhere, type=NOTE, memsz=MASK)),
        *(good(seeded, type=INTERPRET), Segment(type=INTERPRET, vaddr=0)),
    ]
    edge_cases += [(bias, each) for bias in (0, LINK_ADDRESS) for each in others]
    images = [Image((nowhere,)), Image((nowhere, replace(nowhere, type=NOTE)))]
    return shuffled(seeded, [*images, *(among(seeded, *each) for each in edge_cases)])


def good(seeded: random.Random, **fields: int) -> Segment:
    """A segment that fits without a bias, and with one."""
    vaddr = seeded.randrange(SPACE_START, SHARED_PAGE - LINK_ADDRESS - 0x10000)
    memsz = seeded.randrange(1, 0x10000)
    return replace(Segment(vaddr=vaddr, filesz=seeded.randint(0, memsz), memsz=memsz), **fields)


def among(seeded: random.Random, bias: int, segment: Segment) -> Image:
    """A file with this segment at any place among some good ones."""
    segments = [good(seeded) for _ in range(seeded.randrange(4))]
    segments.insert(seeded.randint(0, len(segments)), segment)
    return Image(tuple(segments), type=SHARED_OBJECT if bias else EXECUTABLE)


def shuffled(seeded: random.Random, images: list[Image]) -> list[Image]:
    """In any order."""
    return seeded.sample(images, len(images))
