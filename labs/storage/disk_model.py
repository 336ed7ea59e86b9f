"""Disk models: what a request costs on a drive, in seek, rotation, transfer and overhead.

The drives are described in models/*.toml, each figure with its source; `drive("hdd5400")` makes
one. Over a list of requests the model says the time afterwards (`replay`); the same classes make a
guest's drive wait (nbd_plugin.py). Only the standard library is needed: nbdkit's Python has
nothing else. Two kinds:

* Flash: a fixed time for a request, and a rate. A write of a part of a page, or of a part of an
  erase block where the drive cannot put it elsewhere, costs more.
* Disk, which does one request at a time:

    command overhead -> seek -> wait until the sector comes round -> transfer

Three facts make up a disk.

* Geometry. Cylinders of some tracks, in zones: outer tracks are longer. A sector's angle follows
  from its number, with a skew from track to track that covers the time to switch heads.
* Seek. Time over distance is a + b * sqrt(x) for short seeks, where the arm speeds up and brakes,
  and a straight line for long ones, where it also cruises (Ruemmler and Wilkes, "An Introduction
  to Disk Drive Modeling", IEEE Computer, 1994). x is the distance as a part of the whole stroke.
* Rotation. The platter turns whether one looks or not: the angle follows from the time alone.

Of the drive of 2010 only `seek_root_ms` (b) is fitted: so that a random read of 512 bytes takes
14.78 ms, as measured. All that is said about files follows from there, with nothing left to turn.

Units are in the names: `_ms` milliseconds, `_revolutions` turns of the platter; an LBA is a number
of 512-byte sectors. Errors: ValueError if a request is not wholly on the drive.
"""

from __future__ import annotations

import random
import tomllib
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from typing import Any, NamedTuple

MODELS = Path(__file__).with_name("models")
SECTOR_BYTES = 512


@dataclass(frozen=True)
class CacheParameters:
    """A drive's memory, under [cache]: drive_cache.py says what it does."""

    write_megabytes: int
    segments: int
    segment_sectors: int
    destage_sectors: int
    interface_bytes_per_us: float


ORDERS = ("fifo", "c-look", "satf")
MOST_DEPTH = 32


@dataclass(frozen=True)
class QueueParameters:
    """How many requests a drive has at a time, 1 to 32, and which it takes next: under [queue];
    queue_model.py explains the orders. Raises ValueError for others."""

    depth: int
    order: str

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= MOST_DEPTH or self.order not in ORDERS:
            raise ValueError(
                f"a queue has a depth of 1 to {MOST_DEPTH} and one of the orders"
                f" {', '.join(ORDERS)}, not {self.depth} and {self.order}"
            )


@dataclass(frozen=True)
class DiskParameters:
    """What a file of models/ says of a disk with an arm; the comments there explain the fields."""

    title: str
    source: str
    sectors: int
    revolutions_per_minute: float
    heads: int
    zones: int
    outer_track_sectors: int
    inner_track_sectors: int
    head_switch_ms: float
    seek_start_ms: float
    seek_root_ms: float
    seek_knee: float
    command_overhead_ms: float
    host_turnaround_ms: float
    cache: CacheParameters
    queue: QueueParameters

    @property
    def revolution_ms(self) -> float:
        """One turn of the platter."""
        return 60_000 / self.revolutions_per_minute


@dataclass(frozen=True)
class FlashParameters:
    """What a file of models/ says of a drive without moving parts."""

    title: str
    source: str
    sectors: int
    read_us: float
    write_us: float
    read_bytes_per_us: float
    write_bytes_per_us: float
    page_bytes: int
    erase_block_bytes: int
    partial_erase_block_us: float
    host_turnaround_ms: float


Parameters = DiskParameters | FlashParameters
KINDS: dict[str, type[Parameters]] = {"disk": DiskParameters, "flash": FlashParameters}


def names() -> list[str]:
    """The drives that are described."""
    return sorted(path.stem for path in MODELS.glob("*.toml"))


def parameters(name: str) -> Parameters:
    """What models/NAME.toml says. Raises ValueError for a name that is not there."""
    if name not in names():
        raise ValueError(f"there is no drive {name}; there are {', '.join(names())}")
    values: dict[str, Any] = tomllib.loads((MODELS / f"{name}.toml").read_text())
    for key, parts in (("cache", CacheParameters), ("queue", QueueParameters)):
        if key in values:
            values[key] = parts(**values[key])
    return KINDS[values.pop("kind")](**values)


HDD5400 = parameters("hdd5400")
assert isinstance(HDD5400, DiskParameters)
FULL_SECTORS = HDD5400.sectors
"""The drive of 2010: 2,000,398,934,016 bytes."""
REVOLUTION_MS = HDD5400.revolution_ms
HEADS = HDD5400.heads
HEAD_SWITCH_MS = HDD5400.head_switch_ms
COMMAND_OVERHEAD_MS = HDD5400.command_overhead_ms
HOST_TURNAROUND_MS = HDD5400.host_turnaround_ms
SEEK_START_MS = HDD5400.seek_start_ms
SEEK_ROOT_MS = HDD5400.seek_root_ms
SEEK_KNEE = HDD5400.seek_knee

FIT_TARGET_MS, FIT_ERROR_MS = 14.78, 0.02
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
    """One request to a drive: `operation` begins with r (read), w (write) or f (flush)."""

    operation: str
    lba: int
    sectors: int


def seek_curve_ms(stroke_part: float, root_ms: float, of: DiskParameters = HDD5400) -> float:
    """Milliseconds to move the arm by this part (above 0, to 1) of the whole stroke."""
    if stroke_part < of.seek_knee:
        return of.seek_start_ms + root_ms * sqrt(stroke_part)
    slope = root_ms / (2 * sqrt(of.seek_knee))
    return of.seek_start_ms + root_ms * sqrt(of.seek_knee) + slope * (stroke_part - of.seek_knee)


class Geometry:
    """Maps LBAs to places. A smaller drive has fewer cylinders, and the same zones and tracks."""

    def __init__(self, sectors: int, root_ms: float, of: DiskParameters = HDD5400) -> None:
        self.of = of
        lengths = [self._track_sectors(zone) for zone in range(of.zones)]
        self.sectors = sectors
        self.zone_cylinders = ceil(sectors / (of.heads * sum(lengths)))
        self.cylinders = of.zones * self.zone_cylinders
        self.zones = self._lay_out_zones(lengths)
        self._zone_starts = [zone.first_lba for zone in self.zones]
        self._root_ms = root_ms
        self._lay_out_skew()

    def _track_sectors(self, zone: int) -> int:
        step = (self.of.outer_track_sectors - self.of.inner_track_sectors) / (self.of.zones - 1)
        return round(self.of.outer_track_sectors - step * zone)

    def _lay_out_zones(self, lengths: list[int]) -> list[Zone]:
        zones, lba = [], 0
        for number, length in enumerate(lengths):
            zones.append(Zone(number * self.zone_cylinders, lba, length))
            lba += self.zone_cylinders * self.of.heads * length
        return zones

    def _lay_out_skew(self) -> None:
        """Turns each track so far that its first sector comes up when the switch is done."""
        margin = 1 / self.of.inner_track_sectors
        self.head_skew = self.of.head_switch_ms / self.of.revolution_ms + margin
        self.cylinder_skew = self.seek_ms(1) / self.of.revolution_ms + margin
        self._skew_per_cylinder = (self.of.heads - 1) * self.head_skew + self.cylinder_skew

    def seek_ms(self, cylinders: int) -> float:
        """Milliseconds to move the arm by this many cylinders, at least 1."""
        return seek_curve_ms(cylinders / self.cylinders, self._root_ms, self.of)

    def locate(self, lba: int) -> Place:
        """Where a sector is."""
        zone = self.zones[bisect_right(self._zone_starts, lba) - 1]
        track, sector = divmod(lba - zone.first_lba, zone.track_sectors)
        cylinder, head = divmod(track, self.of.heads)
        cylinder += zone.first_cylinder
        turned = cylinder * self._skew_per_cylinder + head * self.head_skew
        angle = (turned + sector / zone.track_sectors) % 1.0
        return Place(cylinder, head, sector, zone.track_sectors, angle)

    def lba_of(self, cylinder: int, head: int, sector: int) -> int:
        """The inverse of `locate`."""
        zone = self.zones[cylinder // self.zone_cylinders]
        track = (cylinder - zone.first_cylinder) * self.of.heads + head
        return zone.first_lba + track * zone.track_sectors + sector


def check_range(lba: int, sectors: int, on: int) -> None:
    """Raises ValueError for a request that is not wholly on a drive of `on` sectors."""
    if sectors < 1 or lba < 0 or lba + sectors > on:
        raise ValueError(
            f"request of {sectors} sectors at LBA {lba} is not wholly on a drive of {on} sectors"
        )


class Disk:
    """A drive with its arm: serves requests one after another. Reads and writes cost the same."""

    def __init__(
        self,
        sectors: int = FULL_SECTORS,
        seek_root_ms: float | None = None,
        of: DiskParameters = HDD5400,
    ) -> None:
        self.of = of
        self.geometry = Geometry(sectors, seek_root_ms or of.seek_root_ms, of)
        self.sectors = sectors
        self._arm = self.geometry.locate(0)
        self._next_lba: int | None = None
        self._platter_ms = 0.0  # when the platter had passed all of the last request

    def service(self, start_ms: float, lba: int, sectors: int, operation: str = "r") -> Access:
        """Serves a request that the drive gets at `start_ms`, after the one before has ended."""
        check_range(lba, sectors, self.sectors)
        if lba == self._next_lba:
            access = self._continue(start_ms, lba, sectors)
        else:
            access = self._read_platter(start_ms + self.of.command_overhead_ms, lba, sectors)
        self._next_lba = lba + sectors
        return access

    def flush(self, start_ms: float) -> Access:
        """Nothing is held."""
        return Access(0.0, 0.0, 0.0, 0.0)

    def access_ms(self, now_ms: float, lba: int) -> float:
        """How long it would be from now until this sector is under its head: seek and rotation. It
        changes nothing."""
        place = self.geometry.locate(lba)
        now_ms += self.of.command_overhead_ms
        moved_ms = self._move_ms(place)
        return moved_ms + self._wait_ms(now_ms + moved_ms, place)

    def _continue(self, start_ms: float, lba: int, sectors: int) -> Access:
        """Serves what follows the last request: the drive has read on by itself, into a buffer."""
        self._read_platter(self._platter_ms, lba, sectors)
        overhead_ms = self.of.command_overhead_ms
        waited_ms = max(0.0, self._platter_ms - start_ms - overhead_ms)
        return Access(0.0, 0.0, waited_ms, overhead_ms)

    def _read_platter(self, now_ms: float, lba: int, sectors: int) -> Access:
        """Track by track: seek or switch heads, wait, transfer. Leaves the arm at the end."""
        seek_ms = rotation_ms = transfer_ms = 0.0
        while sectors:
            place = self.geometry.locate(lba)
            count = min(sectors, place.track_sectors - place.sector)
            moved_ms = self._move_ms(place)
            waited_ms = self._wait_ms(now_ms + moved_ms, place)
            passed_ms = count / place.track_sectors * self.of.revolution_ms
            now_ms += moved_ms + waited_ms + passed_ms
            seek_ms, rotation_ms = seek_ms + moved_ms, rotation_ms + waited_ms
            transfer_ms += passed_ms
            lba, sectors, self._arm = lba + count, sectors - count, place
        self._platter_ms = now_ms
        return Access(seek_ms, rotation_ms, transfer_ms, self.of.command_overhead_ms)

    def _move_ms(self, place: Place) -> float:
        """The time to bring a head over the place's track."""
        distance = abs(place.cylinder - self._arm.cylinder)
        if distance:
            return self.geometry.seek_ms(distance)
        return self.of.head_switch_ms if place.head != self._arm.head else 0.0

    def _wait_ms(self, now_ms: float, place: Place) -> float:
        """The time until the place comes round. What begins just now is not missed."""
        ahead = (place.angle - now_ms / self.of.revolution_ms) % 1.0
        return 0.0 if ahead > 1 - 1e-6 else ahead * self.of.revolution_ms


class Flash:
    """A drive without moving parts: the place does not matter, the boundaries of its blocks do."""

    def __init__(self, of: FlashParameters, sectors: int | None = None) -> None:
        self.of = of
        self.sectors = sectors or of.sectors

    def service(self, start_ms: float, lba: int, sectors: int, operation: str = "r") -> Access:
        """Serves a request; when it comes is of no account."""
        check_range(lba, sectors, self.sectors)
        of, first, size = self.of, lba * SECTOR_BYTES, sectors * SECTOR_BYTES
        if not operation.startswith("w"):
            return Access(0.0, 0.0, size / of.read_bytes_per_us / 1000, of.read_us / 1000)
        overhead_us = of.write_us + of.read_us * _is_partial(first, size, of.page_bytes)
        overhead_us += of.partial_erase_block_us * _is_partial(first, size, of.erase_block_bytes)
        return Access(0.0, 0.0, size / of.write_bytes_per_us / 1000, overhead_us / 1000)

    def flush(self, start_ms: float) -> Access:
        """Nothing is held."""
        return Access(0.0, 0.0, 0.0, 0.0)


def _is_partial(first: int, size: int, unit: int) -> bool:
    """Whether a write leaves some of a unit as it was."""
    return first % unit != 0 or size % unit != 0


Model = Disk | Flash


CACHES = ("off", "read", "on")
"""No memory; segments for reads (as after `hdparm -W0`); these and a cache for writes."""


def drive(name: str, sectors: int | None = None, cache: str = "off") -> Model:
    """A new drive of models/, of its own size unless given. cache: one of CACHES, which flash does
    not heed. Raises ValueError."""
    of = parameters(name)
    if cache not in CACHES:
        raise ValueError(f"a cache is one of {', '.join(CACHES)}, not {cache}")
    if isinstance(of, FlashParameters):
        return Flash(of, sectors)
    if cache == "off":
        return Disk(sectors or of.sectors, of=of)
    from labs.storage.drive_cache import CachedDisk  # which is made of what is here

    return CachedDisk(sectors or of.sectors, of, holds_writes=cache == "on")


@dataclass(frozen=True)
class Replay:
    """Requests with what each cost, in order."""

    requests: list[Request]
    accesses: list[Access]

    @property
    def total_ms(self) -> float:
        """From the first request's start to the last one's end."""
        return sum(access.total_ms for access in self.accesses)


def serve(model: Model, now_ms: float, request: Request) -> Access:
    """One request, with the host's turnaround as overhead."""
    operation, lba, sectors = request
    if operation.startswith("f"):
        access = model.flush(now_ms)
    else:
        access = model.service(now_ms, lba, sectors, operation)
    return access._replace(overhead_ms=access.overhead_ms + model.of.host_turnaround_ms)


def replay(requests: Iterable[Request], disk: Model | None = None) -> Replay:
    """Serves the requests one at a time: each is sent when the one before has come back.

    The host's turnaround is counted as overhead. `disk` is a new full-size drive unless given.
    """
    disk = disk or Disk()
    now_ms, done = 0.0, Replay([], [])
    for request in requests:
        access = serve(disk, now_ms, request)
        now_ms += access.total_ms
        done.requests.append(request)
        done.accesses.append(access)
    return done


TRACE_COLUMNS = "operation,lba,sectors,start_ms,seek_ms,rotation_ms,transfer_ms,overhead_ms"


def trace_line(request: Request, start_ms: float, access: Access) -> str:
    """A request as a line of CSV: what it was, when it began, and where its time went."""
    return ",".join([*map(str, request), *(f"{value:.6f}" for value in (start_ms, *access))])


def random_reads(reads: int = FIT_READS, seed: int = FIT_SEED) -> list[Request]:
    """Of one sector each, on the drive of 2010."""
    generator = random.Random(seed)
    return [Request("read", generator.randrange(FULL_SECTORS), 1) for _ in range(reads)]


def fit_seek_root_ms(
    requests: Sequence[Request], of: DiskParameters = HDD5400, sectors: int = FULL_SECTORS
) -> float:
    """The b with which each of these reads takes FIT_TARGET_MS on average, within FIT_ERROR_MS.

    The mean is nearly linear in b: a few secants find it. All trials use the same reads.
    """

    def mean_ms(root_ms: float) -> float:
        return replay(requests, Disk(sectors, root_ms, of)).total_ms / len(requests)

    low, high = 10.0, 20.0
    low_ms, high_ms = mean_ms(low), mean_ms(high)
    while abs(high_ms - FIT_TARGET_MS) > FIT_ERROR_MS:
        slope = (high_ms - low_ms) / (high - low)
        low, low_ms = high, high_ms
        high += (FIT_TARGET_MS - high_ms) / slope
        high_ms = mean_ms(high)
    return high


if __name__ == "__main__":
    print(f"SEEK_ROOT_MS = {fit_seek_root_ms(random_reads()):.2f}")
