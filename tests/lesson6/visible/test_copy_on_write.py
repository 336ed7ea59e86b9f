"""Exercise 6.4: copy on write.

Not looked at here, but by the graders: many generations with areas of all kinds against a model,
the TLB, what other tasks do meanwhile, no memory for areas and copies, and how long a fork takes.
"""

from __future__ import annotations

import random

import pytest

from tests.lesson4.support import said_by_programs
from tests.lesson5.support import outside
from tests.lesson6.faults import Faults, require_fault, which_page
from tests.lesson6.spaces import START
from tests.lesson6.steps import BASE, BOTH, PAGE, SHARED, WRITABLE, Entry, World, spaces
from tests.lesson6.support import entries
from tests.support.told import Usual, expect, fail, require, told

COPIES = "tests/lesson6/user/copies.c"
PARENT, CHILD, OTHER = 0, 1, 2
PAGES = 4
TABLE = 4 << 20  # bytes that a table maps
HINT = "make hint EX=6.4"
IN_GDB = "make gdb LESSON=6 BOOT=direct, then: break copy_on_write, continue, finish"
COMMON = (
    Usual("space_copy returns NULL", "space_copy returns the copy when nothing has failed"),
    Usual("refused", "copy_on_write returns an error, or the entry is still read-only after it"),
)


def family(lab, world: World) -> list[int]:
    """A parent with a word in each of its pages, and a child. Returns the words."""
    words = random.Random(lab.seed).sample(range(1000, 9999), PAGES)
    world.make(PARENT)
    world.put(PARENT, BASE, 2 * PAGES)
    for page, word in enumerate(words):
        write(world, PARENT, page, word)
    require(world.fork(PARENT, CHILD), "space_copy returns NULL, and there is memory")
    return words


def write(world: World, space: int, page: int, word: int) -> None:
    """Writes to a page."""
    who = "the child's" if space == CHILD else "the parent's"
    found = world.write(space, BASE + page * PAGE, word)
    require(found, f"{who} write to page {page} is refused with EFAULT")


def expect_words(world: World, space: int, words: list[int], when: str) -> None:
    """What a space has in its pages."""
    who = "child" if space == CHILD else "parent"
    found = [world.read(space, BASE + page * PAGE) for page in range(len(words))]
    expect(f"what the {who} finds in its pages {when}", found, words)


def entry(world: World, space: int, page: int) -> Entry:
    """The entry of a page that is there."""
    found = world.entry(space, BASE + page * PAGE)
    if not found:
        who = "child" if space == CHILD else "parent"
        fail(f"page {page} of the {who} has no entry, and it has been written to")
    return found


@pytest.mark.exercise("6.4", points=2, gate=True)
def test_child_finds_the_same(lab):
    """The child has its parent's areas, and finds in them what the parent wrote."""
    usually = (
        *COMMON,
        Usual("None", "the areas are not copied: area_put for each area of the space"),
        Usual("finds", "the entries are not copied: page_copy_range for areas without an object"),
    )
    with told(usually, HINT), spaces(lab) as world:
        words = family(lab, world)
        expect_words(world, CHILD, [*words, *[0] * PAGES], "after fork")
        expect_words(world, PARENT, [*words, *[0] * PAGES], "after fork")


@pytest.mark.exercise("6.4", points=2, gate=True)
def test_writes_are_apart(lab):
    """What one of the two writes, the other does not see."""
    usually = (
        *COMMON,
        Usual(
            r"the child finds(?!.*seen \[0, )",
            "the parent may still write to a page that the child shows, too: in the page table, or "
            "because the TLB remembers that it could; tlb_flush_space",
        ),
        Usual(
            r"the child finds.*seen \[0, ",
            "the entries are not copied: page_copy_range for areas without an object",
        ),
        Usual(
            "the parent finds",
            "the page is not copied though its references are more than 1, or the copy has not "
            "the contents: page_copy",
        ),
    )
    with told(usually, IN_GDB), spaces(lab) as world:
        words = family(lab, world)
        write(world, CHILD, 1, 12)
        write(world, CHILD, 5, 13)
        expect_words(world, PARENT, [*words, 0, 0], "after the child wrote to 1 and 5")
        write(world, PARENT, 0, 11)
        expected = [words[0], 12, *words[2:], 0, 13]
        expect_words(world, CHILD, expected, "after it wrote to 1 and 5, and the parent to 0")


@pytest.mark.exercise("6.4", points=2)
def test_no_page_is_copied_by_fork(lab):
    """After fork both show the same pages, read-only, each with two references; and the child's
    heap ends where its parent's does."""
    usually = (
        *COMMON,
        Usual("heap", "heap_start and heap_end belong to a space: the copy has its parent's"),
        Usual("the same page", "page_copy_range is to show the same pages, not copies of them"),
        Usual(
            "no entry", "the entries are not copied: page_copy_range for areas without an object"
        ),
        Usual("read-only", "both lose the right to write: page_copy_range"),
        Usual("references", "page_copy_range holds the pages; space_copy does not once more"),
    )
    with told(usually, HINT), spaces(lab) as world:
        family(lab, world)
        for page in range(PAGES):
            parents, childs = entry(world, PARENT, page), entry(world, CHILD, page)
            require(parents.frame == childs.frame, f"page {page}: expected the same page in both")
            writable = [each.has(WRITABLE) for each in (parents, childs)]
            expect(f"page {page}: may parent and child write (read-only)", writable, [False, False])
            expect(f"page {page}: references", childs.references, 2)
        heap = BASE + TABLE
        world.set_break(PARENT, heap + 10, start=heap)
        require(world.fork(PARENT, OTHER), "space_copy returns NULL, and there is memory")
        end = world.set_break(OTHER, 0)
        expect("the end of the child's heap, which is its parent's", hex(end), hex(heap + 10))


@pytest.mark.exercise("6.4", points=2)
def test_last_one_needs_no_copy(lab):
    """A space that is left alone with a page needs no copy to write; nothing is lost at the end."""
    usually = (
        *COMMON,
        Usual("shows another page", "references == 1: the entry becomes writable, without a copy"),
        Usual("the same page", "references > 1: a copy, and the entry shows it"),
        Usual(
            "references",
            "the new entry has one reference to its page, and the old page is released once",
        ),
        Usual("still in use", "the old page is not released, or one that is kept is held twice"),
    )
    with told(usually, IN_GDB), spaces(lab) as world:
        before = world.used()
        family(lab, world)
        old = entry(world, PARENT, 0).frame
        write(world, CHILD, 0, 21)
        require(entry(world, CHILD, 0).frame != old, "the child's page 0 is still the same page")
        expect("references of the child's copy", entry(world, CHILD, 0).references, 1)
        expect("references of the page that the parent has alone now",
               entry(world, PARENT, 0).references, 1)  # fmt: skip
        write(world, PARENT, 0, 22)
        require(entry(world, PARENT, 0).frame == old, "the parent's page 0 shows another page")
        expect("references of it after the parent wrote", entry(world, PARENT, 0).references, 1)
        world.end(CHILD)
        write(world, PARENT, 1, 23)
        world.end(PARENT)
        expect("pages that are still in use after both have ended", world.used() - before, 0)


@pytest.mark.exercise("6.4", points=1)
def test_shared_page_is_not_copied(lab):
    """A write to a shared area goes to the object's own page, and the object knows before."""
    usually = (
        Usual("the entry shows", "a page of an AREA_SHARED area is never copied: the entry gets "
              "the one that the object's operation `page` returns"),
        Usual("asked for", "object->ops->page with `write`: so the object learns that its page is "
              "about to be written to"),
        Usual("PTE_WRITE", "the entry that shows the object's page is to be writable then"),
        Usual("returns: expected 0", "the operation `page` returned 0: copy_on_write does, too"),
    )  # fmt: skip
    with told(usually, IN_GDB), outside(lab, Faults, START) as run:
        space, at = run.begin(with_peek=False), BASE + 12 * PAGE
        run.put(space, 10, 20, BOTH | SHARED, of=1, index=5)
        require_fault(run, space, at, write=False)
        run.asked.clear()
        require_fault(run, space, at, write=True)
        shown = entries(run, space).get(at, 0)
        what = "after a write to a shared area of an object the entry shows"
        expect(what, which_page(run, shown), "page 7 of the object")
        what = "is page 7 among those that the object was asked for, to be written to"
        expect(what, (7, 1) in run.asked, True)
        expect("PTE_WRITE of the entry", bool(shown & WRITABLE), True)


@pytest.mark.exercise("6.4", points=1)
def test_fork_that_fails(lab):
    """Whichever allocation of a fork finds no memory: NULL, and nothing is left of the copy."""
    usually = (
        Usual("no allocation fails", "test_child_finds_the_same says more"),
        Usual("still in use", "what a copy has by then is given back, too: space_destroy"),
        Usual("references", "a page that the copy showed already is released: space_destroy"),
        Usual("was refused", "an error of area_copy or of page_copy_range ends the fork"),
    )
    with told(usually, HINT), spaces(lab) as world:
        world.make(PARENT)
        for table in range(3):
            world.put(PARENT, BASE + table * TABLE, 4)
            world.write(PARENT, BASE + table * TABLE, 30 + table)
        words = [30, 31, 32]
        require(world.fork(PARENT, CHILD), "a fork returns NULL, and no allocation fails")
        found = words_of_tables(world)
        expect("what a child finds in three tables if no allocation fails", found, words)
        world.end(CHILD)
        before = world.used()
        for number in range(1, 40):
            world.fail(number)
            made = world.fork(PARENT, CHILD)
            world.fail(0)
            if made:
                break
            when = f"after a fork in which allocation {number} failed"
            expect(f"pages that are still in use {when}", world.used() - before, 0)
            expect(f"references of the parent's page {when}", entry(world, PARENT, 0).references, 1)
        require(number > 1, "the test's own fault: a fork that asks for nothing")
        what = f"what a child finds in three tables where allocation {number} was refused, if any"
        expect(what, words_of_tables(world), words)


def words_of_tables(world: World) -> list[int | None]:
    """What the child has in the first page of each table."""
    return [world.read(CHILD, BASE + table * TABLE) for table in range(3)]


@pytest.mark.exercise("6.4", points=2)
def test_program_and_its_child(lab):
    """A program forks twice; each generation writes to its stack, data and bss."""
    usually = (
        Usual(
            "does not reach its end",
            "the child does not find its stack, or its data, as the parent had it: "
            "test_child_finds_the_same says more",
        ),
        Usual(
            "seen nothing", "fork fails: space_copy returns NULL, or what it returns is not a space"
        ),
        Usual(
            "parent has",
            "read() has written for the child to a page that the parent shows, too: the kernel's "
            "writes fault as the program's do, and need a copy",
        ),
        "what a child writes is seen by its parent, or the other way round",
        "a page of the program's file that was written to is AREA_COPIED: else the child gets the "
        "file's page again",
    )
    seeded = random.Random(lab.seed)
    first, second, third = (seeded.randrange(100, 999) for _ in range(3))
    with told(usually, HINT):
        said = said_by_programs(lab, COPIES, f"kernel {first} {second} 7 {third}")
        expect("what the child has read into its page", said.get("child-has", "nothing"), second)
        expect("what the parent has in that page", said.get("parent-has"), first)
        expect("the child's exit code", said.get("code"), 7)
        expect("what the parent reads into it then", said.get("parent-reads"), third)
