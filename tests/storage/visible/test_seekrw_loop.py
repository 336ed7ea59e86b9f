"""Exercise S6: seekrw, on files and a block device that are not there, with a clock that counts.

Not looked at here, but by the graders: 2 TB and more, sizes that are no multiple of the length,
devices with sectors of 4096 bytes, a mix of reads and writes, other seeds, and what fails.
"""

from __future__ import annotations

import pytest

from tests.storage.seekrw import (
    DISK,
    World,
    check_offsets,
    check_time,
    measured,
    refused,
    seekrw,
)
from tests.support.told import Usual, expect, told

HINT = "make hint EX=S6"
SIZE = (
    Usual("size: .*seen 0$|too few", "st_size of a block device is 0: which ioctl tells its size?"),
    Usual("size: .*seen [1-9]", "BLKGETSIZE counts sectors, and BLKGETSIZE64 bytes, in 64 bits"),
)
COUNTED = (
    Usual("operations: ", "measure makes COUNT operations, no more and no less"),
    Usual("reads, writes: .*seen .0, [1-9]|reads: .*seen 0",
          "without -w nothing is written, with -w 100 everything"),
    Usual("reads, writes: .*seen .[1-9]|reads: .*seen [1-9]",
          "operate counts each operation once, in reads or in writes"),
)  # fmt: skip
NOT_MULTIPLE = Usual("not a multiple of the length", "an offset is a place times the length")
TIME = (
    Usual("less than the operations", "result->ns has nanoseconds, of all operations together"),
    Usual(r"between two looks|\bns: expected (?!.*\n.*less than)",
          "look at the clock after all that prepares, and before all that only reports"),
)  # fmt: skip
FILE = World("f", 1 << 20)


@pytest.mark.exercise("S6", points=2, gate=True, host=True)
def test_size(lab):
    """Of a file, of the disk of 2010, and of what has none."""
    with told(SIZE, HINT):
        for world in (FILE, World("b", DISK)):
            run = measured(lab, world, "-a", 1)
            expect(f"{run.what}: size", run.values["size"], world.size)
        run = refused(lab, World("c", 0))
        expect(run.what, run.errors, "seekrw: FILE is neither a file nor a block device\n")


@pytest.mark.exercise("S6", points=3, gate=True, host=True)
def test_offsets(lab):
    """The first offsets of seed 1 in 1 MiB: those that the whole course uses."""
    usually = (
        *COUNTED,
        NOT_MULTIPLE,
        Usual("operation 0: ", "a place is a number from 0 to size / length - 1, by random_below"),
        Usual("operation [1-9]", "`random` is for the offsets alone: what else has drawn from it?"),
    )
    with told(usually, HINT):
        check_offsets(measured(lab, FILE, "-a", 50), 1, 512, 50)
        check_offsets(measured(lab, FILE, "-a", 20, "-l", 8192), 1, 8192, 20)


@pytest.mark.exercise("S6", points=2, host=True)
def test_direct(lab):
    """A device with sectors of 512 bytes takes the buffer for direct I/O."""
    buffer = Usual(
        "direct I/O at offset .*(?!.*\n.*not a multiple)",
        "the buffer's address is to be a multiple of PAGE_SIZE: posix_memalign",
    )
    with told((*SIZE, *COUNTED, NOT_MULTIPLE, buffer), HINT):
        run = measured(lab, World(), "-d", "-a", 5)
        expect(f"{run.what}: reads", run.values["reads"], 5)


@pytest.mark.exercise("S6", points=3, gate=True, host=True)
def test_time(lab):
    """1,000 reads: the time is that of the reads, or at most a fifth more; so are the counters."""
    usually = (
        *COUNTED,
        *TIME,
        Usual("requests: ", "requests_of is called before the first look at the clock, and "
              "requests_since after the last"),
    )  # fmt: skip
    with told(usually, HINT):
        run = measured(lab, FILE, "-a", 1000)
        check_time(run, slack=0.2)
        values = run.values
        expect(f"{run.what}: reads, writes", (values["reads"], values["writes"]), (1000, 0))
        expect(f"{run.what}: requests", (values["requests"] or {}).get("reads"), 1000)


@pytest.mark.exercise("S6", points=1, host=True)
def test_report(lab):
    """The first line, and requests an operation."""
    usually = (
        *COUNTED,
        *TIME,
        Usual("seen real time.*usec.", "print_time ends its line"),
        Usual("line 1: .*seen (?!.*usec.)", "1 minute has 60,000,000 usec: a division and two "
              "remainders"),
        Usual("line 4: ", "count in hundredths: events * 100 / of, and print two digits after ."),
    )  # fmt: skip
    with told(usually, HINT):
        world = World("f", 1 << 20, cost=300_000)
        run = measured(lab, world, "-a", 2)
        expect(f"{run.what}: operations", len(run.operations), 2)
        check_time(run, slack=0.0015)
        run = seekrw(lab, world, "-a", 2)
        lines = run.text.splitlines()
        wanted = "real time: 0 minutes 0 seconds 600 usec"
        expect(f"{run.what}: line 1", "".join(lines[:1]), wanted)
        wanted = "requests an operation: 1.00; sectors a request: 1.00"
        expect(f"{run.what}: line 4", "; ".join(lines[3:]), wanted)
