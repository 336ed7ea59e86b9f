"""The file layer, compiled for the host: paths, contents, pipes, archives, the terminal's lines.

tests/host/fs/*.c hold the tests; tests/host/units.py says how they are compiled.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.host.units import SEED, Units, run

SOURCES = (
    "fs/cpio.c",
    "fs/devices.c",
    "fs/file.c",
    "fs/files.c",
    "fs/files_copy.c",
    "fs/path_page.c",
    "fs/pipe.c",
    "fs/linux/line.c",
    "fs/linux/pipes.c",
    "fs/tty/tty.c",
    "fs/ram/initramfs.c",
    "fs/ram/ramfs.c",
    "fs/ram/ramfs_data.c",
    "fs/ram/ramfs_mount.c",
    "fs/vfs/anonymous.c",
    "fs/vfs/file_path.c",
    "fs/vfs/filesystem.c",
    "fs/vfs/inode.c",
    "fs/vfs/locks.c",
    "fs/vfs/mounting.c",
    "fs/vfs/mounts.c",
    "fs/vfs/names.c",
    "fs/vfs/path.c",
    "fs/vfs/vfs.c",
    "kernel/lib/errno.c",
    "kernel/lib/format.c",
    "kernel/lib/number.c",
    "kernel/lib/string.c",
)
CORE_SOURCES = (
    "fs/cpio.c",
    "fs/devices.c",
    "fs/file.c",
    "fs/root.c",
    "fs/tty/tty.c",
    "kernel/lib/errno.c",
    "kernel/lib/format.c",
    "kernel/lib/number.c",
    "kernel/lib/string.c",
)
# The shadow has headers in place of the kernel's.
FLAGS = (
    *("-Itests/host/fs/shadow", "-I.", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64"),
    "-Wno-pointer-to-int-cast",
)

# Test and rounds. What a table drives has one round.
TESTS = {
    "names_random": 25_000,
    "names_links": 1,
    "names_long": 1,
    "names_unmount": 1,
    "names_directory_path": 1,
    "data_contents": 6_000,
    "data_sparse": 1,
    "data_descriptors": 4_000,
    "data_program": 1,
    "data_file_path": 1,
    "pipe_random": 20_000,
    "pipe_ends": 1,
    "pipe_named": 1,
    "archive_good": 200,
    "archive_truncations": 1,
    "archive_damage": 3_000,
    "archive_refusals": 1,
    "archive_order": 1,
    "line_table": 1,
    "line_full": 1,
    "line_change": 1,
    "line_output": 1,
    "line_random": 40_000,
}


# The core's own files.
CORE_TESTS = {
    "root_good": 100,
    "root_truncations": 1,
    "root_damage": 2_000,
    "root_refusals": 1,
    "root_order": 1,
    "root_contents": 5_000,
    "root_names": 1,
    "tty_random": 50_000,
    "tty_interrupt": 1,
    "tty_full": 1,
    "tty_output": 1,
}

UNITS = Units("tests/host/fs", SOURCES, FLAGS)
CORE_UNITS = Units("tests/host/fs_core", CORE_SOURCES, FLAGS)


@pytest.fixture(scope="session")
def host_units(tmp_path_factory) -> Path:
    """The tests as a program of this machine, with sanitizers."""
    return UNITS.for_host(tmp_path_factory)


@pytest.fixture(scope="session")
def i386_units(tmp_path_factory) -> Path:
    """The tests as a 32-bit program."""
    return UNITS.for_i386(tmp_path_factory)


@pytest.fixture(scope="session")
def core_units(tmp_path_factory) -> Path:
    """The tests with the core's own files."""
    return CORE_UNITS.for_host(tmp_path_factory)


@pytest.mark.parametrize(("name", "rounds"), CORE_TESTS.items())
def test_the_core(core_units, tmp_path, name, rounds):
    run(core_units, name, SEED + 2, rounds, directory=tmp_path)


@pytest.mark.parametrize(("name", "rounds"), TESTS.items())
def test_on_the_host(host_units, tmp_path, name, rounds):
    run(host_units, name, SEED, rounds, directory=tmp_path)


@pytest.mark.parametrize(("name", "rounds"), TESTS.items())
def test_in_32_bits(i386_units, tmp_path, name, rounds):
    run(i386_units, name, SEED + 1, rounds, directory=tmp_path)


def test_every_test_is_run(host_units):
    assert run(host_units).split() == list(TESTS)
