"""The file layer, compiled for the host: paths, contents, pipes, archives, the terminal's lines.

tests/host/fs/*.c hold the tests. They run the kernel's own files, once for this machine with the
address and undefined-behaviour sanitizers, and once in 32 bits where a compiler can link that.
"""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (
    "fs/devices.c",
    "fs/file.c",
    "fs/files.c",
    "fs/initramfs.c",
    "fs/inode.c",
    "fs/line.c",
    "fs/path.c",
    "fs/pipe.c",
    "fs/ramfs.c",
    "fs/ramfs_data.c",
    "fs/vfs.c",
    "kernel/errno.c",
    "kernel/format.c",
    "kernel/string.c",
)
# The shadow has headers in place of the kernel's.
FLAGS = (
    *("-std=gnu11", "-O1", "-g", "-Itests/host/fs/shadow", "-I.", "-D_GNU_SOURCE"),
    *("-fno-strict-aliasing", "-fno-omit-frame-pointer", "-Wno-pointer-to-int-cast"),
)
AS_KERNEL = ("-fno-builtin", "-include", "tests/host/rename.h")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
TRAP = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-D_FILE_OFFSET_BITS=64")
I386_COMPILERS = (("i686-linux-gnu-gcc", "-static"), ("gcc", "-m32", "-static"))
SEED = 20100627

# Test and rounds. What a table drives has one round.
TESTS = {
    "names_random": 25_000,
    "names_links": 1,
    "names_long": 1,
    "names_directory_path": 1,
    "data_contents": 6_000,
    "data_sparse": 1,
    "data_descriptors": 4_000,
    "data_program": 1,
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


def compile_units(directory: Path, compiler: tuple[str, ...]) -> str | None:
    """Compiles `directory`/units; returns None, or what the compiler said."""
    directory.mkdir(parents=True, exist_ok=True)
    tests = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/host/fs").glob("*.c"))
    renamed = directory / "kernel.o"
    commands = (
        # One object of all the kernel's files, so that the renaming touches only them.
        [*compiler, *FLAGS, *AS_KERNEL, "-r", "-nostdlib", *SOURCES, "-o", str(renamed)],
        [*compiler, *FLAGS, *tests, str(renamed), "-o", str(directory / "units")],
    )
    for command in commands:
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        except OSError as error:
            return f"{command[0]}: {error.strerror}"
        if done.returncode != 0:
            return done.stderr
    return None


def built_once(
    factory: pytest.TempPathFactory, name: str, compilers: list[tuple[str, ...]]
) -> Path | str:
    """The program, compiled by the first compiler that can, by one process of pytest-xdist for all
    of them; or why none can."""
    base = factory.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"fs-{name}"
    causes = []
    with (directory.parent / f"{directory.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (directory / "units").exists():
            return directory / "units"
        for compiler in compilers:
            cause = compile_units(directory, compiler)
            if cause is None:
                return directory / "units"
            causes.append(f"{' '.join(compiler)}: {cause}")
    return "\n".join(causes)


@pytest.fixture(scope="session")
def host_units(tmp_path_factory) -> Path:
    """The tests as a program of this machine, with sanitizers."""
    program = built_once(tmp_path_factory, "host", [("gcc", *SANITIZE)])
    if isinstance(program, str):
        pytest.fail(f"the unit tests do not compile:\n{program}", pytrace=False)
    return program


@pytest.fixture(scope="session")
def i386_units(tmp_path_factory) -> Path:
    """The tests as a 32-bit program; skips where none can be made or run."""
    if platform.machine() not in ("x86_64", "i686", "i586", "i386"):
        pytest.skip(f"a {platform.machine()} does not run 32-bit x86 programs")
    compilers = [(*compiler, *TRAP) for compiler in I386_COMPILERS]
    program = built_once(tmp_path_factory, "i386", compilers)
    if isinstance(program, str):
        pytest.skip(f"no compiler here links a static i386 program: {program.splitlines()[0]}")
    try:
        subprocess.run([program], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this machine does not run i386 programs: {error}")
    return program


def run(program: Path, directory: Path, *arguments: object) -> str:
    """Runs a test in a directory of its own; returns what it printed, and fails with that if the
    status is not 0."""
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(
        command,
        cwd=directory,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=60,
    )
    if done.returncode != 0:
        cause = "undefined behaviour (SIGILL)\n" if done.returncode == -4 else ""
        pytest.fail(
            f"{' '.join(command[1:])}: status {done.returncode}\n{cause}{done.stdout}{done.stderr}",
            pytrace=False,
        )
    return done.stdout


@pytest.mark.parametrize(("name", "rounds"), TESTS.items())
def test_on_the_host(host_units, tmp_path, name, rounds):
    run(host_units, tmp_path, name, SEED, rounds)


@pytest.mark.parametrize(("name", "rounds"), TESTS.items())
def test_in_32_bits(i386_units, tmp_path, name, rounds):
    run(i386_units, tmp_path, name, SEED + 1, rounds)


def test_every_test_is_run(host_units, tmp_path):
    assert run(host_units, tmp_path).split() == list(TESTS)
