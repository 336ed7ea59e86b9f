"""Exercise 2.1: segment descriptors, packed and unpacked.

Not looked at here, but by the graders: the way there and back with random numbers.
"""

from __future__ import annotations

import pytest

from tests.lesson2.descriptors import ask
from tests.lesson2.support import KERNEL_CODE, KERNEL_DATA, stopped_at
from tests.support.remote import Segment
from tests.support.told import Usual, expect, fail, told

PACKED = {
    # base, limit, access, flags: what the processor wants
    "0 ffffffff 9a 4": 0x00CF9A000000FFFF,  # flat, 4 GiB
    "0 ffff 92 0": 0x000092000000FFFF,  # 64 KiB
    "12345678 67 89 0": 0x1200893456780067,  # a task state, above 16 MiB
    "0 fffff 92 0": 0x000F92000000FFFF,  # 1 MiB: the largest limit in bytes
}
UNPACKED = {
    0x00CF9A000000FFFF: "0 ffffffff 9a 4",
    0x000092000000FFFF: "0 ffff 92 0",
    0x0000FA123456789A: "123456 789a fa 0",
    0: "0 0 0 0",
}
# Intel SDM volume 3, figure 3-8: the lowest bit of each part, and how many it has.
PARTS = {
    "limit bits 0 to 15": (0, 16),
    "base bits 0 to 23": (16, 24),
    "access": (40, 8),
    "limit bits 16 to 19": (48, 4),
    "flags": (52, 3),
    "granularity (G)": (55, 1),
    "base bits 24 to 31": (56, 8),
}
THEN = "the drawing of a descriptor in labs/lesson2/README.md; make hint EX=2.1"


@pytest.mark.exercise("2.1", points=1, host=True)
def test_pack_examples(lab):
    """A flat segment of 4 GiB, one of 64 KiB, one of 1 MiB, and a task state."""
    usually = (
        Usual("31: expected 0x12, ", "the base's upper byte goes to bits 56 to 63"),
        Usual("limit 0xfffff,", "0xfffff is the largest limit that is counted in bytes, without G"),
        Usual("flags: expected", "the three bits of flags begin at bit 52"),
        Usual(
            "access: expected",
            "access goes to bits 40 to 47; shifted as a number of 32 bits, without a cast, "
            "bits above 31 are lost",
        ),
        "a part is shifted as a number of 32 bits: bits above 31 are lost without a cast",
        "a limit above 0xfffff is not counted in pages (>> 12), or G is not set for it",
    )
    with told(usually, THEN):
        answers = ask(lab, (f"pack {fields}" for fields in PACKED))
        for (fields, expected), answer in zip(PACKED.items(), lab.judged(answers), strict=True):
            require_packed(fields, int(answer, 16), expected)


def require_packed(fields: str, found: int, expected: int) -> None:
    """The 64 bits are these; a failure names the parts that are wrong."""
    wrong = [
        f"{name}: expected {part(expected, at, bits):#x}, seen {part(found, at, bits):#x}"
        for name, (at, bits) in PARTS.items()
        if part(expected, at, bits) != part(found, at, bits)
    ]
    base, limit, access, flags = (f"0x{each}" for each in fields.split())
    what = f"descriptor_pack of base {base}, limit {limit}, access {access}, flags {flags}"
    if wrong:
        fail(f"{what}: expected {expected:#018x}, seen {found:#018x}", *wrong)


def part(packed: int, at: int, bits: int) -> int:
    """Some bits of a descriptor."""
    return packed >> at & (1 << bits) - 1


@pytest.mark.exercise("2.1", points=1, host=True)
def test_unpack_examples(lab):
    """The way back, for segments whose limit is counted in bytes, and for a flat one."""
    usually = (
        Usual(r"seen \w+ \w+000 ", "a limit in pages covers its last page: it ends with 0xfff"),
        "base and limit are put together from only one of their parts",
    )
    with told(usually, THEN):
        answers = ask(lab, (f"unpack {packed:x}" for packed in UNPACKED))
        for (packed, expected), answer in zip(UNPACKED.items(), lab.judged(answers), strict=True):
            what = f"descriptor_unpack of {packed:#018x}: base, limit, access, flags (hexadecimal)"
            expect(what, answer, expected)


@pytest.mark.exercise("2.1", points=1)
def test_segments_of_the_kernel(lab):
    """The processor understands the kernel's code and data as flat segments for ring 0."""
    usually = "the tests of descriptor_pack say what is wrong with the descriptors"
    with told(usually, "make gdb LESSON=2 BOOT=direct, then: tbreak descriptors_initialize"):
        with stopped_at(lab, "prompt") as machine:
            segments = machine.segments()
        for name, selector, access in (("CS", KERNEL_CODE, 0x9A), ("DS", KERNEL_DATA, 0x92)):
            require_flat(name, segments[name], selector, access)


def require_flat(name: str, segment: Segment, selector: int, access: int) -> None:
    """A segment register has this selector, and its segment is flat with these rights."""
    expect(f"selector in {name}", f"{segment.selector:#x}", f"{selector:#x}")
    expect(f"base of {name}", f"{segment.base:#x}", "0x0")
    expect(f"limit of {name}", f"{segment.limit:#x}", "0xffffffff")
    accessed = 1  # the processor sets it
    expect(f"access byte of {name}", f"{segment.access & ~accessed:#x}", f"{access:#x}")
