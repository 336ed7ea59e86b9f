"""Address spaces, compiled for the host, against naive models: areas, page tables, faults, copy
on write and a page cache, with a TLB that forgets nothing by itself, and allocations that fail.
After each operation the account of memory closes.

SPACE_SEEDS=20 in the environment tries this many seeds instead of one (three with WHOLE=yes).
"""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.host.units import I386_COMPILERS, ROOT, SEED, TRAP, Units, run
from tests.support.building import WHOLE, first_is_fast

SOURCES = (
    "kernel/lib/string.c",
    "kernel/lib/tree.c",
    "mm/area.c",
    "mm/copy_on_write.c",
    "mm/fault.c",
    "mm/large_page.c",
    "mm/page_cache.c",
    "mm/page_table.c",
    "mm/reverse_map.c",
    "mm/second_chance.c",
    "mm/space_areas.c",
)
UNITS = Units("tests/host/space", SOURCES, ("-Itests/host/space/shadow", "-I."))

OPERATIONS = 34_000  # for each seed: a test has 60 seconds on a busy machine
SEEDS = range(SEED, SEED + int(os.environ.get("SPACE_SEEDS") or (3 if WHOLE else 1)))


@pytest.mark.parametrize("seed", first_is_fast(SEEDS))
@pytest.mark.parametrize("what", ["large_random", "space_random", "table_random"])
def test_spaces_against_a_model(tmp_path_factory, what, seed):
    run(UNITS.for_i386(tmp_path_factory), what, seed, OPERATIONS)


def test_a_global_user_page_is_caught(tmp_path, tmp_path_factory):
    """A program's pages are global: the next space that is loaded would see them. The TLB of the
    model remembers that, and says so."""
    UNITS.for_i386(tmp_path_factory)  # skips where none can be made
    header = (ROOT / "mm/page_table.h").read_text()
    right, wrong = (
        "(PTE_PRESENT | PTE_USER | PTE_HIDDEN)",
        "(0x100u | PTE_PRESENT | PTE_USER | PTE_HIDDEN)",
    )
    assert header.count(right) == 1
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm/page_table.h").write_text(header.replace(right, wrong))
    units = Units("tests/host/space", SOURCES, (f"-I{tmp_path}", *UNITS.flags), kept=False)
    assert any(units.compiled(tmp_path, (*each, *TRAP)) is None for each in I386_COMPILERS)
    command = [str(tmp_path / "units"), "space_random", str(SEED), str(OPERATIONS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "the TLB" in done.stdout, done.stdout
