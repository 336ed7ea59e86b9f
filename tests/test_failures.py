"""Lessons 5 and 6: the n-th request for memory fails while Debian's busybox runs. The program that
asked is told, nothing panics, and nothing is lost. With EVERY=1 in the environment for every n,
which takes minutes; else for each fifth one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from labs.tools.guest.initramfs import archive
from labs.tools.guest.programs import busybox, guest_root
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config
from tests.building import ROOT, make

EVERY = int(os.environ.get("EVERY", "5"))
IN_ONE_RUN = 30  # values of n for one boot
MANY = 1_000_000  # more requests than the work makes

# Pipes, forks, files that grow, directories, a program that is not there, signals.
WORK = """\
seq 30 | sort -r | head -3 >/tmp/a
cat /tmp/a /tmp/a >/tmp/b
(ls / | wc -l) 2>&1
nothing-there
mkdir /tmp/c && mv /tmp/b /tmp/c/d && ln -s d /tmp/c/e && cat /tmp/c/e
sleep 9 &
kill $!
wait
"""
CLEAN = "rm -rf /tmp/*\n"
AUDIT = re.compile(
    r"audit: (\d+) contradictions.*\n> account\n"
    r"account: (\d+) pages free, (\d+) in slabs; (\d+) objects"
)
TO_GO = re.compile(r"^fail: (\d+) requests to go", re.MULTILINE)
WORK_AND_CLEAN = "run /bin/sh /work; fail; fail 0; run /bin/sh /clean; shrink; audit; account"


@pytest.fixture(scope="module", params=[5, 6])
def machine(request, tmp_path_factory) -> Config:
    """A lesson's kernel with busybox and the two scripts."""
    make(f"LESSON={request.param}", "image-direct", "user-programs")
    place = tmp_path_factory.mktemp("failures")
    (place / "files").mkdir()
    (place / "files/work").write_text(WORK)
    (place / "files/clean").write_text(CLEAN)
    files = guest_root(ROOT / "build/user/bin", busybox(), [place / "files"])
    (place / "initramfs").write_bytes(archive(files))
    kernel = ROOT / f"build/lesson{request.param}/kernel.elf"
    return Config(
        boot="direct", kernel=kernel, initramfs=place / "initramfs", guest_limit=600, wall_limit=900
    )


@pytest.fixture(scope="module")
def requests(machine) -> int:
    """How often the work asks for memory."""
    script = f"run /bin/sh /work; run /bin/sh /clean; fail {MANY}; {WORK_AND_CLEAN}"
    said = run(replace(machine, script=script)).check().serial
    _, left, _ = map(int, TO_GO.findall(said))
    assert 0 < left < MANY
    return MANY - left


def fail_each(machine: Config, numbers: Iterable[int]) -> None:
    """In one boot, the work once for each number. Afterwards all is as it was after a work without
    failures: contradictions, pages that are free or in slabs, objects."""
    script = "; ".join(
        ["run /bin/sh /work", WORK_AND_CLEAN, *(f"fail {n}; {WORK_AND_CLEAN}" for n in numbers)]
    )
    said = run(replace(machine, script=script)).serial
    found = [tuple(map(int, each)) for each in AUDIT.findall(said)]
    (contradictions, free, slabs, objects), *others = found
    assert contradictions == 0
    assert len(others) == len(list(numbers)), said[-2000:]
    for n, other in zip(numbers, others, strict=True):
        pages = other[1] + other[2]
        assert (other[0], pages, other[3]) == (0, free + slabs, objects), f"request {n}"


@pytest.mark.slow(seconds=30)
def test_requests_fail(machine, requests) -> None:
    """Also the first one that is not made any more."""
    numbers = range(1, requests + 2, EVERY)
    for first in range(0, len(numbers), IN_ONE_RUN):
        fail_each(machine, numbers[first : first + IN_ONE_RUN])
    fail_each(machine, [requests + 1])
