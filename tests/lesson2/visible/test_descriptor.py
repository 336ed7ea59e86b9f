"""Exercise 2.1: segment descriptors, packed and unpacked."""

from __future__ import annotations

import pytest

from tests.lesson2.descriptors import ask
from tests.lesson2.support import KERNEL_CODE, KERNEL_DATA, stopped_at

PACKED = {
    # base, limit, access, flags: what the processor wants
    "0 ffffffff 9a 4": 0x00CF9A000000FFFF,  # flat, 4 GiB
    "0 ffff 92 0": 0x000092000000FFFF,  # 64 KiB
    "123456 67 89 0": 0x0000891234560067,  # a task state
}
UNPACKED = {
    0x000092000000FFFF: "0 ffff 92 0",
    0x0000FA123456789A: "123456 789a fa 0",
    0: "0 0 0 0",
}


@pytest.mark.exercise("2.1", points=1, host=True)
def test_pack_examples(lab):
    """A flat segment of 4 GiB, one of 64 KiB, and a task state."""
    answers = ask(lab, (f"pack {fields}" for fields in PACKED))
    for (fields, expected), answer in zip(PACKED.items(), answers, strict=True):
        assert answer == f"{expected:x}", (
            f"descriptor_pack of base, limit, access, flags = {fields} (hexadecimal) gives "
            f"0x{answer}; the processor wants {expected:#018x}"
        )


@pytest.mark.exercise("2.1", points=1, host=True)
def test_unpack_examples(lab):
    """The way back, for segments whose limit is counted in bytes."""
    answers = ask(lab, (f"unpack {packed:x}" for packed in UNPACKED))
    for (packed, expected), answer in zip(UNPACKED.items(), answers, strict=True):
        assert answer == expected, (
            f"descriptor_unpack of {packed:#018x} gives base, limit, access, flags = {answer} "
            f"(hexadecimal), not {expected}"
        )


@pytest.mark.exercise("2.1", points=1)
def test_segments_of_the_kernel(lab):
    """The processor understands the kernel's code and data as flat segments for ring 0."""
    with stopped_at(lab, "prompt") as machine:
        segments = machine.segments()
    for name, selector, access in (("CS", KERNEL_CODE, 0x9A), ("DS", KERNEL_DATA, 0x92)):
        segment = segments[name]
        assert segment.selector == selector
        assert (segment.base, segment.limit) == (0, 0xFFFFFFFF), f"{name} is not flat: {segment}"
        assert segment.access & 0xFE == access, f"{name} has other access rights: {segment}"
