"""Exercise 5.2: against a model, in every order, at every border, and what page_free refuses."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from tests.lesson4.support import fail
from tests.lesson5.buddies import random_operations
from tests.lesson5.support import (
    DMA_END,
    INTERRUPTS,
    LARGEST,
    ORDERS,
    PAGE,
    RESERVED,
    SLAB,
    USED,
    address_of,
    frame_at,
    outside,
    picture,
    require_sound,
)
from tests.lesson5.zones import (
    DMA,
    FRAMES,
    NO_FRAME,
    NORMAL,
    Zones,
    largest_blocks,
    require_blocks,
)
from tests.support.outside import MOST_STEPS

MOST_INSTRUCTIONS, MORE_EACH = 40, 40
OF_A_CALL = 5  # instructions of a function that does nothing
FREED_BY = "who has freed it"


@pytest.mark.exercise("5.2", points=4)
@pytest.mark.parametrize("number", range(2))
def test_random_operations(lab, number):
    """Random allocations and frees of all orders: the lists are the model's."""
    with outside(lab, Zones) as run:
        random_operations(run, Random(lab.seed + number))
        require_sound(run.guest, "in the end")


@pytest.mark.exercise("5.2", points=2, once=True)
def test_every_order_of_frees(lab):
    """4 blocks freed in each of 4! orders, and 8 in some of theirs: they merge into one."""
    random = Random(lab.seed)
    orders = [(ORDERS - 3, turn) for turn in permutations(range(4))]
    orders += [(ORDERS - 4, random.sample(range(8), 8)) for _ in range(20)]
    with outside(lab, Zones) as run:
        run.begin()
        run.give_range(NORMAL, DMA_END, LARGEST)
        for order, turn in orders:
            frames = [run.take(NORMAL, order) for _ in turn]
            if sorted(frames) != [DMA_END + (i << order) for i in range(len(turn))]:
                fail(f"{len(turn)} blocks of order {order} were free, and not handed out: {frames}")
            for i in turn:
                run.give(NORMAL, DMA_END + (i << order))
            blocks = run.free_blocks(NORMAL)
            if blocks != [[]] * (ORDERS - 1) + [[DMA_END]] or run.free(NORMAL) != LARGEST:
                fail(f"blocks of order {order} were freed in the order {turn}: {blocks}")


@pytest.mark.exercise("5.2", points=2)
def test_largest_order(lab):
    """Two free blocks of the largest order: they do not merge."""
    with outside(lab, Zones) as run:
        run.begin()
        run.give_range(NORMAL, DMA_END, 2 * LARGEST)
        both = [(DMA_END, ORDERS - 1), (DMA_END + LARGEST, ORDERS - 1)]
        require_blocks(run, NORMAL, both, "of 2,048 pages")
        first, second = (run.take(NORMAL, ORDERS - 1) for _ in range(2))
        if sorted((first, second)) != [DMA_END, DMA_END + LARGEST]:
            fail("two blocks of the largest order were free, and not handed out")
        if run.take(NORMAL, ORDERS - 1) != NO_FRAME or run.take(NORMAL, 0) != NO_FRAME:
            fail("a block of an empty zone was handed out")
        for frame in (second, first):
            run.give(NORMAL, frame)
        require_blocks(run, NORMAL, both, "after both were given back")


@pytest.mark.exercise("5.2", points=2)
def test_zones_do_not_meet(lab):
    """A block at the end of DMA and one at the start of Normal: they do not merge."""
    with outside(lab, Zones) as run:
        run.begin()
        run.give_range(DMA, DMA_END - LARGEST, LARGEST)
        run.give_range(NORMAL, DMA_END, LARGEST)
        require_blocks(run, DMA, [(DMA_END - LARGEST, ORDERS - 1)], "of DMA")
        require_blocks(run, NORMAL, [(DMA_END, ORDERS - 1)], "of Normal")
        frames = [run.take(zone, 0) for zone in (DMA, NORMAL)]
        require_sound(run.guest, "after a take from each zone")
        for zone, frame in zip((DMA, NORMAL), frames, strict=True):
            run.give(zone, frame)
        require_blocks(run, NORMAL, [(DMA_END, ORDERS - 1)], "of Normal, after all")


@pytest.mark.exercise("5.2", points=2)
def test_block_without_a_free_buddy(lab):
    """A buddy that is in use, reserved, or free as a part of a smaller block: nothing merges."""
    at = DMA_END + 64
    with outside(lab, Zones) as run:
        run.begin()
        run.give_range(NORMAL, at, 1)
        require_blocks(run, NORMAL, [(at, 0)], "the buddy is reserved")
        run.begin()
        run.give_range(NORMAL, at, 8)
        frames = [run.take(NORMAL, 1) for _ in range(4)]
        run.give(NORMAL, at)
        require_blocks(run, NORMAL, [(at, 1)], "the buddy is used")
        assert sorted(frames) == list(range(at, at + 8, 2))
        run.give(NORMAL, at + 4)
        require_blocks(run, NORMAL, [(at, 1), (at + 4, 1)], "they are no buddies")
        small, other = (run.take(NORMAL, 0) for _ in range(2))
        if {small, other} != {at + 4, at + 5}:
            fail(f"two pages of the block freed last, {at + 4}: seen {small} and {other}")
        run.give(NORMAL, at + 4)
        run.give(NORMAL, at + 6)
        free = [(at, 1), (at + 4, 0), (at + 6, 1)]
        require_blocks(run, NORMAL, free, "the buddy is free in part")
        run.give(NORMAL, at + 5)
        require_blocks(run, NORMAL, [(at, 1), (at + 4, 2)], "the rest of it was given back")


@pytest.mark.exercise("5.2", points=2)
def test_stale_order(lab):
    """An old order in a page that is part of another block: it is ignored."""
    at = DMA_END + 128
    with outside(lab, Zones) as run:
        run.begin()
        run.give_range(NORMAL, at, 16)
        kinds = ([0, 0, 1, 2, 3], [3, 3], [1] * 8, [2, 1, 1, 3], [4], [0] * 16)
        for number, orders in enumerate([*kinds, *kinds]):
            frames = []
            for order in orders:
                frames.append(run.take(NORMAL, order))
                require_sound(run.guest, f"while blocks of the orders {orders} are taken")
            seen = picture(run.guest).frames
            for frame, order in zip(frames, orders, strict=True):
                if (seen[frame].state, seen[frame].order) != (USED, order):
                    fail(f"a block of order {order} is not PAGE_USED, with that order")
            # Given back from below, every page but the first keeps the order it was taken with.
            for frame in frames if number >= len(kinds) else reversed(frames):
                run.give(NORMAL, frame)
                require_sound(run.guest, f"while blocks of the orders {orders} are given back")
            require_blocks(run, NORMAL, [(at, 4)], f"after the orders {orders}")


@pytest.mark.exercise("5.2", points=1)
def test_smallest_and_last_first(lab):
    """The choice of a block: the smallest that is large enough, and the last one freed of that
    order."""
    at = DMA_END
    with outside(lab, Zones) as run:
        run.begin()
        for first, count in ((at, 64), (at + 96, 8), (at + 128, 2), (at + 135, 1), (at + 143, 1)):
            run.give_range(NORMAL, first, count)
        found = [run.take(NORMAL, order) for order in (0, 0, 2, 1, 4)]
        if found != [at + 143, at + 135, at + 96, at + 128, at]:
            fail(f"takes of the orders 0, 0, 2, 1 and 4: frames {found}")
        require_sound(run.guest)
        for frame in (at + 143, at + 135):
            run.give(NORMAL, frame)
        if run.take(NORMAL, 0) != at + 135:
            fail("the block that was given back last is not taken first")
        run.begin()
        run.give_range(NORMAL, at, 64)
        frames = [run.take(NORMAL, 2) for _ in range(16)]
        for frame in (frames[0], frames[2], frames[3], frames[8], frames[9]):
            run.give(NORMAL, frame)
        if run.take(NORMAL, 3) != frames[8]:
            fail("the block that became one last is not taken first")


@pytest.mark.exercise("5.2", points=2)
def test_any_range(lab):
    """Ranges of any size at any place, adjacent ones too: they become the right blocks."""
    random = Random(lab.seed)
    with outside(lab, Zones) as run:
        for _ in range(4):
            run.begin()
            free: set[int] = set()
            for _ in range(3):
                first = DMA_END + random.randrange(1500)
                count = random.choice([1, 2, 3, 31, 255, random.randrange(1, 548)])
                while count and not free.isdisjoint(range(first, first + count)):
                    count -= 1
                if count:
                    free |= set(range(first, first + count))
                    run.give_range(NORMAL, first, count)
            require_blocks(run, NORMAL, largest_blocks(sorted(free)), "after three ranges")
        run.begin()
        run.give_range(NORMAL, DMA_END + 1, FRAMES - DMA_END - 2)
        expected = largest_blocks(range(DMA_END + 1, FRAMES - 1))
        require_blocks(run, NORMAL, expected, "without the first and the last page")


@pytest.mark.exercise("5.2", points=1)
def test_freed_in_its_zone(lab):
    """page_free: the block goes back to its own zone, at either side of the border, and merges
    there."""
    with outside(lab, Zones) as run:
        run.begin()
        free = {DMA: (DMA_END - 16, 16), NORMAL: (DMA_END, 16)}
        for zone, (first, count) in free.items():
            run.give_range(zone, first, count)
        for order in (0, 1, 4):
            for zone, (first, _) in free.items():
                run.free_page(address_of(run.take(zone, order)), order)
                for each, (frame, count) in free.items():
                    when = f"after page_free of order {order} at frame {first}"
                    require_blocks(run, each, [(frame, 4)], when)
                    if run.free(each) != count:
                        fail(f"{when}: a zone says {run.free(each)} free pages, not {count}")


NO_MEMORY = "is not memory"
OTHER_BLOCK = "has another order or start"


def refusal(address: int, order: int, words: str) -> str:
    """What page_free's panic begins with."""
    if words == NO_MEMORY:
        return f"page_free: the address {words}"
    return f"page_free: frame {frame_at(address)} of order {order} {words} "


@pytest.mark.exercise("5.2", points=3)
def test_refusals(lab):
    """page_free of something that is not a block of this order: a panic that says what is there,
    before anything has changed."""
    at = DMA_END + 32
    with outside(lab, Zones) as run:
        run.begin()
        run.give_range(NORMAL, at, 16)
        block = run.take(NORMAL, 2)
        second = run.take(NORMAL, 1)
        slab = run.take(NORMAL, 0)
        run.guest.put_data(run.page(slab) + 8, bytes([SLAB]))
        seen = picture(run.guest)
        free = seen.zones[NORMAL].blocks()[-1]
        cases = {
            "a smaller order": (address_of(block), 1, OTHER_BLOCK),
            "order 0": (address_of(block), 0, OTHER_BLOCK),
            "a larger order": (address_of(block), 3, OTHER_BLOCK),
            "another block's order": (address_of(second), 2, OTHER_BLOCK),
            "an address in the first page": (address_of(block) + 4, 2, OTHER_BLOCK),
            "the last byte": (address_of(block) + PAGE - 1, 2, OTHER_BLOCK),
            "the second page": (address_of(block + 1), 0, "is not the first page"),
            "the second page as a block": (address_of(block + 2), 1, "is not the first page"),
            "a block that is free": (address_of(free[0]), free[1], "is free already"),
            "a page that was never handed out": (address_of(at - 1), 0, "was never handed out"),
            "a page that is cut into objects": (address_of(slab), 0, "is cut into objects"),
            "the first page of memory": (address_of(0), 0, "was never handed out"),
            "the end of memory": (address_of(FRAMES), 0, NO_MEMORY),
            "beyond memory": (address_of(FRAMES + 5000), 0, NO_MEMORY),
            "NULL": (0, 0, NO_MEMORY),
            "an address of user space": (0x08048000, 0, NO_MEMORY),
        }
        before = run.guest.data(address_of(block), 64)
        for name, (address, order, words) in cases.items():
            said = run.kernel.panic_of("page_free", address, order)
            if not said:
                fail(f"page_free of {name} was not refused")
            wanted = refusal(address, order, words)
            if not said.startswith(wanted):
                fail(f"page_free of {name}: expected a panic with {wanted!r}, seen {said!r}")
            if picture(run.guest) != seen or run.guest.data(address_of(block), 64) != before:
                fail(f"page_free of {name} changed something before it refused")
        run.free_page(address_of(block), 2)
        if not run.kernel.panic_of("page_free", address_of(block), 2):
            fail("page_free of a block that has been freed was not refused")
        assert seen.frames[at - 1].state == RESERVED


@pytest.mark.exercise("5.2", points=2)
@pytest.mark.parametrize("enabled", [0, 1])
def test_interrupts(lab, enabled):
    """Lists and owner: they change with interrupts disabled, after junk is written; then the flag
    is restored. The owner is the caller."""
    with outside(lab, Zones) as run:
        run.begin()
        run.give_range(NORMAL, DMA_END + 64, 8)
        block = run.take(NORMAL, 1)
        owners: list[int] = []

        def look_on(*_: int) -> None:
            """From buddy_give on to where interrupts are enabled again, or page_free ends."""
            if run.guest.registers()["eflags"] & INTERRUPTS:
                fail("page_free calls buddy_give with interrupts enabled")
            if run.guest.data(address_of(block), 2 * PAGE) != b"\xcc" * (2 * PAGE):
                fail("the pages are not filled with junk while they are still the caller's")
            back = run.kernel.place(FREED_BY)
            for _ in range(MOST_STEPS):
                here = run.guest.registers()
                if here["eflags"] & INTERRUPTS or here["eip"] == back:
                    break
                run.guest.step()
            owners.append(run.owner(block))

        with run.kernel.watching("buddy_give", look_on):
            run.free_page(address_of(block), 1, enabled, by=FREED_BY)
        if not owners:
            fail("page_free does not call buddy_give")
        owner = run.owner(block)
        if [owner] != owners:
            fail(
                "the owner is noted with interrupts enabled: the block may be somebody else's by "
                "then"
            )
        if (name := run.kernel.name_of(owner)) != FREED_BY:
            fail(f"the owner of a freed block is {name}, which is not the function that freed it")


@pytest.mark.exercise("5.2", points=1)
def test_junk_of_large_blocks(lab):
    """Junk in freed blocks: all pages up to order 4, the first page of larger blocks, and nothing
    beyond."""
    with outside(lab, Zones) as run:
        run.begin()
        run.give_range(NORMAL, DMA_END, LARGEST)
        for order, pages in ((4, 16), (5, 1), (9, 1)):
            frame = run.take(NORMAL, order)
            end = address_of(frame) + pages * PAGE
            run.guest.put_data(end, b"next")
            run.free_page(address_of(frame), order)
            if run.guest.data(end - 4, 8) != b"\xcc\xcc\xcc\xccnext":
                fail(f"page_free of order {order} fills another area than {pages} pages")


@pytest.mark.exercise("5.2", points=2)
def test_cost(lab):
    """The cost: at most 40 instructions without a split or merge, however long the list, and a
    bounded number for each split and merge."""
    with outside(lab, Zones) as run:
        for splits in (0, 1, 5, 10):
            run.begin()
            first = DMA_END + LARGEST - (1 << splits)
            others = range(DMA_END + 1, DMA_END + 200, 2) if splits == 0 else ()
            for frame in (*others, first):
                run.give_range(NORMAL, frame, 1 << splits)
            if splits == 10:
                run.give_range(NORMAL, DMA_END + LARGEST, LARGEST)
            most = OF_A_CALL + MOST_INSTRUCTIONS + MORE_EACH * splits
            _, page = run.kernel.cost("buddy_take", run.zone(NORMAL), 0, most=most)
            run.kernel.cost("buddy_give", run.zone(NORMAL), page, most=most)
            free = [*others, *range(first, DMA_END + LARGEST + (splits == 10) * LARGEST)]
            blocks = largest_blocks(free)
            require_blocks(run, NORMAL, blocks, "after a take and a give")
