"""Exercise 6.3, hidden: while a fault makes a program's own copy of an object's page."""

from __future__ import annotations

import pytest

from tests.lesson5.support import outside
from tests.lesson6.faults import BASE, Faults, page_of_object, require_fault
from tests.lesson6.spaces import START
from tests.lesson6.support import PAGE, page_at
from tests.support.told import expect


@pytest.mark.exercise("6.3", points=1, once=True)
def test_a_page_is_held_while_it_is_copied(lab):
    """A private copy whose allocation reclaims pages of files: the fault holds a reference to the
    page that it copies."""
    with outside(lab, Faults, START) as run:
        space = run.begin()
        run.put(space, 0, 30, 3, of=1)
        page, seen = page_of_object(run, 9), []

        def look_on(*_: int) -> None:
            seen.append(page_at(run, page).references)

        with run.kernel.watching("page_alloc", look_on):
            require_fault(run, space, BASE + 9 * PAGE, write=True)
        held = max(seen, default=0)
        expect("references of the object's page while its copy is made", held, 2)
        expect("references of it afterwards", page_at(run, page).references, 1)
