"""Requests that come at random to many disks: how long each takes at which rate.

A request is some reads, one after another, each from a disk at random; a read is a chain of disk
requests on that disk, of which each waits for the one before. Requests come whether earlier ones
are done or not (Poisson). A disk has a queue of its own, of the depth and order of its model
(models/*.toml), and what is beyond its depth waits in the host, first come, first served.

Times are the disk model's, in milliseconds; rates are requests a second. Seeds are explicit.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from labs.storage.disk_model import Disk, Request
from labs.storage.queue_model import ORDERS, Waiting

WARM_UP = 0.2  # of the requests: the queues fill first


@dataclass
class Task:
    """A request under way: when it came, and the disk requests that are left, by read."""

    came_ms: float
    reads: list[list[int]]


@dataclass
class Station:
    """A disk, what it has, and what waits for it."""

    disk: Disk
    at: int = 0
    is_busy: bool = False
    inside: list[tuple[Waiting, Task]] = field(default_factory=list)
    outside: deque[tuple[Waiting, Task]] = field(default_factory=deque)

    def next(self, now_ms: float) -> tuple[Waiting, Task]:
        """What it serves now, by its order; it has something."""
        queue = self.disk.of.queue
        while self.outside and len(self.inside) < queue.depth:
            self.inside.append(self.outside.popleft())
        waiting = [each for each, _ in self.inside]
        chosen = ORDERS[queue.order](self.disk, now_ms, self.at, waiting)
        return self.inside.pop(next(n for n, each in enumerate(waiting) if each is chosen))


def latencies_ms(
    disks: Callable[[], list[Disk]],
    rate: float,
    count: int,
    chain: Callable[[random.Random], int],
    reads: int,
    seed: int,
    sectors: int = 9,
) -> list[float]:
    """Of `count` requests at this rate, without those of the warm-up. chain: how many disk requests
    a read takes, drawn for each."""
    generator, now_ms = random.Random(seed), 0.0
    stations = [Station(disk) for disk in disks()]
    size = stations[0].disk.sectors - sectors
    events: list[tuple[float, int, int, Task]] = []  # time, number, station or -1
    order: list[tuple[float, float]] = []  # when it came, and how long it took
    for number in range(count):
        now_ms += generator.expovariate(rate / 1000)
        lengths = [chain(generator) for _ in range(reads)]
        task = Task(now_ms, [[generator.randrange(size) for _ in range(n)] for n in lengths])
        heapq.heappush(events, (now_ms, number, -1, task))
    number = count

    def serve(which: int, at_ms: float) -> None:
        nonlocal number
        station = stations[which]
        if station.is_busy or not (station.inside or station.outside):
            return
        waiting, task = station.next(at_ms)
        station.is_busy, number = True, number + 1
        spent = station.disk.service(at_ms, waiting.request.lba, waiting.request.sectors)
        station.at = waiting.request.lba + waiting.request.sectors
        heapq.heappush(events, (at_ms + spent.total_ms, number, which, task))

    def ask(task: Task, at_ms: float, which: int) -> None:
        """The task's next disk request: on the same disk, or the next read's, on any."""
        while task.reads and not task.reads[0]:
            task.reads.pop(0)
            which = -1
        if not task.reads:
            order.append((task.came_ms, at_ms - task.came_ms))
            return
        which = generator.randrange(len(stations)) if which < 0 else which
        request = Request("read", task.reads[0].pop(0), sectors)
        stations[which].outside.append((Waiting(at_ms, at_ms, 0, request, []), task))
        serve(which, at_ms)

    while events:
        at_ms, _, which, task = heapq.heappop(events)
        if which >= 0:
            stations[which].is_busy = False
            host_ms = stations[which].disk.of.host_turnaround_ms
            ask(task, at_ms + host_ms, which)
            serve(which, at_ms)
        else:
            ask(task, at_ms, -1)
    return [ms for _, ms in sorted(order)[int(WARM_UP * count) :]]


def percentile(values: list[float], part: float) -> float:
    """What this part of the values is at most."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def rate_within(limit_ms: float, rates: list[float], times_ms: list[float]) -> float:
    """The rate at which the time reaches the limit, between two of the rates by a straight line;
    the last rate if it never does."""
    before = (0.0, 0.0)
    for rate, ms in zip(rates, times_ms, strict=True):
        if ms > limit_ms:
            part = (limit_ms - before[1]) / (ms - before[1])
            return before[0] + max(0.0, part) * (rate - before[0])
        before = rate, ms
    return rates[-1]
