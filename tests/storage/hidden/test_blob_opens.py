"""Exercise S9, for the graders: a store that is opened on a drive of which calls fail."""

from __future__ import annotations

from random import Random

import pytest

from tests.storage.blob import (
    AREA,
    BROKEN,
    DISK,
    KEYS,
    Client,
    Drive,
    drives_line,
    formatted,
    must,
    recover,
    state,
    work,
)
from tests.support.told import require


@pytest.mark.exercise("S9", points=2, host=True)
def test_open_that_fails(lab):
    """Each call of the drive fails in open in turn: -EIO, and nothing is lost."""
    drive = Drive(bytearray(DISK))
    client = Client(drive, Random(lab.seed), longest=AREA)
    large = AREA * 3 // 4 // len(KEYS)

    def steps():
        yield from formatted(client)
        for key in KEYS:
            require((yield from client.put(key, client.data(large))), "put: -ENOSPC")
        yield from client.sync()
        number, was_reached = 0, True
        while was_reached:
            yield drives_line([drive])
            drive.fails = drive.calls + number
            reply = yield "open"
            was_reached, drive.fails = drive.calls > drive.fails, -1
            must(reply, f"open, of which call {number} fails", BROKEN if was_reached else 0)
            if was_reached:
                must((yield "open"), "open, after one that has failed")
            yield from client.look(KEYS, "after an open that has failed")
            yield from client.put(1, client.data(5))
            yield from client.sync()
            yield "close"
            number += 1

    work(lab, [drive], steps())
    recover(lab, [state(client, "after an open that failed")], KEYS)
