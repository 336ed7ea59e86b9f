"""Disk model: what a request costs on a 5400 rpm drive of 2 TB, in seek, rotation and transfer.

The drive does one request at a time:

    command overhead -> seek -> wait until the sector comes round -> transfer

Three facts make up the model.

* Geometry. Cylinders of 8 tracks, in 24 zones: outer tracks are longer. A sector's angle follows
  from its number, with a skew from track to track that covers the time to switch heads.
* Seek. Time over distance is a + b * sqrt(x) for short seeks, where the arm speeds up and brakes,
  and a straight line for long ones, where it also cruises (Ruemmler and Wilkes, "An Introduction
  to Disk Drive Modeling", IEEE Computer, 1994). x is the distance as a part of the whole stroke.
* Rotation. The platter turns whether one looks or not: the angle follows from the time alone.

Only `SEEK_ROOT_MS` (b) is fitted: so that a random read of 512 bytes takes 14.78 ms, as measured
on the drive of 2010. All that is said about files follows from there, with nothing left to turn.

Units are in the names: `_ms` milliseconds, `_revolutions` turns of the platter; an LBA is a number
of 512-byte sectors. Errors: ValueError if a request is not wholly on the drive.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import NamedTuple

SECTOR_BYTES = 512
FULL_SECTORS = 3_907_029_168
"""The drive of 2010: 2,000,398,934,016 bytes."""

REVOLUTION_MS = 60_000 / 5400
HEADS = 8
ZONES = 24
OUTER_TRACK_SECTORS = 2200
INNER_TRACK_SECTORS = 1100
HEAD_SWITCH_MS = 0.8
COMMAND_OVERHEAD_MS = 0.15
HOST_TURNAROUND_MS = 0.05
"""From the end of a request until the host has sent the next one."""

SEEK_START_MS = HEAD_SWITCH_MS
"""a: to settle on a new track takes as long whether the arm or the head changed."""
SEEK_ROOT_MS = 15.1
"""b: see `fit_seek_root_ms`."""
SEEK_KNEE = 0.3
"""The part of the stroke where the arm reaches its full speed."""

FIT_TARGET_MS = 14.78
FIT_SEED = 2010
FIT_READS = 100_000


class Zone(NamedTuple):
    """Neighbouring cylinders whose tracks are of one length."""

    first_cylinder: int
    first_lba: int
    track_sectors: int


class Place(NamedTuple):
    """Where a sector is. Its angle is where it begins, in [0, 1) of a revolution."""

    cylinder: int
    head: int
    sector: int
    track_sectors: int
    angle: float


class Access(NamedTuple):
    """What one request cost, in milliseconds."""

    seek_ms: float
    rotation_ms: float
    transfer_ms: float
    overhead_ms: float

    @property
    def total_ms(self) -> float:
        """From the request's start to its end."""
        return self.seek_ms + self.rotation_ms + self.transfer_ms + self.overhead_ms


def add_up(accesses: Collection[Access], divided_by: float = 1) -> Access:
    """The sum of the accesses' parts; with their number as the divisor, the mean."""
    return Access(
        seek_ms=sum(access.seek_ms for access in accesses) / divided_by,
        rotation_ms=sum(access.rotation_ms for access in accesses) / divided_by,
        transfer_ms=sum(access.transfer_ms for access in accesses) / divided_by,
        overhead_ms=sum(access.overhead_ms for access in accesses) / divided_by,
    )


class Request(NamedTuple):
    """One request to a drive: `operation` begins with r (read) or w (write)."""

    operation: str
    lba: int
    sectors: int


def seek_curve_ms(stroke_part: float, root_ms: float) -> float:
    """Milliseconds to move the arm by this part (above 0, to 1) of the whole stroke."""
    if stroke_part < SEEK_KNEE:
        return SEEK_START_MS + root_ms * sqrt(stroke_part)
    slope = root_ms / (2 * sqrt(SEEK_KNEE))
    return SEEK_START_MS + root_ms * sqrt(SEEK_KNEE) + slope * (stroke_part - SEEK_KNEE)


class Geometry:
    """Maps LBAs to places. A smaller drive has fewer cylinders, and the same zones and tracks."""

    def __init__(self, sectors: int, root_ms: float) -> None:
        lengths = [self._track_sectors(zone) for zone in range(ZONES)]
        self.sectors = sectors
        self.zone_cylinders = ceil(sectors / (HEADS * sum(lengths)))
        self.cylinders = ZONES * self.zone_cylinders
        self.zones = self._lay_out_zones(lengths)
        self._zone_starts = [zone.first_lba for zone in self.zones]
        self._root_ms = root_ms
        self._lay_out_skew()

    @staticmethod
    def _track_sectors(zone: int) -> int:
        step = (OUTER_TRACK_SECTORS - INNER_TRACK_SECTORS) / (ZONES - 1)
        return round(OUTER_TRACK_SECTORS - step * zone)

    def _lay_out_zones(self, lengths: list[int]) -> list[Zone]:
        zones, lba = [], 0
        for number, length in enumerate(lengths):
            zones.append(Zone(number * self.zone_cylinders, lba, length))
            lba += self.zone_cylinders * HEADS * length
        return zones

    def _lay_out_skew(self) -> None:
        """Turns each track so far that its first sector comes up when the switch is done."""
        margin = 1 / INNER_TRACK_SECTORS
        self.head_skew = HEAD_SWITCH_MS / REVOLUTION_MS + margin
        self.cylinder_skew = self.seek_ms(1) / REVOLUTION_MS + margin
        self._skew_per_cylinder = (HEADS - 1) * self.head_skew + self.cylinder_skew

    def seek_ms(self, cylinders: int) -> float:
        """Milliseconds to move the arm by so many cylinders, at least 1."""
        return seek_curve_ms(cylinders / self.cylinders, self._root_ms)

    def locate(self, lba: int) -> Place:
        """Where a sector is."""
        zone = self.zones[bisect_right(self._zone_starts, lba) - 1]
        track, sector = divmod(lba - zone.first_lba, zone.track_sectors)
        cylinder, head = divmod(track, HEADS)
        cylinder += zone.first_cylinder
        turned = cylinder * self._skew_per_cylinder + head * self.head_skew
        angle = (turned + sector / zone.track_sectors) % 1.0
        return Place(cylinder, head, sector, zone.track_sectors, angle)

    def lba_of(self, cylinder: int, head: int, sector: int) -> int:
        """The inverse of `locate`."""
        zone = self.zones[cylinder // self.zone_cylinders]
        track = (cylinder - zone.first_cylinder) * HEADS + head
        return zone.first_lba + track * zone.track_sectors + sector


class Disk:
    """A drive with its arm: serves requests one after another. Reads and writes cost the same."""

    def __init__(self, sectors: int = FULL_SECTORS, seek_root_ms: float = SEEK_ROOT_MS) -> None:
        self.geometry = Geometry(sectors, seek_root_ms)
        self._arm = self.geometry.locate(0)
        self._next_lba: int | None = None
        self._platter_ms = 0.0  # when the platter had passed all of the last request

    def service(self, start_ms: float, lba: int, sectors: int) -> Access:
        """Serves a request that the drive gets at `start_ms`, after the one before has ended."""
        if sectors < 1 or lba < 0 or lba + sectors > self.geometry.sectors:
            raise ValueError(
                f"request of {sectors} sectors at LBA {lba} is not wholly on a drive of "
                f"{self.geometry.sectors} sectors"
            )
        if lba == self._next_lba:
            access = self._continue(start_ms, lba, sectors)
        else:
            access = self._read_platter(start_ms + COMMAND_OVERHEAD_MS, lba, sectors)
        self._next_lba = lba + sectors
        return access

    def _continue(self, start_ms: float, lba: int, sectors: int) -> Access:
        """Serves what follows the last request: the drive has read on by itself, into a buffer."""
        self._read_platter(self._platter_ms, lba, sectors)
        ready_ms = start_ms + COMMAND_OVERHEAD_MS
        return Access(0.0, 0.0, max(0.0, self._platter_ms - ready_ms), COMMAND_OVERHEAD_MS)

    def _read_platter(self, now_ms: float, lba: int, sectors: int) -> Access:
        """Track by track: seek or switch heads, wait, transfer. Leaves the arm at the end."""
        seek_ms = rotation_ms = transfer_ms = 0.0
        while sectors:
            place = self.geometry.locate(lba)
            count = min(sectors, place.track_sectors - place.sector)
            moved_ms = self._move_ms(place)
            waited_ms = self._wait_ms(now_ms + moved_ms, place)
            passed_ms = count / place.track_sectors * REVOLUTION_MS
            now_ms += moved_ms + waited_ms + passed_ms
            seek_ms, rotation_ms = seek_ms + moved_ms, rotation_ms + waited_ms
            transfer_ms += passed_ms
            lba, sectors, self._arm = lba + count, sectors - count, place
        self._platter_ms = now_ms
        return Access(seek_ms, rotation_ms, transfer_ms, COMMAND_OVERHEAD_MS)

    def _move_ms(self, place: Place) -> float:
        """The time to bring a head over the place's track."""
        distance = abs(place.cylinder - self._arm.cylinder)
        if distance:
            return self.geometry.seek_ms(distance)
        return HEAD_SWITCH_MS if place.head != self._arm.head else 0.0

    @staticmethod
    def _wait_ms(now_ms: float, place: Place) -> float:
        """The time until the place comes round. What begins just now is not missed."""
        ahead = (place.angle - now_ms / REVOLUTION_MS) % 1.0
        return 0.0 if ahead > 1 - 1e-6 else ahead * REVOLUTION_MS


@dataclass(frozen=True)
class Replay:
    """Requests with what each cost, in order."""

    requests: list[Request]
    accesses: list[Access]

    @property
    def total_ms(self) -> float:
        """From the first request's start to the last one's end."""
        return sum(access.total_ms for access in self.accesses)


def replay(requests: Iterable[Request], disk: Disk | None = None) -> Replay:
    """Serves the requests one at a time: each is sent when the one before has come back.

    The host's turnaround is counted as overhead. `disk` is a new full-size drive unless given.
    """
    disk = disk or Disk()
    now_ms, done = 0.0, Replay([], [])
    for request in requests:
        access = disk.service(now_ms, request.lba, request.sectors)
        access = access._replace(overhead_ms=access.overhead_ms + HOST_TURNAROUND_MS)
        now_ms += access.total_ms
        done.requests.append(request)
        done.accesses.append(access)
    return done


def fit_seek_root_ms(reads: int = FIT_READS, seed: int = FIT_SEED) -> float:
    """The b with which random reads of one sector take FIT_TARGET_MS each, by bisection.

    All trials use the same reads, so the mean grows with b but for the last turn of the platter.
    """
    generator = random.Random(seed)
    requests = [Request("read", generator.randrange(FULL_SECTORS), 1) for _ in range(reads)]
    low, high = 5.0, 25.0
    while high - low > 0.005:
        middle = (low + high) / 2
        mean_ms = replay(requests, Disk(seek_root_ms=middle)).total_ms / reads
        low, high = (middle, high) if mean_ms < FIT_TARGET_MS else (low, middle)
    return (low + high) / 2


if __name__ == "__main__":
    print(f"SEEK_ROOT_MS = {fit_seek_root_ms():.2f}")
