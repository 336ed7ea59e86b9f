"""S5: the journal, in the cases that the handout shows. What fails says what the drive got."""

from __future__ import annotations

import pytest

from labs.tools.grading.lab import Lab
from tests.storage.journal import Layout, Transaction, contents, disk_with, put, story, super_block
from tests.storage.journals import (
    Journals,
    Step,
    check_recovered,
    judge_cuts,
    refuse,
)
from tests.support.told import Usual, told

HINT = "make hint EX=S5"
USUAL = (
    Usual("not those of any commit", "the commit block reached the disk before the blocks that it "
          "is about: what must be flushed before it is written?"),
    Usual("had returned", "what write_transaction has promised is still in the log's buffer, or in "
          "the drive's cache: journal_write_out, then journal_barrier, before it returns"),
    Usual("no commit block", "add_commit_block only fills the buffer: journal_write_out"),
    Usual("older copy of the block|was overwritten, and must not be",
          "revoke_covers: a copy of the transaction that revokes, or of an older one, is not "
          "replayed; and replay_copy must ask it"),
    Usual("number|was not replayed", "a copy that is not replayed is in the log all the same: "
          "skip_block passes over it"),
    Usual("journal_begin gives", "finish: from now on the journal needs no recovery: "
          "journal->needs_recovery"),
    Usual("is not empty", "finish: all copies are flushed, then the superblock says that the log "
          "is empty, and that is flushed, too"),
    Usual("blocks are to be written", "walk->written counts each copy that was written"),
)  # fmt: skip
LAYOUT = Layout()
PLAIN = Layout(checksums=False)
CUTS = 16  # choices of what the drive has kept, for each cut


@pytest.fixture
def journals(lab: Lab) -> Journals:
    """The tree's journal."""
    return Journals(lab)


@pytest.mark.exercise("S5", points=1, gate=True, host=True)
def test_one_commit(journals: Journals) -> None:
    """Two changed blocks are committed: the power may fail after each write."""
    commit_and_cut(journals, LAYOUT)


@pytest.mark.exercise("S5", points=1, host=True)
def test_one_commit_without_checksums(journals: Journals) -> None:
    """The same in a journal that has none: nothing but the order of the writes says that a
    transaction is complete."""
    commit_and_cut(journals, PLAIN)


def commit_and_cut(journals: Journals, layout: Layout) -> None:
    """A commit, and every power cut in it."""
    disk = bytearray(disk_with(layout, []))
    put(disk, layout, layout.log_at, super_block(layout, 0, 1))
    steps = [
        Step("begin", 3),
        *(Step("change", block, 65537 + block) for block in (0, 7, 9)),
        Step("end"),
        Step("commit"),
    ]
    with told(USUAL, HINT):
        (session,) = journals.ask([(bytes(disk), layout, list(map(str, steps)))])
        if "commit block" not in "".join(story(session.writes, layout)):
            what = "journal_commit has returned, and the drive got no commit block"
            refuse(what, session.writes, layout)
        for seed in range(CUTS):
            judge_cuts(bytes(disk), layout, steps, session, seed)


@pytest.mark.exercise("S5", points=1, gate=True, host=True)
def test_replay(journals: Journals) -> None:
    """Two transactions are complete, a third is not."""
    old, newer = Transaction({5: contents(51), 6: contents(61)}), Transaction({6: contents(62)})
    broken = Transaction({5: contents(53)}, damage="no commit")
    words = "two transactions, and one without its commit block"
    log = journals.log(words, LAYOUT, old, newer, broken)
    change = (log.image, LAYOUT, ["recover", "begin 3", "end"])
    with told(USUAL, HINT):
        recovered, changed = journals.ask([log.question(), change])
        check_recovered(log, recovered)
        error = -changed.error("begin")
        assert error == 0, f"{words}: after recovery journal_begin gives error {error}"


@pytest.mark.exercise("S5", points=1, host=True)
def test_a_revoked_block(journals: Journals) -> None:
    """A block is changed; then it is freed, and revoked."""
    first, second = Transaction({5: contents(51), 6: contents(61)}), {8: contents(81)}
    log = journals.log("a block is revoked", LAYOUT, first, Transaction(second, revoked=(5,)))
    with told(USUAL, HINT):
        check_recovered(log, journals.ask([log.question()])[0])


@pytest.mark.exercise("S5", points=1, host=True)
def test_a_stale_transaction(journals: Journals) -> None:
    """After the last transaction an earlier round has left one that is complete: its number is
    another one."""
    stale = Usual("must not be", "visit_block: a block continues the log "
                  "only if its h_sequence is walk->sequence")  # fmt: skip
    last, left = Transaction({5: contents(51)}), Transaction({6: contents(62)}, skipped=1)
    log = journals.log("a transaction, and a stale one", PLAIN, last, left)
    with told((stale, *USUAL), HINT):
        check_recovered(log, journals.ask([log.question()])[0])
