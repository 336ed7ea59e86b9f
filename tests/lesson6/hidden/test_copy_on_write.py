"""Exercise 6.4, hidden: families against a model, the TLB, what is shared, memory that runs out,
and what a fork costs."""

from __future__ import annotations

from errno import ENOMEM
from random import Random

import pytest

from tests.lesson4.support import run_programs, said_by_programs
from tests.lesson5.support import outside
from tests.lesson6.families import Families
from tests.lesson6.faults import Faults, page_of_object, require_fault
from tests.lesson6.spaces import START
from tests.lesson6.steps import (
    ACCESSED,
    BASE,
    BOTH,
    DIRTY,
    FORK,
    PAGE,
    PRESENT,
    PROTECT,
    READ,
    READ_AT,
    SHARED,
    SIZES,
    WRITABLE,
    WRITE_AT,
    World,
    spaces,
)
from tests.lesson6.support import WRITE, entries, frame_of, page_at
from tests.support.told import expect

COPIES = "tests/lesson6/user/copies.c"
PARENT, CHILD, GRANDCHILD, OTHER = range(4)
BUDGET = 60  # instructions, for each page that a fork shows
FORK_ALONE = 25_000  # for the rest of it: areas, tables
LARGE = 4096  # pages
TABLE = 4 << 20  # bytes that a table maps


def filled(world: World, pages: int, first: int = 100) -> None:
    """A parent with this many pages that it has written to, and as many that it has not."""
    world.make(PARENT)
    world.put(PARENT, BASE, 2 * pages)
    world.play([(WRITE_AT, PARENT, BASE + page * PAGE, first + page) for page in range(pages)])


@pytest.mark.exercise("6.4", points=4, gate=True)
@pytest.mark.parametrize("number", [0, 1])
def test_families_against_a_model(lab, number):
    """Random forks, exits, cuts, protections and accesses of zeros and files: pages and their
    counts are the model's."""
    with spaces(lab) as world:
        before = world.used()
        families = Families(world, Random(lab.seed + number))
        for _ in range(3):
            families.live(120)
            families.check_references()
        families.end()
        left = world.used() - before
        assert left == 0, f"{left} pages are lost"


@pytest.mark.exercise("6.4", points=2)
def test_tlb_of_the_parent(lab):
    """fork: the parent's TLB no longer allows writes."""
    with spaces(lab) as world:
        filled(world, 6)
        writes = [(WRITE_AT, PARENT, BASE + page * PAGE, 500 + page) for page in range(6)]
        reads = [(READ_AT, CHILD, BASE + page * PAGE) for page in range(6)]
        # In one go: nothing but the kernel under test changes what the TLB knows.
        found = world.play([*writes, (FORK, PARENT, CHILD), *((*w[:3], 9) for w in writes), *reads])
    assert all(left == 0 for left, _ in found[:6] + found[7:]), f"an access fails: {found}"
    seen = [word for _, word in found[13:]]
    assert seen == [500 + page for page in range(6)], f"the child sees the parent's writes: {seen}"


@pytest.mark.exercise("6.4", points=1, once=True)
def test_another_task_changes_the_area(lab):
    """A write to a shared page while another task unmaps or protects its area: no entry becomes
    writable, and no page is lost."""
    at = BASE + 12 * PAGE
    changes = [
        ("unmaps the area", (0, 0, 0), 0, "-EFAULT"),
        ("maps it again, to be read", (1 | SHARED, 1, 5), 1, "-EACCES"),
        ("forbids to write", (1, 2, 0), 1, "-EACCES"),
    ]
    for words, change, areas, then in changes:
        with outside(lab, Faults, START) as run:
            space = run.begin(with_peek=False)
            run.put(space, 10, 20, WRITABLE | SHARED, of=1, index=5)
            require_fault(run, space, at, write=False)
            run.be_changed(space, BASE + 10 * PAGE, BASE + 20 * PAGE, *change)
            require_fault(run, space, at, write=True)
            seen = [entry for entry in entries(run, space).values() if entry & WRITE]
            what = f"while the object is asked another task {words}"
            expect(f"{what}: entries that are writable", len(seen), 0)
            held = run.references_meanwhile
            expect(f"{what}: has the object a reference", held > areas, True)
            require_fault(run, space, at, True, then)
            run.call("area_cut", space, BASE, BASE + 30 * PAGE)
            references = page_at(run, page_of_object(run, 7)).references
            expect(f"{what}: references of its page", references, 1)


@pytest.mark.exercise("6.4", points=1, once=True)
def test_object_without_its_page(lab):
    """A write to a shared page that its object no longer has: -EIO or -ENOMEM, as the object says,
    and the entry is as it was."""
    with outside(lab, Faults, START) as run:
        for no_memory, index in ((False, 7), (True, 8)):
            space, at = run.begin(with_peek=False), BASE + (5 + index) * PAGE
            run.put(space, 10, 20, WRITABLE | SHARED, of=1, index=5)
            require_fault(run, space, at, write=False)
            before = entries(run, space)
            run.lose_page(index, no_memory)
            require_fault(run, space, at, True, "-ENOMEM" if no_memory else "-EIO")
            expect("entries after that", entries(run, space), before)


@pytest.mark.exercise("6.4", points=2, gate=True, once=True)
def test_three_generations(lab):
    """Three generations that end in every order: the last one has its page alone."""
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    with spaces(lab) as world:
        before = world.used()
        for order in orders:
            filled(world, 3)
            assert world.fork(PARENT, CHILD) and world.fork(CHILD, GRANDCHILD)
            assert world.entry(CHILD, BASE).references == 3
            frame = world.entry(PARENT, BASE).frame
            world.end(order[0])
            assert world.write(order[1], BASE + PAGE, 7)
            assert world.read(order[2], BASE + PAGE) == 101
            world.end(order[1])
            last = order[2]
            assert world.write(last, BASE, 8), "a write is refused"
            now = world.entry(last, BASE)
            assert (now.frame, now.references) == (frame, 1), f"{order}: not the page itself: {now}"
            assert world.read(last, BASE + PAGE) == 101 and world.read(last, BASE) == 8
            assert world.read(last, BASE + 2 * PAGE) == 102
            world.end(last)
        assert world.used() == before, "pages are lost"


@pytest.mark.exercise("6.4", points=2)
def test_zero_page(lab):
    """The zero page: never written to, never freed, and never taken as the only copy."""
    with spaces(lab) as world:
        before = world.used()
        filled(world, 1)
        at = BASE + PAGE
        assert world.read(PARENT, at) == 0
        zeros = world.entry(PARENT, at)
        assert world.fork(PARENT, CHILD)
        assert world.entry(CHILD, at).frame == zeros.frame, "fork copies the zero page"
        assert world.write(CHILD, at, 5)
        assert world.entry(CHILD, at).references == 1
        assert world.read(PARENT, at) == 0, "the parent sees it"
        world.end(CHILD)
        assert world.write(PARENT, at, 6)
        own = world.entry(PARENT, at)
        assert own.frame != zeros.frame, "the zero page was written to"
        world.make(OTHER)
        world.put(OTHER, BASE, 1)
        assert world.read(OTHER, BASE) == 0, "zeros that are none"
        assert world.entry(OTHER, BASE).references == zeros.references, "the zero page is counted"
        world.end(PARENT, OTHER)
        assert world.used() == before, "pages are lost"


@pytest.mark.exercise("6.4", points=2, gate=True)
def test_shared_areas(lab):
    """Shared areas: they are not copied, and their object is told of each first write."""
    with spaces(lab) as world:
        world.cache(0, [11, 12, 13])
        world.make(PARENT)
        world.put(PARENT, BASE, 3, BOTH | SHARED, file=0)
        assert world.read(PARENT, BASE) == 11
        assert world.fork(PARENT, CHILD)
        assert world.read(CHILD, BASE) == 11
        assert world.cached(0, 0) == (True, False), "reading makes it dirty, or it is not there"
        assert world.write(CHILD, BASE, 21)
        assert world.cached(0, 0) == (True, True), "the object was not told of the write"
        assert world.read(PARENT, BASE) == 21, "shared memory is not shared after fork"
        assert world.entry(PARENT, BASE).frame == world.entry(CHILD, BASE).frame
        assert world.entry(CHILD, BASE).references == 3, "its cache, and two entries"
        assert world.sync(0, 0, 3) == 0
        assert world.write(PARENT, BASE, 22)
        assert world.cached(0, 0) == (True, True), "the second write was not seen"
        assert world.read(CHILD, BASE) == 22
        world.shorten(0, 0)
        assert not world.write(CHILD, BASE, 1), "a page that the file does not have"


@pytest.mark.exercise("6.4", points=2, gate=True)
def test_private_pages_of_a_file(lab):
    """Private pages of a file: a copy stays with the program and its child; a page that nobody
    wrote is the file's."""
    with spaces(lab) as world:
        before = world.used()
        world.cache(0, [11, 12, 13, 14])
        world.make(PARENT)
        world.put(PARENT, BASE, 4, BOTH, file=0)
        assert world.read(PARENT, BASE) == 11
        assert world.write(PARENT, BASE, 21)  # it was read before: copy_on_write makes the copy
        assert world.fork(PARENT, CHILD)
        assert world.read(CHILD, BASE) == 21, "the child has not its parent's copy"
        assert world.write(CHILD, BASE + PAGE, 22)
        assert world.read(PARENT, BASE + PAGE) == 12
        assert world.page(0, 0)[0] == 0 and world.cached(0, 0) == (True, False), (
            "a copy makes it dirty"
        )
        world.unpin()
        assert world.fork(CHILD, GRANDCHILD)
        frame = world.entry(GRANDCHILD, BASE).frame
        world.end(CHILD, PARENT)
        assert world.write(GRANDCHILD, BASE, 21)
        assert world.entry(GRANDCHILD, BASE).frame == frame, "a copy of its own is copied"
        words = [world.read(GRANDCHILD, BASE + page * PAGE) for page in range(4)]
        assert words == [21, 22, 13, 14], f"the grandchild finds {words}"
        assert [world.in_file(0, page) for page in range(4)] == [11, 12, 13, 14]
        world.end(GRANDCHILD)
        world.release(0)
        assert world.used() == before, "pages are lost"


@pytest.mark.exercise("6.4", points=1)
def test_mprotect_does_not_unshare(lab):
    """Write permission that comes back by mprotect: the next write faults, copies what is shared,
    and makes an entry present and writable."""
    with spaces(lab) as world:
        filled(world, 2)
        assert world.fork(PARENT, CHILD)
        protect = [(PROTECT, CHILD, BASE, BASE + 2 * PAGE, kind) for kind in (READ, 0, BOTH)]
        assert all(result == 0 for result, _ in world.play(protect))
        assert world.write(CHILD, BASE, 5)
        assert world.read(PARENT, BASE) == 100, "the parent sees what the child wrote"
        world.play([(PROTECT, PARENT, BASE, BASE + 2 * PAGE, READ)])
        assert not world.write(PARENT, BASE, 6), "a read-only page was written to"
        assert world.fork(PARENT, OTHER)
        assert not world.write(OTHER, BASE, 6), "the child of a read-only area may write to it"
        assert world.read(OTHER, BASE) == 100
        own = BASE + 2 * PAGE
        assert world.write(PARENT, own, 7)
        bits = world.entry(PARENT, own).bits
        world.change_entry(world.space(PARENT), own, bits & ~(PRESENT | WRITABLE))
        expect("a write to a page of its own that is hidden returns", world.fault(PARENT, own), 0)
        seen = world.entry(PARENT, own).bits | ACCESSED | DIRTY
        expect("its entry then", hex(seen), hex(bits | ACCESSED | DIRTY))


@pytest.mark.exercise("6.4", points=2, once=True)
def test_fork_without_memory(lab):
    """fork when any of its allocations fails: nothing is leaked, and the parent is unchanged."""
    with spaces(lab) as world:
        world.make(PARENT)
        for i in range(3):
            world.put(PARENT, BASE + i * TABLE, 4, BOTH)
            world.write(PARENT, BASE + i * TABLE, 30 + i)
        before, refused = world.used(), 0
        for number in range(1, 40):
            world.fail(number)
            made = world.fork(PARENT, CHILD)
            world.fail(0)
            if made:
                break
            refused += 1
            left = world.used() - before
            assert left == 0, f"allocation {number} fails: {left} pages are left of the copy"
            assert world.entry(PARENT, BASE).references == 1, f"references after {number} failed"
            assert world.write(PARENT, BASE, 40 + number)
        assert refused >= 3, f"{refused} allocations in a fork with three tables"
        assert world.read(CHILD, BASE) == 40 + refused and world.read(CHILD, BASE + TABLE) == 31
        world.end(CHILD)
        assert world.used() == before


@pytest.mark.exercise("6.4", points=1, once=True)
def test_areas_without_memory(lab):
    """Copying areas when an allocation fails, many times: no object is leaked, and a child that is
    made has all areas."""
    with spaces(lab) as world:
        world.call("kmalloc_debug_enable")  # each object is an allocation that may fail
        filled(world, 2)
        for i in range(5):
            world.put(PARENT, BASE + (100 + 2 * i) * PAGE, 1)
        at_first = 0
        for round_ in range(60):
            world.fail(2 + round_ % 6)
            if world.fork(PARENT, CHILD):
                world.fail(0)
                sizes = world.play([(SIZES, PARENT), (SIZES, CHILD)])
                assert sizes[0] == sizes[1], f"pages and bytes, and a child's: {sizes}"
                world.end(CHILD)
            world.fail(0)
            world.used()  # no page is kept for the next tables
            if round_ == 20:
                at_first = world.object_pages()
        assert world.object_pages() <= at_first + 2, "areas or spaces are lost when a fork fails"
        assert world.write(PARENT, BASE, 5) and world.read(PARENT, BASE + PAGE) == 101


@pytest.mark.exercise("6.4", points=1, once=True)
def test_copy_without_memory(lab):
    """A write without a page for the copy: nothing changes, and it works once there is one."""
    with spaces(lab) as world:
        filled(world, 2)
        assert world.fork(PARENT, CHILD)
        old = world.entry(CHILD, BASE)
        world.give_back()  # what is kept for speed is given back: nothing else can be
        world.fail(1)
        error = world.fault(CHILD, BASE)
        assert error == -ENOMEM, f"a write without memory: expected -ENOMEM, seen {error}"
        world.fail(0)
        now = world.entry(CHILD, BASE)
        same = (old.frame, old.references, old.has(WRITABLE))
        assert (now.frame, now.references, now.has(WRITABLE)) == same, "something has changed"
        assert world.write(CHILD, BASE, 6) and world.read(PARENT, BASE) == 100


@pytest.mark.exercise("6.4", points=1, once=True)
def test_page_is_held_while_it_is_copied(lab):
    """A page that is being copied: reclaim, which the copy's allocation may start, does not free
    it."""
    with spaces(lab) as world:
        before = world.used()
        world.cache(0, [11, 12, 13, 14])
        world.make(PARENT)
        world.put(PARENT, BASE, 4, BOTH, file=0)
        assert [world.read(PARENT, BASE + page * PAGE) for page in range(4)] == [11, 12, 13, 14]
        world.give_back()  # what is kept for speed is given back: only pages of the file can be
        world.fail(1)
        assert world.fault(PARENT, BASE + PAGE) == 0, "no copy while pages can be given back"
        assert world.write(PARENT, BASE + PAGE, 22)
        world.fail(0)
        words = [world.read(PARENT, BASE + page * PAGE) for page in range(4)]
        assert words == [11, 22, 13, 14], f"after a copy for which pages were given back: {words}"
        world.end(PARENT)
        world.release(0)
        assert world.used() == before, "pages are lost"


@pytest.mark.exercise("6.4", points=1, once=True)
def test_the_only_page_is_held(lab):
    """Reclaim when the copied page is the only candidate: the allocation fails, and the page
    stays."""
    with spaces(lab) as world:
        world.cache(0, [11])
        world.make(PARENT)
        world.put(PARENT, BASE, 1, BOTH, file=0)
        assert world.read(PARENT, BASE) == 11
        world.give_back()  # what is kept for speed is given back: nothing else can be
        world.fail(1)
        error = world.fault(PARENT, BASE)
        assert error == -ENOMEM, f"a copy for which only its own page was left: {error}"
        world.fail(0)
        assert world.read(PARENT, BASE) == 11
        assert world.write(PARENT, BASE, 22) and world.read(PARENT, BASE) == 22


@pytest.mark.exercise("6.4", points=1, once=True)
def test_another_task_maps_another_page(lab):
    """Another task maps and writes a page while the object is asked: its page stays mapped."""
    at = BASE + 12 * PAGE
    with outside(lab, Faults, START) as run:
        space = run.begin(with_peek=False)
        run.put(space, 10, 20, WRITABLE | SHARED, of=1, index=5)
        require_fault(run, space, at, write=False)
        run.be_changed(space, BASE + 10 * PAGE, BASE + 20 * PAGE, 3, 0, 0)
        run.be_faster(space, at)
        require_fault(run, space, at, write=True)
        frame = frame_of(entries(run, space)[at])
        expect("the shared page is shown in another area", frame == page_of_object(run, 7), False)
        references = page_at(run, page_of_object(run, 7)).references
        expect("references of the shared page, which nobody shows", references, 1)


@pytest.mark.exercise("6.4", points=1, once=True)
def test_heap_and_sizes(lab):
    """A child's heap, sizes and accessed bits: heap and sizes are the parent's, and the copy was
    not accessed."""
    with spaces(lab) as world:
        world.make(PARENT)
        world.set_break(PARENT, BASE + 10, start=BASE)
        assert world.write(PARENT, BASE, 3)
        assert world.fork(PARENT, CHILD)
        end = world.set_break(CHILD, 0)
        assert end == BASE + 10, f"the child's heap ends at byte {end - BASE}, its parent's at 10"
        sizes = world.play([(SIZES, PARENT), (SIZES, CHILD)])
        assert sizes[0] == sizes[1], f"pages and bytes: the parent {sizes[0]}, the child {sizes[1]}"
        assert not world.entry(CHILD, BASE).has(ACCESSED), "the child has not used it yet"
        end = world.set_break(CHILD, BASE + 3 * PAGE)
        assert end == BASE + 3 * PAGE, "the heap of the child does not grow"
        assert world.write(CHILD, BASE + 2 * PAGE, 4) and world.read(CHILD, BASE) == 3
        assert world.read(PARENT, BASE + 2 * PAGE) is None
        below = world.set_break(CHILD, BASE - PAGE)
        assert below == end, "the heap of the child begins where its parent's does"


@pytest.mark.exercise("6.4", points=2)
def test_cost_of_a_fork(lab):
    """The cost of fork: no page is copied, and at most 60 instructions a page."""
    with spaces(lab) as world:
        world.make(PARENT)
        world.put(PARENT, BASE, LARGE)
        world.fill(PARENT, BASE, LARGE)
        before = world.used()
        took = world.fork_instructions(PARENT, CHILD)
        tables = world.used() - before
        world.end(CHILD)
        again = world.fork_instructions(PARENT, CHILD)
    assert tables <= 8, f"a fork of {LARGE} pages takes {tables} pages"
    most = FORK_ALONE + BUDGET * LARGE
    assert took <= most, f"a fork of {LARGE} pages takes {took} instructions, not {most}"
    assert again <= most, f"the second fork takes {again} instructions, not {most}"


@pytest.mark.exercise("6.4", points=2, gate=True)
def test_programs(lab):
    """Programs: three generations, writes by the kernel, and thirty children that yield all see
    their own data."""
    seeded = Random(lab.seed)
    one, two, three, code = (seeded.randrange(1, 200) for _ in range(4))
    lines = run_programs(lab, COPIES, f"generations {one} {two} {three}")
    sums = (one + two + three, one + two, one)
    expected = [f"{what} {each}" for each in sums for what in ("stack", "data", "zeros")]
    assert lines == expected, f"three generations say {lines}"
    said = said_by_programs(lab, COPIES, f"kernel {one} {two} {code} {three}", "many 30 64")
    assert (said["child-has"], said["parent-has"], said["parent-reads"]) == (two, one, three)
    assert said["code"] == code
    assert said["wrong"] == 0, "children see each other's pages"
