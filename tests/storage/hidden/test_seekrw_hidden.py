"""Exercise S6, for the graders: 2 TB and more, every place, and only operations in the time."""

from __future__ import annotations

import json
import math
import os
import re
from random import Random

import pytest

from labs.storage.workload import random_offsets
from labs.tools.machine.qemu_command import Drive
from tests.lesson3.support import with_files
from tests.storage.seekrw import (
    DISK,
    LATER_NS,
    LOOK_NS,
    SECTOR,
    World,
    check_offsets,
    check_time,
    expected_offsets,
    measured,
    refused,
    seekrw,
)
from tests.support.told import expect, require

GIB = 1 << 30
WRITES_XOR = 0x77726974657321  # user/seekrw.c


def seeds(lab, count: int) -> list[int]:
    """Of 64 bits."""
    chance = Random(lab.seed)
    return [chance.getrandbits(64) for _ in range(count)]


@pytest.mark.exercise("S6", points=2, host=True)
@pytest.mark.parametrize("size", [3 * GIB, DISK, 6 * DISK, 512 + 511], ids=str)
def test_sizes(lab, size):
    """Sizes of more than 31 bits of bytes, of sectors, and of hardly one sector: the number of
    places is right."""
    for kind in "bf":
        run = measured(lab, World(kind, size), "-a", 1)
        expect(f"{run.what}: size", run.values["size"], size)


@pytest.mark.exercise("S6", points=1, host=True)
def test_too_small(lab):
    """A file smaller than an operation: an error."""
    for kind in "bf":
        run = refused(lab, World(kind, 511))
        wanted = "seekrw: FILE has 511 bytes, too few for an operation of 512\n"
        expect(run.what, run.errors, wanted)


@pytest.mark.exercise("S6", points=1, host=True)
def test_no_size(lab):
    """A directory, or a block device that does not tell its size: an error."""
    for kind in "dc":
        run = refused(lab, World(kind, 4096))
        expect(run.what, run.errors, "seekrw: FILE is neither a file nor a block device\n")
    run = refused(lab, World("m", DISK))
    require("too few" not in run.errors, f"{run.what}: it has no size, seen: {run.errors}")


@pytest.mark.exercise("S6", points=1, host=True)
def test_no_memory(lab):
    """An operation of 256 MiB: an error without memory, success with it."""
    run = seekrw(lab, World(), "-a", 1, "-l", 256 << 20)
    if run.status != 0:
        require("seekrw: " in run.errors, f"{run.what}: expected a message of fail()")
    require((run.status == 0) == bool(run.text), f"{run.what}: status {run.status}, figures?")


@pytest.mark.exercise("S6", points=4, gate=True, host=True)
def test_every_place_of_large_disks(lab):
    """Places of more than 31 and 32 bits: in the sequence of the seed."""
    for size, seed in zip((DISK, 6 * DISK, 3 * GIB + 512), seeds(lab, 3), strict=True):
        run = measured(lab, World("b", size), "-a", 300, "-s", seed)
        check_offsets(run, seed, 512, 300)
        require(max(run.offsets) > size * 9 // 10, f"{run.what}: nothing in the last tenth")


@pytest.mark.exercise("S6", points=2, host=True)
def test_no_place_is_more_likely(lab):
    """A number of places that is not a power of two: all are equally likely, and the rest at the
    end is not a place."""
    for size, length in ((3 * 512, 512), (3 * 512 + 511, 512), (48 * 512, 1536), (5000, 1000)):
        (seed,) = seeds(lab, 1)
        run = measured(lab, World("f", size), "-a", 400, "-l", length, "-s", seed)
        check_offsets(run, seed, length, 400)
        expect(f"{run.what}: places", len(set(run.offsets)), size // length)


@pytest.mark.exercise("S6", points=2, host=True)
def test_same_seed(lab):
    """The same seed: the same offsets for every mix. Another seed: others."""
    one, other = seeds(lab, 2)
    world = World("b", DISK)
    first = measured(lab, world, "-a", 200, "-s", one)
    check_offsets(first, one, 512, 200)
    for words in ((), ("-w", 50), ("-w", 100), ("-d",)):
        again = measured(lab, world, "-a", 200, "-s", one, *words)
        expect(
            f"{again.what}: the offsets of the run without {words}",
            again.offsets == first.offsets,
            True,
        )
    check_offsets(measured(lab, world, "-a", 200, "-s", other), other, 512, 200)


@pytest.mark.exercise("S6", points=1, host=True)
def test_mix(lab):
    """-w: a percentage of writes, drawn for each operation, with right counts."""
    (seed,) = seeds(lab, 1)
    for percent in (0, 30, 99, 100):
        run = measured(lab, World("f", GIB), "-a", 1000, "-w", percent, "-s", seed)
        draws = random_offsets(seed ^ WRITES_XOR, 100 * SECTOR, 1000)
        wanted = ["w" if draw // SECTOR < percent else "r" for draw in draws]
        for number, (call, right) in enumerate(zip(run.operations, wanted, strict=True)):
            expect(f"{run.what}: operation {number}", call.letter, right, "r reads, w writes")
        writes = wanted.count("w")
        counts = run.values["reads"], run.values["writes"]
        expect(f"{run.what}: reads and writes", counts, (1000 - writes, writes))
        memory = [{c.memory for c in run.operations if c.letter == each} for each in "rw"]
        apart = all(abs(one - other) >= SECTOR for one in memory[0] for other in memory[1])
        require(apart, f"{run.what}: what is read and what is written is in the same memory")
        again = measured(lab, World("f", GIB), "-a", 1000, "-w", percent, "-s", seed)
        expect(
            f"{run.what}: once more, the same operations", again.operations == run.operations, True
        )


@pytest.mark.exercise("S6", points=2, gate=True, host=True)
def test_sectors_of_4096_bytes(lab):
    """Direct I/O with sectors of 4096 bytes: memory is aligned for every length."""
    for length in (4096, 8192, 12288, 65536):
        run = measured(lab, World(align=4096), "-d", "-a", 20, "-w", 50, "-l", length)
        expect(f"{run.what}: operations", len(run.operations), 20)


@pytest.mark.exercise("S6", points=4, gate=True, host=True)
@pytest.mark.parametrize("words", ["-r", "-d -w 100", "-w 40", "-w 60 -c"])
def test_nothing_else_is_timed(lab, words):
    """Times: the operations and two reads of the clock for each, to the nanosecond."""
    for kind in "bf":
        run = measured(lab, World(kind, GIB, cost=9_990), "-a", 60, *words.split())
        check_time(run)
        check_latencies(run)


def check_latencies(run) -> None:
    """One of each operation; a percentile is at most 3 % too low (labs/storage/measuring.h)."""
    count = len(run.operations)
    for part, seen in run.values["percentiles_ns"].items():
        number = math.ceil(count * float(part) / 100) - 1
        right = run.world.cost + number * LATER_NS
        least = right if part == "100.0" else right * 31 // 32
        wanted = f"{run.what}: latency, {part} %: expected {least} to {right + 2 * LOOK_NS}"
        require(least <= seen <= right + 2 * LOOK_NS, f"{wanted}, seen {seen}")


@pytest.mark.exercise("S6", points=1, host=True)
def test_requests_of_the_operations(lab):
    """The device's counters: those of the operations alone, or null if there are none."""
    keys = ("reads", "sectors_read", "writes", "sectors_written")
    for kind in "bf":
        for percent, wanted in ((0, (34, 68, 0, 0)), (100, (0, 0, 34, 68))):
            world = World(kind, GIB, every=3)
            run = measured(lab, world, "-a", 100, "-l", 1024, "-w", percent)
            seen = run.values["requests"] or {}
            found = tuple(seen.get(key) for key in keys)
            expect(f"{run.what}: {', '.join(keys)}", found, wanted)
    run = measured(lab, World(every=0), "-a", 3)
    expect(f"{run.what}: requests of a device without counters", run.values["requests"], None)


@pytest.mark.exercise("S6", points=1, host=True)
def test_progress(lab):
    """Progress: after each operation on a terminal, which is asked before the clock starts."""
    run = measured(lab, World("f", GIB, terminal=True), "-a", 4)
    wanted = "".join(f"\r{each:3} %" for each in (25, 50, 75, 100)) + "\r     \r"
    expect(f"{run.what}: progress", run.errors, wanted)
    check_time(run)


@pytest.mark.exercise("S6", points=2, host=True)
@pytest.mark.parametrize("writes", [0, 100])
def test_what_fails_is_no_figure(lab, writes):
    """An operation that fails, or moves too few bytes: an error instead of a figure."""
    for world in (World(short=7), World(broken=0), World("f", GIB, short=0), World(broken=9)):
        run = refused(lab, world, "-a", 10, "-w", writes)
        number = max(world.short, world.broken)
        expect(f"{run.what}: operations", len(run.operations), number + 1)
        kind = "writing" if writes else "reading"
        require(kind in run.errors, f"{run.what}: expected {kind!r} in the message: {run.errors}")
        place = expected_offsets(1, world.size, 512, 10)[number]
        require(f"offset {place}" in run.errors, f"{run.what}: which offset? {run.errors}")


@pytest.mark.exercise("S6", points=1, host=True)
def test_stamps(lab):
    """-c: writes carry the mark of their place, and a read of another place is found in each
    sector. The first one is described."""
    run = measured(lab, World("f", GIB), "-c", "-a", 30, "-w", 60, "-l", 1024)
    require(all(call.stamped for call in run.operations if call.letter == "w"), "stamps")
    expect(f"{run.what}: wrong", run.values["wrong"], 0)
    run = measured(lab, World("f", GIB), "-a", 9, "-w", 100)
    require(not any(call.stamped for call in run.operations), f"{run.what}: stamps without -c")
    run = seekrw(lab, World(moved=3), "-c", "-a", 10, "-l", 1024, "-j")
    expect(f"{run.what}: status, wrong", (run.status, run.values["wrong"]), (1, 14))
    first = expected_offsets(1, DISK, 1024, 10)[3]
    wanted = f"the sector at offset {first} is that of offset {first + 512} of drive b"
    expect(f"{run.what}: what is said", run.errors, f"seekrw: FILE: {wanted}\n")


@pytest.mark.exercise("S6", points=1, host=True)
def test_report_of_long_runs(lab):
    """Reports of long runs: minutes and seconds are right, ratios are rounded, and nothing is
    divided by 0."""
    world = World("f", GIB, cost=30_500_000_000, every=3)
    lines = seekrw(lab, world, "-a", 4).text.splitlines()
    expect("4 operations of 30.5 s", lines[0], "real time: 2 minutes 2 seconds 0 usec")
    expect("2 requests", lines[3], "requests an operation: 0.50; sectors a request: 1.00")
    lines = seekrw(lab, World("f", GIB, cost=1_234_567, every=2), "-a", 3).text.splitlines()
    expect("2 of 3", lines[3], "requests an operation: 0.67; sectors a request: 1.00")
    lines_of_3 = seekrw(lab, World("f", GIB, every=3), "-a", 3).text.splitlines()
    expect("1 of 3", lines_of_3[3], "requests an operation: 0.33; sectors a request: 1.00")
    expect("3 of 1.2 ms", lines[0], "real time: 0 minutes 0 seconds 3703 usec")
    lines = seekrw(lab, World("f", GIB, cost=3600 * 10**9), "-a", 2).text.splitlines()
    expect("2 operations of an hour", lines[0], "real time: 120 minutes 0 seconds 0 usec")
    run = seekrw(lab, World("f", GIB, cost=2_000_000), "-a", 5000)
    us = (run.cost + LOOK_NS) // 1000
    least, most = (round(5000 * 10**8 / each) / 100 for each in (us + 10 * 5000 // 1000, us))
    seen = float(run.text.splitlines()[1].rpartition(" ")[2])
    wanted = f"{run.what}: operations a second: expected {least} to {most}"
    require(least <= seen <= most, f"{wanted}, seen {seen}")
    lines = seekrw(lab, World("f", GIB), "-a", 3, "-l", 100).text.splitlines()
    expect("no whole sector", lines[3], "requests an operation: 1.00; sectors a request: 0.00")
    lines = seekrw(lab, World("f", GIB, every=-1), "-a", 3).text.splitlines()
    expect("no request", lines[3], "requests an operation: 0.00; sectors a request: 0.00")


@pytest.mark.exercise("S6", points=2, once=True)
def test_in_the_kernel(lab, tmp_path):
    """The program in the kernel: QEMU sees the requests of the seed, and no others."""
    require_reads(lab, tmp_path)


def require_reads(lab, folder):
    """The reads of a seed in a kernel, of a raw drive that is made in `folder`."""
    size, count, (seed,) = 64 << 20, 200, seeds(lab, 1)
    image = folder / "b.img"
    image.write_bytes(b"")
    os.truncate(image, size + 512)
    fields = with_files(lab, {"bin/seekrw": lab.build("build/user/bin/seekrw").read_bytes()})
    command = f"run /bin/seekrw -f /dev/hdb -a {count} -l 512 -r -d -s {seed} -j"
    result = lab.run(command, drives=[Drive(image, 1)], trace=True, guest_limit=120, **fields)
    said = result.check().serial
    found = re.search(r"\{\"file.*\}", said)
    require(found, "seekrw -j on the kernel: expected JSON, seen none")
    values = json.loads(found[0])
    expect("size of /dev/hdb", values["size"], size + 512)
    expect("reads, requests", (values["reads"], values["requests"]["reads"]), (count, count))
    wanted = expected_offsets(seed, size + 512, 512, count)
    seen = result.requests["hdb"][-count:]
    for number, (request, offset) in enumerate(zip(seen, wanted, strict=True)):
        what = f"request {number} that QEMU saw: LBA, sectors"
        expect(what, (request.lba, request.sectors), (offset // 512, 1))
