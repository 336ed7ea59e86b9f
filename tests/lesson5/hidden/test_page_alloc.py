"""Exercise 5.3: every combination of reserve, zone, order and interrupts; and failures."""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson3.support import with_files
from tests.lesson4.support import fail, program
from tests.lesson5.support import (
    DMA_END,
    INTERRUPTS,
    ORDERS,
    ZONE,
    address_of,
    frame_at,
    outside,
    picture,
)
from tests.lesson5.zones import DMA, NORMAL, Zones
from tests.support.outside import TEST
from tests.support.remote import stopped

PLACES = (2048, DMA_END)  # where free pages are, of DMA and of Normal
WHOLE = "tests/lesson4/hidden/whole.c"
MOST_REQUESTS = 400


def pages(
    run: Zones, free: tuple[int, int], reserves: tuple[int, int] = (0, 0), shift: int = 0
) -> None:
    """Two zones with this many free pages each, and these reserves (DMA's, Normal's). shift: 1 for
    pages of which the first is free by itself, whatever their number."""
    run.begin()
    for zone in (DMA, NORMAL):
        if free[zone]:
            run.give_range(zone, PLACES[zone] + shift, free[zone])
    run.set_reserves(*reserves)


def ask(run: Zones, order: int, dma: int = 0, enabled: int = 1) -> int | None:
    """The zone of the answer, or None. Fails where the interrupt flag is not as it was, or where a
    block is nobody's."""
    address = run.ask_for_page(order, dma, enabled)
    if not address:
        return None
    if frame_at(address) % (1 << order):
        fail(f"a block of order {order} at {address:#x}")
    owner = run.kernel.name_of(run.owner(frame_at(address)))
    if owner != TEST:
        fail(f"a block of order {order} has an owner in {owner}, and {TEST} has asked for it")
    return DMA if address < address_of(DMA_END) else NORMAL


def largest_order(first: int, count: int) -> int:
    """The largest block in a range of free frames; -1 for none."""
    found = -1
    for order in range(11):
        size = 1 << order
        if -(-first // size) * size + size <= first + count:
            found = order
    return found


def zone_for(
    free: tuple[int, int], reserves: tuple[int, int], shift: int, order: int, dma: int, enabled: int
) -> int | None:
    """Where a request is served from."""
    first = DMA if dma else NORMAL
    for zone in range(first, -1, -1):
        kept = reserves[zone] * (1 if zone == first else 2) if enabled else 0
        has_block = largest_order(PLACES[zone] + shift, free[zone]) >= order
        if free[zone] >= kept + (1 << order) and has_block:
            return zone
    return None


def require_answer(
    run: Zones, free, reserves, shift: int, order: int, dma: int, enabled: int
) -> None:
    """One request in two zones made to order, which is judged."""
    pages(run, free, reserves, shift)
    expected = zone_for(free, reserves, shift, order, dma, enabled)
    found = ask(run, order, dma, enabled)
    if found != expected:
        names = {None: "NULL", DMA: "DMA", NORMAL: "Normal"}
        who = f"{'page_alloc_dma' if dma else 'page_alloc'}({order}), IF {enabled}"
        what = f"{who}, free {free}, reserves {reserves} of DMA and Normal"
        fail(f"{what}: expected {names[expected]}, seen {names[found]}")


@pytest.mark.exercise("5.3", points=4)
def test_borders(lab):
    """Limits of each kind of request: a page above and a page below each, with and without a single
    free page."""
    cases = [
        ((dma, normal), (8, 20), shift, order, device, enabled)
        for shift in (0, 1)
        for order in (0, 2, ORDERS - 1)
        for dma, normal in (
            *((8 + (1 << order) + d, 0) for d in (-1, 0)),
            *((16 + (1 << order) + d, 3) for d in (-1, 0)),
            *((0, 20 + (1 << order) + d) for d in (-1, 0)),
        )
        for device in (0, 1)
        for enabled in (0, 1)
    ]
    with outside(lab, Zones) as run:
        for case in cases:
            require_answer(run, *case)


@pytest.mark.exercise("5.3", points=3)
def test_random_requests(lab):
    """Random zones, reserves and requests: results are the model's."""
    random = Random(lab.seed)
    with outside(lab, Zones) as run:
        for _ in range(40):
            order = random.randrange(5)
            reserves = random.choice([0, 3, 15, 40]), random.choice([0, 3, 15, 40])
            near = [reserves[0], 2 * reserves[0], reserves[1], 0]
            free = [max(0, random.choice(near) + random.randrange(-2, 34)) for _ in range(2)]
            shift, device, enabled = (random.randrange(2) for _ in range(3))
            require_answer(run, (free[0], free[1]), reserves, shift, order, device, enabled)


@pytest.mark.exercise("5.3", points=2)
def test_pages_without_a_block(lab):
    """A zone with enough pages but no block of the order: the next zone is tried."""
    with outside(lab, Zones) as run:
        for enabled in (0, 1):
            run.begin()
            for frame in range(DMA_END, DMA_END + 64, 2):
                run.give_range(NORMAL, frame, 1)
            run.give_range(DMA, PLACES[DMA], 8)
            run.set_reserves(1, 1)
            if ask(run, 1, enabled=enabled) != DMA:
                fail("32 single pages in Normal, 8 in DMA: order 1 does not come from DMA")
            if ask(run, 3, enabled=enabled) is not None:
                fail("order 3 was handed out although no such block was free")
            if ask(run, 0, enabled=enabled) != NORMAL:
                fail("32 single pages in Normal: order 0 does not come from there")


@pytest.mark.exercise("5.3", points=2)
def test_emptied_by_many(lab):
    """Requests until all fail: those that may wait leave the reserves, others use them, and DMA
    memory is not emptied by requests that could use another zone."""
    with outside(lab, Zones) as run:
        pages(run, (60, 40), (10, 8))
        zones = []
        while len(zones) < MOST_REQUESTS and (zone := ask(run, 0)) is not None:
            zones.append(zone)
        if zones != [NORMAL] * 32 + [DMA] * 40:
            counts = zones.count(NORMAL), zones.count(DMA)
            fail(f"40 and 60 pages, 8 and 10 in reserve: {counts} handed out, not (32, 40)")
        devices = 0
        while devices < MOST_REQUESTS and ask(run, 0, dma=1) is not None:
            devices += 1
        if devices != 10:
            fail(f"20 pages left in DMA, 10 in reserve: a device gets {devices}, not 10")
        taken = 0
        while taken < MOST_REQUESTS and ask(run, 0, enabled=0) is not None:
            taken += 1
        if taken != 18 or sum(zone.free for zone in picture(run.guest).zones):
            fail(f"18 pages are left: with interrupts disabled {taken} are handed out")


@pytest.mark.exercise("5.3", points=3)
def test_every_request_fails_once(lab):
    """Fault injection: the n-th request fails, and no other, and it takes nothing."""
    kinds = [(0, 0, 1), (0, 1, 1), (1, 0, 0), (0, 1, 0), (2, 0, 1), (4, 0, 1), (9, 0, 1), (0, 0, 0)]
    with outside(lab, Zones) as run:
        for n in range(1, len(kinds) + 1):
            pages(run, (40, 6))
            run.fail_request(n)
            for number, kind in enumerate(kinds, 1):
                before = picture(run.guest) if number == n else None
                reached = ask(run, *kind)
                if number == n and (reached is not None or picture(run.guest) != before):
                    fail(f"request {n} is to fail, and takes a block")
                if number < n and kind[0] < 4 and reached is None:
                    fail(f"request {number} failed, and request {n} was to")
            if (left := run.kernel.word("allocation_fails_in")) != 0:
                fail(f"after {len(kinds)} requests the {n}-th has not come: {left} are left")


@pytest.mark.exercise("5.3", points=3)
@pytest.mark.parametrize(("dma", "enabled"), [(0, 0), (0, 1), (1, 1)])
def test_never_without_owner(lab, dma, enabled):
    """From taking a block to setting its owner: interrupts are disabled."""
    with outside(lab, Zones) as run:
        pages(run, (8, 0))
        was_taken: list[bool] = []

        def look_on(*_: int) -> None:
            """From buddy_take on to the end of page_alloc: the owner where interrupts come."""
            was_taken.append(True)
            back = run.kernel.place(TEST)
            for _ in range(MOST_REQUESTS):
                here = run.guest.registers()
                is_owned = run.kernel.name_of(run.owner(PLACES[DMA])) == TEST
                if here["eflags"] & INTERRUPTS and not is_owned:
                    fail("interrupts are enabled, and the block has no owner yet, or another one")
                if here["eip"] == back:
                    return
                run.guest.step()
            fail("page_alloc does not come back")

        with run.kernel.watching("buddy_take", look_on):
            run.ask_for_page(0, dma, enabled)
        if not was_taken:
            fail("page_alloc does not call buddy_take")


@pytest.mark.exercise("5.3", points=1, once=True)
def test_without_interrupts(lab):
    """Lists and the count of requests: they never change with interrupts enabled, in requests that
    succeed, fall back and fail."""
    orders = {"page_alloc": (0, 2, ORDERS - 1), "page_alloc_dma": (0,)}
    asked = [(name, order) for name, each in orders.items() for order in each]
    with outside(lab, Zones) as run:
        pages(run, (8, 6), (2, 2))
        run.fail_request(9)
        places = ("allocation_fails_in", 4), ("zones", 2 * ZONE.size)
        watched = [(run.guest.address(name), length) for name, length in places]
        run.require_undisturbed(asked, watched)


@pytest.mark.exercise("5.3", points=3)
@pytest.mark.parametrize("part", range(2))
def test_failures_while_programs_run(lab, part):
    """A request that fails while programs run, fork and end: no panic, and the next work is
    done."""
    random = Random(lab.seed + part)
    files = with_files(lab, {"bin/whole": program(WHOLE)})
    with stopped(lab, "prompt", "run /bin/whole abc; run /bin/whole abc", **files) as guest:
        place = guest.address("allocation_fails_in")
        number = random.randrange(2, 25)  # the first is the prompt's own: it panics without memory
        guest.write(place, number.to_bytes(4, "little"))
        said = guest.finish(seconds=10)
    if "PANIC" in said:
        fail(
            f"a request for memory failed, and the kernel panicked: {said.split('PANIC: ')[1][:80]}"
        )
    if "read " not in said.partition("run /bin/whole abc")[2].partition("run /bin/whole abc")[2]:
        fail("after a failed request the next program does not do its work")
