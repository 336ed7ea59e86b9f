"""The ATA driver of the tree under test as a program for the host, with drives that are as strict
as hardware (tests/storage/host/ata_drives.c). They are another process, outside the driver's box:
what the driver did is what its port accesses did there, and what it read it can know from nowhere
else.

with drives(lab) as ata:
    ata.add("hdb", 5000, "lm")              # LBA48, and blocks of 16 sectors
    ata.start("pio-polled")
    step = ata.read("hdb", 100, 3)
    step.require_read("hdb", 100, 3)

The block makes a script, which runs at its end. A driver that does what no drive forgives fails
there, and what is required of the steps is looked at in their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NoReturn

from labs.tools.grading.lab import PROGRAM_STOPPED, ROOT, Lab
from labs.tools.machine.result import GuestFailure, Outcome, Result
from tests.support.told import expect, fail, require

SOURCES = tuple(
    f"drivers/disk/ata{part}.c"
    for part in ("", "_command", "_dma", "_identify", "_mode", "_pio", "_wait")
)
OTHERS = ("kernel/lib/string.c",)
HOST = ROOT / "tests/storage/host"
DRIVER = [HOST / "ata_inside.c"]
MACHINE = [HOST / f"{name}.c" for name in ("ata_drives", "ata_ports", "ata_kernel", "ata_program")]
NAMES = ("hda", "hdb", "hdc", "hdd")
EIO, ETIMEDOUT, OK = -5, -110, 0
ERRORS = {0: "0", -5: "-EIO", -110: "-ETIMEDOUT", -19: "-ENODEV"}
LARGE = 1 << 34  # sectors: more than LBA28, and than 32 bits

# The commands by what they do, and for how many sectors at a time.
READ, READ_WIDE, READ_BLOCKS, READ_BLOCKS_WIDE = 0x20, 0x24, 0xC4, 0x29
WRITE, WRITE_WIDE, WRITE_BLOCKS, WRITE_BLOCKS_WIDE = 0x30, 0x34, 0xC5, 0x39
READ_DMA, READ_DMA_WIDE, WRITE_DMA, WRITE_DMA_WIDE = 0xC8, 0x25, 0xCA, 0x35
WRITE_BLOCKS_FORCED, WRITE_DMA_FORCED, FLUSH, FLUSH_WIDE = 0xCE, 0x3D, 0xE7, 0xEA
DISCARD = 0x06

programs: dict[Path, tuple[Path, Path]] = {}


def at_end(result: Result) -> Result:
    """This machine, which must have come to the end of its script, with any status: what it has not
    printed says nothing of a kernel that stopped before."""
    if result.outcome is not Outcome.ENDED or result.status is None:
        raise GuestFailure(result.explain(), result)
    return result


@dataclass(frozen=True)
class Command:
    """A command that a drive got."""

    drive: str
    code: int
    lba: int
    count: int

    def __str__(self) -> str:
        return f"{self.drive}: command {self.code:#04x}, LBA {self.lba}, {self.count} sectors"


class Step:
    """What comes of a command of the script: the commands that drives get, what the driver says,
    what it is blamed for, how often it sleeps, its errno, and the checksum of the memory that was
    read or written. All that is known, and required, when the script has run."""

    def __init__(self, ata: Ata, script: str) -> None:
        self._ata = ata
        self.script = script
        self.commands: list[Command] = []
        self.said: list[str] = []
        self.blamed: list[str] = []
        self.result, self.crc, self.sleeps = 0, "", 0

    def _check(self, check: Callable[[], None]) -> None:
        """What is looked at when the script has run."""
        self._ata.checks.append((self, check))

    def require(self, message: str, holds: Callable[[Step], bool]) -> None:
        """Fails unless this holds of the step."""
        self._check(lambda: require(holds(self), f"{self.script}: {message}", *self.seen()))

    def require_result(self, *results: int) -> None:
        """Fails unless it returned one of these."""

        def check() -> None:
            wanted = " or ".join(ERRORS.get(each, str(each)) for each in results)
            seen = wanted if self.result in results else ERRORS.get(self.result, str(self.result))
            expect(f"{self.script} returns", seen, wanted, *self.said)

        self._check(check)

    def require_contents(self, number: int, lba: int, count: int, what: str) -> None:
        """Fails unless its checksum is that of these contents: of a drive at first, or of what a
        write with this seed wrote."""
        made = self._ata.do(f"made {number} {lba} {count}")

        def check() -> None:
            if self.crc != made.crc:
                fail(f"{self.script}: {what}", *self.seen())

        self._check(check)

    def require_read(self, name: str, lba: int, count: int) -> None:
        """Fails unless it read what the drive had at first."""
        self.require_result(OK)
        what = f"the memory does not have the sectors of {name}"
        self.require_contents(NAMES.index(name), lba, count, what)

    def require_commands(self, *codes: int) -> None:
        """Fails unless the drives got these commands."""
        wanted = " ".join(f"{each:#04x}" for each in codes)

        def check() -> None:
            seen = " ".join(f"{each.code:#04x}" for each in self.commands)
            expect(f"the commands of {self.script}", seen, wanted)

        self._check(check)

    def require_sleep(self, sleeps: bool) -> None:
        """Fails unless the task slept at least once, or never."""
        words = "the task never sleeps: it polls" if sleeps else "the task sleeps, and should poll"
        self.require(words, lambda step: bool(step.sleeps) == sleeps)

    def seen(self) -> Iterator[str]:
        """What the drives got, in words."""
        return map(str, self.commands)


class Ata:
    """A script, and what is required of its steps."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._steps: list[Step] = []
        self.checks: list[tuple[Step, Callable[[], None]]] = []
        chance = Random(f"{lab.seed} contents")
        self.do(f"secret {chance.getrandbits(64)} {chance.getrandbits(64)}")

    def do(self, line: str) -> Step:
        """Adds a line to the script."""
        self._steps.append(Step(self, line))
        return self._steps[-1]

    def run(self) -> None:
        """Runs the script. Fails where the driver is blamed or comes to no end, and where a check
        fails."""
        script = "".join(f"{each.script}\n" for each in self._steps)
        driver, machine = self._lab.connect(*programs_of(self._lab), script)
        log = machine.stderr.decode(errors="replace")
        parts = re.split(r"^#\n", log, flags=re.MULTILINE)[1:]
        for step, part in zip(self._lab.judged(self._steps), parts, strict=False):
            for line in part.splitlines():
                take(step, line)
            if step.blamed and not machine.returncode:
                fail(f"{step.script}: {step.blamed[0]}", *step.seen())
        if len(parts) < len(self._steps) or machine.returncode != 0:
            words = driver.stderr.decode(errors="replace")
            number = max(0, len(parts) - 1)
            self._lab.judging(number)
            report(self._steps[number], driver.returncode or machine.returncode, words)
        numbers = {id(step): number for number, step in enumerate(self._steps)}
        for step, check in self.checks:
            self._lab.judging(numbers[id(step)])
            check()

    def add(self, name: str, sectors: int, options: str = "lm") -> None:
        """A drive; options: l(BA48), d(MA), f(orced writes), t(rim), m: blocks of 16
        sectors."""
        self.do(f"drive {NAMES.index(name)} {sectors} {options or '-'}")

    def start(self, mode: str = "pio-polled") -> Step:
        """Looks for the drives."""
        return self.do(f"start {mode}")

    def set(self, what: str, *words: object) -> Step:
        """Changes a drive, a channel, or the mode, from here on."""
        return self.do(" ".join(map(str, (what, *words))))

    def read(self, name: str, lba: int, pieces: int | str) -> Step:
        """Reads."""
        return self.do(f"read {NAMES.index(name)} {lba} {pieces}")

    def write(self, name: str, lba: int, pieces: int | str, seed: int, how: str = "write") -> Step:
        """Writes what `contents` has for the seed; how: "forced" for a write that is safe."""
        return self.do(f"{how} {NAMES.index(name)} {lba} {pieces} {seed}")

    def require_written(self, name: str, lba: int, count: int, seed: int) -> None:
        """Fails unless the drive has what was written with this seed, and only there."""
        number = NAMES.index(name)
        step = self.do(f"peek {number} {lba} {count}")
        step.require_contents(seed, lba, count, f"{name} does not have what was written")
        for at in (lba + count, *([lba - 1] if lba else [])):
            step = self.do(f"peek {number} {at} 1")
            step.require_contents(number, at, 1, f"{name} has something besides what was written")


@contextmanager
def drives(lab: Lab) -> Iterator[Ata]:
    """The driver, and no drive yet. At the end of the block the script runs."""
    ata = Ata(lab)
    yield ata
    ata.run()


def programs_of(lab: Lab) -> tuple[Path, Path]:
    """The driver under test, and the machine around it; compiled once for each tree."""
    if lab.root not in programs or not all(each.exists() for each in programs[lab.root]):
        sources = [path for path in SOURCES if (lab.root / path).exists()]
        driver = lab.host([*sources, *OTHERS], DRIVER, "ata")
        programs[lab.root] = driver, lab.host([], MACHINE, "machine")
    return programs[lab.root]


def take(step: Step, line: str) -> None:
    """Adds a line of the output to a step."""
    kind, text = line[:1], line[2:]
    if kind == "!":
        step.blamed.append(text)
    elif kind == ">":
        step.said.append(text)
    elif kind == "~":
        step.sleeps = int(text)
    elif kind == "@" and (words := re.fullmatch(r"(hd[a-d]) (\w\w) (\d+) (\d+)", text)):
        step.commands.append(Command(words[1], int(words[2], 16), int(words[3]), int(words[4])))
    elif kind == "=" and (words := re.fullmatch(r"(-?\d+) (\w{8})", text)):
        step.result, step.crc = int(words[1]), words[2]


def report(last: Step, status: int, output: str) -> NoReturn:
    """Fails with what the program did at its end."""
    missing = [line for line in output.splitlines() if "is not written" in line]
    if missing:
        fail(missing[0])
    cause = last.blamed[0] if last.blamed else f"it ended with status {status}"
    if status in PROGRAM_STOPPED:
        cause = "it loops or waits without end"
    errors = [line for line in output.splitlines() if "ERROR" in line or "error:" in line]
    fail(f"{last.script}: {cause}", *last.seen(), *errors[:2])
