"""What came of a search for races with the timer: tests/lesson4/hidden/search.c."""

from __future__ import annotations

import struct
from functools import lru_cache
from pathlib import Path

from elftools.elf.elffile import ELFFile

from labs.tools.course.exercises import by_id
from tests.lesson4.support import fail, threads

SEARCH = "tests/lesson4/hidden/search.c"
SECONDS = 20  # of processor time
RANGES = 8  # as in the C file


def search(lab, exercise: str, scenario: str, wrong: dict[int, str]) -> int:
    """Has a tick come before every instruction of an exercise's functions that a scenario executes
    with interrupts on; returns how many there are. Fails the test where the verdict is not 0;
    `wrong` are the verdicts in words."""
    kernel = lab.build(f"build/lesson{lab.lesson}/kernel.elf")
    places = ranges(kernel, kernel.stat().st_mtime_ns, by_id(exercise).files)
    with threads(lab, SEARCH, scenario) as run:
        words = [word for each in places for word in each]
        run.guest.write(run.address("search_ranges"), struct.pack(f"<{len(words)}I", *words))
        verdict, place, tried = run.answers(SECONDS)
        name = function_at(run.guest, place)
    if verdict:
        fail(f"{wrong[verdict]}, {f'with an interrupt in {name}' if place else 'undisturbed'}")
    return tried


@lru_cache(maxsize=4)
def ranges(kernel: Path, _modified: int, files: tuple[str, ...]) -> list[tuple[int, int]]:
    """From where to where the code of some files of the kernel is, by its debug information."""
    found = []
    with kernel.open("rb") as stream:
        for unit in ELFFile(stream).get_dwarf_info().iter_CUs():
            top = unit.get_top_DIE().attributes
            name = top["DW_AT_name"].value.decode()
            if name in files and "DW_AT_low_pc" in top:
                low, high = top["DW_AT_low_pc"].value, top["DW_AT_high_pc"]
                end = high.value if high.form == "DW_FORM_addr" else low + high.value
                found.append((low, end))
    assert 0 < len(found) < RANGES, f"the code of {files} is in {len(found)} places"
    return found


def function_at(guest, address: int) -> str:
    """The function of an address of the kernel."""
    words = guest.symbols.describe(address).split()
    return words[1].partition("+")[0] if len(words) > 1 else words[0]
