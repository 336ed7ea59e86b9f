"""Lesson 5's kernel on machines of 16 MiB to 1 GiB: it boots, runs programs, and says who has the
memory, in Linux's formats."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from labs.tools.guest.initramfs import archive
from labs.tools.guest.programs import busybox, guest_root
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config
from tests.support.building import ROOT, make

PAGE_KIB = 4
ORDERS = 11
DIRECT_MAP = 896  # MiB that the kernel sees


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> Config:
    """Lesson 5's kernel with busybox."""
    make("LESSON=5", "image-direct", "user-programs")
    path = tmp_path_factory.mktemp("memory") / "initramfs"
    path.write_bytes(archive(guest_root(ROOT / "build/user/bin", busybox())))
    kernel = ROOT / "build/lesson5/kernel.elf"
    return Config(boot="direct", kernel=kernel, initramfs=path, guest_limit=30)


@pytest.mark.parametrize("megabytes", [16, 20, 64, 1024])
def test_it_runs_programs(machine, megabytes) -> None:
    """The auditor finds nothing, and all pages are free, in slabs or in use, before and after."""
    script = "audit; run /bin/hello; run /bin/seq 3; audit; shrink; leaks"
    said = run(replace(machine, memory=megabytes, script=script)).check().serial
    assert "Hello from ring 3!" in said
    assert "1\n2\n3\n" in said
    free = [int(n) for n in re.findall(r"audit: 0 contradictions, (\d+) pages free", said)]
    assert len(free) == 2
    assert 0 <= free[0] - free[1] < 32
    seen = min(megabytes, DIRECT_MAP) * 1024 // PAGE_KIB
    assert seen * 0.8 - 700 < free[0] < seen


def command(machine: Config, line: str) -> str:
    """What a command of the guest's shell prints."""
    said = run(replace(machine, settings=(("cmd", f"echo begin; {line}"),))).check().serial
    return said.rpartition("begin\n")[2]


def test_buddyinfo_is_linuxs(machine) -> None:
    """A line for each zone: free blocks by order, whose sum is what /proc/meminfo says."""
    said = command(machine, "cat /proc/buddyinfo /proc/meminfo")
    zones = re.findall(r"^Node 0, zone +(\w+) ((?: *\d+ ){11})$", said, re.MULTILINE)
    assert [name for name, _ in zones] == ["DMA", "Normal"]
    pages = sum(
        int(blocks) << order for _, line in zones for order, blocks in enumerate(line.split())
    )
    free = int(re.search(r"^MemFree: +(\d+) kB$", said, re.MULTILINE)[1])
    assert abs(free - pages * PAGE_KIB) <= 64  # the shell's own program comes and goes
    for name in ("MemTotal", "MemAvailable", "Buffers", "Cached", "SwapTotal", "Slab"):
        assert re.search(rf"^{name}: +\d+ kB$", said, re.MULTILINE), name


def test_slabinfo_is_linuxs(machine) -> None:
    """Version 2.1: every line has the columns of the heading, and they agree with each other."""
    version, heading, *lines = command(machine, "cat /proc/slabinfo").splitlines()
    assert version == "slabinfo - version: 2.1"
    assert heading.startswith("# name            <active_objs> <num_objs> <objsize> <objperslab>")
    assert len(lines) > 10
    for line in lines:
        row = re.fullmatch(
            r"(\S+) +(\d+) +(\d+) +(\d+) +(\d+) +1 : tunables +0 +0 +0"
            r" : slabdata +(\d+) +(\d+) +0",
            line,
        )
        assert row, line
        active, objects, size, each, active_slabs, slabs = map(int, row.groups()[1:])
        assert active <= objects == slabs * each, line
        assert size * each <= PAGE_KIB * 1024, line
        assert active_slabs <= slabs, line


def test_a_leak_is_named(machine) -> None:
    """What the kernel has allocated since it began is told by the function that asked."""
    said = run(replace(machine, script="leaks; leaks 1000000")).check().serial
    first, last = re.findall(r"^leaks: (\d+) objects$", said, re.MULTILINE)
    assert int(first) > 100
    assert int(last) == 0
    lines = re.findall(r"^ *(\d+) objects, +\d+ bytes: 0x[0-9a-f]{8} (\w+)\+0x", said, re.MULTILINE)
    assert sum(int(count) for count, _ in lines) == int(first)
    assert not {"pool_alloc", "krealloc"} & {name for _, name in lines}
