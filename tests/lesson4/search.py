"""What came of a search for races with the timer: tests/lesson4/hidden/search.c, search_calls.c."""

from __future__ import annotations

import struct
from functools import lru_cache
from pathlib import Path

from elftools.elf.elffile import ELFFile

from labs.tools.course.exercises import by_id
from tests.lesson3.support import with_files
from tests.lesson4.support import Threads, fail, program, threads

SEARCH = "tests/lesson4/hidden/search.c"
SEARCH_CALLS = "tests/lesson4/hidden/search_calls.c"
LIVES = "tests/lesson4/hidden/lives.c"
SECONDS = 20  # of processor time
RANGES = 8  # as in the C file


def search(lab, exercise: str, scenario: str, wrong: dict[int, str]) -> int:
    """Has a tick come before every instruction of an exercise's functions that a scenario executes
    with interrupts enabled; returns how many there are. Fails the test where the verdict is not 0;
    `wrong` are the verdicts in words."""
    with threads(lab, SEARCH, scenario) as run:
        write_ranges(lab, run, exercise)
        return tried(run, wrong)


def search_calls(lab, exercise: str, scenario: str, wrong: dict[int, str]) -> int:
    """The same for a scenario of processes, which the program LIVES has."""
    files = with_files(lab, {"bin/lives": program(LIVES)})
    with threads(
        lab, SEARCH_CALLS, "search_of_calls", script=f"run /bin/lives {scenario}", **files
    ) as run:
        write_ranges(lab, run, exercise)
        at_prompt = run.guest.registers() | {"eip": run.guest.address("prompt")}
        run.finish()
        run.guest.set(**at_prompt)
        return tried(run, wrong)


def write_ranges(lab, run: Threads, exercise: str) -> None:
    """Tells the search where the exercise's functions are."""
    kernel = lab.build(f"build/lesson{lab.lesson}/kernel.elf")
    places = ranges(kernel, kernel.stat().st_mtime_ns, by_id(exercise).files)
    words = [word for each in places for word in each]
    run.guest.write(run.address("search_ranges"), struct.pack(f"<{len(words)}I", *words))


def tried(run: Threads, wrong: dict[int, str]) -> int:
    """Lets it search; fails with the verdict in words, or returns how many places there were."""
    verdict, place, count = run.answers(SECONDS)
    if verdict:
        name = function_at(run.guest, place)
        fail(f"{wrong[verdict]}, {f'with an interrupt in {name}' if place else 'undisturbed'}")
    return count


def ranges(kernel: Path, modified: int, files: tuple[str, ...]) -> list[tuple[int, int]]:
    """From where to where the code of some files of the kernel is."""
    found = [(low, high) for name, low, high in units(kernel, modified) if name in files]
    assert 0 < len(found) < RANGES, f"the code of {files} is in {len(found)} places"
    return found


@lru_cache(maxsize=4)
def units(kernel: Path, _modified: int) -> list[tuple[str, int, int]]:
    """The files of a kernel, each with the place of its code, by the debug information."""
    found = []
    with kernel.open("rb") as stream:
        for unit in ELFFile(stream).get_dwarf_info().iter_CUs():
            top = unit.get_top_DIE().attributes
            if "DW_AT_high_pc" in top:  # else in several places
                low, high = top["DW_AT_low_pc"].value, top["DW_AT_high_pc"]
                end = high.value if high.form == "DW_FORM_addr" else low + high.value
                found.append((top["DW_AT_name"].value.decode(), low, end))
    return found


def function_at(guest, address: int) -> str:
    """The function of an address of the kernel."""
    words = guest.symbols.describe(address).split()
    return words[1].partition("+")[0] if len(words) > 1 else words[0]
