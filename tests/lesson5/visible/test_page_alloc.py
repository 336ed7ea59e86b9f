"""Exercise 5.3: who gets a page of which zone, and who none. The zones are the test's own.

Not looked at here, but by the graders: all combinations of reserve, zone and order, requests with
interrupts disabled, free memory without a block of the order, and every n of a request that fails.
"""

from __future__ import annotations

import pytest

from tests.lesson5.support import DMA_END, address_of, outside, picture
from tests.lesson5.zones import DMA, NORMAL, Zones
from tests.support.outside import TEST
from tests.support.told import Usual, expect, told

NEXT = "make hint EX=5.3"
AT_DMA = 2048


def pages(run: Zones, dma: int, normal: int) -> None:
    """Two zones with this many free pages each, and no reserve."""
    run.begin()
    if dma:
        run.give_range(DMA, AT_DMA, dma)
    if normal:
        run.give_range(NORMAL, DMA_END, normal)
    run.set_reserves(0, 0)


def ask(run: Zones, order: int, dma: int = 0, enabled: int = 1) -> str:
    """page_alloc or page_alloc_dma in words: from where the answer is."""
    address = run.ask_for_page(order, dma, enabled)
    if not address:
        return "NULL"
    return "a block of DMA" if address < address_of(DMA_END) else "a block of Normal"


@pytest.mark.exercise("5.3", points=2, gate=True)
def test_block(lab):
    """page_alloc: the address of a block of Normal, with its owner; NULL when there is none."""
    usually = (
        Usual("returns", "allocate returns the block's first page; page_alloc makes its address"),
        Usual("owner", "page->owner is `owner`, which is the address in the caller"),
        Usual("pages that are free", "a block has 2^order pages: buddy_take gets the order"),
        Usual("NULL", "buddy_take returns NULL when no block is large enough: pass that on"),
    )
    with told(usually, NEXT), outside(lab, Zones) as run:
        pages(run, 0, 8)
        found = run.ask_for_page(3, 0, 1)
        expect("page_alloc(3) returns", hex(found), hex(address_of(DMA_END)))
        left = picture(run.guest).zones[NORMAL].free
        expect("pages that are free after page_alloc(3) took the only 8", left, 0)
        owner = run.kernel.name_of(run.owner(DMA_END))
        expect("the owner of a block, an address in the function that asked: it is in", owner, TEST)
        expect("page_alloc(0), when no page is free", ask(run, 0), "NULL")


@pytest.mark.exercise("5.3", points=2, gate=True)
def test_falls_back(lab):
    """A zone that has none is followed by the one below it, never by the one above."""
    usually = (
        Usual("page_alloc_dma", "a request for a device looks at zones above its own"),
        Usual("page_alloc", "allocate goes on with zone - 1 as long as that is not below zones"),
    )
    with told(usually, NEXT), outside(lab, Zones) as run:
        pages(run, 4, 1)
        expect("page_alloc(0), both zones have pages", ask(run, 0), "a block of Normal")
        expect("page_alloc(0), only DMA has pages", ask(run, 0), "a block of DMA")
        pages(run, 0, 8)
        expect("page_alloc_dma(0), only Normal has pages", ask(run, 0, dma=1), "NULL")


@pytest.mark.exercise("5.3", points=2)
def test_reserve(lab):
    """A zone keeps its reserve, and DMA twice as much from requests that Normal could serve."""
    usually = (
        Usual(
            "interrupts disabled",
            "with interrupts disabled nothing is kept: interrupts_disable() says whether they were "
            "enabled before",
        ),
        Usual("Normal has 10", "after the request the zone's free pages are not below its reserve"),
        Usual("DMA has", "a zone that a request falls back to keeps 2 * reserve"),
    )
    with told(usually, NEXT), outside(lab, Zones) as run:
        for normal, dma, order, enabled, expected in (
            (10, 0, 0, 1, "a block of Normal"),
            (10, 0, 1, 1, "NULL"),
            (10, 0, 1, 0, "a block of Normal"),
            (0, 11, 0, 1, "NULL"),
            (0, 13, 0, 1, "a block of DMA"),
        ):
            pages(run, dma, normal)
            run.set_reserves(6, 9)
            have = f"Normal has {normal} free pages and a reserve of 9"
            have = have if normal else f"DMA has {dma} free pages and a reserve of 6"
            how = "enabled" if enabled else "disabled"
            what = f"page_alloc({order}) with interrupts {how}, when {have}"
            expect(what, ask(run, order, enabled=enabled), expected)


@pytest.mark.exercise("5.3", points=1)
def test_injected_failure(lab):
    """The n-th request fails, and takes nothing."""
    usually = (
        "allocation_fails() is not asked, or more than once for a request (once for each zone)",
        "it is asked after the block was taken",
    )
    with told(usually, NEXT), outside(lab, Zones) as run:
        pages(run, 8, 8)
        run.fail_request(2)
        found = [ask(run, 0) == "NULL" for _ in range(4)]
        expect("NULL from requests 1 to 4, the second to fail", found, [False, True, False, False])
        left = sum(zone.free for zone in picture(run.guest).zones)
        expect("free pages after three of 16 were handed out", left, 13)
