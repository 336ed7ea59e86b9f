"""The allocators of lesson 5, compiled for the host as an i386 program, against naive models.

tests/host/mm/*.c hold the tests; their machine's memory is at 3 GiB, where the kernel has it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.host.units import SEED, Units, run

SOURCES = (
    "kernel/lib/format.c",
    "kernel/lib/string.c",
    "mm/audit.c",
    "mm/buddy.c",
    "mm/kmalloc.c",
    "mm/kmalloc_debug.c",
    "mm/memory_map.c",
    "mm/page.c",
    "mm/page_alloc.c",
    "mm/page_array.c",
    "mm/page_free.c",
    "mm/pool_kmalloc.c",
    "mm/slab.c",
)
UNITS = Units("tests/host/mm", SOURCES, ("-Itests/host/mm/shadow", "-I."))

# Test and rounds: how often something is tried, or, for a PC, its megabytes.
TESTS = {
    "page_array_random": 30,
    "buddy_random": 100_000,
    "buddy_orders_of_frees": 100,
    "buddy_refusals": 1,
    "buddy_failures": 50,
    "slab_random": 100_000,
    "slab_shapes": 2_500,
    "slab_refusals": 1,
    "slab_failures": 200,
    "kmalloc_plain": 100_000,
    "kmalloc_checked": 100_000,
    "kmalloc_sizes": 1,
}
MEGABYTES = (16, 17, 31, 64, 256)
REPORTS = 24  # each with another size and another mistake


@pytest.fixture(scope="session")
def units(tmp_path_factory) -> Path:
    """The tests as a 32-bit program."""
    return UNITS.for_i386(tmp_path_factory)


@pytest.mark.parametrize(("name", "rounds"), TESTS.items())
def test_against_a_model(units, name, rounds):
    run(units, name, SEED, rounds)


@pytest.mark.parametrize("megabytes", MEGABYTES)
def test_page_array_of_a_pc(units, megabytes):
    run(units, "page_array_pc", SEED, megabytes)


@pytest.mark.parametrize("number", range(REPORTS))
def test_misuse_is_reported(units, number):
    run(units, "kmalloc_reports", SEED + number, 1)


def test_every_test_is_run(units):
    assert set(run(units).split()) == {*TESTS, "page_array_pc", "kmalloc_reports"}
