"""Address spaces, compiled for the host, against naive models: areas, page tables, faults, copy
on write and a page cache, with a TLB that forgets nothing by itself, and allocations that fail.
After each operation the account of memory closes.

SPACE_SEEDS=20 in the environment tries so many seeds instead of three.
"""

from __future__ import annotations

import os

import pytest

from tests.host.units import SEED, Units, run

SOURCES = (
    "kernel/lib/string.c",
    "kernel/lib/tree.c",
    "mm/area.c",
    "mm/copy_on_write.c",
    "mm/fault.c",
    "mm/page_cache.c",
    "mm/page_table.c",
    "mm/reverse_map.c",
    "mm/second_chance.c",
    "mm/space_areas.c",
)
UNITS = Units("tests/host/space", SOURCES, ("-Itests/host/space/shadow", "-I."))

OPERATIONS = 34_000  # for each seed: a test has 60 seconds on a busy machine
SEEDS = range(SEED, SEED + int(os.environ.get("SPACE_SEEDS", "3")))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("what", ["space_random", "table_random"])
def test_spaces_against_a_model(tmp_path_factory, what, seed):
    run(UNITS.for_i386(tmp_path_factory), what, seed, OPERATIONS)
