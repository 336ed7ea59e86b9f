"""Exercise 5.4, hidden: sizes, colours, constructors, lists and refusals of slabs."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tests.lesson5.slabs import (
    CACHE_BYTES,
    CONSTRUCTED,
    HANDED_OUT,
    MAGAZINE,
    OBJECTS,
    OWNER,
    SLAB_BYTES,
    START,
    Model,
    Slabs,
)
from tests.lesson5.support import ORDERS, PAGE, Calls, outside

HEAD = 20  # bytes of struct slab without its map
LARGEST = 2016
ALIGNMENTS = (4, 8, 16, 32, 64)
UNMAPPED = 0x8000000  # below the kernel
MOST_CACHES = 300
MOST_OBJECTS = 130  # of a cache, where there need not be more


@dataclass(frozen=True)
class Form:
    """How a slab of such objects is laid out."""

    size: int
    count: int
    header: int
    colours: int


def rounded(value: int, unit: int) -> int:
    """Up to the next multiple."""
    return -(-value // unit) * unit


def form_of(size: int, alignment: int) -> Form:
    """As many objects as fit after the header, with a bit for each."""
    size = rounded(size, alignment)
    count = PAGE // size
    while (header := rounded(HEAD + 4 * rounded(count, 32) // 32, alignment)) + count * size > PAGE:
        count -= 1
    return Form(size, count, header, (PAGE - header - count * size) // alignment + 1)


@pytest.mark.exercise("5.4", points=3, gate=True)
def test_sizes_and_alignments(lab):
    """Objects from smaller than a pointer to the largest: as many as fit, none overlapping. In some
    slabs the last word of the map is for one object, in others for 32."""
    seeded = random.Random(lab.seed)
    shapes = [(1, 4), (16, 16), (3, 64), (126, 4), (127, 4)]
    shapes += [(LARGEST, 4), (LARGEST, 32), (2000, 64)]
    shapes += [with_count(count) for count in (32, 33)]
    shapes += [(seeded.randrange(40, 1900), seeded.choice(ALIGNMENTS)) for _ in range(8)]
    with outside(lab, Slabs, START) as run:
        run.begin()
        for size, alignment in shapes:
            form, what = form_of(size, alignment), f"size {size}, alignment {alignment}"
            count = run.make_cache(0, size, alignment)
            assert count == form.count, f"{what}: {count} objects in a slab, not {form.count}"
            wanted = count + 3 if size > 1 else MOST_OBJECTS
            had, *wrong = run.fill_objects(0, wanted)
            assert had == wanted, f"{what}: {had} objects of {wanted}"
            assert wrong == [0, 0, 0], f"{what}: not aligned, not in its slab, overwritten: {wrong}"
            start = run.kernel.word((run.objects[0] & -PAGE) + OBJECTS) % PAGE
            assert start == form.header, f"{what}: the first object is at byte {start} of its slab"
            run.empty_objects(0)
            assert run.destroy(0) == 1, f"{what}: not destroyed"


def with_count(count: int) -> tuple[int, int]:
    """Size and alignment of objects of which so many are in a slab."""
    return next((size, 4) for size in range(4, LARGEST, 4) if form_of(size, 4).count == count)


@pytest.mark.exercise("5.4", points=2)
def test_colours(lab):
    """Colours: each slab begins one alignment further than the one before, then again at the
    start."""
    with outside(lab, Slabs, START) as run:
        run.begin()
        for size, alignment in ((1000, 64), (600, 32), (124, 4), (1340, 4), (LARGEST, 4)):
            form = form_of(size, alignment)
            slabs = min(2 * form.colours + 1, MOST_OBJECTS // form.count)
            run.make_cache(0, size, alignment)
            starts = run.starts(0, slabs)
            expected = [form.header + alignment * (n % form.colours) for n in range(slabs)]
            assert starts == expected, f"objects of {size}: slabs begin at {starts}"
            run.empty_objects(0)
            given = run.shrink(0)
            assert given == slabs, f"slab_shrink gives {given} of {slabs} empty slabs back"
            (start,) = run.starts(0, 1)
            right = form.header + alignment * (slabs % form.colours)
            assert start == right, f"objects of {size}: after a shrink a slab begins at {start}"
            run.empty_objects(0)
            run.destroy(0)


@pytest.mark.exercise("5.4", points=2, gate=True)
def test_constructor_once_for_each_object(lab):
    """The constructor: it runs once for each object of a new slab, and a freed object keeps its
    contents."""
    with outside(lab, Slabs, START) as run:
        run.begin()
        count = run.make_cache(0, 100, 4, 1)
        for _ in range(2):
            taken = [run.take(0) for _ in range(2 * count + 1)]
            calls, without = run.constructed, [run.kernel.word(each) for each in taken]
            assert len(calls) == 3 * count, f"{len(calls)} calls for three slabs of {count} objects"
            assert len(set(calls)) == len(calls), "an object was constructed twice"
            assert set(without) == {CONSTRUCTED}, "an object without what the constructor wrote"
            contents = [CONSTRUCTED.to_bytes(4, "little") + seeded_bytes(each) for each in taken]
            for address, data in zip(taken, contents, strict=True):
                run.guest.put_data(address, data)
            for address in taken:
                run.give(0, address)
            kept = [run.guest.data(each, 100) for each in taken]
            assert kept == contents, "slab_free has changed an object"


def seeded_bytes(address: int) -> bytes:
    """What is in an object of 100 bytes, after what its constructor wrote."""
    return random.Random(address).randbytes(96)


def interrupt_a_slab(run: Slabs, enabled: int, frees: bool) -> tuple[int, int, list[int]]:
    """Takes an object while the constructor of its slab is interrupted by somebody who takes one of
    the same cache, and perhaps frees it at once. Returns how often the constructor found interrupts
    disabled, whether they are enabled afterwards, whether both objects are there and differ, and
    the lists, before and after both are freed."""
    disabled: list[int] = []
    of_the_interrupt: list[int] = []

    def construct(_address: int) -> None:
        now = run.kernel.enabled
        disabled.append(1 - now)
        if len(disabled) == 1:
            of_the_interrupt.append(run.take(0, now))
            if frees:
                run.give(0, of_the_interrupt[0])

    run.construct = construct
    run.make_cache(0, 1000, 8, 1)
    address = run.take(0, enabled)
    after = run.kernel.enabled
    other = of_the_interrupt[0] if of_the_interrupt else 0
    found = [int((address != other or frees) and address > 0 and other > 0), *run.lists(0)]
    run.give(0, address)
    if not frees:
        run.give(0, other)
    return sum(disabled), after, [*found, *run.lists(0)]


@pytest.mark.exercise("5.4", points=2)
@pytest.mark.parametrize("enabled", [0, 1])
@pytest.mark.parametrize("frees", [False, True])
def test_an_interrupt_while_a_slab_is_made(lab, enabled, frees):
    """An interrupt while a slab is made: it may take and free an object. The constructor runs with
    interrupts as the caller has them."""
    with outside(lab, Slabs, START) as run:
        run.begin()
        disabled, after, found = interrupt_a_slab(run, enabled, frees)
    per_slab = 4  # of 1000 bytes
    wanted = 0 if enabled else 2 * per_slab
    assert disabled == wanted, f"interrupts were disabled in {disabled} of {2 * per_slab} calls"
    assert after == enabled, "slab_alloc leaves interrupts other than they were"
    assert found[0] == 1, "the two objects are one, or none"
    right = [[1, 0, 1, 2, 1]] if frees else [[1, 0, 1, 2, 2], [2, 0, 0, 2, 2]]
    assert found[1:6] in right, f"lists and counts: {found[1:6]}"
    assert found[6:] == [0, 0, 2, 2, 0], f"lists and counts after both are freed: {found[6:]}"


@pytest.mark.exercise("5.4", points=2, once=True)
def test_lists_without_interrupts(lab):
    """A cache, its slabs and the list of caches: they never change with interrupts enabled."""
    with outside(lab, Slabs, START) as run:
        run.begin()
        run.make_cache(0, 40, 4)
        head = run.slab_of(run.take(0))
        cache, caches = run.kernel.word(head + OWNER), run.guest.address("slab_caches")
        watched = [(head, SLAB_BYTES), (cache, CACHE_BYTES), (caches, 8)]
        create = ("slab_cache_create", run.guest.text("test-b"), 40, 4, 0)
        run.require_undisturbed([*used_once(cache), create], watched)
        run.make_cache(1, 1000, 8)
        cache = run.caches[1]
        calls = [*used_once(cache), ("slab_cache_destroy", cache)]
        run.require_undisturbed(calls, [(cache, CACHE_BYTES), (caches, 8)])


def used_once(cache: int) -> list[tuple[str | int | None, ...]]:
    """An object is taken and freed."""
    return [("slab_alloc", cache), ("slab_free", cache, None)]


@pytest.mark.exercise("5.4", points=3)
def test_misuse(lab):
    """Freeing what is not the start of an object in use of this cache: a panic that names it."""
    with outside(lab, Slabs, START) as run:
        run.begin()
        for number, size in enumerate((40, 2000)):
            run.make_cache(number, size, 4)
        first, second, third = (run.take(0) for _ in range(3))
        other = run.take(1)
        run.give(0, second)
        page = run.kernel.call("page_alloc", 0)
        head = run.slab_of(first)
        wrong = {
            "an object of another cache": other,
            "an object that is free": second,
            "one that was never handed out": third + 40,
            "an address inside an object": first + 4,
            "the last byte of an object": first + 39,
            "the slab itself": head,
            "the end of the last object": last_end(run, head, 40),
            "a page without objects": page,
            "NULL": 0,
            "an address below the kernel": UNMAPPED,
            "an address in no frame": 0xFFFFF000,
        }
        before = run.lists(0)
        for what, address in wrong.items():
            said = run.panic_of_give(0, address)
            assert "test-a" in said, f"{what}: slab_free says {said!r}"
        assert "test-b" in run.panic_of_give(1, first)
        run.give(1, other)
        assert "test-b" in run.panic_of_give(1, other), "the last object of a slab, freed twice"
        run.make_cache(1, 40, 4)
        twin = run.take(1)
        assert "test-a" in run.panic_of_give(0, twin), "an object of another cache of this size"
        assert run.lists(0) == before, "a refused slab_free has changed the cache"


def last_end(run: Slabs, head: int, size: int) -> int:
    """The address after a slab's last object."""
    objects = run.kernel.word(head + OBJECTS)
    return objects + form_of(size, 4).count * size


@pytest.mark.exercise("5.4", points=2)
def test_destroy_and_shrink(lab):
    """A cache with objects is not destroyed; shrink releases exactly the empty slabs."""
    with outside(lab, Slabs, START) as run:
        run.begin()
        before = run.free_pages()
        count = run.make_cache(0, 500, 4)
        run.fill_objects(0, 3 * count)
        taken = run.take(0)
        held, names = run.lists(0), run.every_cache()
        assert run.destroy(0) == 0, "a cache with objects was destroyed"
        assert run.lists(0) == held, "a refused destroy has changed the cache"
        assert run.every_cache() == names, "a refused destroy has removed the cache"
        run.empty_objects(0)
        assert run.lists(0) == [1, 0, 3, 4, 1]
        assert run.destroy(0) == 0, "a cache with one object was destroyed"
        assert run.lists(0) == [1, 0, 3, 4, 1], "slabs of a cache in use"
        free = run.free_pages()
        assert run.shrink(0) == 3, "shrink does not return the empty slabs"
        assert run.free_pages() == free + 3
        assert run.lists(0) == [1, 0, 0, 1, 1]
        run.give(0, taken)
        assert run.destroy(0) == 1
        assert len(run.every_cache()) == len(names) - 1, "it is still among the caches"
        shrunk = run.kernel.call("slab_shrink", run.every_cache()[0])
        assert shrunk == 1, "the cache was no object of the cache of caches"
        assert run.free_pages() == before


@pytest.mark.exercise("5.4", points=1, once=True)
def test_a_cache_outlives_its_slabs(lab):
    """slab_cache_destroy: the cache stays an object in use while its pages are released, so that an
    interrupt cannot get its memory."""
    with outside(lab, Slabs, START) as run:
        run.begin()
        count = run.make_cache(0, 500, 4)
        run.fill_objects(0, 3 * count)
        run.empty_objects(0)
        cache, given = run.caches[0], []
        home = run.slab_of(cache)

        def look_on(page: int, *_: int) -> None:
            given.append((page, run.kernel.word(home + HANDED_OUT)))

        with run.kernel.watching("page_free", look_on):
            assert run.destroy(0) == 1
    assert len(given) == 3, f"{len(given)} pages are given back, of three"
    free = [page for page, used in given if not used]
    assert not free, f"the cache is free, and {len(free)} pages are still to go"


@pytest.mark.exercise("5.4", points=2, gate=True)
def test_caches(lab):
    """The list of caches: the cache of caches comes first and is not in a slab; the others follow
    in order."""
    with outside(lab, Slabs, START) as run:
        assert run.begin() == 1, "after slab_initialize there is not one cache"
        page = run.kernel.call("page_alloc", 0)
        run.kernel.call("page_free", page, 0)  # the next page that is handed out is full of junk
        for number in (0, 1):
            assert run.make_cache(number, 64, 64) > 0
            assert run.of(number, MAGAZINE) == 0, "a cache that is not kmalloc's has a magazine"
        names = [text(run, run.kernel.word(cache)) for cache in run.every_cache()]
        homes = [int(run.slab_of(cache) > 0) for cache in run.every_cache()]
    assert names[1:] == ["test-a", "test-b"], f"the caches are {names}"
    assert homes == [0, 1, 1], f"which caches are in slabs (the first is not): {homes}"


def text(run: Slabs, address: int) -> str:
    """A text of the kernel's, up to its NUL."""
    return run.guest.data(address, 12).partition(b"\0")[0].decode(errors="replace")


@pytest.mark.exercise("5.4", points=2)
def test_without_memory(lab):
    """A page that is refused: nothing is lost. The reserve is for callers that cannot wait."""
    with outside(lab, Slabs, START, memory=16) as run:
        run.begin()
        run.make_cache(0, 1000, 8)
        found = []
        for fails in (1, 0):
            run.fail_request(fails)
            found += [int(run.take(0) > 0), *run.lists(0)]
        assert found == [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1], f"around a refused page: {found}"
        run.make_cache(1, 40, 4)
        run.fill_objects(0, 3)  # the slab is full
        taken = take_all_pages(run)
        waiting, enabled = run.take(0, enabled=1), run.kernel.enabled
        urgent = run.take(0)
        assert waiting == 0, "the reserve was given to somebody who can wait"
        assert enabled == 1, "interrupts are disabled after slab_alloc has failed"
        assert urgent > 0, "the reserve was not given with interrupts disabled"
        assert run.lists(0) == [1, 1, 0, 2, 5], f"lists and counts: {run.lists(0)}"
        for address, order in taken:
            run.kernel.call("page_free", address, order)
        require_whole_caches(run)


def take_all_pages(run: Calls) -> list[tuple[int, int]]:
    """All blocks that somebody who can wait may have: (address, order)."""
    taken = []
    for order in reversed(range(ORDERS)):
        while address := run.kernel.call("page_alloc", order, enabled=1):
            taken.append((address, order))
    return taken


def require_whole_caches(run: Slabs) -> None:
    """A page is refused: no cache is made, or a whole one, and no page is lost."""
    before, free = run.every_cache(), run.free_pages()
    made = []
    while len(made) < MOST_CACHES:
        run.fail_request(1)
        if not run.make_cache(0, 64, 4):
            break
        made.append(run.caches[0])
    run.fail_request(0)
    assert len(made) < MOST_CACHES, "a cache was made without memory"
    assert run.every_cache() == [*before, *made], "a cache that was refused is among the caches"
    for cache in reversed(made):
        assert run.kernel.call("slab_cache_destroy", cache) & 0xFF, "a cache is not destroyed"
    run.kernel.call("slab_shrink", before[0])
    assert run.free_pages() == free, "pages are lost"


@pytest.mark.exercise("5.4", points=4, gate=True)
@pytest.mark.parametrize("least", [100, 400])
def test_against_a_model(lab, least):
    """Random operations on two caches, with many and with few objects in a slab: all objects are
    the model's."""
    seeded = random.Random(lab.seed)
    with outside(lab, Slabs, START) as run:
        run.begin()
        for number in range(2):
            size = seeded.randrange(least, 2 * least)
            run.make_cache(number, size, seeded.choice(ALIGNMENTS))
        before = run.free_pages()
        Model(run, seeded).operate()
        assert run.free_pages() == before, "pages are lost"
        assert run.kernel.call("memory_audit") == 0, "the auditor finds contradictions"
