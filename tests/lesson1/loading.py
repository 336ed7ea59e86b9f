"""The boot loader from outside: files for load_elf, and a disk with a second stage of our own."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from labs.tools.grading.lab import PROGRAM_STOPPED, ROOT, Lab
from tests.lesson1.support import PT_LOAD, Executable, Segment
from tests.support.remote import Guest
from tests.support.told import expect, fail

DRIVER = ROOT / "tests/lesson1/host/load_elf.c"
AREA = 0x100000
AREA_SIZE = 0x4000
PAGE = MARGIN = 4096
POISON = b"\xcc"
NO_ENTRY = 0x5EED5EED

SECTOR = 512
STAGE2 = 0x8000
STAGE2_MAGIC = b"STG2"

SANITIZER = re.compile(r"ERROR: AddressSanitizer: ([\w-]+)|runtime error: (.*)")
ADDRESS = re.compile(r"0x[0-9a-f]+")
PLACE = re.compile(r"#\d+ 0x\w+ in (?P<function>\w+) \S*?(?P<line>load_elf\.c:\d+)")

programs: dict[Path, Path] = {}


# load_elf


@dataclass(frozen=True)
class Answer:
    """What load_elf did. `memory` begins a margin below the page of the area's start."""

    loaded: bool
    entry: int
    sentence: str
    memory: bytes


def loader_program(lab: Lab) -> Path:
    """The submission's load_elf with the driver; compiled once for each tree."""
    if lab.root not in programs or not programs[lab.root].exists():
        programs[lab.root] = lab.host(["boot/load_elf.c"], [DRIVER], "load-elf")
    return programs[lab.root]


def load(
    lab: Lab, files: Sequence[bytes], end: int = AREA + AREA_SIZE, start: int = AREA
) -> list[Answer]:
    """Has load_elf load each file into the area from `start` up to `end`."""
    questions = [struct.pack("<III", start, end, len(file)) + file for file in files]
    done = lab.ask(loader_program(lab), b"".join(questions))
    answers, rest = [], done.stdout
    for _ in files:
        answer, rest = parsed(rest, window_size(end, start))
        if answer is None:
            lab.judging(len(answers))
            report(done, len(answers), files)
        answers.append(answer)
    return answers


def window_start(start: int) -> int:
    """Where the memory begins that the driver shows."""
    return start // PAGE * PAGE - MARGIN


def window_size(end: int, start: int) -> int:
    """How much it is, in bytes."""
    return (end + PAGE - 1) // PAGE * PAGE + MARGIN - window_start(start)


def parsed(data: bytes, size: int) -> tuple[Answer | None, bytes]:
    """The first answer, or None when it is not whole; and the rest."""
    if len(data) < 12:
        return None, b""
    loaded, entry, length = struct.unpack_from("<III", data)
    if len(data) < 12 + length + size:
        return None, b""
    sentence = data[12 : 12 + length].decode(errors="replace")
    rest = data[12 + length :]
    return Answer(loaded == 1, entry, sentence, rest[:size]), rest[size:]


def report(done: subprocess.CompletedProcess, index: int, files: Sequence[bytes]) -> None:
    """Fails the test with what the program said at its end."""
    words = (done.stdout[-200:] + b"\n" + done.stderr).decode(errors="replace")
    stopped = "it loops or waits for ever" if done.returncode in PROGRAM_STOPPED else ""
    cause = stopped or cause_in(words)
    which = f"file {index + 1} of {len(files)}, {len(files[index])} bytes long"
    pytest.fail(f"load_elf, run on this computer with {which}: {cause}\n{words}", pytrace=False)


def cause_in(words: str) -> str:
    """Why a program with sanitizers has ended, without addresses: those differ from run to run."""
    missing = [line for line in words.splitlines() if "is not written" in line]
    wrong = SANITIZER.search(words)
    if missing or not wrong:
        return missing[0] if missing else "it gave no whole answer"
    place = PLACE.search(words, wrong.end())
    where = f" in {place['function']} ({place['line']})" if place else ""
    if wrong[2]:
        return f"C does not define this: {ADDRESS.sub('an address', wrong[2])}{where}"
    return f"it touches memory that it must not: {wrong[1]}{where}"


def require_loaded(
    lab: Lab, executables: Sequence[Executable], end: int = AREA + AREA_SIZE, start: int = AREA
) -> None:
    """Each is loaded as its segments say, and no other byte is changed."""
    answers = load(lab, [executable.file() for executable in executables], end, start)
    for executable, answer in zip(executables, lab.judged(answers), strict=True):
        require_placed(executable, answer, end, start)


def require_placed(executable: Executable, answer: Answer, end: int, start: int) -> None:
    """It was loaded as its segments say, and no other byte was changed."""
    assert answer.loaded, f"load_elf refuses a good file: {answer.sentence!r}"
    seen = "nothing: *entry is not set" if answer.entry == NO_ENTRY else f"{answer.entry:#x}"
    expect("the entry point that load_elf gives", seen, f"{executable.entry:#x}")
    first = window_start(start)
    require_same(answer.memory, expected_memory(executable, first, window_size(end, start)), first)


def expected_memory(executable: Executable, first: int, size: int) -> bytes:
    """The window of this size at `first`, as it should be."""
    memory = bytearray(POISON * size)
    for segment in executable.segments:
        if segment.kind == PT_LOAD:
            size = len(segment.data) if segment.memory is None else segment.memory
            at = segment.address - first
            memory[at : at + size] = segment.data.ljust(size, b"\0")
    return bytes(memory)


def require_same(memory: bytes, expected: bytes, start: int) -> None:
    """Says where the first wrong byte is, of memory from `start` on."""
    wrong = [i for i, pair in enumerate(zip(memory, expected, strict=True)) if pair[0] != pair[1]]
    if wrong:
        at = wrong[0]
        first = f"the first at physical address {start + at:#x}"
        what = f"{len(wrong)} bytes of memory are not what they should be after load_elf, {first}"
        is_new, was_new = memory[at] != POISON[0], expected[at] != POISON[0]
        state = "not written" if not is_new else "written, although no segment is there"
        seen = f"{memory[at]:#04x}{'' if is_new and was_new else f' ({state})'}"
        fail(f"{what}: expected {expected[at]:#04x}, seen {seen}")


def require_refused(
    lab: Lab, files: Sequence[bytes], end: int = AREA + AREA_SIZE, start: int = AREA
) -> list[str]:
    """Each is refused with a sentence, before anything was written; but a good one is loaded,
    because a loader that refuses all has looked at nothing. Returns the sentences."""
    good = sample(Random(lab.seed), start)
    *answers, last = load(lab, [*files, good.file()], end, start)
    require_placed(good, last, end, start)
    for index, answer in enumerate(answers):
        assert not answer.loaded, f"bad file {index} of {len(files)} was loaded"
        assert len(answer.sentence) > 5, f"what is wrong: {answer.sentence!r}"
        require_same(answer.memory, POISON * len(answer.memory), window_start(start))
    return [answer.sentence for answer in answers]


def sample(random: Random, start: int = AREA) -> Executable:
    """Two segments that share a sector of the file, the second with a tail of zeros. Nothing is
    after them."""
    text, data = random.randbytes(0x259), random.randbytes(0x21)
    return Executable(
        entry=start + 0x17,
        segments=(
            Segment(start + 0x10, text, 0x123),
            Segment(start + 0x1003, data, 0x123 + len(text), memory=0x432),
        ),
    )


# The boot sector


def stage2_sectors(lab: Lab) -> int:
    """How many sectors the build has told the boot sector to read."""
    return lab.build("build/lesson1/stage2.bin").stat().st_size // SECTOR


def boot_disk(lab: Lab, name: str, stage2: bytes) -> Path:
    """A disk with the lab's boot sector, this second stage, and random sectors after it."""
    image = lab.scratch / name
    boot_sector = lab.build("build/lesson1/mbr.bin").read_bytes()
    behind = Random(len(stage2)).randbytes(64 * SECTOR)
    image.write_bytes((boot_sector + stage2 + behind).ljust(1 << 20, b"\0"))
    return image


def random_stage2(lab: Lab, random: Random, magic: bytes = STAGE2_MAGIC) -> bytes:
    """Sectors that only a reader of the disk knows, with the mark in the last four bytes."""
    return random.randbytes(stage2_sectors(lab) * SECTOR - len(magic)) + magic


@dataclass(frozen=True)
class DiskCall:
    """A call of INT 13h: AH, DL, and of an extended read the packet's members."""

    function: int
    drive: int
    packet_size: int = 0
    count: int = 0
    buffer: int = 0
    lba: int = 0


def handler(guest: Guest, vector: int) -> int:
    """Where the BIOS's handler of an interrupt begins."""
    offset, segment = struct.unpack("<HH", guest.read(4 * vector, 4))
    return segment * 16 + offset


# What a BIOS need not keep, as it is after each call.
CHANGED = {"ebx": 0xB10500BB, "ecx": 0xB10500CC, "edx": 0xB10500DD}


class Bios:
    """Replaces the BIOS's INT 13h: watches the calls, and lets some fail."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.address = handler(guest, 0x13)
        self.calls: list[DiskCall] = []

    def next_call(self, *others: int) -> DiskCall | None:
        """Runs to the next call, and notes it; None when one of the other places comes first."""
        if self.guest.run_to(self.address, *others, why="after the boot sector") != self.address:
            return None
        registers = self.guest.registers()
        function, drive = registers["eax"] >> 8 & 0xFF, registers["edx"] & 0xFF
        call = DiskCall(function, drive)
        if function == 0x42:
            packet = self.guest.read(registers["ds"] * 16 + (registers["esi"] & 0xFFFF), 16)
            size, _, count, offset, segment, lba = struct.unpack("<BBHHHQ", packet)
            call = DiskCall(function, drive, size, count, segment * 16 + offset, lba)
        self.calls.append(call)
        return call

    def reads(self) -> list[DiskCall]:
        """The extended reads so far."""
        return [call for call in self.calls if call.function == 0x42]

    def refuse(self, status: int, sectors: int = 0) -> None:
        """Returns from the call with an error; as a BIOS does, it notes what it managed to read."""
        registers = self.guest.registers()
        if registers["eax"] >> 8 & 0xFF == 0x42:
            packet = registers["ds"] * 16 + (registers["esi"] & 0xFFFF)
            self.guest.write(packet + 2, struct.pack("<H", sectors))
        self._return(carry=True, eax=registers["eax"] & 0xFFFF00FF | status << 8)

    def succeed(self, data: bytes = b"") -> None:
        """Returns from the call, as if it had been done: `data` is what it has read."""
        if data:
            self.guest.write(self.calls[-1].buffer, data)
        self._return(carry=False, eax=self.guest.registers()["eax"] & 0xFFFF00FF)

    def _return(self, carry: bool, **values: int) -> None:
        registers = self.guest.registers()
        stack = registers["ss"] * 16 + (registers["esp"] & 0xFFFF)
        offset, segment, flags = struct.unpack("<HHH", self.guest.read(stack, 6))
        flags = flags & ~1 | carry
        stack = registers["esp"] + 6
        self.guest.set(eip=offset, cs=segment, eflags=flags, esp=stack, **(CHANGED | values))
