"""Exercise 5.1: memory maps with every kind of border, small machines and large ones."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from tests.lesson1.memory import Range, loader_ranges
from tests.lesson4.support import fail
from tests.lesson5.arrays import (
    Arrays,
    kernel_frames,
    plan,
    require_array,
    require_handed_over,
    require_zones,
    some_map,
)
from tests.lesson5.support import (
    FREE,
    PAGE,
    RESERVED,
    TAIL,
    Calls,
    address_of,
    outside,
    require_sound,
)
from tests.support.remote import stopped

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MOST_RANGES = 64  # that the kernel is told: BOOT_MEMORY_RANGES
JUNK_END = 24 * MIB  # beyond any array here but that of 896 MiB


def require_all(run: Arrays, ranges: Sequence[Range], with_array: bool = True) -> None:
    """The kernel makes of these ranges what is to be made."""
    run.write_map(ranges)
    kernel = kernel_frames(run)
    expected = plan(ranges, kernel)
    found = run.initialize()
    if with_array:
        require_array(run, expected)
    require_handed_over(found, expected, kernel)
    require_zones(run, expected)


@pytest.mark.exercise("5.1", points=3)
def test_parts_of_frames(lab):
    """Ranges that begin or end within a frame: that frame is not free. A range of one frame has
    one."""
    cases = [
        [Range(MIB, 9 * MIB + cut), Range(11 * MIB + begin, 2 * MIB + end)]
        for cut in (0, 1, PAGE - 1)
        for begin, end in ((0, 0), (1, 0), (PAGE - 1, 1), (700, PAGE - 700), (1, PAGE - 2))
    ]
    with outside(lab, Arrays) as run:
        for case in cases:
            small = [Range(20 * MIB + 5, 4000), Range(21 * MIB - 9, PAGE), Range(22 * MIB, PAGE)]
            require_all(run, [*case, *small], False)


@pytest.mark.exercise("5.1", points=2)
def test_limit_of_the_zones(lab):
    """Ranges at 16 MiB, across it and one frame from it: each frame is in the right zone, also in a
    machine that ends below."""
    with outside(lab, Arrays) as run:
        for first, end in ((9, 16), (16, 24), (9, 24)):
            for shift in (-PAGE, 0, PAGE):
                start = first * MIB + shift
                require_all(run, [Range(MIB, 7 * MIB), Range(start, end * MIB - start)], False)
        require_all(run, [Range(MIB, 5 * MIB), Range(17 * MIB, 3 * MIB)])
        require_all(run, [Range(MIB, 10 * MIB)])


@pytest.mark.exercise("5.1", points=2)
def test_unusable_memory(lab):
    """Holes and unusable memory, between ranges and at the end: their frames are not free."""
    ranges = [
        Range(0, 640 * KIB),
        Range(MIB, 6 * MIB),
        Range(7 * MIB, MIB, 2),
        Range(8 * MIB, MIB, 3),
        Range(9 * MIB, 2 * MIB),
        Range(12 * MIB, MIB, 4),
        Range(13 * MIB, 15 * MIB),
        Range(30 * MIB, 20 * MIB, 2),
    ]
    with outside(lab, Arrays) as run:
        require_all(run, ranges)


@pytest.mark.exercise("5.1", points=1, once=True)
def test_many_ranges(lab):
    """As many ranges as the kernel remembers: all count."""
    small = [Range(8 * MIB + 64 * KIB * i, 3 * PAGE) for i in range(MOST_RANGES - 2)]
    with outside(lab, Arrays) as run:
        require_all(run, [Range(0, 640 * KIB), Range(MIB, 6 * MIB), *small])


@pytest.mark.exercise("5.1", points=2)
def test_above_896_mib(lab):
    """Memory up to the end of the direct map, beyond it and beyond 4 GiB: only the first is used,
    and nothing wraps."""
    cases = [
        [Range(MIB, 895 * MIB)],
        [Range(MIB, 896 * MIB)],
        [Range(MIB, 12 * MIB), Range(890 * MIB, 3 * GIB)],
        [Range(MIB, 12 * MIB), Range(900 * MIB, GIB), Range(4 * GIB, 5 * GIB)],
        [Range(MIB, 12 * MIB), Range(4 * GIB + 4 * MIB, 4 * MIB)],
        [Range(MIB, 12 * MIB), Range((1 << 44) + 14 * MIB, 2 * MIB)],
        [Range(MIB, 4 * GIB)],
    ]
    with outside(lab, Arrays) as run:
        for ranges in cases:
            require_all(run, ranges, with_array=False)


@pytest.mark.exercise("5.1", points=2)
def test_place_of_the_array(lab):
    """The array's place: the first range after the kernel with room for it, also when the room is
    exact or one frame short."""
    with outside(lab, Arrays) as run:
        kernel = address_of(kernel_frames(run)) - address_of(0)
        for pages in (1, 5, 23):
            first = Range(MIB, kernel + pages * PAGE - MIB)
            require_all(run, [Range(0, 640 * KIB), first, Range(8 * MIB, 15 * MIB)])
        for pages in (24, 25):  # exactly the room that it needs, and a frame more
            first = Range(MIB, kernel + pages * PAGE - MIB)
            require_all(run, [first, Range(8 * MIB, 15 * MIB)])
        run.write_map([Range(MIB, kernel + 3 * PAGE - MIB), Range(kernel + 9 * PAGE, 3 * PAGE)])
        if not run.kernel.panic_of("page_array_initialize"):
            fail("no range has room for the page array: expected a panic")


@pytest.mark.exercise("5.1", points=2)
def test_memory_full_of_junk(lab):
    """Memory full of junk: it is not taken for the state of a page."""
    with outside(lab, Arrays) as run:
        start = address_of(kernel_frames(run))
        run.guest.put_data(start, b"\xa5" * (address_of(0) + JUNK_END - start))
        require_all(run, some_map(32))


def random_map(random: Random) -> list[Range]:
    """Ranges in order and apart from each other, with borders anywhere."""
    borders = sorted(random.sample(range(8 * MIB, 40 * MIB), 2 * random.randrange(1, 12)))
    pairs = list(zip(borders[::2], borders[1::2], strict=True))
    rest = [Range(a, b - a, random.choice([1, 1, 1, 2, 3])) for a, b in pairs]
    return [Range(0, 640 * KIB), Range(MIB, 6 * MIB + random.randrange(PAGE)), *rest]


@pytest.mark.exercise("5.1", points=2)
def test_random_maps(lab):
    """Random memory maps: each frame's state is the model's."""
    random = Random(lab.seed)
    with outside(lab, Arrays) as run:
        for _ in range(25):
            require_all(run, random_map(random), with_array=False)


@pytest.mark.exercise("5.1", points=3)
@pytest.mark.parametrize("memory", [16, 17, 63])
def test_real_machines(lab, memory):
    """A real machine: all frames have a state, and the states add up to all frames."""
    with stopped(lab, "kmain", memory=memory) as guest:
        information = guest.read_word(guest.registers()["esp"] + 8)
        ranges = loader_ranges(guest, information, base=0xC0000000)
        guest.run_to("page_array_initialize")
        run = Calls(guest)
        expected = plan(ranges, kernel_frames(run))
        run.kernel.call("page_array_initialize")
        seen = require_sound(guest, f"in a machine of {memory} MiB")
        require_zones(run, expected)
    states = seen.count(RESERVED), seen.count(FREE) + seen.count(TAIL)
    free = expected.pages(0) + expected.pages(1)
    wanted = expected.page_frames - free, free
    if states != wanted:
        fail(f"frames reserved and free: expected {wanted}, seen {states}")
    for zone, first, end in expected.handed_over():
        lost = [frame for frame in range(first, end) if not seen.is_free[frame]]
        if lost:
            fail(f"frame {lost[0]} of zone {zone} is usable: expected free, seen not")
