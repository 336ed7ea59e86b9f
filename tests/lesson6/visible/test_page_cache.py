"""Exercise 6.5: files in memory. The files are the test's own: a page of one begins with a word.

Not looked at here, but by the graders: what happens while a page is read, cuts while one is written
back, errors of the file, memory that runs out, and all that in random order against a model.
"""

from __future__ import annotations

import random

import pytest

from tests.lesson6.caches import WRITTEN_TO
from tests.lesson6.steps import BASE, BOTH, PAGE, SHARED, WRITABLE, World, spaces
from tests.lesson6.support import error_name
from tests.support.told import Usual, expect, require, told

FILE = 0
A, B = 0, 1
PAGES = 6
HINT = "make hint EX=6.5"
IN_GDB = "make gdb LESSON=6 BOOT=direct, then: break page_cache_get, continue, finish"
NOT_THERE = Usual(
    r"page 3 returns|refused|finds .*None",
    "`page` returns an error for a page that the file has: what was read is put into the tree "
    "(page_cache_insert), and found there",
)


def file_in(lab, world: World) -> list[int]:
    """A file with a word in each page. Returns the words."""
    words = random.Random(lab.seed).sample(range(1000, 9999), PAGES)
    world.cache(FILE, words)
    return words


def show(world: World, space: int, flags: int) -> None:
    """A space that maps the file at BASE."""
    world.make(space)
    world.put(space, BASE, PAGES, flags, file=FILE)


def is_dirty(world: World, index: int, when: str) -> bool:
    """Whether a page that is in the cache is dirty."""
    there, dirty = world.cached(FILE, index)
    require(there, f"page {index} is not in the cache's tree {when}")
    return dirty


@pytest.mark.exercise("6.5", points=2, gate=True)
def test_one_page_for_each_number(lab):
    """The first to ask reads the page; others get the same one; there is none beyond the end."""
    usually = (
        NOT_THERE,
        Usual("often the file was read", "a page that is in the tree (find) is not read again"),
        Usual("of page [0-9]+ begins", "the page is not the one that was read"),
        Usual("not in the cache", "what was read is not put into the tree: insert"),
        Usual(
            "beyond|does not end",
            "index >= cache->ops->count(cache): there is no such page, -EIO",
        ),
        Usual("references", "the cache has one reference, and the caller gets one: page_hold"),
    )
    with told(usually, IN_GDB), spaces(lab) as world:
        words = file_in(lab, world)
        for pin, index in enumerate((3, 0, 3)):
            error, references = world.page(FILE, index, pin=pin)
            expect(f"the operation `page` for page {index} returns", error_name(error), "0")
            require(world.cached(FILE, index)[0], f"page {index} is not in the cache's tree")
            seen = world.word_in_cache(FILE, index)
            expect(f"what the cache has of page {index} begins with", seen, words[index])
            asked = "the cache and one caller" if pin < 2 else "the cache and two callers"
            expect(f"references of page {index}, of {asked}", references, 2 + (pin == 2))
        expect("how often the file was read for pages 3, 0 and 3", world.counts(FILE)[0], 2)
        expect(f"`page` for page {PAGES}, beyond the end, returns",
               error_name(world.page(FILE, PAGES)[0]), "-EIO")  # fmt: skip


@pytest.mark.exercise("6.5", points=2, gate=True)
def test_write_makes_dirty(lab):
    """A page is dirty after a program has written to it, and not after it was read."""
    usually = (
        NOT_THERE,
        Usual("after .* read", "only `write` makes a page dirty"),
        Usual("finds.*seen 0$", "the page was freed: test_one_page_for_each_number says more"),
        Usual(
            "after .* wrote(?!.*seen 0$)", "the page is dirty when it was asked for with `write`"
        ),
    )
    with told(usually, IN_GDB), spaces(lab) as world:
        words = file_in(lab, world)
        show(world, A, BOTH | SHARED)
        show(world, B, BOTH | SHARED)
        what = "what program A finds in page 2 (None: a fault)"
        expect(what, world.read(A, BASE + 2 * PAGE), words[2])
        when = "after program A has read it"
        expect(f"is page 2 dirty {when}", is_dirty(world, 2, when), False)
        require(world.write(A, BASE + 2 * PAGE, 21), "program A's write to page 2 is refused")
        when = "after program A wrote to it"
        expect(f"is page 2 dirty {when}", is_dirty(world, 2, when), True)
        expect(f"what program B finds in it {when}", world.read(B, BASE + 2 * PAGE), 21)
        expect("what the file itself has before msync", world.in_file(FILE, 2), words[2])


@pytest.mark.exercise("6.5", points=2)
def test_write_back(lab):
    """After page_cache_sync the file has it, the page is clean, and the next write is seen."""
    usually = (
        NOT_THERE,
        Usual("the file itself", "each dirty page in the range is written: cache->ops->write"),
        Usual("often the file was written", "a clean page, or one beyond the range, is written"),
        Usual("may .* write", "object_clean takes the right to write away in every space"),
        Usual("dirty", "is_dirty becomes false when the page is written back, and true by a write"),
    )
    with told(usually, HINT), spaces(lab) as world:
        words = file_in(lab, world)
        show(world, A, BOTH | SHARED)
        show(world, B, BOTH | SHARED)
        for space, index in ((A, 1), (B, 1), (A, 2), (A, 5)):
            require(world.write(space, BASE + index * PAGE, 50 + index), "a write is refused")
        world.read(A, BASE)
        expect("page_cache_sync of pages 0 to 4 returns", error_name(world.sync(FILE, 0, 5)), "0")
        found = [world.in_file(FILE, index) for index in range(PAGES)]
        expected = [words[0], 51, 52, *words[3:]]
        expect("what the file itself has, with pages 1, 2 and 5 dirty", found, expected)
        expect("how often the file was written", world.counts(FILE)[1], 2)
        dirty = [is_dirty(world, index, "after it") for index in (0, 1, 2, 5)]
        expect("are pages 0, 1, 2 and 5 dirty then", dirty, [False, False, False, True])
        may = [bool(e and e.has(WRITABLE)) for e in (world.entry(A, BASE + PAGE),
               world.entry(B, BASE + PAGE))]  # fmt: skip
        expect("may program A, and B, write to page 1 without a fault", may, [False, False])
        require(world.write(B, BASE + PAGE, 61), "the next write is refused")
        expect("is page 1 dirty after the next write", is_dirty(world, 1, "then"), True)


@pytest.mark.exercise("6.5", points=1)
def test_write_during_a_write_back(lab):
    """A page that a program writes to while it is being written back is dirty afterwards."""
    usually = (
        NOT_THERE,
        Usual("dirty before", "the page is dirty when it was asked for with `write`"),
        Usual("dirty after", "the page is made clean, and loses the right to be written to, "
              "before cache->ops->write, which sleeps: a write from then on makes it dirty again"),
        Usual("the file itself", "a dirty page is written back by the next page_cache_sync"),
    )  # fmt: skip
    with told(usually, HINT), spaces(lab) as world:
        file_in(lab, world)
        show(world, A, BOTH | SHARED)
        require(world.write(A, BASE + PAGE, 51), "program A's write to page 1 is refused")
        expect("is page 1 dirty before it is written back", is_dirty(world, 1, "before"), True)
        world.event(FILE, WRITTEN_TO, 1, 52)
        expect("page_cache_sync returns", error_name(world.sync(FILE, 0, PAGES)), "0")
        when = "after a write-back in which program A wrote to it once more"
        expect(f"is page 1 dirty {when}", is_dirty(world, 1, when), True)
        world.sync(FILE, 0, PAGES)
        expect("what the file itself has after the next one", world.in_file(FILE, 1), 52)


@pytest.mark.exercise("6.5", points=2)
def test_private_stays_private(lab):
    """What is written to a private area is in no file, and others do not see it."""
    usually = (
        NOT_THERE,
        Usual("finds.*seen 0$", "the page was freed: test_one_page_for_each_number says more"),
        Usual("dirty", "a private area asks for its page without `write`: only `write` counts"),
        "the page of the cache itself was written to: it is to be shown read-only (6.3)",
    )
    with told(usually, HINT), spaces(lab) as world:
        words = file_in(lab, world)
        show(world, A, BOTH)
        show(world, B, BOTH | SHARED)
        require(world.write(A, BASE + 3 * PAGE, 7), "program A's write to page 3 is refused")
        expect("what program A finds in page 3", world.read(A, BASE + 3 * PAGE), 7)
        expect("what program B finds in page 3", world.read(B, BASE + 3 * PAGE), words[3])
        expect("is page 3 dirty then", is_dirty(world, 3, "then"), False)
        require(world.write(B, BASE + 4 * PAGE, 8), "program B's write to page 4 is refused")
        expect("what program A finds in page 4", world.read(A, BASE + 4 * PAGE), 8)


@pytest.mark.exercise("6.5", points=2)
def test_cut(lab):
    """A file that gets shorter: its pages go from the cache and from every space."""
    usually = (
        Usual("finds", "the pages go from the spaces first: object_unmap, from `first` on"),
        Usual("tree", "page_cache_forget for each page from `first` on"),
        Usual("panicked", "a page is freed that is in use: `page` gives a reference (page_hold)"),
        Usual("still in use", "a page is taken out of the tree and not released"),
    )
    with told(usually, HINT), spaces(lab) as world:
        before = world.used()
        words = file_in(lab, world)
        show(world, A, BOTH | SHARED)
        show(world, B, BOTH)
        for space in (A, B):
            for index in range(PAGES):
                world.read(space, BASE + index * PAGE)
        world.shorten(FILE, 4)
        for name, space in (("A", A), ("B", B)):
            found = [world.read(space, BASE + index * PAGE) for index in range(PAGES)]
            expected = [*words[:4], None, None]
            expect(f"what program {name} finds after a cut to 4 pages (None: a fault)", found,
                   expected)  # fmt: skip
        there = [world.cached(FILE, index)[0] for index in range(PAGES)]
        expect("which pages are in the cache's tree", there, [True] * 4 + [False] * 2)
        world.end(A, B)
        world.release(FILE)
        expect("pages that are still in use at the end", world.used() - before, 0)
