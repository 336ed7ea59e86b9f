"""Several requests at a time: readers, the kernel's queue, and a drive that has a queue of its own.

A reader has one read under way. A read is a chain of requests, of which each is sent when the one
before it has come back: a pointer block, and then the data. What waits is in the kernel's queue; it
gives the drive as many requests as that takes (`depth`), and the drive serves one of these after
the other. Both choose by an order:

    fifo     what came first
    c-look   the next one upwards from where the last one ended, and then from the lowest again, as
             drivers/disk/queue.c does it
    satf     the shortest access time first, seek and rotation together: only a drive can, for only
             it knows the angle of its platter (Jacobson and Wilkes, HPL-CSP-91-7, 1991; Seltzer,
             Chen, Ousterhout, USENIX Winter 1990)

Times are the disk model's, in milliseconds. One reader and a depth of 1 are `replay`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from labs.storage.disk_model import Disk, Request

Read = Sequence[Request]
"""Requests of which each waits for the one before it."""


@dataclass
class Waiting:
    """A request that has not ended: when it came, and the rest of its read."""

    came_ms: float
    begun_ms: float
    reader: int
    request: Request
    rest: list[Request]


@dataclass
class Served:
    """What a run was: its time, and that of each read from its first request to its end."""

    total_ms: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        """Reads."""
        return len(self.latencies_ms) / self.total_ms * 1000


Order = Callable[[Disk, float, int, list[Waiting]], Waiting]
"""The drive, the time, the sector after the last request, and who waits; at least one does."""


def first_come(_disk: Disk, _now_ms: float, _at: int, waiting: list[Waiting]) -> Waiting:
    """fifo."""
    return min(waiting, key=lambda each: each.came_ms)


def upwards(_disk: Disk, _now_ms: float, at: int, waiting: list[Waiting]) -> Waiting:
    """c-look."""
    return min(waiting, key=lambda each: (each.request.lba < at, each.request.lba))


def shortest_access(disk: Disk, now_ms: float, _at: int, waiting: list[Waiting]) -> Waiting:
    """satf."""
    return min(waiting, key=lambda each: disk.access_ms(now_ms, each.request.lba))


ORDERS: dict[str, Order] = {"fifo": first_come, "c-look": upwards, "satf": shortest_access}
"""As disk_model.ORDERS names them."""


def serve_all(
    reads: Iterable[Read], disk: Disk, *, readers: int, depth: int = 1,
    kernel: str = "fifo", drive: str = "fifo",
) -> Served:  # fmt: skip
    """All reads, handed out to the readers in their order: one that has none takes the next.

    kernel, drive: the orders of the two queues. The host's turnaround passes between a request and
    the next one of its reader; the drive does not wait for it while it has others.
    """
    pending = iter(reads)
    now_ms, at, done = 0.0, 0, Served()
    outside: list[Waiting] = []
    inside: list[Waiting] = []

    def begin(reader: int, came_ms: float, begun_ms: float) -> None:
        if read := next(pending, None):
            outside.append(Waiting(came_ms, begun_ms, reader, read[0], list(read[1:])))

    for reader in range(readers):
        begin(reader, 0.0, 0.0)
    while outside or inside:
        if not inside and all(each.came_ms > now_ms for each in outside):
            now_ms = min(each.came_ms for each in outside)
        while len(inside) < depth and (here := [e for e in outside if e.came_ms <= now_ms]):
            chosen = ORDERS[kernel](disk, now_ms, at, here)
            outside.remove(chosen)
            inside.append(chosen)
        chosen = ORDERS[drive](disk, now_ms, at, inside)
        inside.remove(chosen)
        lba, sectors = chosen.request.lba, chosen.request.sectors
        now_ms += disk.service(now_ms, lba, sectors, chosen.request.operation).total_ms
        at = lba + sectors
        came = now_ms + disk.of.host_turnaround_ms
        if chosen.rest:
            outside.append(Waiting(came, chosen.begun_ms, chosen.reader, chosen.rest[0],
                                   chosen.rest[1:]))  # fmt: skip
        else:
            done.latencies_ms.append(now_ms - chosen.begun_ms)
            begin(chosen.reader, came, now_ms)
    done.total_ms = now_ms
    return done


def reads_of(requests: Sequence[Request], kinds: Sequence[str]) -> list[Read]:
    """A row's requests as reads: each ends with its data."""
    reads: list[Read] = []
    chain: list[Request] = []
    for request, kind in zip(requests, kinds, strict=True):
        chain.append(request)
        if kind == "data":
            reads.append(chain)
            chain = []
    return reads
