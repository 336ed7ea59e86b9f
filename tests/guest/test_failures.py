"""Lessons 5 and 6, and the storage lab: the n-th request for memory fails while Debian's busybox
runs, in the lab on an ext4. The program that asked is told, nothing panics, nothing is lost, and
e2fsck finds nothing. With EVERY=1 in the environment for every n, which takes minutes; else with
WHOLE=yes for each second one in lesson 6, each 20th in lesson 5, where a fork copies all pages and
the same work takes 20 times as long, and each 19th in the lab, where each object is a request;
else for about a third of these."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from labs.tools.guest.initramfs import archive
from labs.tools.guest.programs import busybox, guest_root
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive
from tests.host.ext.images import MIB, make_image, run_tool
from tests.support.building import ROOT, WHOLE, make

OFTEN = {"5": 20, "6": 2, "storage": 19} if WHOLE else {"5": 61, "6": 7, "storage": 59}
EVERY = {word: int(os.environ.get("EVERY", often)) for word, often in OFTEN.items()}
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

# A mount, files that grow, move and go, a hole, a commit, links, an unmount.
DISK_WORK = """\
mount /dev/hdb /mnt && cd /mnt || exit
seq 300 >a && cat a a >>b && mkdir c && mv b c/d && ln c/d e && ln -s d c/f
sync
head -c 40000 /bin/busybox | dd of=a bs=1000 seek=500 2>/dev/null
echo x >>e; rm c/d; cat c/f e | wc -c
cd /
umount /mnt
"""
DISK_CLEAN = """\
umount /mnt 2>/dev/null
mount /dev/hdb /mnt; rm -rf /mnt/[a-e]; umount /mnt
"""
AUDIT = re.compile(
    r"audit: (\d+) contradictions.*\n> account\n"
    r"account: (\d+) pages free, (\d+) in slabs; (\d+) objects"
)
TO_GO = re.compile(r"^fail: (\d+) requests to go", re.MULTILINE)
WORK_AND_CLEAN = "run /bin/sh /work; fail; fail 0; run /bin/sh /clean; shrink; audit; account"


@pytest.fixture(scope="module", params=EVERY)
def machine(request, tmp_path_factory) -> Config:
    """A kernel with busybox and the two scripts; in the lab with a drive, too."""
    make(f"LESSON={request.param}", "image-direct", "user-programs")
    on_disk = request.param == "storage"
    place = tmp_path_factory.mktemp("failures")
    (place / "files/mnt").mkdir(parents=True)
    (place / "files/work").write_text(DISK_WORK if on_disk else WORK)
    (place / "files/clean").write_text(DISK_CLEAN if on_disk else CLEAN)
    files = guest_root(ROOT / "build/user/bin", busybox(), [place / "files"])
    (place / "initramfs").write_bytes(archive(files))
    machine = Config(
        boot="direct",
        kernel=kernel_of(request.param),
        initramfs=place / "initramfs",
        guest_limit=600,
        wall_limit=900,
    )
    if not on_disk:
        return machine
    (place / "empty").mkdir()
    image = make_image(place / "a.img", 4 * MIB, "-t ext4 -J size=1", place / "empty")
    settings = (("disk", "dma-polled"), ("kmalloc_debug", "1"))
    return replace(machine, drives=(Drive(image, 1, writable=True),), settings=settings)


def kernel_of(word: str) -> Path:
    """The kernel of a lesson, or of the lab."""
    return ROOT / "build" / (word if word == "storage" else f"lesson{word}") / "kernel.elf"


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
    for drive in machine.drives:
        run_tool("e2fsck", "-fn", str(drive.path))


@pytest.mark.slow
def test_requests_fail(request, machine, requests) -> None:
    """Also the first one that is not made any more."""
    numbers = range(1, requests + 2, EVERY[request.node.callspec.params["machine"]])
    for first in range(0, len(numbers), IN_ONE_RUN):
        fail_each(machine, numbers[first : first + IN_ONE_RUN])
    fail_each(machine, [requests + 1])
