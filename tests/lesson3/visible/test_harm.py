"""Exercise 3.6: files that are no programs, arguments, and a heap that grows.

Not looked at here, but by the graders: program headers that wrap or are not aligned, bad arguments
and too many of them, and a heap that meets other memory.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from labs.tools.grading.lab_words import guest_words
from labs.tools.machine.result import Outcome
from tests.lesson3.executables import LINK_ADDRESS, NOTE, Image, Segment, question
from tests.lesson3.strings import ARRAY, STRINGS, ask, at, words
from tests.lesson3.support import BRK, EFAULT, ENOEXEC, HERE, answers, ring3, with_files
from tests.support.told import Usual, expect, fail, require, told

DRIVER = HERE / "host" / "elf_check.c"
SOURCE = "kernel/process/exec_elf.c"
HEAP = 10000  # bytes: not whole pages


@pytest.mark.exercise("3.6", points=1, host=True, gate=True)
def test_honest_and_not(lab):
    """A program, one without segments, one for another machine, and four with segments that are
    nowhere, or larger than their memory."""
    wrapping = Segment(vaddr=LINK_ADDRESS, filesz=0, memsz=0x100000000 - LINK_ADDRESS + 0x1000)
    images = {
        "an honest program": Image(),
        "a program without program headers": Image(segments=()),
        "a program whose only segment is a note": Image(segments=(Segment(type=NOTE),)),
        "a program for another machine": Image(machine=62),
        "a segment in the kernel": Image(segments=(Segment(vaddr=0xC0100000),)),
        "a segment whose end wraps to 0x1000": Image(segments=(wrapping,)),
        "a file of 20 bytes": replace(Image(), bytes_there=20),
        "a segment that is larger in the file than in memory": Image(
            segments=(Segment(filesz=0x2000, memsz=0x1000),)
        ),
    }
    usually = (
        Usual("larger in the file", "fits does not compare filesz with memsz"),
        Usual("wraps", "start + size is computed, and wraps: compare the size with what is left"),
        Usual("only segment is a note", "elf_check does not count the segments that are loaded"),
        Usual("in the kernel", "fits does not compare the end with SPACE_SHARED"),
        "has_segments, fits or is_for_this_machine lets through what it should refuse",
    )
    with told(usually, "make hint EX=3.6"):
        program = lab.host([SOURCE], [DRIVER], "elf_check")
        found = answers(lab, program, [question(each) for each in images.values()], SOURCE)
        for name, answer in zip(images, lab.judged(found), strict=True):
            expected = 0 if name == "an honest program" else -ENOEXEC
            what = f"elf_check of {name} (ENOEXEC is {ENOEXEC})"
            expect(what, answer.rpartition(" ")[0], str(expected))


@pytest.mark.exercise("3.6", points=1)
def test_a_text_is_no_program(lab):
    """The kernel says so, and lives."""
    files = {"bin/text": b"This is no program.\n", "bin/empty": b""}
    usually = "elf_check reads the header before it asks whether this many bytes are there"
    with told(usually, "make LESSON=3 run SCRIPT='run /bin/text; help'"):
        result = lab.run("run /bin/text; run /bin/empty; help", **with_files(lab, files))
        if result.outcome is not Outcome.ENDED:
            fail(guest_words(result))
        count = result.serial.count("ENOEXEC")
        expect("ENOEXEC for a text and for an empty file: how often", count, 2)


@pytest.mark.exercise("3.6", points=1, host=True)
def test_two_arguments_and_a_variable(lab):
    """The strings of two arrays of pointers, in order and counted; a pointer that leads nowhere."""
    texts = {STRINGS: b"ls", STRINGS + 3: b"/bin", STRINGS + 8: b"HOME=/"}
    usually = (
        Usual("result", "add_array returns the first error of add_string, or 0"),
        Usual("number of", "*count grows by one for each string of the array"),
        Usual("text .*seen $", "add_array adds no string: it goes up to the null pointer"),
        Usual(
            "text .*seen .",
            "add_string copies to text + length, and adds the NUL to the length, too",
        ),
    )
    with told(usually, "make hint EX=3.6"):
        lines = [at(place, text + b"\0") for place, text in texts.items()]
        lines += [at(ARRAY, words(STRINGS, STRINGS + 3, 0, STRINGS + 8, 0, 4, 0))]
        found = ask(lab, [*lines, f"add {ARRAY:x} {ARRAY + 12:x}", f"add {ARRAY + 20:x} 0"])
        require(len(found) == 2, "add_array does not stop at the array's null pointer")
        good, bad = found
        lab.judging(0)
        what = 'of exec_add_from_user for the arguments "ls", "/bin" and the variable "HOME=/"'
        expect(f"the result {what}", good[0], "0")
        text = "".join(f"{text.decode()}\\0" for text in texts.values())
        expect(f"the text {what}", shown(good[4]), text)
        expect(f"the number of arguments {what}", good[1], "2")
        expect(f"the number of variables {what}", good[2], "1")
        lab.judging(1)
        what = f"the result of exec_add_from_user for a string at address 4 (EFAULT is {EFAULT})"
        expect(what, bad[0], str(-EFAULT))


def shown(answer: str) -> str:
    """A text that is told in hexadecimal."""
    return bytes.fromhex(answer.rstrip(".")).decode("latin-1").replace("\0", "\\0")


@pytest.mark.exercise("3.6", points=1, gate=True)
def test_heap_grows(lab):
    """brk gives the end of the heap, moves it up and down, and gives memory that is zero: also
    memory that the program had, and gave back."""
    usually = (
        Usual(
            "given back.*at byte [1-9]",
            "pages that the heap gets are not mapped: space_map gives zeros",
        ),
        Usual(
            "given back.*at byte 0$",
            "the rest of the last page keeps its bytes when the heap shrinks: clear it when the "
            "heap grows again",
        ),
        Usual("^brk", "brk returns the end of the heap, always: the old one if it cannot move it"),
    )
    with told(usually, "make hint EX=3.6"), ring3(lab) as caller:
        start = caller.result(BRK, 0)
        for name, address, expected in (
            ("up by 10000 bytes", start + HEAP, HEAP),
            ("to 0, which asks where the end is", 0, HEAP),
        ):
            found = caller.result(BRK, address)
            expect(f"brk {name}, from {start:#x}", hex(found), hex(start + expected))
        require_zeros(caller.guest.read(start, HEAP), "new memory of the heap")
        caller.write(start, b"\xa5" * HEAP)
        for name, size in (("down to 100 bytes", 100), ("up to 10000 bytes again", HEAP)):
            found = caller.result(BRK, start + size)
            expect(f"brk {name}, from {start:#x}", hex(found), hex(start + size))
        require_zeros(caller.guest.read(start + 100, HEAP - 100), "memory that was given back")


def require_zeros(data: bytes, what: str) -> None:
    """Fails with the place of the first byte that is not zero."""
    at = next((index for index, byte in enumerate(data) if byte), None)
    require(at is None, f"{what}: expected zeros, seen {data[at or 0]:#04x} at byte {at}")
