"""All exercises of lesson 6 in one kernel: a program with more memory than the machine has, and a
dynamically linked shell."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from random import Random

import pytest

from labs.tools.grading.lab import ROOT
from tests.lesson1.picture import expect as expect_lines
from tests.lesson3.support import with_files
from tests.lesson4.pipes import require_pipe
from tests.lesson4.support import run_tool, said_by_programs, tool, workshop
from tests.support.told import expect

LIBRARIES = ("ld-linux.so.2", "libc.so.6")
WHOLE = "tests/lesson6/hidden/whole.c"
PAGES = 256 << 8
WORDS = 1024


def sums(start: int, count: int, more: int) -> tuple[int, int]:
    """What the parent finds in the end, and its child, which has written once more."""
    places = [(start + n * 2654435761 & 0xFFFFFFFF) % PAGES for n in range(count)]
    found = []
    for writes in ((more,), (more, 1)):
        words: dict[tuple[int, int], int] = {}
        for added in writes:
            for n, page in enumerate(places):
                word = page, n % WORDS
                words[word] = words.get(word, 0) + n + added
        total = sum(
            words[page, n % WORDS] + words.get((page, WORDS - 1), 0)
            for n, page in enumerate(places)
        )
        found.append(total & 0x7FFFFFFF)
    return found[0], found[1]


@pytest.mark.exercise("6.0", points=2)
def test_more_than_there_is(lab):
    """A program with 256 MiB on a smaller machine: it and its child use some of its pages."""
    random = Random(lab.seed)
    start, count, more = random.randrange(1 << 20), random.randrange(200, 400), random.randrange(99)
    levels = random.randrange(200, 900)
    parent, child = sums(start, count, more)
    said = said_by_programs(lab, WHOLE, f"generations {start} {count} {more} {levels}")
    expect("what the child finds in its memory", said.get("child"), child)
    expect("what its recursion returns", said.get("deep"), levels * (levels + 1) // 2)
    expect("its status", said.get("status"), 0)
    expect("what the parent finds in its memory after that", said.get("parent"), parent)


@pytest.mark.exercise("6.0", points=1)
def test_a_stack_without_end(lab):
    """A recursion without end: SIGSEGV ends that program alone."""
    said = said_by_programs(lab, WHOLE, "endless")
    expect("the signal that ends a recursion without an end", said.get("signal"), 11)
    expect("what the parent's own recursion returns then", said.get("after"), 55)


@cache
def dynamic_programs() -> dict[str, bytes]:
    """The course's shell and two programs as Debian builds its own: linked to the compiler's C
    library when they start, and what the linker has filled in is read-only then."""
    options = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-w", "-I.", "-Wl,-z,relro,-z,now")
    sources = {"sh": sorted(map(str, (ROOT / "user/sh").glob("*.c")))}
    sources |= {name: [f"user/{name}.c"] for name in ("cat", "echo")}
    files = {}
    for name, own in sources.items():
        target = workshop() / f"dynamic-{name}"
        run_tool(*tool("cc"), *options, *own, "-o", str(target))
        files[f"bin/{name}"] = target.read_bytes()
    for library in LIBRARIES:
        command = [*tool("cc"), f"-print-file-name={library}"]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        files[f"lib/{library}"] = Path(found).read_bytes()
    return files


@pytest.mark.exercise("6.0", points=2)
def test_shell_with_subshells(lab):
    """A dynamically linked shell: nested subshells write into a pipe. In the core, which has no
    call for the linker's mappings, programs and pipes of lesson 4 do."""
    random = Random(lab.seed)
    if lab.core:
        require_pipe(lab, "{}")
        return
    one, two, three, four = random.sample(range(1000, 10_000), 4)
    script = (
        f"A={one}; (A={two}; (/bin/echo $A; A={three}; (/bin/echo $A)); /bin/echo $A) | /bin/cat\n"
        f"/bin/echo $A | /bin/cat | /bin/cat; /bin/echo {four} $?\n"
    )
    files = dynamic_programs() | {"etc/script": script.encode()}
    said = lab.run("run /bin/sh /etc/script", **with_files(lab, files))
    expect_lines(said, *map(str, (two, three, two, one)), f"{four} 0")
