"""S5: the journal, for the graders: logs of large disks, and logs that are damaged."""

from __future__ import annotations

import pytest

from labs.tools.grading.lab import Lab
from tests.storage.journal import (
    DESCRIPTOR,
    Layout,
    Transaction,
    contents,
    disk_with,
    header,
    put,
    super_block,
)
from tests.storage.journals import EUCLEAN, Journals, start_in

LAYOUT = Layout()


@pytest.fixture
def journals(lab: Lab) -> Journals:
    """The tree's journal."""
    return Journals(lab)


@pytest.mark.exercise("S5", points=1, host=True)
def test_blocks_of_large_disks(journals: Journals) -> None:
    """A block beyond 2^32: written there and nowhere else."""
    block = (1 << 32) + journals.chance.randrange(1000)
    layout = Layout(wide=True, sectors=2 * block + 64)
    large, last = (
        Transaction({block: contents(9)}),
        Transaction({5: contents(2001)}, revoked=(block,)),
    )
    revoked = journals.log("a block beyond 2^32, which is revoked", layout, large, last)
    (session,) = journals.ask([revoked.question()])
    found = [each for each in session.writes if each.lba >= 2 * (block - 1)]
    assert not found, "a block beyond 2^32 that is revoked was written"
    log = journals.log("a block beyond 2^32", layout, Transaction({block: contents(9)}))
    (wanted,) = log.wanted.values()
    for is_bad in journals.chance.sample((False, True), 2):
        commands = [f"bad {2 * block}"] * is_bad + ["recover"]
        (session,) = journals.ask([(log.image, layout, commands)])
        found = [each for each in session.writes if each.data and start_in(each, layout) is None]
        if is_bad:
            assert session.error("recover") < 0, "a block beyond 2^32 was not written to its place"
            assert not found, "another block was written"
        else:
            assert session.error("recover") == 0, "a block beyond 2^32 was not written"
            assert found == [(2 * block, wanted)], "a block beyond 2^32 was written elsewhere"


@pytest.mark.exercise("S5", points=1, host=True)
def test_damaged_logs(journals: Journals) -> None:
    """Damaged logs: a block outside the disk is an error before anything is written, and a loop
    ends."""
    outside = disk_with(
        LAYOUT, [Transaction({5: contents(2001)}), Transaction({1 << 20: contents(9)})]
    )
    ring = bytearray(disk_with(LAYOUT, []))
    for index in range(1, LAYOUT.log):
        put(ring, LAYOUT, LAYOUT.log_at + index, header(DESCRIPTOR, 100).ljust(1024, b"\0"))
    plain = Layout(checksums=False)
    put(ring, plain, plain.log_at, super_block(plain, 1, 100))
    sound = [
        journals.log("a sound log", each, Transaction({5: contents(2001)}))
        for each in (LAYOUT, plain)
    ]
    journals.recover(sound)
    bad, endless = journals.ask([(outside, LAYOUT, ["recover"]), (bytes(ring), plain, ["recover"])])
    journals.recover(sound)
    assert bad.error("recover") == -EUCLEAN, "a transaction has a block outside the disk"
    assert not [each for each in bad.writes if each.data], "something was written all the same"
    assert endless.error("recover") in (0, -EUCLEAN), "a log that is full of descriptors"
