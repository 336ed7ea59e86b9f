"""S5: the journal, in the cases that the handout shows. What fails says what the drive got."""

from __future__ import annotations

import pytest

from labs.tools.grading.lab import Lab
from tests.storage.journal import Layout, Transaction, contents, disk_with, put, story, super_block
from tests.storage.journals import Journals, Step, check_recovered, judge_cuts, log_of

LAYOUT = Layout()


@pytest.fixture
def journals(lab: Lab) -> Journals:
    """The tree's journal."""
    return Journals(lab)


@pytest.mark.exercise("S5", points=1, gate=True, host=True)
def test_one_commit(journals: Journals) -> None:
    """Two changed blocks are committed: the power may fail after each write."""
    disk = bytearray(disk_with(LAYOUT, []))
    put(disk, LAYOUT, LAYOUT.log_at, super_block(LAYOUT, 0, 1))
    steps = [
        Step("begin", 3),
        *(Step("change", block, 65537 + block) for block in (0, 7, 9)),
        Step("end"),
        Step("commit"),
    ]
    (session,) = journals.ask([(bytes(disk), LAYOUT, list(map(str, steps)))])
    told = story(session.writes, LAYOUT)
    assert "commit block" in told, f"commit has returned, and this is what the drive got:\n{told}"
    judge_cuts(bytes(disk), LAYOUT, steps, session, seed=1)


@pytest.mark.exercise("S5", points=1, gate=True, host=True)
def test_replay(journals: Journals) -> None:
    """Two transactions are complete, a third is not."""
    old, newer = Transaction({5: contents(51), 6: contents(61)}), Transaction({6: contents(62)})
    broken = Transaction({5: contents(53)}, damage="no commit")
    log = log_of("two transactions, and one without its commit block", LAYOUT, old, newer, broken)
    check_recovered(log, journals.ask([log.question()])[0])


@pytest.mark.exercise("S5", points=1, host=True)
def test_a_revoked_block(journals: Journals) -> None:
    """Block 5 is changed; then it is freed, and revoked."""
    first = Transaction({5: contents(51), 6: contents(61)})
    log = log_of("block 5 is revoked", LAYOUT, first, Transaction({8: contents(81)}, revoked=(5,)))
    check_recovered(log, journals.ask([log.question()])[0])
