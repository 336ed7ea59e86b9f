"""Large pages of lesson 6's kernel, as programs use them: MAP_HUGETLB, MADV_HUGEPAGE, fork, parts
that are cut or protected, and what /proc says. Out of memory is an error, and the account closes.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.memory_machine import compiled, said_by

LOOK = "grep -e ^MemFree -e Huge /proc/meminfo"
KEPT = 512  # KiB that the kernel may keep for later

# After what, and how many KiB by pages of MAP_HUGETLB and of MADV_HUGEPAGE: two large pages in all,
# of which one is split, and made whole again.
STEPS = """\
mapped: pool 0 KiB, promoted 0 KiB
touched: pool 8192 KiB, promoted 0 KiB
child: pool 8192 KiB, promoted 0 KiB
protected: pool 8192 KiB, promoted 0 KiB
demoted: pool 4096 KiB, promoted 0 KiB
promoted: pool 8192 KiB, promoted 0 KiB
cut: pool 0 KiB, promoted 0 KiB
small pages promoted: pool 0 KiB, promoted 8192 KiB
"""

# What Linux says with a pool of 4 MiB pages (mm/mmap.c, fs/hugetlbfs/inode.c); a number is what is
# left of the address after whole large pages.
REFUSED = """\
one byte: 0
a hint in the middle: 0
fixed in the middle: Invalid argument
fixed: 0
no length: Invalid argument
pages of 4 MiB: 0
pages of 2 MiB: Invalid argument
too many: Cannot allocate memory
neither shared nor private: Invalid argument
of a file: Bad file descriptor
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a machine of 64 MiB says of it all."""
    programs: Path = compiled(tmp_path_factory.mktemp("programs"), "large")
    parts = ("all", "errors", "fill", "fill")
    command = "; ".join([LOOK, *(f"/large {part}" for part in parts), LOOK, "echo alive"])
    return said_by(programs, command)


def figures(output: str, name: str) -> list[int]:
    """What each look into /proc/meminfo by the shell has shown."""
    return [int(number) for number in re.findall(rf"^{name}: +(\d+)", output, re.MULTILINE)]


def test_whole_and_parts(output):
    assert STEPS in output, output
    assert "all is well" in output, output


def test_errors(output):
    assert REFUSED in output, output


def test_out_of_memory(output):
    """mmap refuses; nobody is killed, and the second program gets as many as the first."""
    had = re.findall(r"^had (\d+), then Cannot allocate memory$", output, re.MULTILINE)
    assert len(had) == 2 and had[0] == had[1] and int(had[0]) >= 10, output
    assert output.rstrip().endswith("alive"), output


def test_account_closes(output):
    before, after = figures(output, "MemFree")
    assert after >= before - KEPT, f"{before - after} KiB are not free again:\n{output}"
    for name in ("HugePages_Total", "HugePages_Free"):
        before, after = figures(output, name)
        assert before == after > 0, f"{name}: {before}, then {after}"
    assert figures(output, "HugePages_Rsvd") == figures(output, "AnonHugePages") == [0, 0]
    assert figures(output, "Hugepagesize") == [4096, 4096]
