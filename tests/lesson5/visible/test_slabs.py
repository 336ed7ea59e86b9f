"""Exercise 5.4: slabs.

Not looked at here, but by the graders: sizes and alignments of all kinds, colours, failures of
page_alloc, interrupts while a slab is made, and random operations against a model.
"""

from __future__ import annotations

import pytest

from tests.lesson5.slabs import START, Slabs
from tests.lesson5.support import outside
from tests.support.told import Usual, expect, fail, require, told

SIZE = 40
COMMON = (
    Usual(
        "page fault",
        "a pointer of the slab is not set, or a list's head is not LIST_EMPTY of itself: form",
    ),
    Usual(
        "panicked: slab_free|the first slab_free",
        "slab_free refuses an object that is handed out: its bit is not set (take), slab_free "
        "clears another bit, or the object is beyond the end of its slab",
    ),
    Usual("loops for ever", "a list that a slab is in twice has no end: list_remove comes first"),
)
IN_GDB = "make LESSON=5 gdb, then: tbreak slab_alloc, continue, finish, print *caches.partial.next"
HINT = "make hint EX=5.4"


@pytest.mark.exercise("5.4", points=1, gate=True)
def test_objects_do_not_overlap(lab):
    """Three slabs of objects, each filled with a number of its own."""
    usually = (
        *COMMON,
        Usual("how many objects", "slab_alloc does not make a new slab when the others are full"),
        Usual(
            "not in a page",
            "the slab's page does not become PAGE_SLAB; more objects are taken from it than fit; "
            "or a full slab is still in the list of the partial ones",
        ),
        Usual(
            "aligned",
            "objects begin at a multiple of the alignment: the header and the size are rounded up",
        ),
        Usual(
            "overwritten",
            "an object is handed out twice (its bit is not set), or count is too high",
        ),
    )
    with told(usually, IN_GDB), outside(lab, Slabs, START) as run:
        run.begin()
        count = run.make_cache(0, SIZE, 8)
        require(count, "slab_cache_create returns NULL, or a cache for 0 objects in a slab")
        wanted = 3 * count
        had, misaligned, elsewhere, overwritten = run.fill_objects(0, wanted)
        expect(f"how many objects of {wanted} slab_alloc returned", had, wanted)
        expect("objects that are not aligned to 8", misaligned, 0)
        expect("objects that are not in a page that is PAGE_SLAB", elsewhere, 0)
        expect("objects that were overwritten by another one", overwritten, 0)
        require(run.make_cache(1, 20, 16), "slab_cache_create returns NULL for a second cache")
        misaligned = sum(run.take(1) % 16 != 0 for _ in range(3))
        expect("objects of 20 bytes that are not aligned to 16", misaligned, 0)


@pytest.mark.exercise("5.4", points=1, gate=True)
def test_everything_comes_back(lab):
    """All objects are freed and the cache is destroyed: as many pages are free as before."""
    usually = (
        *COMMON,
        Usual("objects in use", "slab_free does not count used down"),
        Usual("whether slab_cache", "slab_cache_destroy is refused although nothing is handed out"),
        Usual("was never|cut into", "PAGE_SLAB must be PAGE_USED again before page_free"),
        "slab_shrink does not give the empty slabs' pages back, or empty slabs are in another list",
    )
    with told(usually, HINT), outside(lab, Slabs, START) as run:
        run.begin()
        before = run.free_pages()
        count = run.make_cache(0, SIZE, 8)
        own = before - run.free_pages()
        run.fill_objects(0, 3 * count)
        run.empty_objects(0)
        lists = run.lists(0)
        expect("objects in use after all were freed", lists[4], 0)
        expect("whether slab_cache_destroy has destroyed it", run.destroy(0), 1)
        kept = before - run.free_pages()
        expect(f"pages that are not free again (the cache itself is in one of {own})", kept, own)


@pytest.mark.exercise("5.4", points=1)
def test_three_lists(lab):
    """A slab is in the list of those that are full, partial or empty, as its objects are."""
    usually = (
        *COMMON,
        Usual(
            "partial first", "slab_alloc takes from an empty slab although a partial one is there"
        ),
        Usual("shrink", "slab_shrink gives all empty slabs back, and returns how many there were"),
        "a slab does not change its list when its first object, or its last, is taken or freed",
    )
    with told(usually, HINT), outside(lab, Slabs, START) as run:
        run.begin()
        count = run.make_cache(0, SIZE, 8)
        taken = [run.take(0) for _ in range(count + 1)]
        what = "partial, full and empty slabs"
        expect(f"{what} with one object more than fits in one", lists_of(run), [1, 1, 0])
        run.give(0, taken[-1])
        expect(f"{what} after that object is freed", lists_of(run), [0, 1, 1])
        run.give(0, taken[0])
        expect(f"{what} after one of the others is freed, too", lists_of(run), [1, 0, 1])
        run.take(0)
        expect(f"{what} after the next slab_alloc (partial first)", lists_of(run), [0, 1, 1])
        expect("pages that slab_shrink gives back of one empty slab", run.shrink(0), 1)
        expect(f"{what} after slab_shrink", lists_of(run), [0, 1, 0])


@pytest.mark.exercise("5.4", points=1)
def test_freed_twice(lab):
    """slab_free of an object that is free panics with the cache's name."""
    usually = (*COMMON, "slab_free does not ask slab_object whether the object is handed out")
    with told(usually, HINT), outside(lab, Slabs, START) as run:
        run.begin()
        run.make_cache(0, SIZE, 8)
        run.take(0)
        twice = run.take(0)
        said = run.panic_of_give(0, twice)
        expect("the first slab_free of an object panics with", said or "nothing", "nothing")
        said = run.panic_of_give(0, twice)
        if "test-a" not in said:
            fail(
                "slab_free of an object that is free: expected a panic with its cache's name, "
                f"test-a; seen {f'the panic {said!r}' if said else 'no panic'}"
            )


@pytest.mark.exercise("5.4", points=1)
def test_constructor(lab):
    """The constructor runs once for each object, and not again when the object is reused."""
    usually = (
        *COMMON,
        Usual(r"seen \[0", "grow does not call cache->construct"),
        "the constructor is called by slab_alloc, or once for each slab: it belongs into grow",
    )
    with told(usually, HINT), outside(lab, Slabs, START) as run:
        run.begin()
        count, calls = construct_twice(run)
        expect(
            f"calls of the constructor when {2 * count} objects, two slabs, were taken, freed and "
            "taken again, and at the end",
            calls,
            [2 * count] * 3,
        )


def construct_twice(run: Slabs) -> tuple[int, list[int]]:
    """Takes two slabs full of objects, gives all back, and takes them again. Returns how many
    objects are in a slab, and how often the constructor was called after each of the three."""
    count, calls = run.make_cache(0, 100, 4, 1), []
    for _ in range(2):
        taken = [run.take(0) for _ in range(2 * count)]
        calls.append(len(run.constructed))
        for address in reversed(taken):
            run.give(0, address)
    return count, [*calls, len(run.constructed)]


def lists_of(run) -> list[int]:
    """How many slabs are in each list."""
    return run.lists(0)[:3]
