"""Exercise 1.5, the memory map: what loaders and BIOSes really say, and what they might."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest

from tests.lesson1.memory import (
    AVAILABLE,
    MOST_RANGES,
    Entry,
    Range,
    kibibytes,
    loader_ranges,
    require_told,
    require_usable,
    tell,
    told,
    walked,
)
from tests.support.remote import stopped

MIB = 1 << 20
GIB = 1 << 30
RESERVED = 2


def page(number: int) -> int:
    """The address of a page."""
    return number * 4096


def random_ranges(random: Random, count: int) -> list[Range]:
    """Ranges of some pages, apart from each other, in any order."""
    borders = [page(number) for number in sorted(random.sample(range(1 << 22), 2 * count))]
    pairs = zip(borders[::2], borders[1::2], strict=True)
    ranges = [Range(a, b - a, random.choice([1, 1, 2, 3, 4, 5])) for a, b in pairs]
    random.shuffle(ranges)
    return ranges


@pytest.mark.exercise("1.5", points=2)
def test_entries_of_any_size(lab):
    """Entries of 20 bytes, 24 or more: each entry's own size leads to the next one."""
    random = Random(lab.seed)
    with stopped(lab, "kmain") as guest:
        for extras in (
            [0],
            [4],
            [4, 0, 20, 0],
            [8, 8, 8],
            [3, 0, 1],
            [1, 0],
            [2, 0],
            [3, 0],
            [700, 0],
        ):
            ranges = random_ranges(random, len(extras))
            entries = [Entry(r, extra) for r, extra in zip(ranges, extras, strict=True)]
            assert tell(guest, entries) != "panic"
            require_told(guest, ranges)
        ranges = [Range(page(100), page(50), 20), Range(page(300), page(20))]
        short, rest = Entry(ranges[0], size=16), Entry(ranges[1]).encode()[4:]
        entries = [short, SimpleNamespace(encode=lambda: rest)]  # one's type is the other's size
        assert tell(guest, entries) != "panic"
        require_told(guest, ranges)


@pytest.mark.exercise("1.5", points=2)
def test_only_type_1_is_memory(lab):
    """Types of memory: only type 1 is RAM. ACPI's, defective and unknown ranges are reported with
    their types."""
    types = (1, 2, 3, 0, 4, 5, 6, 20, 0x101, 0x80000001)
    ranges = [Range(page(100 * i), page(50), kind) for i, kind in enumerate(types)]
    with stopped(lab, "kmain") as guest:
        assert tell(guest, [Entry(each) for each in ranges]) != "panic"
        require_told(guest, ranges)
        require_usable(guest, 50 * 4)


@pytest.mark.exercise("1.5", points=2)
def test_memory_above_4_gib(lab):
    """Ranges across and beyond 4 GiB, up to the end of the address space: what is below 4 GiB
    counts, and nothing wraps."""
    cases = [
        [Range(0xE0000000, GIB)],
        [Range(0, 640 << 10), Range(MIB, 3 * GIB), Range(4 * GIB, 5 * GIB)],
        [Range(1 << 40, 1 << 42)],
        [Range(MIB, 7 * MIB), Range((1 << 64) - 4096, 4096, RESERVED)],
    ]
    with stopped(lab, "kmain") as guest:
        for ranges in cases:
            assert tell(guest, [Entry(each) for each in ranges]) != "panic"
            require_told(guest, ranges)
            require_usable(guest, kibibytes(ranges))


@pytest.mark.exercise("1.5", points=1)
def test_strange_ranges(lab):
    """Empty, unordered and overlapping ranges, and an end beyond all addresses: none of them breaks
    the map."""
    random = Random(lab.seed)
    apart = random_ranges(random, 9)
    holes = [Range(MIB + page(2 * i + 1), page(1), RESERVED) for i in range(MOST_RANGES - 1)]
    pieces = [Range(MIB, 128 * MIB), *holes]
    cases = [
        (apart, kibibytes(apart)),
        ([Range(MIB, 0), Range(2 * MIB, MIB), Range(5 * MIB, 0, 3)], 1024),
        ([Range(2 * MIB, 2 * MIB), Range(MIB, 2 * MIB)], 3 * 1024),
        ([Range(MIB, 8 * MIB), Range(2 * MIB, MIB, RESERVED)], 7 * 1024),
        ([Range(MIB, MIB), Range((1 << 64) - MIB, 3 * MIB, RESERVED)], 1024),
        ([Range(MIB, MIB + 700), Range(4 * MIB, MIB + 700)], 2 * 1024 + 1),
        (pieces, 128 * 1024 - 63 * 4),
    ]
    with stopped(lab, "kmain") as guest:
        for ranges, expected in cases:
            assert tell(guest, [Entry(each) for each in ranges]) != "panic"
            require_told(guest, ranges)
            require_usable(guest, expected)


@pytest.mark.exercise("1.5", points=1)
def test_entry_that_is_cut_off(lab):
    """An entry that reaches beyond the map's end: it is ignored."""
    ranges = [Range(MIB, MIB), Range(4 * MIB, MIB)]
    with stopped(lab, "kmain") as guest:
        for extra in (0, 4):
            entries = [Entry(each, extra) for each in ranges]
            for cut in (extra + 1, extra + 4, 20 + extra, 23 + extra):
                assert tell(guest, entries, cut=cut) != "panic"
                require_told(guest, ranges[:1])


@pytest.mark.exercise("1.5", points=1)
def test_wrong_size(lab):
    """An entry with a wrong size: the entry itself counts, and the walk goes on where the size
    says, or ends."""
    random = Random(lab.seed)
    sizes = [*random.sample(range(20), 4), 0, 43, 44, 45, random.randrange(46, 1 << 20)]
    sizes += [0x80000000, *random.sample(range(0xFFFFFFB0, 1 << 32), 4), 0xFFFFFFFC, 0xFFFFFFE4]
    with stopped(lab, "kmain") as guest:
        for size in sizes:
            first, wrong, last = random_ranges(random, 3)
            entries = [Entry(first), Entry(wrong, size=size), Entry(last)]
            assert tell(guest, entries) != "panic", f"the second entry has size {size:#x}"
            require_told(guest, walked(b"".join(each.encode() for each in entries)))


@pytest.mark.exercise("1.5", points=1)
def test_more_entries_than_room(lab):
    """More than 64 entries: the array is filled, and nothing after it is written."""
    ranges = [Range(page(2 * n), 4096) for n in range(1, 100)]
    with stopped(lab, "kmain") as guest:
        assert tell(guest, [Entry(each) for each in ranges]) != "panic"
        require_told(guest, ranges[:MOST_RANGES])


@pytest.mark.exercise("1.5", points=2)
def test_without_a_map(lab):
    """Flags without bit 6: mmap_length and mmap_addr are ignored, and mem_upper counts from 1 MiB
    on, to 4 GiB and beyond."""
    random = Random(lab.seed)
    amounts = [random.randint(1 << 10, 1 << 20), (4 << 20) - 1, 4 << 20, 0xFFFFFFFF]
    with stopped(lab, "kmain") as guest:
        for amount in amounts:
            assert tell(guest, None, mem_upper=amount, length=24) != "panic"
            found = [each for each in told(guest) if each.base >= MIB]
            assert found == [Range(MIB, amount * 1024, AVAILABLE)], f"mem_upper is {amount}"


@pytest.mark.exercise("1.5", points=1)
def test_map_comes_before_mem_upper(lab):
    """A loader that gives a map and mem_upper: the map is used, even if none of its entries counts.
    A loader that gives neither leaves no memory to use."""
    ranges = [Range(MIB, 5 * MIB)]
    with stopped(lab, "kmain") as guest:
        assert tell(guest, [Entry(each) for each in ranges], mem_upper=77) != "panic"
        require_told(guest, ranges)
        assert tell(guest, [], mem_upper=77) == "panic", "an empty map is a map"
        cut = tell(guest, [Entry(each) for each in ranges], mem_upper=77, cut=1)
        assert cut == "panic", "the only entry is cut off: no range is left"
        assert tell(guest, None) == "panic"


@pytest.mark.exercise("1.5", points=2)
@pytest.mark.parametrize(("memory", "boot"), [(16, "direct"), (512, "disk"), (1000, "direct")])
def test_real_machines(lab, memory, boot):
    """Machines with little and with much memory: the ranges are what each loader reports."""
    with stopped(lab, "kmain", memory=memory, boot=boot) as guest:
        information = guest.read_word(guest.registers()["esp"] + 8)
        expected = loader_ranges(guest, information, base=0xC0000000)
        guest.run_to("memory_map_print")
        require_told(guest, expected)
        found = guest.call64("memory_map_usable")
    assert found == kibibytes(expected), f"{found} KiB and not {kibibytes(expected)}"
    assert memory * 1024 - 1024 < found <= memory * 1024
