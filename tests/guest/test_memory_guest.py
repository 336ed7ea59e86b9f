"""Lesson 6's kernel from a program's side: what Linux promises about memory, and what is left after
programs that take all of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from labs.tools.guest.initramfs import archive
from labs.tools.guest.programs import guest_root
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config
from tests.support.building import first_is_fast, make, mentioned, shared_folder
from tests.support.memory_machine import GUEST_SECONDS, ROOT, WALL_SECONDS, compiled, said_by

ELSEWHERE = {
    "more than there are addresses",
    "an offset that wraps: EOVERFLOW",
    "the kernel is not there",
}
"""What a 64-bit Linux does otherwise: 4 GiB for programs of 32 bits, and longer offsets."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """The programs, compiled, in a folder for the guest's root."""
    return shared_folder(tmp_path_factory, "memory-programs", compiled)


def failures(output: str) -> set[str]:
    assert re.search(r"^1\.\.\d+$", output, re.MULTILINE), output
    return set(re.findall(r"^not ok \d+ (.*)$", output, re.MULTILINE))


@pytest.mark.parametrize("name", ["memory", "limits", "interpreters", "most"])
def test_promises(programs, name):
    assert failures(said_by(programs, f"/{name}", memory=128)) == set()


def test_what_is_kept(programs):
    """Also where a program may have fewer areas, and of files on another mount."""
    most = "/proc/sys/vm/max_map_count"
    command = f"cat {most}; /kept; mkdir -p /mnt; mount -t tmpfs t /mnt; echo 300 > {most}"
    said = said_by(programs, f"{command}; /kept /mnt", memory=128)
    assert re.search(r"^65530\n", said, re.MULTILINE)
    assert failures(said) == set()
    assert said.count(" and max_map_count\n") == 2


@pytest.mark.parametrize("name", ["seams", "memory", "races"])
def test_copies_that_sleep(programs, tmp_path, name):
    """Each fault sleeps, in copies of the kernel as well, and others use the same pipe or file."""
    make("LESSON=6", "image-direct", "user-programs")
    (tmp_path / "initramfs").write_bytes(
        archive(guest_root(ROOT / "build/user/bin", None, [mentioned(programs, name)]))
    )
    machine = Config(
        boot="direct",
        kernel=ROOT / "build/lesson6/kernel.elf",
        initramfs=tmp_path / "initramfs",
        script=f"faults slow /{name}",
        guest_limit=GUEST_SECONDS,
        wall_limit=WALL_SECONDS,
    )
    assert failures(run(machine).check().serial) == set()


@pytest.mark.parametrize("name", ["memory", "seams", "limits", "interpreters", "kept"])
def test_promises_are_those_of_linux(programs, name):
    """The programs ask nothing of our kernel that Linux does not do."""
    try:
        done = subprocess.run([programs / name], capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"this machine does not run i386 programs: {error}")
    assert failures(done.stdout) <= ELSEWHERE


def free_kib(output: str) -> list[int]:
    return [int(number) for number in re.findall(r"^MemFree: +(\d+) kB$", output, re.MULTILINE)]


@pytest.mark.parametrize("memory", first_is_fast([24, 64]))
def test_who_takes_all_is_killed_alone(programs, memory):
    """The shell is alive after each, and what was taken is free again when it is asked for."""
    output = said_by(
        programs,
        "F='grep ^MemFree /proc/meminfo'; $F; /eater memory; /eater maps; /eater families;"
        "/eater forks; /eater vfork; /eater memory; $F; echo alive",
        memory,
    )
    assert re.findall(r"^eater (\w+): signal 9$", output, re.MULTILINE).count("memory") == 2
    assert "eater vfork: status 7" in output
    assert set(re.findall(r"^out of memory: killed \d+ \((\w+)\)", output, re.MULTILINE)) == {
        "eater"
    }
    before, after = free_kib(output)
    assert after > before * 0.95, output
    assert output.rstrip().endswith("alive")


def test_one_program_does_not_take_the_kernels_memory(programs):
    """Locks of files and threads have a limit; afterwards they are free again for the next one."""
    output = said_by(programs, "/greedy; /greedy; echo alive", 24)
    assert failures(output) == set()
    assert "out of memory" not in output
    assert output.rstrip().endswith("alive")
