"""Exercise 5.4, hidden: sizes, colours, constructors, lists and refusals of slabs."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tests.lesson5.support import PAGE, Run, memory_code, panic_of, require_undisturbed

SLABS = "tests/lesson5/hidden/slabs.c"
START = "kmalloc_initialize"
HEAD = 20  # bytes of struct slab without its map
LARGEST = 2016
ALIGNMENTS = (4, 8, 16, 32, 64)
PARTIAL, FULL, EMPTY, SLAB_COUNT, USED = range(5)
UNMAPPED = 0x8000000  # below the kernel


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
    """As many objects as fit behind the header, with a bit for each."""
    size = rounded(size, alignment)
    count = PAGE // size
    while (header := rounded(HEAD + 4 * rounded(count, 32) // 32, alignment)) + count * size > PAGE:
        count -= 1
    return Form(size, count, header, (PAGE - header - count * size) // alignment + 1)


@pytest.mark.exercise("5.4", points=3, gate=True)
def test_sizes_and_alignments(lab):
    """From objects that are smaller than a pointer to the largest: as many as fit, and each its
    own."""
    seeded = random.Random(lab.seed)
    shapes = [(1, 4), (3, 64), (LARGEST, 4), (LARGEST, 32), (4, 4), (126, 4), (127, 4), (2000, 64)]
    shapes += [(seeded.randrange(1, 1900), seeded.choice(ALIGNMENTS)) for _ in range(12)]
    with memory_code(lab, SLABS, START) as run:
        run.call("begin_slabs")
        for size, alignment in shapes:
            form, what = form_of(size, alignment), f"size {size}, alignment {alignment}"
            count = run.call("make_cache", 0, size, alignment, 0)
            assert count == form.count, f"{what}: {count} objects in a slab, not {form.count}"
            wanted = min(3 * count, 2000)
            had, *wrong = run.answers("fill_objects", 0, wanted)
            assert had == wanted, f"{what}: {had} objects of {wanted}"
            assert wrong == [0, 0, 0], f"{what}: not aligned, not in its slab, overwritten: {wrong}"
            run.call("empty_objects", 0)
            assert run.call("destroy", 0) == 1, f"{what}: not destroyed"


@pytest.mark.exercise("5.4", points=2)
def test_colours(lab):
    """Each slab begins one alignment further than the one before, and then at the start again."""
    with memory_code(lab, SLABS, START) as run:
        run.call("begin_slabs")
        for size, alignment in ((1000, 64), (600, 32), (124, 4), (LARGEST, 4)):
            form = form_of(size, alignment)
            slabs = min(2 * form.colours + 1, 60)
            run.call("make_cache", 0, size, alignment, 0)
            starts = run.answers("answer_starts", 0, slabs)
            expected = [form.header + alignment * (n % form.colours) for n in range(slabs)]
            assert starts == expected, f"objects of {size}: slabs begin at {starts}"
            run.call("empty_objects", 0)
            given = run.call("shrink", 0)
            assert given == slabs, f"slab_shrink gives {given} of {slabs} empty slabs back"
            (start,) = run.answers("answer_starts", 0, 1)
            right = form.header + alignment * (slabs % form.colours)
            assert start == right, f"objects of {size}: after a shrink a slab begins at {start}"
            run.call("empty_objects", 0)
            run.call("destroy", 0)


@pytest.mark.exercise("5.4", points=2)
def test_constructor_once_for_each_object(lab):
    """It runs for all objects of a new slab, each once; what is freed stays as it is."""
    with memory_code(lab, SLABS, START) as run:
        run.call("begin_slabs")
        count = run.call("make_cache", 0, 100, 4, 1)
        for _ in range(2):
            calls, again, without, changed = run.answers("construct_each", 2 * count + 1)
            assert calls == 3 * count, f"{calls} calls for three slabs of {count} objects"
            assert again == 0, f"{again} objects were constructed twice"
            assert without == 0, f"{without} objects without what the constructor wrote"
            assert changed == 0, f"slab_free has changed {changed} objects"


@pytest.mark.exercise("5.4", points=2)
@pytest.mark.parametrize("enabled", [0, 1])
def test_an_interrupt_while_a_slab_is_made(lab, enabled):
    """The constructor runs with interrupts as the caller has them; an interrupt takes an object."""
    with memory_code(lab, SLABS, START) as run:
        run.call("begin_slabs")
        disabled, after, *found = run.answers("interrupt_a_slab", enabled)
    per_slab = 4  # of 1000 bytes
    wanted = 0 if enabled else 2 * per_slab
    assert disabled == wanted, f"interrupts were disabled in {disabled} of {2 * per_slab} calls"
    assert after == enabled, "slab_alloc leaves interrupts other than they were"
    assert found[0] == 1, "the two objects are one, or none"
    assert found[1:6] in ([1, 0, 1, 2, 2], [2, 0, 0, 2, 2]), f"lists and counts: {found[1:6]}"
    assert found[6:] == [0, 0, 2, 2, 0], f"lists and counts after both are freed: {found[6:]}"


@pytest.mark.exercise("5.4", points=2, once=True)
def test_lists_without_interrupts(lab):
    """Nothing of a cache, of its slab or of the list of caches changes with interrupts enabled."""
    with memory_code(lab, SLABS, START) as run:
        run.call("begin_slabs")
        run.call("make_cache", 0, 40, 4, 0)
        head = run.call("slab_head", run.call("take", 0))
        cache = run.guest.read_word(head + 8)
        caches = run.guest.address("slab_caches")
        require_undisturbed(run, "with_interrupts", [(head, 32), (cache, 72), (caches, 8)])
        run.call("make_cache", 1, 1000, 8, 0)
        cache = run.call("cache_at", 1)
        require_undisturbed(run, "slab_with_interrupts", [(cache, 72), (caches, 8)])


@pytest.mark.exercise("5.4", points=3)
def test_misuse(lab):
    """What is not the start of an object of this cache that is in use: a panic that names it."""
    with memory_code(lab, SLABS, START) as run:
        run.call("begin_slabs")
        for number, size in enumerate((40, 2000)):
            run.call("make_cache", number, size, 4, 0)
        first, second, third = (run.call("take", 0) for _ in range(3))
        other = run.call("take", 1)
        run.call("give", 0, second)
        page = run.call("page")
        head = run.call("slab_head", first)
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
        before = run.answers("answer_lists", 0)
        for what, address in wrong.items():
            said = panic_of(run, "give", 0, address)
            assert "test-a" in said, f"{what}: slab_free says {said!r}"
        assert "test-b" in panic_of(run, "give", 1, first)
        run.call("make_cache", 1, 40, 4, 0)
        twin = run.call("take", 1)
        assert "test-a" in panic_of(run, "give", 0, twin), "an object of another cache of this size"
        assert run.answers("answer_lists", 0) == before, "a refused slab_free has changed the cache"


def last_end(run: Run, head: int, size: int) -> int:
    """The address after a slab's last object."""
    objects = run.guest.read_word(head + 12)
    return objects + form_of(size, 4).count * size


@pytest.mark.exercise("5.4", points=2)
def test_destroy_and_shrink(lab):
    """A cache with objects stays; shrink gives exactly the empty slabs back."""
    with memory_code(lab, SLABS, START) as run:
        run.call("begin_slabs")
        before = run.call("free_pages")
        count = run.call("make_cache", 0, 500, 4, 0)
        run.answers("fill_objects", 0, 3 * count)
        taken = run.call("take", 0)
        held, names = run.answers("answer_lists", 0), run.answers("answer_names")
        assert run.call("destroy", 0) == 0, "a cache with objects was destroyed"
        assert run.answers("answer_lists", 0) == held, "a refused destroy has changed the cache"
        assert run.answers("answer_names") == names, "a refused destroy has removed the cache"
        run.call("empty_objects", 0)
        assert run.answers("answer_lists", 0) == [1, 0, 3, 4, 1]
        assert run.call("destroy", 0) == 0, "a cache with one object was destroyed"
        assert run.answers("answer_lists", 0) == [1, 0, 3, 4, 1], "slabs of a cache in use"
        free = run.call("free_pages")
        assert run.call("shrink", 0) == 3, "shrink does not return the empty slabs"
        assert run.call("free_pages") == free + 3
        assert run.answers("answer_lists", 0) == [1, 0, 0, 1, 1]
        run.call("give", 0, taken)
        assert run.call("destroy", 0) == 1
        assert len(run.answers("answer_names")) == len(names) - 1, "it is still among the caches"
        assert run.call("shrink_caches") == 1, "the cache was no object of the cache of caches"
        assert run.call("free_pages") == before


@pytest.mark.exercise("5.4", points=2)
def test_caches(lab):
    """The cache of caches comes first and is in no slab; the others follow in order, within it."""
    with memory_code(lab, SLABS, START) as run:
        assert run.call("begin_slabs") == 1, "after slab_initialize there is not one cache"
        for number in (0, 1):
            assert run.call("make_cache", number, 64, 64, 0) > 0
        names = [text(run, address) for address in run.answers("answer_names")]
        homes = run.answers("answer_homes")
    assert names[1:] == ["test-a", "test-b"], f"the caches are {names}"
    assert homes == [0, 1, 1], f"which caches are in slabs (the first is not): {homes}"


def text(run: Run, address: int) -> str:
    """A text of the kernel's, up to its NUL."""
    return run.guest.read(address, 12).partition(b"\0")[0].decode(errors="replace")


@pytest.mark.exercise("5.4", points=2)
def test_without_memory(lab):
    """A page that is refused costs nothing; the reserve is for those who cannot wait."""
    with memory_code(lab, SLABS, START, memory=16) as run:
        run.call("begin_slabs")
        run.call("make_cache", 0, 1000, 8, 0)
        found = run.answers("refused_page")
        assert found == [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1], f"around a refused page: {found}"
        run.call("make_cache", 1, 40, 4, 0)
        run.call("fill_objects", 0, 3)  # the slab is full
        waiting, enabled, urgent, *lists = run.answers("without_memory")
        assert waiting == 0, "the reserve was given to somebody who can wait"
        assert enabled == 1, "interrupts are disabled after slab_alloc has failed"
        assert urgent == 1, "the reserve was not given with interrupts disabled"
        assert lists == [1, 1, 0, 2, 5], f"lists and counts: {lists}"
        refused, half, *lost = run.answers("refused_caches")
        assert refused == 1, "a cache was made without memory"
        assert half == 0, "a cache that was refused is among the caches"
        assert lost == [0], f"{lost} pages are lost"


@pytest.mark.exercise("5.4", points=4)
@pytest.mark.parametrize("most", [40, 1500])
def test_against_a_model(lab, most):
    """A hundred thousand operations on two caches."""
    seeded = random.Random(lab.seed)
    rounds = 50_000 if lab.mode == "icount" else 10_000
    with memory_code(lab, SLABS, START) as run:
        run.call("begin_slabs")
        for number in (0, 1):
            size, alignment = seeded.randrange(4, 300), seeded.choice(ALIGNMENTS)
            run.call("make_cache", number, size, alignment, 0)
        before = run.call("free_pages")
        wrong = run.answers("random_operations", seeded.getrandbits(32), rounds, most)
        assert not wrong, f"hidden/slabs.c, line {wrong[0]}, in round {wrong[-1]}"
        for number in (0, 1):
            run.call("shrink", number)
        assert run.call("free_pages") == before, "pages are lost"
        assert run.guest.call("memory_audit") == 0, "the auditor finds contradictions"
