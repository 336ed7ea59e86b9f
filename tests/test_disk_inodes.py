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
SOURCES = ("fs/disk/ext_inode.c", "tests/host/inodes/main.c")
SECONDS = 60


@pytest.mark.parametrize(("links", "places"), [(0, 3), (1, 0)])
def test_an_inode_ends_once(tmp_path, links, places):
    """Whatever the task waits for: the pages, the lock, or the next task behind it. A file that has
    names does not wait."""
    program = tmp_path / "inodes"
    command = ["gcc", *OPTIONS, *SANITIZE, *(ROOT / each for each in SOURCES), "-o", program]
    subprocess.run(command, check=True)
    done = run_within([program, str(links)], capture_output=True, text=True, seconds=SECONDS)
    assert (done.stdout, done.returncode) == (f"{places}\n", 0), done.stderr[-2000:]
