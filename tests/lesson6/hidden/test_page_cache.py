"""Exercise 6.5, hidden: what happens while a page is read or written back, errors, and files that
are mapped by families of spaces, against a model."""

from __future__ import annotations

from errno import EINTR, EIO, ENOMEM, ENOSPC
from random import Random

import pytest

from tests.lesson6.caches import (
    ASKED_AGAIN,
    BOTH_FAIL,
    CUT_AND_FAILS,
    CUT_AND_GROWN,
    FAILS,
    IS_CUT,
    RECLAIMED,
    WRITTEN_TO,
)
from tests.lesson6.families import Families
from tests.lesson6.steps import (
    BASE,
    BOTH,
    CACHED,
    PAGE,
    READ_AT,
    SHARED,
    SHORTEN,
    SYNC,
    WRITABLE,
    WRITE_AT,
    World,
    spaces,
)

FILE, OTHER = 0, 1
A, B = 0, 1


def mapped(world: World, words: list[int], *flags: int) -> int:
    """A file, and a space for each of the flags that maps it. Returns the pages in use before."""
    before = world.used()
    world.cache(FILE, words)
    for space, each in enumerate(flags):
        world.make(space)
        world.put(space, BASE, len(words), each, file=FILE)
    return before


def finish(world: World, before: int, *ended: int) -> None:
    """Everything ends, and nothing is left."""
    world.end(*ended)
    assert world.release(FILE) == 1, "the file was not told that its cache has ended"
    left = world.used() - before
    assert left == 0, f"{left} pages are lost"


@pytest.mark.exercise("6.5", points=4, gate=True)
@pytest.mark.parametrize("number", [0, 1])
def test_families_and_files(lab, number):
    """Random maps, forks, cuts, accesses, write-backs and changes of size: contents are the
    model's."""
    with spaces(lab) as world:
        before = world.used()
        families = Families(world, Random(lab.seed + number), with_files=True)
        for _ in range(3):
            families.live(120)
            families.check_references()
        families.end()
        left = world.used() - before
        assert left == 0, f"{left} pages are lost"


@pytest.mark.exercise("6.5", points=2, gate=True)
def test_two_tasks_read_one_page(lab):
    """Two tasks that read the same page: it is in the tree once, with what one of them has written
    meanwhile."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13], BOTH | SHARED)
        alone = world.used()
        world.event(FILE, ASKED_AGAIN, 1, 1)
        error, references = world.page(FILE, 1)
        assert error == 0, f"`page` returns {error}"
        assert references == 2, f"references of the cache and of one who asked: {references}"
        assert world.used() == alone + 1, "there are two pages for one number"
        assert world.cached(FILE, 1) == (True, True), "what the other one wrote is not dirty"
        assert world.counts(FILE)[0] == 2
        world.unpin()
        assert world.read(A, BASE + PAGE) == 12
        assert world.entry(A, BASE + PAGE).references == 2
        finish(world, before, A)


@pytest.mark.exercise("6.5", points=1, once=True)
def test_late_writer(lab):
    """A page that is read for writing while another task reads it: it is dirty."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13], BOTH | SHARED)
        world.event(FILE, ASKED_AGAIN, 1, 0)
        assert world.write(A, BASE + PAGE, 21)
        assert world.cached(FILE, 1) == (True, True), "what the late one writes is not dirty"
        assert world.sync(FILE, 0, 3) == 0 and world.in_file(FILE, 1) == 21, "it is lost"
        finish(world, before, A)


@pytest.mark.exercise("6.5", points=1, once=True)
def test_cut_while_it_is_read(lab):
    """A page that is cut off while it is read: -EIO, and it is not in the tree."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13], BOTH)
        world.event(FILE, IS_CUT, 1)
        assert world.page(FILE, 1)[0] == -EIO
        assert world.cached(FILE, 1) == (False, False), "a page beyond the end is in the tree"
        assert world.read(A, BASE) == 11 and world.read(A, BASE + PAGE) is None
        finish(world, before, A)


@pytest.mark.exercise("6.5", points=1, once=True)
def test_cut_and_grown_while_it_is_read(lab):
    """A file that is cut and grown while a page is read: the page does not have the contents from
    before the cut."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13], BOTH)
        world.event(FILE, CUT_AND_GROWN, 1, 22)
        assert world.page(FILE, 1)[0] == 0
        world.unpin()
        assert world.read(A, BASE + PAGE) == 22, "the page of before the cut is in the tree"
        assert world.read(A, BASE) == 11
        world.event(FILE, CUT_AND_GROWN, 2, 33, times=4)
        assert world.page(FILE, 2)[0] == 0, "the file is cut and grown, again and again"
        assert not world.waits(FILE), "a page is read again each time"
        assert world.word_in_cache(FILE, 2) == 33
        world.unpin()
        finish(world, before, A)


@pytest.mark.exercise("6.5", points=2, once=True)
def test_file_that_cannot_be_read(lab):
    """Errors of a read: -EIO for any error of the file, -ENOMEM without memory. Nothing is left,
    and a later read works."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13], BOTH)
        for error in (EIO, ENOSPC, EINTR):
            world.event(FILE, FAILS, 1, error)
            assert world.page(FILE, 1)[0] == -EIO, f"the file cannot be read: {error}"
            assert world.cached(FILE, 1) == (False, False), (
                "a page that was not read is in the tree"
            )
        assert world.read(A, BASE + PAGE) == 12
        for number in (1, 2):
            world.give_back()
            world.fail(number)
            error, _ = world.page(FILE, 2)
            world.fail(0)
            assert error in (0, -ENOMEM), f"without memory: {error}"
            world.unpin()
        assert world.page(FILE, 2)[0] == 0
        world.unpin()
        world.lengthen(FILE, 2)  # and no page is cut: page 2 is still in memory
        assert world.page(FILE, 2)[0] == 0, "a page that is in memory"
        world.unpin()
        world.lengthen(FILE, 3)
        reads = world.counts(FILE)[0]
        assert world.page(FILE, 3)[0] == -EIO, "a page beyond the end"
        assert world.page(FILE, 1 << 19)[0] == -EIO, "a page far beyond the end"
        assert world.counts(FILE)[0] == reads, "a page beyond the end was read"
        finish(world, before, A)


@pytest.mark.exercise("6.5", points=1, once=True)
def test_page_without_a_place(lab):
    """No memory for a node of the tree: -ENOMEM, and the page is released."""
    with spaces(lab) as world:
        world.cache(FILE, [11, 12, 13])
        before = world.used()
        world.kernel.serve(world.guest.address("pool_alloc"), lambda *_: 0)
        assert world.page(FILE, 1)[0] == -ENOMEM
        assert world.cached(FILE, 1) == (False, False)
        left = world.used() - before
        assert left == 0, f"{left} pages are lost"


@pytest.mark.exercise("6.5", points=2, gate=True)
def test_written_to_while_it_is_written_back(lab):
    """A write during write-back: the page is dirty again, and the write is not lost."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13], BOTH | SHARED, BOTH | SHARED)
        assert world.write(A, BASE + PAGE, 21)
        assert world.write(B, BASE + PAGE, 22)
        world.event(FILE, WRITTEN_TO, 1, 33)
        assert world.sync(FILE, 0, 3) == 0
        assert world.cached(FILE, 1) == (True, True), "a write during the write-back is not seen"
        assert world.sync(FILE, 0, 3) == 0
        assert world.in_file(FILE, 1) == 33, "it is lost"
        assert world.cached(FILE, 1) == (True, False)
        finish(world, before, A, B)


@pytest.mark.exercise("6.5", points=2)
def test_tlb_after_a_write_back(lab):
    """Write-back: the TLB no longer allows writes."""
    with spaces(lab) as world:
        mapped(world, [11, 12, 13], BOTH | SHARED)
        write = (WRITE_AT, A, BASE + PAGE, 21)
        found = world.play([write, (SYNC, FILE, 0, 3), (*write[:3], 22), (CACHED, FILE, 1)])
        assert found[3] == (1, 1), "a write after the write-back does not make the page dirty"
        assert world.sync(FILE, 0, 3) == 0 and world.in_file(FILE, 1) == 22


@pytest.mark.exercise("6.5", points=2, once=True)
def test_file_that_cannot_be_written(lab):
    """Errors of a write-back: the first is returned, failed pages stay dirty, and all others are
    written."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13, 14, 15], BOTH | SHARED)
        for index in (0, 1, 3, 4):
            assert world.write(A, BASE + index * PAGE, 20 + index)
        world.event(FILE, FAILS, 1)
        error = world.sync(FILE, 0, 5)
        assert error == -ENOSPC, f"page_cache_sync returns {error}, not the error of the file"
        assert world.cached(FILE, 1) == (True, True), "a page that was not written is clean"
        assert [world.cached(FILE, index)[1] for index in (0, 3, 4)] == [False] * 3
        assert [world.in_file(FILE, index) for index in range(5)] == [20, 12, 13, 23, 24]
        assert world.sync(FILE, 0, 5) == 0 and world.in_file(FILE, 1) == 21
        assert world.counts(FILE)[1] == 5
        for index in (3, 4):
            assert world.write(A, BASE + index * PAGE, 30 + index)
        world.event(FILE, BOTH_FAIL, 3)
        error = world.sync(FILE, 0, 5)
        assert error == -EIO, f"of -EIO and then -ENOSPC page_cache_sync returns {error}"
        finish(world, before, A)


@pytest.mark.exercise("6.5", points=1, once=True)
def test_cut_while_it_cannot_be_written(lab):
    """A failed write-back of a page that is cut off meanwhile: the error is returned, and no other
    page becomes dirty."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13], BOTH | SHARED)
        world.cache(OTHER, [31, 32])
        assert world.write(A, BASE + PAGE, 21)
        world.event(FILE, CUT_AND_FAILS, 1, OTHER)
        error = world.sync(FILE, 0, 3)
        assert error == -ENOSPC, f"page_cache_sync returns {error}, not the error of the file"
        assert world.cached(FILE, 1) == (False, False), "a page that was cut is in the tree"
        assert world.cached(OTHER, 0) == (True, False), "a page that was only read is dirty"
        world.release(OTHER)
        finish(world, before, A)


@pytest.mark.exercise("6.5", points=1, once=True)
def test_what_is_only_read_is_clean(lab):
    """Reads: no page becomes dirty, in shared areas either, and nothing is written back."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13], BOTH | SHARED, BOTH)
        assert [world.read(A, BASE + index * PAGE) for index in range(3)] == [11, 12, 13]
        assert world.write(B, BASE + PAGE, 22)
        assert world.page(FILE, 2)[0] == 0
        world.unpin()
        dirty = [world.cached(FILE, index) for index in range(3)]
        assert dirty == [(True, False)] * 3, f"in the tree, and dirty: {dirty}"
        assert world.sync(FILE, 0, 3) == 0 and world.counts(FILE)[1] == 0
        finish(world, before, A, B)


@pytest.mark.exercise("6.5", points=1, once=True)
def test_range_of_a_write_back(lab):
    """The range of a write-back: pages `first` to `end` - 1; an empty range writes nothing."""
    with spaces(lab) as world:
        mapped(world, [*range(10, 18)], BOTH | SHARED)
        for index in range(8):
            assert world.write(A, BASE + index * PAGE, 20 + index)
        assert world.sync(FILE, 3, 3) == 0 and world.counts(FILE)[1] == 0
        assert world.sync(FILE, 2, 5) == 0
        dirty = [world.cached(FILE, index)[1] for index in range(8)]
        assert dirty == [True, True, False, False, False, True, True, True], f"dirty: {dirty}"
        world.cache(OTHER, [*range(30, 38)])
        for index in (1, 6):  # and nothing between them
            assert world.page(OTHER, index, write=1)[0] == 0
            world.unpin()
        assert world.sync(OTHER, 0, 6) == 0
        assert world.cached(OTHER, 6) == (True, True), "page 6 was written, of pages 0 to 5"
        assert world.sync(FILE, 7, 0xFFFFFFFF) == 0
        assert world.counts(FILE)[1] == 4
        assert [world.in_file(FILE, index) for index in range(8)] == [
            *(10, 11, 22, 23, 24, 15, 16, 27)
        ]


@pytest.mark.exercise("6.5", points=1, once=True)
def test_many_dirty_pages(lab):
    """A write-back of many pages: each is written once, in one call."""
    many = 60
    with spaces(lab) as world:
        world.cache(FILE, [*range(many)])
        for index in range(many):
            assert world.page(FILE, index, write=1)[0] == 0
            world.unpin()
        assert world.sync(FILE, 0, many) == 0
        assert sorted(world.written(FILE)) == [*range(many)], "pages that were written"


@pytest.mark.exercise("6.5", points=1, gate=True, once=True)
def test_runs_of_dirty_pages(lab):
    """A run of dirty pages: it ends at a clean or missing page, the range's end, or the caller's
    limit."""
    with spaces(lab) as world:
        before = mapped(world, [*range(10, 20)], BOTH | SHARED)
        assert world.read(A, BASE + 4 * PAGE) == 14  # and page 6 is not in the cache
        for index in (1, 2, 3, 5, 7, 8):
            assert world.write(A, BASE + index * PAGE, 20 + index)
        asked = [(0, 10, 2), (0, 10, 9), (0, 10, 9), (0, 8, 9), (8, 8, 9), (0, 10, 9)]
        runs = [world.clean(FILE, *each) for each in asked]
        counts = [count for _, count in runs]
        assert counts == [2, 1, 1, 1, 0, 1], f"pages in each run: {counts}"
        firsts = [first for first, count in runs if count > 0]
        assert firsts == [1, 3, 5, 7, 8], f"the first pages of the runs: {firsts}"
        assert world.clean(FILE, 0, 10, 9)[1] == 0, "a run of clean pages"
        assert world.write(A, BASE + 2 * PAGE, 32)
        assert world.clean(FILE, 0, 10, 9) == (2, 1), "a write after that is not seen"
        finish(world, before, A)


@pytest.mark.exercise("6.5", points=2)
@pytest.mark.parametrize("event", [IS_CUT, RECLAIMED])
def test_page_that_goes_while_it_is_written_back(lab, event):
    """A page that is cut off or reclaimed during write-back: it is held until it is written."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13, 14], BOTH | SHARED, BOTH | SHARED)
        for index in (1, 2):
            assert world.write(A, BASE + index * PAGE, 20 + index)
        world.event(FILE, event, 1)
        assert world.sync(FILE, 0, 4) == 0
        assert world.in_file(FILE, 1) == 21, "the page was freed while it was written"
        if event == IS_CUT:
            assert [world.cached(FILE, index)[0] for index in (1, 2)] == [False] * 2
            order = world.written(FILE)  # downwards, page 2 was written before the cut
            assert order in ([1], [2, 1]), "a page was written that is in the cache no more"
        finish(world, before, A, B)


@pytest.mark.exercise("6.5", points=2, once=True)
def test_shorter_and_longer(lab):
    """Changes of size: pages beyond the new end go, private copies too, and pages of a file that
    grows again are read again."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13, 14, 15, 16], BOTH | SHARED, BOTH)
        assert world.write(A, BASE + 4 * PAGE, 24)
        assert world.write(B, BASE + 5 * PAGE, 25) and world.write(B, BASE + PAGE, 21)
        assert world.read(B, BASE + 4 * PAGE) == 24
        frames = [world.entry(A, BASE + 4 * PAGE).frame, world.entry(B, BASE + 4 * PAGE).frame]
        assert frames[0] == frames[1], "two pages for one number"
        world.shorten(FILE, 4)
        assert world.entry(A, BASE + 4 * PAGE) is None, "a page that is cut is still shown"
        assert world.entry(B, BASE + 5 * PAGE) is None, "a copy of a page that is cut is shown"
        assert [world.read(B, BASE + index * PAGE) for index in (1, 3, 4, 5)] == [
            21,
            14,
            None,
            None,
        ]
        world.lengthen(FILE, 6)
        assert world.read(A, BASE + 4 * PAGE) == 15, "the page of before the cut"
        assert world.read(B, BASE + 5 * PAGE) == 16
        world.shorten(FILE, 0)
        assert [world.cached(FILE, index)[0] for index in range(6)] == [False] * 6
        assert world.read(B, BASE + PAGE) is None
        finish(world, before, A, B)


@pytest.mark.exercise("6.5", points=1)
def test_tlb_after_a_cut(lab):
    """A cut: the TLB no longer has its pages."""
    with spaces(lab) as world:
        mapped(world, [11, 12, 13], BOTH | SHARED)
        found = world.play(
            [
                (WRITE_AT, A, BASE + 2 * PAGE, 21),
                (READ_AT, A, BASE + 2 * PAGE),
                (SHORTEN, FILE, 2),
                (READ_AT, A, BASE + 2 * PAGE),
            ]
        )
        assert found[1] == (0, 21) and found[3][0] > 0, "a page that is cut can still be read"


@pytest.mark.exercise("6.5", points=2, gate=True, once=True)
def test_two_files(lab):
    """Two files: each has its own pages, a mapping outlives the descriptor, and a shared page is
    one page."""
    with spaces(lab) as world:
        before = mapped(world, [11, 12, 13, 14], BOTH | SHARED, BOTH | SHARED)
        world.cache(OTHER, [31, 32, 33, 34])
        world.put(B, BASE + 0x100000, 2, BOTH | SHARED, file=OTHER, index=2)
        assert world.read(B, BASE + 0x100000) == 33, "a mapping from the third page on"
        assert world.write(B, BASE + 0x101000, 44)
        assert world.sync(FILE, 0, 4) == 0 and world.in_file(OTHER, 3) == 34
        assert world.sync(OTHER, 0, 4) == 0 and world.in_file(OTHER, 3) == 44
        assert world.release(OTHER) == 0, "the file has ended while a program maps it"
        assert world.read(B, BASE + 0x100000) == 33
        assert world.write(B, BASE + 0x100000, 43)
        assert world.write(A, BASE, 21) and world.read(B, BASE) == 21
        assert world.entry(A, BASE).frame == world.entry(B, BASE).frame
        assert world.fork(A, 2) and world.write(2, BASE, 22) and world.read(A, BASE) == 22
        assert world.sync(FILE, 0, 4) == 0
        may = [space for space in (A, B, 2) if (e := world.entry(space, BASE)) and e.has(WRITABLE)]
        assert may == [], f"after a write-back the page may be written to in spaces {may}"
        finish(world, before, A, B, 2)
