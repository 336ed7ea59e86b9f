"""A disk with memory of its own: what comes out of it, what is held, and what a flush waits for."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from labs.storage.disk_model import (
    CACHES,
    HDD5400,
    ORDERS,
    QueueParameters,
    Request,
    drive,
    parameters,
    replay,
)
from labs.storage.drive_cache import CachedDisk

SECTORS = 1 << 25
FLUSH = Request("flush", 0, 0)
ROOM = HDD5400.cache.write_megabytes << 11  # sectors


def some(count: int, operation: str = "read", seed: int = 1) -> list[Request]:
    generator = Random(seed)
    return [Request(operation, generator.randrange(SECTORS - 8), 8) for _ in range(count)]


def in_order(count: int, operation: str, start: int = 0) -> list[Request]:
    return [Request(operation, start + 8 * number, 8) for number in range(count)]


def seconds(requests: list[Request], cache: str) -> float:
    """Until all is on the platter."""
    return replay([*requests, FLUSH], drive("hdd5400", SECTORS, cache)).total_ms / 1000


def test_random_reads_find_nothing():
    reads = some(300)
    assert seconds(reads, "on") == pytest.approx(seconds(reads, "off"), rel=0.01)


def test_what_follows_was_read_ahead():
    """As fast as the host asks; and after a pause, out of the memory."""
    assert seconds(in_order(2000, "read"), "on") == pytest.approx(
        seconds(in_order(2000, "read"), "off"), rel=0.1
    )
    disk = drive("hdd5400", SECTORS, "read")
    disk.service(0, 0, 8)
    read = disk.service(500, 1000, 8)
    assert read.total_ms < 0.2 and read.transfer_ms == pytest.approx(8 * 512 / 300e3)
    other = drive("hdd5400", SECTORS, "read")
    other.service(0, 0, 8)
    assert other.service(500, 8 + HDD5400.cache.segment_sectors // 2, 8).total_ms > 1


def test_a_segment_is_forgotten_for_newer_ones():
    disk = drive("hdd5400", SECTORS, "read")
    now = 0.0
    for number in range(HDD5400.cache.segments + 1):
        now += 100 + disk.service(now, 100_000 * number, 8).total_ms
    assert disk.service(now, 100_000, 8).total_ms < 0.2
    assert disk.service(now + 100, 0, 8).total_ms > 1


def test_writes_are_held_and_sorted():
    """Each returns at once; all of them together take less than half; read-ahead does nothing."""
    writes = some(300, "write")
    disk = drive("hdd5400", SECTORS, "on")
    assert max(access.total_ms for access in replay(writes, disk).accesses) < 0.3
    assert seconds(writes, "on") < seconds(writes, "off") / 2
    assert seconds(writes, "read") == pytest.approx(seconds(writes, "off"), rel=0.01)


def test_a_write_after_a_write_loses_a_turn_without_the_cache():
    turn = HDD5400.revolution_ms / 1000
    assert seconds(in_order(100, "write"), "read") == pytest.approx(100 * turn, rel=0.03)
    assert seconds(in_order(100, "write"), "on") < 5 * turn


def test_a_flush_after_each_write_takes_the_gain_away():
    writes = some(100, "write")
    flushed = [each for write in writes for each in (write, FLUSH)]
    assert seconds(flushed, "on") == pytest.approx(seconds(writes, "off"), rel=0.05)
    assert replay([FLUSH], drive("hdd5400", SECTORS, "on")).total_ms < 0.3


def test_what_is_held_is_read_again_without_the_arm():
    disk = drive("hdd5400", SECTORS, "on")
    disk.service(0, 5000, 8, "w")
    assert disk.service(0.2, 5000, 8).total_ms < 0.3


def test_a_full_cache_waits_for_the_platter():
    disk = drive("hdd5400", SECTORS, "on")
    requests = [Request("write", 4096 * number, 1024) for number in range(2 * ROOM // 1024)]
    times = [access.total_ms for access in replay(requests, disk).accesses]
    assert max(times[: ROOM // 1024]) < 3 < max(times)


def test_what_is_written_twice_is_held_once():
    """A piece in the middle of another, and one beside it: the flush writes the whole once."""
    disk = CachedDisk(SECTORS, HDD5400, holds_writes=True)
    for lba, count in ((1000, 64), (1016, 8), (1064, 8), (1000, 72)):
        disk.service(0, lba, count, "w")
    assert sum(end - first for first, end in disk._held.items()) == disk._held_sectors <= 72
    disk.flush(1.0)
    assert disk._held == {} and disk._held_sectors == 0


@pytest.mark.parametrize("cache", CACHES)
def test_the_same_requests_cost_the_same(cache):
    both = [each for pair in zip(some(100), some(100, "write", 2), strict=True) for each in pair]
    assert seconds(both, cache) == seconds(both, cache)


def test_the_order_of_the_queue_says_what_is_written_first():
    times = {}
    for order in ORDERS:
        of = replace(HDD5400, queue=QueueParameters(32, order))
        times[order] = replay([*some(300, "write"), FLUSH], CachedDisk(SECTORS, of, True)).total_ms
    assert times["satf"] < times["c-look"] < times["fifo"]


@pytest.mark.parametrize(("depth", "order"), [(0, "fifo"), (33, "satf"), (8, "lifo")])
def test_a_wrong_queue_is_refused(depth, order):
    with pytest.raises(ValueError, match="a queue has a depth of 1 to 32"):
        QueueParameters(depth, order)


def test_a_wrong_cache_is_refused():
    with pytest.raises(ValueError, match="a cache is one of off, read, on, not yes"):
        drive("hdd5400", SECTORS, "yes")
    with pytest.raises(ValueError, match="not wholly on a drive"):
        drive("hdd5400", 1000, "on").service(0, 999, 2)


def test_every_disk_says_what_it_has():
    for name in ("hdd5400", "hdd15k"):
        of = parameters(name)
        assert of.queue == QueueParameters(32, "satf") and of.cache.segments > 0
