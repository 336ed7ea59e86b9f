"""Address spaces, compiled for the host, against a naive model: areas, page tables, faults, copy
on write and a page cache, with a TLB that forgets nothing by itself, and allocations that fail.
"""

from __future__ import annotations

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


@pytest.mark.parametrize("seed", [SEED, SEED + 1, SEED + 2])
def test_spaces_against_a_model(tmp_path_factory, seed):
    run(UNITS.for_i386(tmp_path_factory), "space_random", seed, 40_000)
