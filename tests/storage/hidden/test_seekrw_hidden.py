"""Exercise S6, for the graders: 2 TB and more, every place, and only operations in the time."""

from __future__ import annotations

import json
import os
import re
from random import Random

import pytest

from labs.tools.machine.qemu_command import Drive
from tests.lesson3.support import with_files
from tests.storage.seekrw import (
    DISK,
    World,
    check_offsets,
    check_time,
    expected_offsets,
    measured,
    refused,
    seekrw,
)
from tests.told import expect, require

GIB = 1 << 30


def seeds(lab, count: int) -> list[int]:
    """Of 64 bits."""
    chance = Random(lab.seed)
    return [chance.getrandbits(64) for _ in range(count)]


@pytest.mark.exercise("S6", points=2, host=True)
@pytest.mark.parametrize("size", [3 * GIB, DISK, 6 * DISK, 512 + 511], ids=str)
def test_sizes(lab, size):
    """More than 31 bits of bytes, more than 31 and 32 bits of sectors, and hardly one sector."""
    for kind in "bf":
        run = measured(lab, World(kind, size), "-a", 1)
        expect(f"{run.what}: size", run.values["size"], size)


@pytest.mark.exercise("S6", points=1, host=True)
def test_too_small(lab):
    """An operation does not fit."""
    for kind in "bf":
        run = refused(lab, World(kind, 511))
        wanted = "seekrw: FILE has 511 bytes, too few for an operation of 512\n"
        expect(run.what, run.errors, wanted)


@pytest.mark.exercise("S6", points=1, host=True)
def test_no_size(lab):
    """A directory is neither, and a block device may not tell its size."""
    run = refused(lab, World("d", 4096))
    expect(run.what, run.errors, "seekrw: FILE is neither a file nor a block device\n")
    refused(lab, World("m", DISK))


@pytest.mark.exercise("S6", points=4, gate=True, host=True)
def test_every_place_of_large_disks(lab):
    """Places of more than 31 and 32 bits, in the sequence of the seed."""
    for size, seed in zip((DISK, 6 * DISK, 3 * GIB + 512), seeds(lab, 3), strict=True):
        run = measured(lab, World("b", size), "-a", 300, "-s", seed)
        check_offsets(run, seed, 512, 300)
        require(max(run.offsets) > size * 9 // 10, f"{run.what}: nothing in the last tenth")


@pytest.mark.exercise("S6", points=2, host=True)
def test_no_place_is_more_likely(lab):
    """A number of places that is no power of two; the rest at the end is no place."""
    for size, length in ((3 * 512, 512), (3 * 512 + 511, 512), (48 * 512, 1536), (5000, 1000)):
        (seed,) = seeds(lab, 1)
        run = measured(lab, World("f", size), "-a", 400, "-l", length, "-s", seed)
        check_offsets(run, seed, length, 400)
        expect(f"{run.what}: places", len(set(run.offsets)), size // length)


@pytest.mark.exercise("S6", points=2, host=True)
def test_same_seed(lab):
    """The same offsets for the same seed, for every mix, and others for another seed."""
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
    """-w is a percentage, drawn for each operation; the counts are right."""
    (seed,) = seeds(lab, 1)
    for percent, low, high in ((0, 0, 0), (30, 230, 370), (99, 950, 999), (100, 1000, 1000)):
        run = measured(lab, World("f", GIB), "-a", 1000, "-w", percent, "-s", seed)
        writes = sum(call.letter == "w" for call in run.operations)
        require(low <= writes <= high, f"{run.what}: expected {low} to {high}, seen {writes}")
        counts = run.values["reads"], run.values["writes"]
        expect(f"{run.what}: reads and writes", counts, (1000 - writes, writes))
        again = measured(lab, World("f", GIB), "-a", 1000, "-w", percent, "-s", seed)
        expect(
            f"{run.what}: once more, the same operations", again.operations == run.operations, True
        )
    letters = [
        [each.letter for each in measured(lab, World("f", GIB), *words, "-s", other).operations]
        for words, other in ((("-a", 60, "-w", 50), one) for one in (seed, seed ^ 1))
    ]
    require(letters[0] != letters[1], "two seeds have the same mix of reads and writes")


@pytest.mark.exercise("S6", points=2, gate=True, host=True)
def test_sectors_of_4096_bytes(lab):
    """Direct I/O wants memory that is aligned accordingly, for every length, twice."""
    for length in (4096, 8192, 12288, 65536):
        run = measured(lab, World(align=4096), "-d", "-a", 20, "-w", 50, "-l", length)
        expect(f"{run.what}: operations", len(run.operations), 20)


@pytest.mark.exercise("S6", points=4, gate=True, host=True)
@pytest.mark.parametrize("words", ["-r", "-d -w 100", "-w 40", "-w 60 -c"])
def test_nothing_else_is_timed(lab, words):
    """To the nanosecond: the operations, and two looks at the clock for each."""
    for kind in "bf":
        run = measured(lab, World(kind, GIB), "-a", 60, *words.split())
        check_time(run)
        longest = run.values["percentiles_ns"]["100.0"]
        last = run.world.cost + 59 * 10
        require(
            last <= longest <= last + 10, f"{run.what}: longest: expected {last}, seen {longest}"
        )


@pytest.mark.exercise("S6", points=1, host=True)
def test_requests_of_the_operations(lab):
    """The device's counters, of all operations and of nothing else."""
    for kind in "bf":
        run = measured(lab, World(kind, GIB, every=3), "-a", 100, "-l", 1024)
        seen = run.values["requests"] or {}
        expect(f"{run.what}: requests", seen.get("reads"), 34)
        expect(f"{run.what}: sectors", seen.get("sectors_read"), 68)


@pytest.mark.exercise("S6", points=2, host=True)
@pytest.mark.parametrize("writes", [0, 100])
def test_what_fails_is_no_figure(lab, writes):
    """An operation that moves less than it should, or fails."""
    for world in (World(short=7), World(broken=0), World("f", GIB, short=0), World(broken=9)):
        run = refused(lab, world, "-a", 10, "-w", writes)
        number = max(world.short, world.broken)
        expect(f"{run.what}: operations", len(run.operations), number + 1)
        place = expected_offsets(1, world.size, 512, 10)[number]
        require(f"offset {place}" in run.errors, f"{run.what}: which offset? {run.errors}")


@pytest.mark.exercise("S6", points=1, host=True)
def test_stamps(lab):
    """Writes carry the stamp of their place, and a read of another place is found."""
    run = measured(lab, World("f", GIB), "-c", "-a", 30, "-w", 60, "-l", 1024)
    require(all(call.stamped for call in run.operations if call.letter == "w"), "stamps")
    expect(f"{run.what}: wrong", run.values["wrong"], 0)
    run = seekrw(lab, World(moved=3), "-c", "-a", 10, "-j")
    expect(f"{run.what}: status, wrong", (run.status, run.values["wrong"]), (1, 1))


@pytest.mark.exercise("S6", points=1, host=True)
def test_report_of_long_runs(lab):
    """Minutes, seconds and the rest; ratios are rounded, and nothing is divided by 0."""
    world = World("f", GIB, cost=30_500_000_000, every=3)
    lines = seekrw(lab, world, "-a", 4).text.splitlines()
    expect("4 operations of 30.5 s", lines[0], "real time: 2 minutes 2 seconds 0 usec")
    expect("2 requests", lines[3], "requests an operation: 0.50; sectors a request: 1.00")
    lines = seekrw(lab, World("f", GIB, cost=1_234_567, every=2), "-a", 3).text.splitlines()
    expect("2 of 3", lines[3], "requests an operation: 0.67; sectors a request: 1.00")
    lines_of_3 = seekrw(lab, World("f", GIB, every=3), "-a", 3).text.splitlines()
    expect("1 of 3", lines_of_3[3], "requests an operation: 0.33; sectors a request: 1.00")
    expect("3 of 1.2 ms", lines[0], "real time: 0 minutes 0 seconds 3703 usec")
    lines = seekrw(lab, World("f", GIB), "-a", 3, "-l", 100).text.splitlines()
    expect("no whole sector", lines[3], "requests an operation: 1.00; sectors a request: 0.00")


@pytest.mark.exercise("S6", points=2, once=True)
def test_in_the_kernel(lab, tmp_path):
    """The program on the kernel: QEMU sees the requests of the seed, and no others."""
    size, count, (seed,) = 64 << 20, 200, seeds(lab, 1)
    image = tmp_path / "b.img"
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
