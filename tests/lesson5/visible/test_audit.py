"""Exercise 5.6: the auditor.

Not looked at here, but by the graders: nine other kinds of broken allocators, most of them in
several forms, and an auditor that is asked while the allocators are in use.
"""

from __future__ import annotations

import re

import pytest

from tests.lesson3.support import with_files
from tests.lesson4.support import program
from tests.lesson5.audits import audit_after
from tests.lesson5.objects import PLAIN
from tests.lesson5.support import Run, memory_code
from tests.support.told import Usual, expect, require, told

AUDIT = "tests/lesson5/memory/audit.c"
CHILDREN = "tests/lesson4/programs/children.c"
COMMON = (
    Usual(
        "page fault",
        "a link is followed before it is known to be that of a page of the zone, or of a slab",
    ),
    Usual(
        "audit: slabs",
        "the slabs in all zones together are those of the caches, where nothing is wrong",
    ),
    Usual(
        "contradictions in sound(?!(.|\n)*audit: slabs)",
        "a rule is stricter than mm/buddy.h and mm/slab.h are, or what an earlier audit found is "
        "counted again",
    ),
)
HINT = "make hint EX=5.6"
COUNTED = re.compile(r"audit: \d+ contradictions")


@pytest.mark.exercise("5.6", points=1, gate=True)
def test_a_counter_that_drifts(lab):
    """zone->free is one more than the pages that are free."""
    usually = (*COMMON, "the pages of the free blocks of the array are not added up, or compared")
    with told(usually, HINT), spoilt(lab) as run:
        require_found(run, "counter_drifts", "zone->free is one too high")


@pytest.mark.exercise("5.6", points=1, gate=True)
def test_a_block_in_no_list(lab):
    """A page is free, and in no list."""
    usually = (*COMMON, "as many blocks must be in the list of an order as the array has free ones")
    with told(usually, HINT), spoilt(lab) as run:
        require_found(run, "in_no_list", "a free page is in no list")


@pytest.mark.exercise("5.6", points=1)
def test_two_free_buddies(lab):
    """Two buddies of one order are both free."""
    usually = (*COMMON, "the buddy of a free block (frame ^ size) is not looked at")
    with told(usually, HINT), spoilt(lab) as run:
        require_found(run, "two_free_buddies", "two buddies are free, and not merged")


@pytest.mark.exercise("5.6", points=1)
def test_a_list_that_has_no_end(lab):
    """A list's last link leads back into it: the auditor comes to an end, and says so."""
    usually = (
        *COMMON,
        Usual("loops for ever", "a list is followed for more links than there are frames"),
        "the back link of each link must lead to where you come from",
    )
    with told(usually, HINT), spoilt(lab) as run:
        require_found(run, "circle", "the last link of a free list leads back to its first page")


@pytest.mark.exercise("5.6", points=1)
def test_a_slab_that_miscounts(lab):
    """A slab's count of objects is not the number of bits in its map."""
    usually = (*COMMON, "the bits of each slab's map are not counted, or not compared with `used`")
    with told(usually, HINT), spoilt(lab) as run:
        require_found(run, "slab_count", "`used` of a slab is one more than its map has bits")


@pytest.mark.exercise("5.6", points=1)
def test_sound_allocators(lab):
    """The kernel at its prompt, and after a program has run: nothing to find."""
    usually = (*COMMON, "what is in a magazine or in quarantine is handed out, to its cache")
    with told(usually, "make LESSON=5 run BOOT=direct SCRIPT=audit"):
        files = with_files(lab, {"bin/children": program(CHILDREN)})
        result = lab.run("audit; run /bin/children many 30; audit", **files)
        lines = [line.strip() for line in result.serial.splitlines()]
        found = [line for line in lines if COUNTED.match(line)]
        named = [line for line in lines if line.startswith("audit: ") and line not in found]
        expect("contradictions that the command `audit` names", len(named), 0, *named[:2])
        result.check()
        sound = [line for line in found if line.startswith("audit: 0 contradictions")]
        expect("lines of the command `audit` before and after a program", len(found), 2, *found)
        expect("audits with 0 contradictions", len(sound), 2, *found)


def spoilt(lab):
    """A kernel with some blocks and slabs in use."""
    return memory_code(lab, AUDIT, PLAIN)


def require_found(run: Run, name: str, what: str) -> None:
    """The auditor must find this, and nothing before and after it."""
    run.call("begin_audit")
    before, seen = len(run.guest.said()), audit_after(run)
    said = [line for line in run.guest.said()[before:].splitlines() if line.startswith("audit: ")]
    expect("contradictions in sound structures", seen, 0, *said[:2])
    found = audit_after(run, name)
    require(found, f"{what}: expected at least one contradiction, seen none")
    expect("contradictions in sound structures, afterwards", audit_after(run), 0)
