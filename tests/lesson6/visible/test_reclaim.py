"""Exercise 6.6: which pages of files are given back, and who is killed when there are none.

Not looked at here, but by the graders: pages that two programs show, pages that somebody works on,
the TLB, rings in which nothing can go, and who is chosen of many.
"""

from __future__ import annotations

import random
import re

import pytest

from tests.lesson3.support import with_files
from tests.lesson4.support import program
from tests.lesson5.support import outside
from tests.lesson6.steps import BASE, BOTH, PAGE, READ, SHARED, World, spaces
from tests.lesson6.victims import SIGKILL, Candidate, Victims, in_words
from tests.support.told import Usual, expect, require, told

EATERS = "tests/lesson6/user/eaters.c"
FILE, A = 0, 0
PAGES = 8
MEMORY = 32
KILLED = re.compile(r"^out of memory: killed (\d+) \((.*)\), (\d+) KiB$", re.MULTILINE)
HINT = "make hint EX=6.6"
TWO_LOOKS = Usual(
    "seen 0",
    "after all pages have lost the bit the hand comes by again: two looks for each page",
)
IN_GDB = "make gdb LESSON=6 BOOT=direct, then: break page_cache_reclaim, continue, finish"


def shown(lab, world: World, flags: int = READ) -> list[int]:
    """A file of eight pages, which program A has read in order. Returns its words."""
    words = random.Random(lab.seed).sample(range(1000, 9999), PAGES)
    world.cache(FILE, words)
    world.make(A)
    world.put(A, BASE, PAGES, flags, file=FILE)
    for index in range(PAGES):
        world.read(A, BASE + index * PAGE)
    return words


def in_cache(world: World) -> list[int]:
    """Which pages of the file are in memory."""
    return [index for index in range(PAGES) if world.cached(FILE, index)[0]]


@pytest.mark.exercise("6.6", points=2, gate=True)
def test_pages_are_given_back(lab):
    """Clean pages go, from the cache and from the program that shows them, and can come again."""
    usually = (
        TWO_LOOKS,
        Usual("returns: .*seen [1-9]", "the result is how many pages were freed, at most `count`"),
        Usual(
            "still in use",
            "object_forget first, which takes the page out of every space; then page_cache_forget "
            "frees it",
        ),
        Usual("finds", "object_forget first: no entry may show a page that is freed"),
    )
    with told(usually, IN_GDB), spaces(lab) as world:
        words = shown(lab, world)
        before = world.used()
        expect("page_cache_reclaim(3) with 8 clean pages returns", world.reclaim(3), 3)
        expect("pages of the file in memory then", len(in_cache(world)), 5)
        expect("pages that are still in use, of these 3", world.used() - (before - 3), 0)
        found = [world.read(A, BASE + index * PAGE) for index in range(PAGES)]
        expect("what the program finds in the file's pages then", found, words)


@pytest.mark.exercise("6.6", points=2, gate=True)
def test_second_chance(lab):
    """A page that was used since the hand was there stays; the first one that was not goes."""
    usually = (
        Usual(
            r"after one .*\[\]|after one .*\[0, 1, 2, 3, 4, 5, 6, 7\]",
            "after all pages have lost the bit the hand comes by again: two looks for each page",
        ),
        Usual("after one", "the page at the front of the ring is looked at first"),
        Usual("after another", "a page that was used loses the bit and stays; the hand goes on "
              "where it stopped, because each page that it looks at goes to the ring's end"),
    )  # fmt: skip
    with told(usually, IN_GDB), spaces(lab) as world:
        shown(lab, world)
        world.reclaim(1)
        expect("pages in memory after one of 8 used pages was given back", in_cache(world),
               [1, 2, 3, 4, 5, 6, 7])  # fmt: skip
        world.read(A, BASE + PAGE)
        world.read(A, BASE + 2 * PAGE)
        world.reclaim(1)
        expect("pages in memory after another one, with pages 1 and 2 used since", in_cache(world),
               [1, 2, 4, 5, 6, 7])  # fmt: skip


@pytest.mark.exercise("6.6", points=2)
def test_dirty_pages_stay(lab):
    """A page that was written to is not dropped, however often the hand comes by."""
    usually = (TWO_LOOKS, Usual("seen [1-9]", "is_dirty is not looked at"))
    with told(usually, IN_GDB), spaces(lab) as world:
        shown(lab, world, BOTH | SHARED)
        for index in (0, 5):
            require(world.write(A, BASE + index * PAGE, 60 + index), "a write is refused")
        expect("page_cache_reclaim(8) with 6 clean pages returns", world.reclaim(8), 6)
        expect("pages in memory then: those that are dirty", in_cache(world), [0, 5])
        expect("what the program finds in page 5", world.read(A, BASE + 5 * PAGE), 65)


@pytest.mark.exercise("6.6", points=2, gate=True)
def test_who_takes_all_is_killed(lab):
    """A program takes all memory: it is killed, the others live, and the kernel says who it was."""
    usually = (
        Usual("panicked", "out_of_memory returns when there is nobody to kill, or one is dying"),
        Usual(r"KiB.*seen \d{1,3}$", "the process whose space shows the most pages is chosen"),
        Usual(r"KiB.*seen \d{4,}$", "the line says KiB: four for each page of space_resident"),
        Usual("names", "the line is printed once for each process that is killed, with its name"),
        "out_of_memory sends SIGKILL to the process with most pages, but never to init",
    )
    with told(usually, HINT):
        files = with_files(lab, {"bin/eaters": program(EATERS)})
        result = lab.run("run /bin/eaters all; run /bin/eaters eat 100", memory=MEMORY, **files)
        said = result.serial.replace("\r", "")
        killed = KILLED.findall(said)
        least, most = MEMORY * 1024 // 2, MEMORY * 1024
        for _, name, kib in killed[:1]:
            what = f"KiB that the kernel says {name} had, which it killed"
            require(least < int(kib) < most, f"{what}: expected {least} to {most}, seen {kib}")
        result.check()
        seen = [name for _, name, _ in killed]
        expect("the names that the kernel says it killed", seen, ["eaters"])
        require("all 1009" in said, "the child that took all was not ended by SIGKILL")
        require("alive 1" in said, "its parent, which had little, does not go on")
        require("has 100" in said, "after that no program gets memory")


@pytest.mark.exercise("6.6", points=1)
@pytest.mark.parametrize("what", ["init has the most pages", "a process is dying already"])
def test_who_is_not_killed(lab, what):
    """Never init, nor a shell that has a little more; and nobody while a process that was killed
    still has its memory."""
    usually = (
        Usual(
            r"seen \[\(11, ",
            "a page of a session's leader counts one LEADER-th of another process's",
        ),
        Usual(
            r"init has.*seen(?! \[\(11, )",
            "a process with the PID INIT is never chosen, whatever it has",
        ),
        Usual(
            "dying already.*seen",
            "a process that has its SIGKILL (is_dying) and still has pages will give them back: "
            "no second one is killed meanwhile",
        ),
    )
    every = [Candidate(1, 40), Candidate(7, 300), Candidate(9, 200)]
    killed = [(7, SIGKILL)]
    if what.startswith("init"):
        every[0] = Candidate(1, 900)
        every.append(Candidate(11, 800, leads=True))
    else:
        every[2], killed = Candidate(9, 200, is_dying=True), []
    with told(usually, HINT), outside(lab, Victims, "prompt") as run:
        seen = run.kill(every)[0]
        expect(f"who gets which signal where {what}, of {in_words(every)}", seen, killed)
