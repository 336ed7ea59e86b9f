"""Exercise 2.1, hidden: every split of the fields, every bound, and the processor's own reading."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

import pytest

from tests.lesson2.descriptors import ask
from tests.lesson2.support import stopped_at

COUNT = 100_000


class Descriptor(NamedTuple):
    """As struct descriptor: the limit in bytes, the flags without granularity."""

    base: int
    limit: int
    access: int
    flags: int

    def packed(self) -> int:
        """Intel SDM volume 3, figure 3-8, byte by byte."""
        pages = self.limit > 0xFFFFF
        limit = self.limit // 4096 if pages else self.limit
        flags = (self.flags & 7) | (8 if pages else 0)
        base = self.base.to_bytes(4, "little")
        low = limit.to_bytes(3, "little")
        data = bytes([low[0], low[1], *base[:3], self.access, flags << 4 | low[2], base[3]])
        return int.from_bytes(data, "little")

    @classmethod
    def unpacked(cls, bits: int) -> Descriptor:
        """What the processor understands of 64 bits."""
        data = bits.to_bytes(8, "little")
        limit = int.from_bytes(data[:2], "little") | (data[6] & 0xF) << 16
        if data[6] & 0x80:
            limit = limit * 4096 + 4095
        base = int.from_bytes(data[2:5] + data[7:], "little")
        return cls(base, limit, data[5], data[6] >> 4 & 7)

    def question(self) -> str:
        """This descriptor, to be packed."""
        return f"pack {self.base:x} {self.limit:x} {self.access:x} {self.flags:x}"


def check_pack(lab, descriptors: Iterable[Descriptor]) -> None:
    """descriptor_pack gives the 64 bits that the processor wants."""
    asked = list(descriptors)
    answers = ask(lab, (each.question() for each in asked))
    for descriptor, answer in zip(asked, answers, strict=True):
        assert answer == f"{descriptor.packed():x}", (
            f"descriptor_pack of base {descriptor.base:#x}, limit {descriptor.limit:#x}, access "
            f"{descriptor.access:#x}, flags {descriptor.flags:#x} gives 0x{answer}; the processor "
            f"wants {descriptor.packed():#018x} (figure 3-8 in labs/lesson2/README.md)"
        )


def check_unpack(lab, values: Iterable[int]) -> None:
    """descriptor_unpack understands 64 bits as the processor does."""
    asked = list(values)
    answers = ask(lab, (f"unpack {bits:x}" for bits in asked))
    for bits, answer in zip(asked, answers, strict=True):
        expected = Descriptor.unpacked(bits)
        assert answer == "{:x} {:x} {:x} {:x}".format(*expected), (
            f"descriptor_unpack of {bits:#018x} gives base, limit, access, flags = {answer} "
            f"(hexadecimal); it means {expected}"
        )


def random_descriptors(seed: int, count: int):
    """Small and large fields alike; a quarter of the limits is at the granularity's bound."""
    numbers = random.Random(seed)
    for _ in range(count):
        limit = numbers.getrandbits(numbers.randint(0, 32))
        if numbers.random() < 0.25:
            limit = 0xFFFFF + numbers.randint(-2, 4097)
        base = numbers.getrandbits(numbers.randint(0, 32))
        yield Descriptor(base, limit, numbers.getrandbits(8), numbers.getrandbits(3))


@pytest.mark.exercise("2.1", points=2, host=True, gate=True)
def test_pack_random(lab):
    """A hundred thousand random descriptors: packed as an independent program packs them."""
    check_pack(lab, random_descriptors(lab.seed, COUNT))


@pytest.mark.exercise("2.1", points=2, host=True, gate=True)
def test_unpack_random(lab):
    """A hundred thousand random 64-bit values: unpacked as an independent program unpacks them."""
    numbers = random.Random(lab.seed)
    check_unpack(lab, (numbers.getrandbits(64) for _ in range(COUNT)))


@pytest.mark.exercise("2.1", points=1, gate=True, host=True)
def test_base_pieces(lab):
    """The three pieces of a base: each bit has one place in the descriptor."""
    bases = [1 << bit for bit in range(32)] + [0xFF000000, 0x00FFFFFF, 0xFFFFFFFF]
    check_pack(lab, (Descriptor(base, 0, 0, 0) for base in bases))
    check_unpack(lab, (Descriptor(base, 0, 0, 0).packed() for base in bases))


@pytest.mark.exercise("2.1", points=2, gate=True, host=True)
def test_limit_bounds(lab):
    """Limits up to 0xfffff count bytes; larger ones count pages, and reach to the end of a page."""
    limits = [1 << bit for bit in range(32)] + [(1 << bit) - 1 for bit in range(33)]
    limits += [0xFFFFE, 0xFFFFF, 0x100000, 0x100FFF, 0x101000, 0xFFFFF000, 0xFFFFEFFF]
    descriptors = [Descriptor(0x89ABCDEF, limit, 0x93, 5) for limit in limits]
    check_pack(lab, descriptors)
    check_unpack(lab, (each.packed() for each in descriptors))


@pytest.mark.exercise("2.1", points=1, host=True)
def test_flags_do_not_reach_granularity(lab):
    """Bit 3 of the caller's flags: it is ignored, because granularity follows from the limit."""
    check_pack(lab, (Descriptor(0, 0x1234, 0, flags) for flags in range(256)))
    check_pack(lab, (Descriptor(0, 0x12345678, 0, flags) for flags in range(256)))


@pytest.mark.exercise("2.1", points=2)
def test_processor_reads_the_table(lab):
    """The kernel's table and what the processor made of it: the task state's base is at 3 GiB, so
    that every piece of a base counts."""
    with stopped_at(lab, "prompt") as machine:
        base, limit = machine.tables()["GDT"]
        segments = machine.segments()
        table = machine.read_words(base, (limit + 1) // 4)
        task = machine.symbols.find("kernel_task")
        double_fault = machine.address("double_fault_state")
    entries = [low | high << 32 for low, high in zip(table[::2], table[1::2], strict=True)]
    flat = [Descriptor(0, 0xFFFFFFFF, access, 4).packed() for access in (0x9A, 0x92, 0xFA, 0xF2)]
    accessed = 1 << 40  # set by the processor when it loads a segment register
    assert [entry & ~accessed for entry in entries[1:5]] == [entry & ~accessed for entry in flat]
    assert entries[0] == 0
    busy = Descriptor.unpacked(entries[5])
    assert (busy.base, busy.access) == (task.address, 0x8B), f"the task state: {busy}"
    assert (segments["TR"].base, segments["TR"].limit) == (task.address, busy.limit)
    assert Descriptor.unpacked(entries[6]) == Descriptor(double_fault, 103, 0x89, 0)
