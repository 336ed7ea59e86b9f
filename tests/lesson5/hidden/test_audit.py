"""Exercise 5.6, hidden: fourteen broken allocators, and sound ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.lesson3.support import with_files
from tests.lesson4.support import program
from tests.lesson5.audits import audit_after
from tests.lesson5.objects import PLAIN
from tests.lesson5.support import Run, memory_code

AUDIT = "tests/lesson5/hidden/audit.c"
CHILDREN = "tests/lesson4/programs/children.c"
BROKEN = {
    "a block in two lists": ("in_two_lists", "twice_in_one_list"),
    "two free buddies": ("two_free_buddies", "two_large_free_buddies"),
    "order and address disagree": (
        *("not_aligned", "used_not_aligned", "order_too_large", "order_of_255"),
        "order_too_large_of_a_page",
        *("overlap", "lonely_tail", "no_state"),
    ),
    "a counter that drifts": ("counter_drifts", "counter_too_low", "counter_of_dma"),
    "a page in use within a free block": (
        *("used_within_a_free_block", "free_within_a_free_block", "reserved_within_a_block"),
    ),
    "a free page in no list": (
        *("in_no_list", "in_no_list_nor_counted", "no_list_at_all"),
        "largest_in_no_list",
    ),
    "count and bits of a slab disagree": (
        *("slab_count", "bit_is_lost", "bit_too_many", "bit_beyond_the_objects"),
        *("slab_count_alone", "cache_counts_slabs", "cache_counts_objects"),
        *("bit_lost_for_one_beyond", "cache_counts_too_few_slabs"),
        "cache_counts_too_many_objects",
    ),
    "an object beyond the slab": (
        *("objects_beyond_the_slab", "objects_in_the_map", "objects_not_aligned"),
        "objects_of_another_page",
    ),
    "a slab in the wrong list": (
        *("full_in_partial", "empty_in_partial", "partial_in_full", "partial_in_empty"),
        *("slab_in_no_list", "slab_in_no_list_nor_counted", "slab_of_another_cache"),
    ),
    "a reserved page in a list": ("reserved_in_a_list",),
    "a block in the list of another zone or order": (
        *("other_zone", "other_order", "exchanged", "exchanged_zones"),
    ),
    "a list without an end": ("circle", "circle_of_one", "slab_circle"),
    "a broken link": (
        *("back_link", "back_link_of_the_first", "back_link_of_the_head", "link_is_null"),
        *("link_out_of_memory", "link_into_a_page", "link_behind_the_array"),
        *("slab_back_link", "slab_head_back_link", "slab_link_is_null"),
        *("slab_link_out_of_memory", "slab_link_into_a_slab"),
    ),
    "a page in use in a list": (
        *("used_in_a_list", "used_for_free", "tail_in_a_list", "slab_page_is_no_slab"),
        "tail_for_free",
        *("slab_page_of_nobody", "slab_page_is_free"),
    ),
}
ALLOCATORS = ("page_alloc", "page_free", "slab_alloc", "slab_free", "schedule")
REPAIRED = ("counter_drifts", "in_no_list", "back_link", "slab_count_alone", "cache_counts_slabs")
AT_LOAD = 3000  # operations
LONG_LIST = {16: 1200, 64: 6000}  # pages, by MiB of the machine
LEAST = 6  # broken allocators of a kind that are shown


@pytest.mark.exercise("5.6", points=14, gate=True, once=True)
@pytest.mark.parametrize("what", BROKEN)
def test_broken_allocators(lab, what):
    """Broken allocators of each kind, in all forms: each is found, and nothing is found before and
    after."""
    seeded = random.Random(f"{lab.seed}:{what}")
    with memory_code(lab, AUDIT, PLAIN) as run:
        run.call("begin_audit")
        missed = {name: None for name in asked(BROKEN[what], seeded) if not is_right(run, name)}
        assert not missed, f"not found: {', '.join(missed).replace('_', ' ')}"


def asked(names: Sequence[str], seeded: random.Random) -> list[str]:
    """Broken allocators and as many sound ones ("") in an order that nobody knows: an auditor that
    counts how often it was asked, or that compares with what it saw before, is right by chance."""
    broken = [*names, *names * LEAST][: max(LEAST, len(names))]
    questions = [*broken, *[""] * len(broken)]
    seeded.shuffle(questions)
    return questions


def is_right(run: Run, name: str) -> bool:
    """Whether the auditor finds something where there is something."""
    run.call("stir")
    found = audit_after(run, name)
    assert name or found == 0, "contradictions in sound structures"
    return found > 0 or not name


@pytest.mark.exercise("5.6", points=1)
def test_how_many(lab):
    """One broken zone, two, and a broken cache besides; three broken lists of a zone; three broken
    slabs: at least as many faults are found."""
    with memory_code(lab, AUDIT, PLAIN) as run:
        run.call("begin_audit")
        for apart in (
            ("counter_of_dma", "counter_drifts", "cache_counts_objects"),
            ("in_no_list", "largest_in_no_list", "counter_drifts"),
            ("bit_is_lost", "slab_count_alone", "bit_too_many"),
        ):
            for most in (1, 2, 3):
                for name in apart[: most - 1]:
                    run.call(f"spoil_{name}")
                found = audit_after(run, apart[most - 1])
                what = f"{most} contradictions, {', '.join(apart[:most])}"
                assert found >= most, f"{what}, and memory_audit returns {found}"


@pytest.mark.exercise("5.6", points=3)
def test_no_false_alarm(lab):
    """Sound allocators in use, with and without checks, at the prompt and after programs: nothing
    is found."""
    seed = random.Random(lab.seed).getrandbits(32)
    for place in (PLAIN, "prompt"):
        with memory_code(lab, AUDIT, place) as run:
            run.call("begin_audit")
            assert run.call("audit_under_load", seed, AT_LOAD) == 0, "contradictions under load"
    files = with_files(lab, {"bin/children": program(CHILDREN)})
    commands = "audit; run /bin/children many 30; audit; run /bin/children family 1 2; audit"
    said = lab.run(commands, **files).check().serial
    assert said.count("audit: 0 contradictions") == 3, said


@pytest.mark.exercise("5.6", points=2, once=True)
@pytest.mark.parametrize("memory", [16, 64])
def test_no_false_alarm_in_long_lists(lab, memory):
    """Thousands of free pages and hundreds of slabs: nothing is found, also where zone Normal is
    empty and slabs are in DMA."""
    with memory_code(lab, AUDIT, PLAIN, memory=memory) as run:
        found = run.answers("audit_long_lists", LONG_LIST[memory])
        assert found == [0, 0, 0], f"contradictions in sound structures: {found}"


@pytest.mark.exercise("5.6", points=2)
def test_it_only_looks(lab):
    """The audit: it does not allocate, does not sleep, and changes nothing."""
    with memory_code(lab, AUDIT, "prompt") as run:
        run.call("begin_audit")
        before = run.call("sum_of_all")
        assert run.guest.call("memory_audit", stop_at=ALLOCATORS) == 0, (
            "it finds something in sound structures, allocates, frees or switches tasks"
        )
        assert run.call("sum_of_all") == before, "the auditor has changed what it looks at"
        for name in REPAIRED:
            run.call(f"spoil_{name}")
            before = run.call("sum_of_all")
            assert run.call("memory_audit") > 0, f"not found: {name}"
            assert run.call("sum_of_all") == before, f"the auditor repairs what it finds: {name}"
            run.call("put_back")
