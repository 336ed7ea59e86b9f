"""A disk with memory of its own: it reads ahead into segments, and holds writes until later.

`drive("hdd5400", cache="on")` makes one (disk_model.py); "read" has the segments only, as after
`hdparm -W0`, and "off" is a Disk, without any of this. It has one arm, and what needs none is done
meanwhile. The figures are those of models/*.toml, under [cache] and [queue].

    read     in a segment, or held: the interface's time. What the arm is about to pass: when it
             has passed. Else the arm goes there, and reads on for half a segment.
    write    held: the interface's time, and that of making room if there is none. Not held: the
             platter, where a write that follows the last one has lost a turn.
    flush    everything that is held goes to the platter first.

The arm writes what is held when no read wants it and it has read ahead, so a read waits for one
piece of `destage_sectors` at most. Of the `depth` oldest pieces it takes one by the drive's order.

Units are those of disk_model.py. Errors: ValueError if a request is not wholly on the drive.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from labs.storage.disk_model import SECTOR_BYTES, Access, Disk, DiskParameters, check_range


@dataclass
class Segment:
    """Sectors that were read, [first, end)."""

    first: int
    end: int


class CachedDisk(Disk):
    """A Disk with segments for reads and, with `holds_writes`, a cache for writes."""

    def __init__(self, sectors: int, of: DiskParameters, holds_writes: bool) -> None:
        super().__init__(sectors, of=of)
        self._room = (of.cache.write_megabytes << 20) // SECTOR_BYTES if holds_writes else 0
        self._segments: list[Segment] = []  # the one in use last
        self._held: dict[int, int] = {}  # first sector and end of each piece, the oldest first
        self._held_sectors = 0
        self._written = 0, 0  # the piece that went to the platter last, or goes there now
        self._held_since_ms = self._arm_free_ms = 0.0
        self._ahead_until = 0  # where reading ahead ends; the last segment grows up to there

    def service(self, start_ms: float, lba: int, sectors: int, operation: str = "r") -> Access:
        """Serves a request that the drive gets at `start_ms`."""
        check_range(lba, sectors, self.sectors)
        now_ms = start_ms + self.of.command_overhead_ms
        self._catch_up(now_ms)
        if operation.startswith("w"):
            return self._write(now_ms, lba, lba + sectors)
        return self._read(now_ms, lba, lba + sectors)

    def flush(self, start_ms: float) -> Access:
        """Waits until nothing is held any more."""
        now_ms = start_ms + self.of.command_overhead_ms
        self._catch_up(now_ms)
        waited_ms = self._make_room(now_ms, self._room)
        return Access(0.0, 0.0, waited_ms, self.of.command_overhead_ms)

    def access_ms(self, now_ms: float, lba: int) -> float:
        """As that of a Disk; nothing for what is in memory."""
        return 0.0 if self._in_memory(lba, lba + 1) else super().access_ms(now_ms, lba)

    # ---- reads ----

    def _in_memory(self, lba: int, end: int) -> bool:
        pieces = (self._written, *self._held.items())
        return any(s.first <= lba and end <= s.end for s in self._segments) or any(
            first <= lba and end <= last for first, last in pieces
        )

    def _read(self, now_ms: float, lba: int, end: int) -> Access:
        overhead_ms, moved_ms = self.of.command_overhead_ms, self._interface_ms(end - lba)
        if self._in_memory(lba, end):
            self._go_on(now_ms, end)
            return Access(0.0, 0.0, moved_ms, overhead_ms)
        free_ms = max(now_ms, self._arm_free_ms)
        if self._is_ahead(lba, end) and self._streamed_ms(end) <= (
            free_ms + super().access_ms(free_ms, lba)
        ):
            self._ahead_until = self._limit(end)
            self._read_on(end)
            return Access(0.0, 0.0, max(0.0, self._arm_free_ms - now_ms), overhead_ms)
        access = self._read_platter(free_ms, lba, end - lba)
        self._arm_free_ms = self._platter_ms
        length = self.of.cache.segment_sectors
        self._segments = [s for s in self._segments if s.end <= lba or end <= s.first]
        self._segments = self._segments[1 - self.of.cache.segments :]
        self._segments.append(Segment(max(lba, end - length), end))
        self._ahead_until = self._limit(end)
        return access._replace(overhead_ms=overhead_ms + free_ms - now_ms)

    def _limit(self, end: int) -> int:
        """Where reading ahead from here on ends."""
        return min(self.sectors, end + self.of.cache.segment_sectors // 2)

    def _go_on(self, now_ms: float, end: int) -> None:
        """What was read ahead is wanted: so is what follows, unless the arm has other work."""
        if self._held or not self._segments:
            return
        if self._segments[-1].first < end <= self._segments[-1].end:
            if not self._is_reading():  # the arm was idle
                self._arm_free_ms = max(self._arm_free_ms, now_ms)
            self._ahead_until = self._limit(end)

    def _is_reading(self) -> bool:
        """Whether the segment is not full."""
        return bool(self._segments) and self._segments[-1].end < self._ahead_until

    def _is_ahead(self, lba: int, end: int) -> bool:
        """Whether the arm is on its way over these sectors."""
        if not self._is_reading():
            return False
        return self._segments[-1].first <= lba and end <= self._limit(self._ahead_until)

    def _streamed_ms(self, end: int) -> float:
        """When reading ahead would have passed this sector."""
        kept = self._arm, self._arm_free_ms, self._segments[-1].end
        self._read_on(end)
        passed_ms = self._arm_free_ms
        self._arm, self._arm_free_ms, self._segments[-1].end = kept
        return passed_ms

    def _read_on(self, end: int) -> None:
        """Reads ahead up to this sector."""
        segment = self._segments[-1]
        if end > segment.end:
            self._read_platter(self._arm_free_ms, segment.end, end - segment.end)
            self._arm_free_ms, segment.end = self._platter_ms, end
        segment.first = max(segment.first, segment.end - self.of.cache.segment_sectors)

    # ---- what the arm does while nobody waits ----

    def _catch_up(self, now_ms: float) -> None:
        """Reads ahead, and then writes what is held, as far as that has begun before `now_ms`."""
        self._read_ahead(now_ms)
        if self._is_reading():
            return
        while self._held and max(self._arm_free_ms, self._held_since_ms) < now_ms:
            self._write_one(max(self._arm_free_ms, self._held_since_ms))

    def _read_ahead(self, now_ms: float) -> None:
        """Whole parts of a track, until the segment is full; a part of one that `now_ms` cuts."""
        while self._is_reading():
            segment, place = self._segments[-1], self.geometry.locate(self._segments[-1].end)
            rest = min(self._ahead_until - segment.end, place.track_sectors - place.sector)
            begin_ms = self._arm_free_ms + self._move_ms(place)
            begin_ms += self._wait_ms(begin_ms, place)
            if begin_ms >= now_ms:
                return
            part = (now_ms - begin_ms) / self.of.revolution_ms * place.track_sectors
            self._read_on(segment.end + max(0, min(rest, int(part))))
            if part < rest:
                return

    def _write_one(self, begin_ms: float) -> None:
        """One piece goes to the platter: of the oldest ones the next by the drive's order."""
        oldest = list(islice(self._held, self.of.queue.depth))
        if self.of.queue.order == "satf":
            first = min(oldest, key=lambda lba: Disk.access_ms(self, begin_ms, lba))
        elif self.of.queue.order == "c-look":
            at = self.geometry.lba_of(self._arm.cylinder, self._arm.head, self._arm.sector)
            first = min(oldest, key=lambda lba: (lba < at, lba))
        else:
            first = oldest[0]
        end = self._held.pop(first)
        count = min(end - first, self.of.cache.destage_sectors)
        if first + count < end:
            self._held = {first + count: end, **self._held}
        self._held_sectors -= count
        self._written = first, first + count
        self._read_platter(begin_ms, first, count)
        self._arm_free_ms, self._ahead_until = self._platter_ms, 0

    # ---- writes ----

    def _interface_ms(self, sectors: int) -> float:
        return sectors * SECTOR_BYTES / self.of.cache.interface_bytes_per_us / 1000

    def _write(self, now_ms: float, lba: int, end: int) -> Access:
        overhead_ms, sectors = self.of.command_overhead_ms, end - lba
        self._forget(lba, end)
        if sectors > self._room:
            free_ms = max(now_ms, self._arm_free_ms)
            access = self._read_platter(free_ms, lba, sectors)
            self._arm_free_ms, self._ahead_until = self._platter_ms, 0
            return access._replace(overhead_ms=overhead_ms + free_ms - now_ms)
        waited_ms = self._make_room(now_ms, sectors)
        if not self._held:
            self._held_since_ms = now_ms + waited_ms
        self._hold(lba, end)
        return Access(0.0, 0.0, waited_ms + self._interface_ms(sectors), overhead_ms)

    def _make_room(self, now_ms: float, sectors: int) -> float:
        """Writes until so many sectors are free; returns how long that takes."""
        done_ms = now_ms
        while self._held and self._held_sectors + sectors > self._room:
            self._write_one(max(done_ms, self._arm_free_ms))
            done_ms = max(done_ms, self._arm_free_ms)
        return done_ms - now_ms

    def _forget(self, lba: int, end: int) -> None:
        """What is written again is held no longer as it was; the rest of a piece is."""
        for first, last in [(f, e) for f, e in self._held.items() if f < end and lba < e]:
            del self._held[first]
            self._held |= {f: e for f, e in ((first, lba), (end, last)) if f < e}
            self._held_sectors -= min(last, end) - max(first, lba)

    def _hold(self, lba: int, end: int) -> None:
        """What follows a piece becomes a part of it."""
        self._held_sectors += end - lba
        before = next((f for f, e in self._held.items() if e == lba), lba)
        end = self._held.pop(end, end)
        self._held[before] = end
