"""The cache of inodes of a mounted disk, compiled for the host: a last reference that goes while
another task stores the mount's inodes."""

from __future__ import annotations

import subprocess

import pytest

from labs.tools.machine.bounded import run_within
from tests.host.ext.images import ROOT

OPTIONS = (
    "-std=gnu11",
    "-g",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Wno-format",
    f"-I{ROOT}",
)
SANITIZE = ("-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
SOURCES = (
    "fs/disk/ext_inode.c",
    "fs/disk/ext_sync.c",
    "kernel/lib/tree.c",
    "tests/host/inodes/main.c",
)
SECONDS = 600


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    program = tmp_path_factory.mktemp("inodes") / "inodes"
    command = ["gcc", *OPTIONS, *SANITIZE, *(ROOT / each for each in SOURCES), "-o", program]
    subprocess.run(command, check=True)
    return program


@pytest.mark.parametrize(("links", "places"), [(0, 3), (1, 0)])
def test_an_inode_ends_once(program, links, places):
    """Whatever the task waits for: the pages, the lock, or the next task behind it. A file that has
    names does not wait."""
    done = run_within([program, str(links)], capture_output=True, text=True, seconds=SECONDS)
    assert (done.stdout, done.returncode) == (f"{places}\n", 0), done.stderr[-2000:]


def test_what_is_committed(program):
    """By fsync and fdatasync: no more than is needed; by another task, too; each failure is told to
    who waits, and to who asks later. Over the end of the numbers."""
    done = run_within([program, "sync"], capture_output=True, text=True, seconds=SECONDS)
    assert (done.stdout, done.returncode) == ("", 0), done.stdout + done.stderr[-2000:]
