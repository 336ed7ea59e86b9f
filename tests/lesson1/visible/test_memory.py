"""Exercise 1.5, the memory map: this machine's, as QEMU describes it.

Not looked at here, but by the graders: entries that are longer, cut off or wrong, and memory above
4 GiB.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson1.memory import (
    kibibytes,
    loader_ranges,
    require_told,
    require_without_map,
)
from tests.support.remote import stopped
from tests.support.told import Usual, require, told

IN_GDB = "make gdb LESSON=1 BOOT=direct, then: tbreak boot_info_read, continue, next"


def some_memory(seed: int) -> int:
    """How much memory the machine has, in MiB."""
    return Random(seed).randrange(24, 200)


@pytest.mark.exercise("1.5", points=1)
def test_ranges(lab):
    """boot_info has each range of the loader's map, with its type; without a map it has mem_upper
    KiB from 1 MiB on."""
    usually = (
        Usual(
            "no map.*(panic|seen none)",
            "without MULTIBOOT_MEMORY_MAP in the flags MULTIBOOT_MEMORY says that mem_upper counts",
        ),
        Usual(
            "no map(?!.*(panic|seen none))",
            "mem_upper is in KiB, and what it counts begins at 1 MiB",
        ),
        Usual("fault", "mmap_addr is a physical address, and is used without direct_map"),
        Usual(
            r"ranges\[.*expected base (0x\w+), .*seen base (?!\1,).* type (?!1$)",
            "the next entry is entry->size + 4 bytes further: size does not count itself",
        ),
        Usual(r"ranges\[.*seen base .* type 1$", "only available ranges are added"),
        Usual(
            r"ranges\[.*expected base (0x\w+), .*seen base \1, length",
            "add_range gets the entry's base, length and type, in this order",
        ),
        Usual(
            "ranges in boot_info: expected (5, seen 4|6, seen 5|7, seen 6)$",
            "the last entry is left out (< in place of <=)",
        ),
        Usual(
            r"ranges in boot_info: .*seen \d\d",
            "the walk does not end with the map, which has mmap_length bytes",
        ),
    )
    memory = some_memory(lab.seed)
    with told(usually, IN_GDB), stopped(lab, "_start", memory=memory) as guest:
        expected = loader_ranges(guest, guest.registers()["ebx"], base=0)
        guest.run_to("memory_map_initialize", why="kernel/report/boot_info.c")
        require_told(guest, expected)
        require_without_map(guest, upper=1024 * Random(lab.seed).randrange(2, 60))


@pytest.mark.exercise("1.5", points=1)
def test_usable_memory(lab):
    """memory_map_usable is the sum of what is available, in KiB."""
    usually = (
        Usual("that in bytes", "the sum of bytes is not divided by 1024"),
        Usual("too much$", "types other than MULTIBOOT_MEMORY_AVAILABLE are added up"),
        Usual(
            "too little",
            "each range is divided by 1024, and not the sum of bytes; or ranges are missing in "
            "boot_info, if test_ranges fails, too",
        ),
    )
    memory = some_memory(lab.seed)
    with (
        told(usually, "make run LESSON=1 BOOT=direct"),
        stopped(lab, "_start", memory=memory) as guest,
    ):
        expected = kibibytes(loader_ranges(guest, guest.registers()["ebx"], base=0))
        guest.run_to("memory_map_print", why="kernel/report/boot_info.c")
        found = guest.call64("memory_map_usable")
        what = f"memory_map_usable in a machine of {memory} MiB, in KiB: expected {expected}"
        much = "much" if found > expected else "little"
        much += ", and that in bytes" if found // 1024 == expected else ""
        require(found == expected, f"{what}, seen {found}: too {much}")
