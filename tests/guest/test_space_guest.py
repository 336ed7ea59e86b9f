"""Lesson 6's kernel under programs that want too much: large forks, bombs, deep recursion, and all
memory of machines of all sizes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.building import shared_folder
from tests.support.memory_machine import NS_AN_INSTRUCTION, compiled, said_by

PAGES = (200 << 20) // 4096
FOR_A_PAGE = 60  # instructions
TABLES = 60  # pages that a fork of this many may need: 50 tables, and the task itself
KEPT = 512  # KiB that the kernel may keep for later, for instance for the next areas
NUMBER = re.compile(r"^([a-z-]+) (-?\d+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """The programs, in a folder for the guest's root."""
    return shared_folder(
        tmp_path_factory, "space-programs", lambda place: compiled(place, "eater", "largefork")
    )


def numbers(output: str) -> dict[str, int]:
    """What a program says, by the word before each number."""
    return {word: int(number) for word, number in NUMBER.findall(output)}


def free_kib(output: str) -> list[int]:
    """What each look into /proc/meminfo has shown."""
    lines = re.findall(r"^Mem(?:Free|Available): +(\d+) kB$", output, re.MULTILINE)
    return [int(number) for number in lines]


def require_same(output: str) -> None:
    """As much is free at the end as before."""
    before, after = free_kib(output)
    assert after >= before - KEPT, f"{before - after} KiB are not free again:\n{output}"
    assert output.rstrip().endswith("alive"), output


def test_fork_of_200_mib(programs):
    """No data page is copied, and a mapped page costs at most 60 instructions."""
    found = numbers(said_by(programs, "/largefork", memory=512))
    assert found["pages"] == PAGES
    assert found["taken"] <= TABLES, f"a fork of 200 MiB takes {found['taken']} pages"
    took = found["stamps"] / NS_AN_INSTRUCTION / PAGES
    assert took <= FOR_A_PAGE, f"{took:.1f} instructions a page"
    assert found["child"] == 0, "the child has other contents"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memory", "bombs"),
    [
        (16, ("forks", "maps", "mappings", "recursion", "families")),
        (24, ("forks", "maps", "mappings", "recursion", "families")),
        (32, ("forks", "maps", "mappings", "recursion", "families")),
        (64, ("forks", "maps", "mappings", "recursion", "families")),
        (1024, ("forks", "maps", "mappings", "recursion", "families")),
    ],
)
def test_bombs(programs, memory, bombs):
    """Forks, areas, mappings and recursion without an end: the shell lives. Slabs of the areas
    that were may stay until somebody needs their memory: it is available, and not free."""
    look = "grep ^MemAvailable /proc/meminfo"
    command = "; ".join(["/eater recursion", look, *(f"/eater {each}" for each in bombs), look])
    output = said_by(programs, f"{command}; echo alive", memory)
    assert output.count("eater recursion: signal 11") == 2, output
    for bomb in bombs:
        assert f"eater {bomb}: " in output, output
    require_same(output)


@pytest.mark.slow
@pytest.mark.parametrize("memory", [16, 32, 128, 512, 1024])
def test_all_memory(programs, memory):
    """Who takes all dies alone, and what it had is free again."""
    look = "grep ^MemFree /proc/meminfo"
    command = f"/eater recursion; {look}; /eater memory; /eater memory; {look}; echo alive"
    output = said_by(programs, command, memory)
    assert output.count("eater memory: signal 9") == 2, output
    killed = re.findall(r"^out of memory: killed \d+ \((\w+)\), (\d+) KiB", output, re.MULTILINE)
    assert [name for name, _ in killed] == ["eater", "eater"], output
    assert all(int(kib) > free_kib(output)[0] // 2 for _, kib in killed), killed
    require_same(output)
