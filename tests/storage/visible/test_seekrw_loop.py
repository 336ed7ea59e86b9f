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
from tests.told import Usual, expect, told

HINT = "make hint EX=S6"
FILE = World("f", 1 << 20)


@pytest.mark.exercise("S6", points=2, gate=True, host=True)
def test_size(lab):
    """Of a file, of the disk of 2010, and of what has none."""
    usually = (
        Usual("seen 0$|too few", "st_size of a block device is 0: which ioctl tells its size?"),
        Usual("size: ", "BLKGETSIZE counts sectors, and BLKGETSIZE64 bytes, in 64 bits"),
    )
    with told(usually, HINT):
        for world in (FILE, World("b", DISK)):
            run = measured(lab, world, "-a", 1)
            expect(f"{run.what}: size", run.values["size"], world.size)
        run = refused(lab, World("c", 0))
        expect(run.what, run.errors, "seekrw: FILE is neither a file nor a block device\n")


@pytest.mark.exercise("S6", points=3, gate=True, host=True)
def test_offsets(lab):
    """The first offsets of seed 1 in 1 MiB: those that the whole course uses."""
    usually = "a place is a number from 0 to size / length - 1, of random_next or random_below"
    with told(usually, HINT):
        check_offsets(measured(lab, FILE, "-a", 50), 1, 512, 50)
        check_offsets(measured(lab, FILE, "-a", 20, "-l", 8192), 1, 8192, 20)


@pytest.mark.exercise("S6", points=2, host=True)
def test_direct(lab):
    """A device with sectors of 512 bytes takes the buffer for direct I/O."""
    with told("the buffer's address is to be a multiple of PAGE_SIZE: posix_memalign", HINT):
        run = measured(lab, World(), "-d", "-a", 5)
        expect(f"{run.what}: reads", run.values["reads"], 5)


@pytest.mark.exercise("S6", points=3, gate=True, host=True)
def test_time(lab):
    """1,000 reads: the time is that of the reads, or at most a fifth more; so are the counters."""
    usually = "look at the clock after all that prepares, and before all that only reports"
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
        Usual("real time", "1 minute has 60,000,000 usec: a division and two remainders"),
        Usual("requests", "count in hundredths: events * 100 / of, and print two digits after ."),
    )
    with told(usually, HINT):
        run = seekrw(lab, World("f", 1 << 20, cost=300_000), "-a", 2)
        lines = run.text.splitlines()
        expect(f"{run.what}: line 1", lines[:1], ["real time: 0 minutes 0 seconds 600 usec"])
        wanted = "requests an operation: 1.00; sectors a request: 1.00"
        expect(f"{run.what}: line 4", lines[3:], [wanted])
