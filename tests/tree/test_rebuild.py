"""What is built follows what it is made from: make knows every file that a source includes."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.support.building import ROOT, make

TARGETS = ("LESSON=4", "everything", "build/host/lab-file", "build/bench/bench_glibc")
SOURCE = re.compile(r"(?<=\s)[\w/]+\.(?:c|asm|ld)(?=\s)")
INCLUDED = re.compile(r'^\s*(?:#\s*include|%include|INCLUDE)\s+"?([\w/.]+)', re.MULTILINE)
OF_PROGRAMS = re.compile(r"#include <([\w/.]+)>")


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    make(*TARGETS)


def planned(*options: str) -> set[str]:
    """The sources that make would build from: `options` say what has changed."""
    command = ["make", "-n", "V=1", *options, *TARGETS]
    words = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return set(SOURCE.findall(words))


@cache
def reached(path: Path) -> frozenset[Path]:
    """The files that one includes, and those that they do. What the build makes from a header is
    that header, without those that the header includes."""
    text = path.read_text()
    names = INCLUDED.findall(text)
    places = [ROOT / name for name in names]
    if path.is_relative_to(ROOT / "user"):
        places += [ROOT / "user/include" / name for name in OF_PROGRAMS.findall(text)]
    written = (place if place.exists() else place.with_suffix(".h") for place in places)
    near = {place for place in written if place.exists()}
    further = near - (
        {each for each in near if each.suffix == ".h"} if path.suffix == ".asm" else set()
    )
    return frozenset(near.union(*map(reached, further)))


@pytest.mark.slow
def test_what_is_included_is_known() -> None:
    sources = planned("-B")
    assert {"boot/loader.c", "boot/mbr.asm", "boot/kernel.ld", "user/bench.c"} <= sources
    users: dict[Path, set[str]] = {}
    for source in sources:
        for file in reached(ROOT / source):
            users.setdefault(file, set()).add(source)
    # C files of the kernel are all built by one rule: a few headers of theirs are enough.
    special = {each for each in users if any(not is_plain(source) for source in users[each])}
    for file in sorted(special):
        missing = users[file] - planned(f"-W{file.relative_to(ROOT)}")
        assert not missing, f"a change of {file.relative_to(ROOT)} does not rebuild {missing}"


def is_plain(source: str) -> bool:
    """Whether a source is one of the kernel's or of the programs' C files."""
    return source.endswith(".c") and source.startswith(("kernel/", "drivers/", "fs/", "mm/"))


def test_nothing_is_built_twice() -> None:
    assert planned() == set()
