"""Exercise 3.6: programs that are none, and a heap that grows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lesson3.executables import Image, Segment, question
from tests.lesson3.support import BRK, ENOEXEC, HERE, answers, ring3, with_files

DRIVER = HERE / "host" / "elf_check.c"


@pytest.mark.exercise("3.6", points=1, host=True)
def test_honest_and_not(lab):
    """A program, one without segments, one for another machine, one that lies in the kernel."""
    images = {
        "an honest program": Image(),
        "a program without segments": Image(segments=()),
        "a program for another machine": Image(machine=62),
        "a segment in the kernel": Image(segments=(Segment(vaddr=0xC0100000),)),
        "a file of 20 bytes": replace(Image(), bytes_there=20),
    }
    program = lab.host(["kernel/process/exec_elf.c"], [DRIVER], "elf_check")
    found = answers(
        lab, program, [question(each) for each in images.values()], "kernel/process/exec_elf.c"
    )
    for words, answer in zip(images, found, strict=True):
        expected = 0 if words == "an honest program" else -ENOEXEC
        assert answer == f"{expected} 0", f"{words}: elf_check returns {answer[:-2]}"


@pytest.mark.exercise("3.6", points=1)
def test_a_text_is_no_program(lab):
    """The kernel says so, and lives."""
    files = {"bin/text": b"This is no program.\n", "bin/empty": b""}
    result = lab.run("run /bin/text; run /bin/empty; help", **with_files(lab, files))
    assert result.serial.count("ENOEXEC") == 2, result.explain()


@pytest.mark.exercise("3.6", points=1)
def test_heap_grows(lab):
    """brk gives the end of the heap, moves it up, and gives memory that is zero."""
    with ring3(lab) as caller:
        start = caller.result(BRK, 0)
        for address in (start + 10000, 0):
            found = caller.result(BRK, address)
            assert found == start + 10000, (
                f"brk({address:#x}) returns {found:#x}, not {start + 10000:#x}"
            )
        assert caller.guest.read(start, 10000) == bytes(10000), "new memory is not zero"
