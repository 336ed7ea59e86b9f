"""Exercise 5.2: blocks are split and merged, in zones and a page array of the test's own.

Not looked at here, but by the graders: blocks of the largest order, what a page's order was in an
earlier life, all that page_free must refuse, speed, and random operations against a model.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson5.support import DMA_END, USED, address_of, outside, picture, state_name
from tests.lesson5.zones import NORMAL, Zones, in_words, require_blocks
from tests.support.outside import TEST
from tests.support.told import Usual, expect, require, told

IN_GDB = "make gdb LESSON=5 BOOT=direct, then: break buddy_give, continue, info args"
LISTS = Usual(
    "in the list of(?!.*is PAGE_USED, not)|begins no block|within the block|previous",
    "state and order of the first page are not set with each block that becomes free; the upper "
    "page of two that merge does not become PAGE_TAIL; a block that merged is still in its list; "
    "or a buddy merges whose order is another",
)
COUNT = Usual(r"\.free is", "zone->free counts pages, not blocks: 1 << order")


@pytest.mark.exercise("5.2", points=2, gate=True)
def test_split(lab):
    """One page of a block of order 3: the upper halves stay free."""
    usually = (
        Usual(
            "returns",
            "the block that is handed out is the lower half, or the walk ends before ORDERS lists",
        ),
        Usual(
            "free blocks",
            "the halves that stay free have orders found - 1, found - 2, ... order, and are at "
            "page + (1 << order)",
        ),
        Usual(
            "is PAGE_USED, not",
            "the block that is taken stays in its list: list_remove, before it is split",
        ),
        Usual(
            "^the state", "the page that is handed out is PAGE_USED, with the order of the request"
        ),
        LISTS,
        COUNT,
    )
    start = DMA_END + 8 * Random(lab.seed).randrange(1, 99)
    with told(usually, IN_GDB), outside(lab, Zones) as run:
        block_of_order_3(run, start)
        expect("buddy_take(zone, 0) returns frame", run.take(NORMAL, 0), start)
        what = f"after order 0 was taken from a block of order 3 at frame {start}"
        seen = require_blocks(run, NORMAL, [(start + 1, 0), (start + 2, 1), (start + 4, 2)], what)
        page = seen.frames[start]
        expect("the state of the page", state_name(page.state), state_name(USED))
        expect("buddy_take(zone, 3) returns frame", run.take(NORMAL, 3), 0xFFFFFFFF)


def block_of_order_3(run: Zones, start: int) -> None:
    """All that is free is 8 pages."""
    run.begin()
    run.give_range(NORMAL, start, 8)


@pytest.mark.exercise("5.2", points=2, gate=True)
def test_merge(lab):
    """8 pages, given back in an order made from the seed, are one block of order 3 again."""
    usually = (
        Usual("takes of order 0", "buddy_take does not split as it should: test_split says more"),
        Usual(
            "free blocks|both are free|not aligned|previous",
            "the buddy of a block of this order is at frame ^ (1 << order); as long as it is free, "
            "and of this order, both are one block of the next order, which begins at the lower",
        ),
        LISTS,
        COUNT,
    )
    random = Random(lab.seed)
    start = DMA_END + 8 * random.randrange(1, 99)
    with told(usually, IN_GDB), outside(lab, Zones) as run:
        block_of_order_3(run, start)
        pages = [run.take(NORMAL, 0) for _ in range(8)]
        expect("the frames of 8 takes of order 0", sorted(pages), [*range(start, start + 8)])
        random.shuffle(pages)
        for page in pages:
            run.give(NORMAL, page)
        what = f"after frames {', '.join(map(str, pages))} were given back in this order"
        require_blocks(run, NORMAL, [(start, 3)], what)


@pytest.mark.exercise("5.2", points=1)
def test_range(lab):
    """A range that begins and ends anywhere becomes as few blocks as possible."""
    usually = (
        Usual(
            "free blocks",
            "a block of the range has the largest order that its first frame is aligned to and "
            "that fits into what is left",
        ),
        LISTS,
        COUNT,
    )
    with told(usually, "make hint EX=5.2"), outside(lab, Zones) as run:
        run.begin()
        first = DMA_END + 3
        run.give_range(NORMAL, first, 50)
        blocks = [(3, 0), (4, 2), (8, 3), (16, 4), (32, 4), (48, 2), (52, 0)]
        what = f"after buddy_give_range(zone, {first}, 50)"
        require_blocks(run, NORMAL, [(DMA_END + at, order) for at, order in blocks], what)


@pytest.mark.exercise("5.2", points=2, gate=True)
def test_page_free(lab):
    """page_free fills with junk, notes who freed it and gives back; a block that is free already is
    refused."""
    usually = (
        Usual(
            "in who freed", "page->owner becomes __builtin_return_address(0), the caller's address"
        ),
        Usual("junk", "memset before the block is given back, over PAGE_SIZE << order bytes"),
        Usual(
            r"free blocks of.*\(order 0\)", "the block loses its order: page->order stays as it is"
        ),
        Usual(
            r"free blocks of(?!.*\(order 0\))",
            "page_free does not call buddy_give with the page's zone",
        ),
        Usual("twice", "the state is not compared with PAGE_USED, before anything is changed"),
        Usual("both are free", "blocks that become free do not merge: test_merge says more"),
        LISTS,
        COUNT,
    )
    start = DMA_END + 16
    with told(usually, "make hint EX=5.2"), outside(lab, Zones) as run:
        block_of_order_3(run, start)
        block = run.take(NORMAL, 2)
        address = address_of(block)
        run.free_page(address, 2)
        word = run.kernel.word(address)
        expect("the first word of freed pages, which is junk (0xcc)", hex(word), hex(0xCCCCCCCC))
        last = run.kernel.word(address + 4 * 4096 - 4)
        expect("the last word of freed pages, which is junk (0xcc)", hex(last), hex(0xCCCCCCCC))
        owner = run.kernel.name_of(run.owner(block))
        expect("the owner of freed pages, an address in who freed them: it is in", owner, TEST)
        require_blocks(run, NORMAL, [(start, 3)], "after page_free of order 2")
        first, _ = (run.take(NORMAL, 2) for _ in range(2))
        run.free_page(address_of(first), 2)
        said = run.kernel.panic_of("page_free", address_of(first), 2)
        require(said, "page_free of one block twice: expected a panic, seen none")
        free = picture(run.guest).zones[NORMAL].blocks()
        expect("free blocks after that", in_words(free), in_words([(first, 2)]))
