"""The kernel's pure functions, compiled for the host: properties, models, random damage.

tests/host/*.c hold the tests; tests/host/units.py says how they are compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from labs.storage.workload import random_offsets
from tests.host.units import SEED, Units, run

SOURCES = (
    "boot/load_elf.c",
    "drivers/console/vga_escape.c",
    "drivers/console/vga_screen.c",
    "drivers/disk/latency.c",
    "kernel/report/boot_info.c",
    "kernel/lib/format.c",
    "kernel/lib/number.c",
    "kernel/lib/string.c",
    "kernel/report/symbols.c",
    "kernel/task/time.c",
    "mm/memory_map.c",
)
MASK = (1 << 64) - 1

# Test and rounds. What a table drives has one round.
TESTS = {
    "load_elf_good": 1,
    "load_elf_refusals": 1,
    "load_elf_truncations": 1,
    "load_elf_mutations": 100_000,
    "memory_map_random": 30_000,
    "memory_map_nested": 1,
    "memory_map_pc": 1,
    "format_random": 100_000,
    "format_several": 1,
    "format_own": 1,
    "format_buffer": 1,
    "format_symbols": 1,
    "string_memory": 50_000,
    "string_text": 100_000,
    "number_table": 1,
    "number_random": 100_000,
    "divide": 100_000,
    "time": 100_000,
    "random_bounds": 100_000,
    "random_uniform": 100_000,
    "screen_sequences": 1,
    "screen_random": 20_000,
    "latency_borders": 1,
    "latency_percentile": 1,
    "latency_detector": 1,
}
ONLY_I386 = {"boot_info_read": 1}  # its data lies at 3 GiB, which the sanitizer takes for itself


UNITS = Units("tests/host", SOURCES, ("-I.",))


@pytest.fixture(scope="session")
def host_units(tmp_path_factory) -> Path:
    """The tests as a program of this machine, with sanitizers."""
    return UNITS.for_host(tmp_path_factory)


@pytest.fixture(scope="session")
def i386_units(tmp_path_factory) -> Path:
    """The tests as a 32-bit program."""
    return UNITS.for_i386(tmp_path_factory)


@pytest.mark.parametrize(("name", "rounds"), TESTS.items())
def test_on_the_host(host_units, name, rounds):
    run(host_units, name, SEED, rounds)


@pytest.mark.parametrize(("name", "rounds"), (TESTS | ONLY_I386).items())
def test_in_32_bits(i386_units, name, rounds):
    run(i386_units, name, SEED + 1, rounds)


def test_every_test_is_run(host_units):
    assert run(host_units).split() == list(TESTS)


def split_mix_64(seed: int) -> Iterator[int]:
    """Steele, Lea and Flood's generator, from their paper."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        yield mixed ^ (mixed >> 31)


def below(numbers: Iterator[int], bound: int) -> int:
    """The first of the numbers that is below the bound, each cut to as many bits as bound - 1."""
    mask = (1 << (bound - 1).bit_length()) - 1
    return next(value for number in numbers if (value := number & mask) < bound)


@pytest.mark.parametrize("units", ["host_units", "i386_units"])
@pytest.mark.parametrize("seed", [0, 1, 2010, 1 << 63, MASK])
def test_random_numbers_are_splitmix64(request, units, seed):
    program = request.getfixturevalue(units)
    expected = list(islice(split_mix_64(seed), 1000))
    assert [int(line) for line in run(program, "random", seed, 1000).split()] == expected
    for bound in (1, 2, 3, 1000, 1 << 32, (1 << 32) + 1, 3_907_029_168, (1 << 63) + 1, MASK):
        numbers = split_mix_64(seed)
        expected = [below(numbers, bound) for _ in range(200)]
        assert [int(line) for line in run(program, "random", seed, 200, bound).split()] == expected


def test_known_numbers_of_splitmix64():
    """The published first numbers of seed 1234567."""
    assert list(islice(split_mix_64(1234567), 3)) == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_workload_uses_the_same_numbers(host_units):
    sectors = 2_000_398_934_016 // 512
    offsets = list(random_offsets(2010, sectors * 512, 500))
    lines = run(host_units, "random", 2010, 500, sectors).split()
    assert [int(line) * 512 for line in lines] == offsets
