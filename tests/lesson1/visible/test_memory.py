"""Exercise 1.5, the memory map: this machine's, as QEMU describes it."""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson1.memory import kibibytes, loader_ranges, require_told
from tests.remote import stopped


def some_memory(seed: int) -> int:
    """How much memory the machine has, in MiB."""
    return Random(seed).randrange(24, 200)


@pytest.mark.exercise("1.5", points=1)
def test_ranges(lab):
    """boot_info has each range of the loader's map, with its type."""
    with stopped(lab, "_start", memory=some_memory(lab.seed)) as guest:
        expected = loader_ranges(guest, guest.registers()["ebx"], base=0)
        guest.run_to("memory_map_initialize", why="kernel/report/boot_info.c")
        require_told(guest, expected)


@pytest.mark.exercise("1.5", points=1)
def test_usable_memory(lab):
    """memory_map_usable is the sum of what is available, in KiB."""
    with stopped(lab, "_start", memory=some_memory(lab.seed)) as guest:
        expected = kibibytes(loader_ranges(guest, guest.registers()["ebx"], base=0))
        guest.run_to("memory_map_print", why="kernel/report/boot_info.c")
        found = guest.call64("memory_map_usable")
    assert found == expected, f"{found} KiB, and QEMU gave {expected} KiB"
