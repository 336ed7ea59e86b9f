"""Exercise 6.4: copy on write.

Not looked at here, but by the graders: many generations with areas of all kinds against a model,
the TLB, memory that runs out in the middle of a fork, and how long a fork takes.
"""

from __future__ import annotations

import random

import pytest

from tests.lesson4.support import said_by_programs
from tests.lesson6.steps import BASE, PAGE, WRITABLE, Entry, World, spaces
from tests.support.told import Usual, expect, fail, require, told

COPIES = "tests/lesson6/user/copies.c"
PARENT, CHILD = 0, 1
PAGES = 4
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
    """After fork both show the same pages, read-only, each with two references."""
    usually = (
        *COMMON,
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
