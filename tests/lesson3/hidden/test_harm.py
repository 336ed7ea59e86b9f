"""Exercise 3.6, hidden: thousands of damaged files, arguments without an end, a heap that wants too
much, and a program that makes a hundred thousand random calls."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from errno import ENOSYS
from itertools import accumulate

import pytest

from labs.tools.course.exercises import ROOT
from labs.tools.grading.lab import Lab
from labs.tools.machine.result import Outcome
from tests.lesson3 import support
from tests.lesson3.damage import (
    damaged_files,
    headers_at_their_edges,
    segments_at_their_edges,
    verdict,
)
from tests.lesson3.executables import (
    INTERPRET,
    LINK_ADDRESS,
    Image,
    Segment,
    question,
)
from tests.lesson3.strings import ARRAY, MEMORY_END, STRINGS, ask, at, words
from tests.lesson3.support import (
    AFTER_GATE,
    BRK,
    CLOSE_ALL,
    DATA,
    E2BIG,
    EFAULT,
    HERE,
    KERNEL_BASE,
    RANDOMS,
    SHARED_PAGE,
    SPACE_END,
    SPACE_START,
    answers,
    assembled,
    ring3,
    with_files,
)

COUNT = 4000
PAGE = 4096
STACK_START = SPACE_END - (256 << 10)


# ---- files ------------------------------------------------------------------------------------


def check(lab: Lab, images: list[Image]) -> None:
    """elf_check says of each what it must."""
    program = lab.host(["kernel/process/exec_elf.c"], [HERE / "host" / "elf_check.c"], "elf_check")
    found = answers(lab, program, [question(each) for each in images], "kernel/process/exec_elf.c")
    assert len(found) == len(images)
    for image, answer in zip(images, found, strict=True):
        expected = verdict(image)
        bias = image.bias() if expected == 0 else 0
        assert answer == f"{expected} {bias:x}", (
            f"elf_check returns (with the bias) {answer}, not {expected} {bias:x}, for {image}"
        )


@pytest.mark.exercise("3.6", points=2, host=True, gate=True)
def test_damaged_files(lab):
    """Four thousand damaged ELF files: accepted and refused as an independent judge says."""
    check(lab, list(damaged_files(lab.seed, COUNT)))


@pytest.mark.exercise("3.6", points=2, host=True)
def test_headers_at_their_edges(lab):
    """Program headers at the end of what was read, beyond it, wrapping, of another size, unaligned:
    each is accepted or refused exactly."""
    check(lab, headers_at_their_edges(random.Random(lab.seed)))


@pytest.mark.exercise("3.6", points=2, host=True)
def test_segments_at_their_edges(lab):
    """Segments at the first and the last byte of user space, sums that wrap, more in the file than
    in memory: each is accepted or refused exactly, with and without a bias."""
    check(lab, segments_at_their_edges(random.Random(lab.seed)))


@pytest.mark.exercise("3.6", points=1)
def test_kernel_survives_bad_programs(lab):
    """Bad programs: each is refused with a reason, and the next program runs."""
    bad = [
        Image((Segment(vaddr=0xC0100000, filesz=0, memsz=PAGE),)),
        Image((Segment(vaddr=0xFFFFF000, filesz=0, memsz=PAGE * 2),)),
        Image((Segment(vaddr=0x1000),)),
        Image(phnum=0xFFFF),
        Image(phoff=0xFFFFFFE0),
        Image((Segment(), Segment(type=INTERPRET))),
        Image((Segment(filesz=0xFFFF, memsz=16),)),
    ]
    files = {f"bin/bad{i}": image.bytes() for i, image in enumerate(bad)}
    files["bin/good"] = assembled(lab, "ending")
    script = "; ".join([*(f"run /bin/bad{i}" for i in range(len(bad))), "run /bin/good"])
    result = lab.run(script, **with_files(lab, files))
    assert result.outcome is Outcome.ENDED, result.explain()
    for i, image in enumerate(bad):  # one wants an interpreter, which is not there
        wants = any(segment.type == INTERPRET for segment in image.segments)
        error = "ENOENT" if wants and not lab.core else "ENOEXEC"
        assert f"/bin/bad{i}: {error}" in result.serial, result.explain()
    assert "the end" in result.serial, result.explain()


# ---- arguments --------------------------------------------------------------------------------

TEXTS = 131072
SOUND = 0x08008000  # where strings are that can be had


@pytest.mark.exercise("3.6", points=3, host=True, gate=True)
def test_arguments(lab):
    """Argument strings: in order, after what was there. A null array and a null pointer end the
    list."""
    chance = random.Random(lab.seed)
    texts = [b"program", b"", b"two words", b"x" * chance.randrange(200, 400), word(chance)]
    places, strings = [], b""
    for text in texts:
        places.append(STRINGS + len(strings))
        strings += text + b"\0"
    lines = [at(STRINGS, strings), at(ARRAY, words(*places, 0, places[2], 0)), "kernel first"]
    lines += [f"add {ARRAY:x} {ARRAY + 24:x}", "new", "add 0 0", "new", f"add {ARRAY:x} 0"]
    lines += ["new", f"add {ARRAY + 20:x} {ARRAY + 20:x}"]  # arrays of a null pointer alone
    whole = b"first\0" + strings + texts[2] + b"\0"
    found = ask(lab, lines)
    assert found[0] == ["0", "6", "1", str(len(whole)), whole.hex() + "."]
    assert found[1] == ["0", "0", "0", "0", "."]
    assert found[2] == ["0", "5", "0", str(len(strings)), strings.hex() + "."]
    assert found[3] == found[1]


@pytest.mark.exercise("3.6", points=1, host=True)
def test_arguments_that_change(lab):
    """Arguments that another task changes while they are copied: what was read first counts."""
    chance = random.Random(lab.seed)
    texts = [word(chance) + b"\0" for _ in range(chance.randrange(3, 9))]
    places = accumulate(map(len, texts[:-1]), initial=STRINGS)
    lines = [at(STRINGS, b"".join(texts)), at(ARRAY, words(*places, 0))]
    lines += [f"change {ARRAY:x} {MEMORY_END - ARRAY:x}", "new", f"add {ARRAY:x} 0"]
    (found,) = ask(lab, lines)
    whole = b"".join(texts)
    assert found == ["0", str(len(texts)), "0", str(len(whole)), whole.hex() + "."], (
        f"{len(texts)} strings: exec_add_from_user returns {found[0]}, and has {found[1]} strings"
    )


@pytest.mark.exercise("3.6", points=2, host=True)
def test_bad_arguments(lab):
    """Arrays, pointers and strings that are unmapped or reach into the kernel: EFAULT. Only the
    good strings before them are added."""
    lines = [at(STRINGS, b"good\0"), at(MEMORY_END - 4, b"good")]
    arrays = [words(STRINGS, 0xC0000000, 0), words(4, 0), words(STRINGS, MEMORY_END - 4, 0)]
    for i, array in enumerate(arrays):
        lines += [at(ARRAY + 64 * i, array), "new", f"add {ARRAY + 64 * i:x} 0"]
    for bad in (4, 0xC0000000, 0xFFFFFFFC, MEMORY_END, MEMORY_END - 2):
        lines += ["new", f"add {bad:x} 0", "new", f"add 0 {bad:x}"]
    lines += [at(MEMORY_END - 8, words(STRINGS, STRINGS)), "new", f"add {MEMORY_END - 8:x} 0"]
    for part in (1, 2, 3):  # of a pointer, before the memory's end: no end of the array
        lines += [at(MEMORY_END - part, bytes(part)), "new", f"add {MEMORY_END - part:x} 0"]
        lines += [at(MEMORY_END - part - 4, words(STRINGS)), "new"]
        lines += [f"add 0 {MEMORY_END - part - 4:x}"]
    mixed, texts = with_sound_ones(lines, random.Random(lab.seed))
    found = ask(lab, mixed)
    assert len(found) == len(texts)
    for answer, text in zip(found, texts, strict=True):
        if text:
            assert (answer[0], answer[4:]) == ("0", [f"{text.hex()}00."]), f"for {text}: {answer}"
        else:
            assert answer[0] == str(-EFAULT), f"exec_add_from_user returns {answer[0]}"
            before = b"good\0" * (int(answer[3]) // len(b"good\0"))
            assert answer[3:] == [str(len(before)), f"{before.hex()}."], (
                f"a bad string or array adds {answer[3]} bytes: {answer[4]}"
            )


def word(chance: random.Random) -> bytes:
    """A string that nobody can have written down before."""
    return bytes(chance.choices(range(ord("a"), ord("z") + 1), k=chance.randrange(1, 30)))


def with_sound_ones(lines: list[str], chance: random.Random) -> tuple[list[str], list[bytes]]:
    """Now and then an array of one string, at any address, comes between these. Returns the lines,
    and for each answer that string; an empty one for those that were there."""
    found, texts = [], []
    for line in lines:
        found.append(line)
        if not line.startswith("add"):
            continue
        texts.append(b"")
        if chance.random() < 0.5:
            texts.append(word(chance))
            array = SOUND + 64 + chance.randrange(4)
            found += [at(SOUND, texts[-1] + b"\0"), at(array, words(SOUND, 0))]
            found += ["new", f"add {array:x} 0"]
    return found, texts


@pytest.mark.exercise("3.6", points=3, host=True)
def test_room_for_arguments(lab):
    """Room for arguments: filled to the last byte; one byte more, or an array without end, is
    E2BIG, because each string needs its NUL."""
    exact = b"a" * (TEXTS - 6) + b"\0"
    lines = [at(STRINGS, exact), at(ARRAY, words(STRINGS, 0, STRINGS + TEXTS - 6, 0))]
    lines += ["new", f"add {ARRAY:x} 0"]  # a byte less than there is room for
    lines += ["new", "kernel four", f"add {ARRAY:x} 0"]  # one string of five bytes before: full
    lines += ["new", "kernel fours", f"add {ARRAY:x} 0"]
    lines += ["new", f"add {ARRAY:x} {ARRAY:x}"]
    lines += ["new", "kernel four", f"add {ARRAY:x} {ARRAY + 8:x}"]
    lines += [
        "new",
        "kernel fou",
        f"add {ARRAY:x} {ARRAY + 8:x}",
    ]  # an empty one into the last byte
    found = ask(lab, lines)
    assert [each[0] for each in found] == ["0", "0", *[str(-E2BIG)] * 3, "0"]
    lengths = [int(each[3]) for each in found]
    expected = [TEXTS - 5, TEXTS, len("fours") + 1, TEXTS - 5, TEXTS, TEXTS]
    assert lengths == expected, f"what was added takes {lengths} bytes, not {expected}"
    endless = [at(STRINGS, b"\0"), at(ARRAY, words(STRINGS) * ((MEMORY_END - ARRAY) // 4))]
    endless += ["new", f"add {ARRAY:x} 0"]
    (answer,) = ask(lab, endless)
    assert answer[0] in (str(-E2BIG), str(-EFAULT)), "an array without an end"
    assert int(answer[3]) <= TEXTS


# ---- the heap ---------------------------------------------------------------------------------


def space_of(caller: support.Caller) -> int:
    """The address of the program's struct space: what brk hands on."""
    caller.prepare(BRK, (0,))
    caller.guest.run_to("space_set_break", goal="brk's space_set_break")
    space = caller.guest.read_word(caller.guest.registers()["esp"] + 4)
    caller.back()
    return space


def mapped(caller: support.Caller, space: int, pages: list[int]) -> list[bool]:
    """Which pages the kernel says are mapped."""
    with caller.in_kernel() as guest:
        return [not guest.call("space_is_free", space, page, PAGE) & 0xFF for page in pages]


@pytest.mark.exercise("3.6", points=2, gate=True)
def test_heap_takes_and_gives_pages(lab):
    """Pages of the heap: taken whole, and released as soon as the heap has no byte in them."""
    with ring3(lab) as caller:
        space, start = space_of(caller), caller.result(BRK, 0)
        pages = [start + PAGE * i for i in range(4)]
        for end, expected in (
            (start + 1, [True, False, False, False]),
            (start + PAGE, [True, False, False, False]),
            (start + PAGE + 1, [True, True, False, False]),
            (start + 3 * PAGE, [True, True, True, False]),
            (start + PAGE + 7, [True, True, False, False]),
            (start + PAGE, [True, False, False, False]),
            (start, [False] * 4),
        ):
            assert caller.result(BRK, end) == end
            assert mapped(caller, space, pages) == expected, f"{end - start} bytes"


@pytest.mark.exercise("3.6", points=2)
def test_new_memory_is_zero(lab):
    """New memory of the heap: zero in whole pages and in the page of the old end, whatever was
    there."""
    seeded = random.Random(lab.seed)
    with ring3(lab) as caller:
        start = end = caller.result(BRK, 0)
        for _ in range(25):
            caller.write(start, b"\x5a" * (4 * PAGE))
            old, end = end, start + seeded.choice((0, 1, 100, PAGE, seeded.randrange(4 * PAGE)))
            assert caller.result(BRK, end) == end
            if end > old:
                found = caller.guest.read(old, end - old)
                assert found == bytes(end - old), f"from {old - start} to {end - start}"
            kept = caller.guest.read(start, min(old, end) - start)
            assert kept == b"\x5a" * len(kept), "what the heap had is gone"


@pytest.mark.exercise("3.6", points=2)
def test_limits_of_the_heap(lab):
    """Limits of the heap: its start, the stack, other mappings, and sums that wrap. The end does
    not move."""
    with ring3(lab) as caller:
        space, start = space_of(caller), caller.result(BRK, 0)
        end = start + 5000
        assert caller.result(BRK, end) == end
        wrong = (0, 1, start - 1, SPACE_START, LINK_ADDRESS, STACK_START + 1, SPACE_END)
        wrong += (SPACE_END - 1, KERNEL_BASE, 0xFFFFF000, 0xFFFFF001, 0xFFFFFFFF, 0x7FFFFFFF)
        for address in wrong:
            found = caller.result(BRK, address)
            assert found == end, f"brk({address:#x}) gives {found & 0xFFFFFFFF:#x}"
        assert caller.guest.read(support.GATE, 2) == b"\xcd\x80"
        assert caller.result(BRK, STACK_START) == STACK_START
        assert caller.result(BRK, end) == end
        mapping = STACK_START - PAGE * random.Random(lab.seed).randint(1, 100)
        with caller.in_kernel() as guest:
            assert guest.call("space_map", space, mapping, PAGE, 3) == 0
        caller.write(mapping, b"\x5a" * PAGE)
        assert caller.result(BRK, mapping + 1) == end, "the heap grows into a mapping"
        assert caller.result(BRK, STACK_START) == end, "the heap grows over a mapping"
        assert caller.guest.read(mapping, PAGE) == b"\x5a" * PAGE
        assert caller.result(BRK, mapping) == mapping
        assert caller.result(BRK, start) == start


# ---- everything -------------------------------------------------------------------------------

PPOLL = 309
FIRST = 2000  # random calls whose results are compared

# Not in the random calls: those that end the program or the machine, begin another program, wait
# for somebody, send signals, move the program's own memory, change names of files, or set limits
# (a write beyond one sends a signal).
LEFT_OUT = {
    *(1, 2, 7, 10, 11, 26, 29, 36, 37, 38, 40, 42, 72, 88, 90, 104, 114, 118, 119, 120, 142, 163),
    *(168, 173, 177, 178, 179, 190, 192, 238, 252, 267, 270, 284, 301, 302, 308, 309, 331, 27),
    *(45, 91, 162, 9, 14, 39, 83, 92, 93, 129, 193, 194, 75, 340, 256, 319, 323, 328, 413, 414),
}


def random_calls(lab: Lab, seed: int, more: int) -> tuple[int, int]:
    """Runs FIRST of them, then `more`, and FIRST once more, which need no memory that they have not
    had. Returns a sum over the first results, and how many pages were lost by the last."""
    good = [DATA + offset for offset in (0, 16, 0x100, 0x1003, 0x8000, 0xFF00)]
    bad = [0, 4, 0xFFF, SPACE_START - 1, SPACE_END - 1, SPACE_END, SHARED_PAGE, KERNEL_BASE - 1]
    bad += [KERNEL_BASE, KERNEL_BASE + 0x100000, 0xFFFFF000, 0xFFFFFFFF, 0x60000000]
    sizes = [1, 64, 100, 512, 1000, 4096, 0xC0000000, 0xFFFFFFFF]
    values = [*good, *bad, *sizes]
    values += good[: 32 - len(values)]
    with ring3(lab) as caller:
        caller.write(DATA, b"/dev/zero\0".ljust(16, b"\0") + b"/dev/null\0")
        caller.write(DATA + 0x100, b"/bin/caller\0")
        caller.write(DATA + 0x1003, struct.pack("<4I", DATA, 64, DATA + 0x8000, 32))
        image = assembled(lab, "caller")
        place = LINK_ADDRESS + len(image) - 4 * 48
        refused = [0] * 16
        for number in LEFT_OUT:
            refused[number // 32] |= 1 << number % 32
        caller.write(place, words(*refused, *(value & 0xFFFFFFFF for value in values)))
        caller.write(DATA + 0x200, bytes(24))
        answer = caller.result(PPOLL, 0, 0, DATA + 0x200, DATA + 0x208, 8)
        assert answer in (0, -ENOSYS), "a call that blocks signals for itself alone"
        total = run_randoms(caller, seed, FIRST, place)
        run_randoms(caller, seed ^ 1, more, place)
        before = free_pages(caller)
        run_randoms(caller, seed, FIRST, place)
        return total, before - free_pages(caller)


def run_randoms(caller: support.Caller, seed: int, count: int, place: int) -> int:
    """Lets the program make this many random calls, without a terminal; closes what it has opened.
    Returns a sum over the results."""
    if count == 0:
        return 0
    caller.call(0, 255, eip=CLOSE_ALL)
    caller.write(place - 12, bytes(4))
    caller.prepare(0, (), eip=RANDOMS, esi=count, edi=seed)
    caller.guest.run_to(AFTER_GATE, seconds=20, goal="the end of the random calls")
    caller.call(0, 255, eip=CLOSE_ALL)
    return caller.guest.read_word(place - 12)


def free_pages(caller: support.Caller) -> int:
    """How many pages the kernel has left."""
    with caller.in_kernel() as guest:
        return guest.call("page_free_count")


@pytest.mark.exercise("3.6", points=3)
def test_random_calls(lab):
    """A hundred thousand calls with random pointers: the machine survives, no page is lost, and
    results are the reference's. At the second clock rate there are four thousand."""
    more = 100_000 - 2 * FIRST if lab.mode == "icount" else 0
    seed = random.Random(lab.seed).getrandbits(32) | 2
    total, lost = random_calls(lab, seed, more)
    assert lost <= 0, f"{lost} pages are lost"
    reference = replace(lab, root=ROOT, boxed=False, note=None, stuck=[])
    assert total == random_calls(reference, seed, 0)[0], "other results than the reference's"
