"""The drive of a program on this computer (tests/storage/host/asked_disk.c), outside its process:
its contents, the requests that fail, and all that reached it, in order."""

from __future__ import annotations

import mmap
import re
from errno import EIO
from typing import NamedTuple

SECTOR = 512
MOST_REQUESTS = 20_000  # more of them are a loop
MOST_GIVEN = 16 << 20  # bytes of a write
NO_RESULT = ""
QUESTION = re.compile(
    r"(?P<what>read|write|flush|with)(?: (?P<lba>\d{1,15}) (?P<count>\d{1,6}))?"
    r"(?: (?P<bytes>(?:[0-9a-f]{2})+))?"
)


class Write(NamedTuple):
    """A write; without data a flush."""

    lba: int
    data: bytes


class Drive:
    """A drive with these contents, which writes change. bad: a sector beyond them that is broken;
    -1: none."""

    def __init__(self, contents: bytearray | mmap.mmap, bad: int = -1) -> None:
        self._contents = contents
        self.bad = bad
        self.met_bad = False
        self.writes: list[Write] = []
        self._requests = 0
        self._failing = range(0)
        self._given = bytearray()

    def fail(self, after: int, count: int) -> None:
        """Of the requests after so many more these fail; 0: all of them."""
        first = self._requests + after
        self._failing = range(first, first + (count or MOST_REQUESTS))

    def answer(self, question: bytes) -> str:
        """The line for one of the questions that asked_disk.c lists."""
        asked = QUESTION.fullmatch(question.decode(errors="replace"))
        if not asked or self._requests >= MOST_REQUESTS or len(self._given) > MOST_GIVEN:
            return NO_RESULT
        self._given += bytes.fromhex(asked["bytes"] or "")
        if asked["what"] == "with":
            return NO_RESULT
        return self._request(asked["what"], int(asked["lba"] or 0), int(asked["count"] or 0))

    def _request(self, what: str, lba: int, count: int) -> str:
        """A read, a write or a flush."""
        given, self._given = bytes(self._given), bytearray()
        self._requests += 1
        if self._requests - 1 in self._failing:
            return str(-EIO)
        if what == "flush":
            self.writes.append(Write(0, b""))
            return "0"
        if lba <= self.bad < lba + count or count == 0:
            self.met_bad = count > 0
            return str(-EIO)
        place = slice(lba * SECTOR, (lba + count) * SECTOR)
        if what == "read":
            return "+" + self._contents[place].rstrip(b"\0").hex()
        if len(given) != count * SECTOR:
            return str(-EIO)
        self.writes.append(Write(lba, given))
        if place.stop <= len(self._contents):
            self._contents[place] = given
        return "0"
