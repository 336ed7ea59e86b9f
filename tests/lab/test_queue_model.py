"""Several requests at a time: one reader is the replay, and the orders choose as they say."""

from __future__ import annotations

from random import Random

import pytest

from labs.storage.disk_model import Disk, Request, replay
from labs.storage.queue_model import ORDERS, Waiting, reads_of, serve_all

SECTORS = 1 << 25


def some(count: int, seed: int = 1) -> list[Request]:
    generator = Random(seed)
    return [Request("read", generator.randrange(SECTORS - 8), 8) for _ in range(count)]


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_one_reader_is_the_replay(order):
    requests = some(201)
    kinds = ["mapping" if number % 3 == 1 else "data" for number in range(201)]
    served = serve_all(reads_of(requests, kinds), Disk(SECTORS), readers=1, drive=order)
    alone = replay(requests, Disk(SECTORS))
    host = Disk(SECTORS).of.host_turnaround_ms
    assert served.total_ms == pytest.approx(alone.total_ms - host)  # nobody waits after the last
    assert len(served.latencies_ms) == kinds.count("data")
    assert sum(served.latencies_ms) == pytest.approx(served.total_ms)


def test_a_read_is_a_chain():
    requests = some(5)
    kinds = ["mapping", "data", "data", "mapping", "data"]
    assert [len(read) for read in reads_of(requests, kinds)] == [2, 1, 2]


def order_of(order: str, lbas: list[int], at: int) -> list[int]:
    """In which order a drive whose last request ended at `at` serves requests that all wait."""
    disk, now = Disk(SECTORS), 0.0
    if at:
        now += disk.service(0.0, at - 1, 1).total_ms
    waiting = [Waiting(0.0, 0.0, n, Request("read", lba, 1), []) for n, lba in enumerate(lbas)]
    found = []
    while waiting:
        chosen = ORDERS[order](disk, now, at, waiting)
        waiting.remove(chosen)
        found.append(chosen.request.lba)
        now += disk.service(now, chosen.request.lba, 1).total_ms
        at = chosen.request.lba + 1
    return found


def test_c_look_goes_upwards_and_begins_again_below():
    assert order_of("c-look", [500, 90_000, 70_000, 100], 60_000) == [70_000, 90_000, 100, 500]


def test_fifo_takes_what_came_first():
    assert order_of("fifo", [500, 90_000, 100], 60_000) == [500, 90_000, 100]


def test_satf_takes_what_comes_round_first():
    """Two sectors of one track, the nearer angle first, whatever their numbers say."""
    disk = Disk(SECTORS)
    track = disk.geometry.locate(0).track_sectors
    now = disk.service(0.0, track // 2, 1).total_ms
    near, far = disk.access_ms(now, track // 2 + 100), disk.access_ms(now, track // 2 - 100)
    assert near < far
    assert order_of("satf", [track // 2 - 100, track // 2 + 100], track // 2 + 1)[0] == (
        track // 2 + 100
    )


def test_asking_for_the_access_time_moves_nothing():
    first, second = Disk(SECTORS), Disk(SECTORS)
    for each in some(50, seed=3):
        second.access_ms(7.0, each.lba)
    requests = some(50)
    assert replay(requests, first).total_ms == replay(requests, second).total_ms


def test_nobody_is_forgotten():
    requests = some(300, seed=4)
    kinds = ["data"] * 300
    for order in ORDERS:
        served = serve_all(
            reads_of(requests, kinds), Disk(SECTORS),
            readers=16, depth=4, kernel="c-look", drive=order,
        )  # fmt: skip
        assert len(served.latencies_ms) == 300
