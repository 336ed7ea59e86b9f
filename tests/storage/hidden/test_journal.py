"""S5: the journal. The program only answers; logs are read, and states judged, in Python."""

from __future__ import annotations

from itertools import pairwise

import pytest

from labs.tools.grading.lab import Lab
from tests.storage.journal import (
    SUPER,
    Layout,
    Transaction,
    block_of,
    contents,
    disk_with,
    put,
    replayed,
    super_block,
    transaction_blocks,
)
from tests.storage.journals import (
    EROFS,
    Journals,
    Log,
    Session,
    Step,
    check_checkpoints,
    check_cuts_in_recovery,
    check_kept,
    check_recovered,
    done_to,
    fields_of,
    judge_cuts,
    number_of,
    workload,
)

LAYOUT = Layout()
LAYOUTS = {
    "checksums": LAYOUT,
    "plain": Layout(checksums=False),
    "small": Layout(log=34),
    "within": Layout(log=48, first=3, fast=9),  # of its file
}
LARGE_BLOCKS = Layout(size=4096, checksums=False)
CALLS = 24
CHANGE = ("begin 3", "end")
SEEDS = (1, 2)
MOST_READS = 12  # of recovery: three passes, four pieces of a log


@pytest.fixture
def journals(lab: Lab) -> Journals:
    """The tree's journal."""
    return Journals(lab)


def new(*numbers: int, first: int = 5) -> dict[int, bytes]:
    """Blocks from `first` on with these contents."""
    return {first + index: contents(number) for index, number in enumerate(numbers)}


def empty_disk(layout: Layout) -> bytes:
    """A disk whose log is empty, and full of zeros."""
    disk = bytearray(disk_with(layout, []))
    put(disk, layout, layout.log_at, super_block(layout, 0, 1))
    return bytes(disk)


# ---- commit -------------------------------------------------------------------------------------


@pytest.mark.exercise("S5", points=4, gate=True, host=True)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_power_cuts_of_commits(journals: Journals, kind: str) -> None:
    """A power cut after each write of random changes: committed data survive, whatever part of the
    writes since the last flush is on the drive. The log goes round several times."""
    layout = LAYOUTS[kind]
    disk = empty_disk(layout)
    for seed in SEEDS:
        steps = workload(seed, layout, CALLS)
        (session,) = journals.ask([(disk, layout, ["recover", *map(str, steps)])])
        judge_cuts(disk, layout, steps, session, seed)
        assert check_checkpoints(session.after("recover"), layout), "the log was never full"


@pytest.mark.exercise("S5", points=1, host=True)
def test_a_drive_that_fails(journals: Journals) -> None:
    """A drive that fails at any request: its error is returned, and nothing is written after it."""
    commands = ["begin 3", "change 1 5", "change 2 7", "end", "commit"]
    disk = empty_disk(LAYOUT)
    (whole,) = journals.ask([(disk, LAYOUT, [*commands, "close"])])
    assert whole.error("commit") == whole.error("close") == 0
    written = next(each.writes for each in whole.answers if each.command == "commit")
    check_kept("after a commit", disk, LAYOUT, whole.writes[:written], {1: 5, 2: 7})
    (more,) = journals.ask([(disk, LAYOUT, [*commands, "begin 4", "revoke 999 1", *commands[-2:]])])
    check_kept("after a commit that only revokes", disk, LAYOUT, more.writes, {1: 5, 2: 7})
    reads = 2  # of the blocks that are changed
    assert not whole.writes[-1].data, "what the journal writes last when it is closed is not safe"
    cases = [
        ("commit", count, [f"fail {count}", *commands, "begin 1"])
        for count in range(reads + written)
    ]
    cases += [
        ("commit", count, [f"fail {count} 1", *commands, "begin 1"])
        for count in range(reads, reads + written)
    ]
    cases += [
        ("close", count, [*commands, f"fail {count}", "close"])
        for count in range(len(whole.writes) - written)
    ]
    sessions = journals.ask((disk, LAYOUT, case) for _, _, case in cases)
    for (what, count, case), session in zip(cases, sessions, strict=True):
        only = "request" if f"fail {count} 1" in case else "the drive from request"
        where = f"{only} {count} of {what} fails"
        assert session.error(what) < 0, f"{where}, and {what} says that all went well"
        if what == "commit":
            assert session.error("begin") == -EROFS, f"{where}, and the journal goes on"


@pytest.mark.exercise("S5", points=1, host=True)
def test_one_request_fails(journals: Journals) -> None:
    """One write or flush fails: nothing goes on after it, and what was safe stays safe."""
    layout = LAYOUTS["plain"]
    disk, steps = empty_disk(layout), rounds(layout, 9)
    commands = [str(step) for step in steps]
    (whole,) = journals.ask([(disk, layout, commands)])
    last = dict.fromkeys(range(4), 9 << 16 | 1)
    check_kept("after nine commits", disk, layout, whole.writes, last)
    reads = len({step.block for step in steps if step.name == "change"})
    cases = [
        (disk, layout, [f"fail {count} 1", *commands]) for count in range(reads + len(whole.writes))
    ]
    for count, session in enumerate(journals.ask(cases)):
        failed = [each for each in session.answers if each.command in ("begin", "commit")]
        bad = next((at for at, each in enumerate(failed) if each.error), None)
        where = f"request {count} fails"
        if bad is None:  # it was a read
            assert any(each.error for each in session.answers), f"{where}, and nobody says so"
            continue
        assert all(each.error == -EROFS for each in failed[bad:]), f"{where}, the journal goes on"
        ends = failed[bad - 1].writes if bad else 0
        assert len(session.writes) <= failed[bad].writes, f"{where}: it writes after that"
        assert ends <= len(session.writes), where


def rounds(layout: Layout, count: int, revoked: int = 0) -> list[Step]:
    """This many transactions of four blocks and this many revoked ones."""
    steps = []
    for number in range(1, count + 1):
        steps.append(Step("begin", 4))
        steps += [Step("change", block, number << 16 | 1) for block in range(4)]
        steps += [Step("revoke", layout.blocks + 50, revoked)] if revoked else []
        steps += [Step("end"), Step("commit")]
    return steps


@pytest.mark.exercise("S5", points=1, host=True)
def test_the_log_is_full_to_its_last_block(journals: Journals) -> None:
    """A log that is full to its last block: no block of it is used twice. Each of twelve
    transactions has four blocks and four revoke blocks."""
    layout = LAYOUTS["plain"]
    disk, steps = empty_disk(layout), rounds(layout, 12, revoked=1000)
    (session,) = journals.ask([(disk, layout, [str(step) for step in steps])])
    judge_cuts(disk, layout, steps, session, seed=5)


def commits(count: int, number: int) -> list[str]:
    """This many transactions of four blocks, which get the contents of this number."""
    one = ["begin 4", *(f"change {block} {number}" for block in range(4)), "end", "commit"]
    return one * count


@pytest.mark.exercise("S5", points=1, host=True)
def test_all_of_the_log_is_free_again(journals: Journals) -> None:
    """Room after a checkpoint: as much as after the mount, at any length of the log."""
    for log in range(34, 40):  # a transaction has six blocks
        layout = Layout(log=log, checksums=False)
        disk, number = empty_disk(layout), journals.chance.randrange(1, 1 << 20)
        (session,) = journals.ask([(disk, layout, commits(20, number))])
        check_kept(
            "after 20 commits", disk, layout, session.writes, dict.fromkeys(range(4), number)
        )
        writes = [0, *(each.writes for each in session.answers)]
        begins = [
            writes[at + 1] > writes[at]
            for at, each in enumerate(session.answers)
            if each.command == "begin"
        ]
        first, *later = (at for at, writes_any in enumerate(begins) if writes_any)
        where = f"a log of {layout.end - layout.first} blocks"
        assert len(later) > 1, f"{where} and 20 transactions: {len(later) + 1} checkpoints"
        between = [after - before for before, after in pairwise([first, *later])]
        assert set(between) == {first}, (
            f"{where}: {first} transactions fit into it after the mount, and after a checkpoint "
            f"{between[0]}"
        )


@pytest.mark.exercise("S5", points=1, host=True)
def test_a_checkpoint_that_fails(journals: Journals) -> None:
    """A request of a checkpoint fails: the journal is aborted. A journal that is closed is empty,
    and no transaction of its log has the number of the next one."""
    number = journals.chance.randrange(1, 1 << 20)
    disk, filling = empty_disk(LAYOUT), commits(LAYOUT.log // 6 + 1, number)
    (whole,) = journals.ask([(disk, LAYOUT, [*filling, "close"])])
    check_kept("after close", disk, LAYOUT, whole.writes, dict.fromkeys(range(4), number))
    start, following = fields_of(done_to(disk, whole.writes), LAYOUT)
    assert start == 0, "after the journal was closed the superblock says that the log is not empty"
    last = max(each.transaction for each in whole.answers if each.command == "begin")
    assert following > last, f"{last} is in the log, and the next transaction will be {following}"
    before = [each.writes for each in (whole.answers[0], *whole.answers)]
    at, count = next(
        (index, each.writes - before[index])
        for index, each in enumerate(whole.answers)
        if each.command == "begin" and each.writes > before[index]
    )
    at -= whole.answers[0].command == "open"
    cases = [[*filling[:at], f"fail {number} 1", "begin 4", "begin 4"] for number in range(count)]
    for number, session in enumerate(journals.ask((disk, LAYOUT, case) for case in cases)):
        assert session.error("begin") == -EROFS, (
            f"request {number} of a checkpoint has failed, and the journal goes on"
        )


# ---- recovery -----------------------------------------------------------------------------------


@pytest.mark.exercise("S5", points=2, gate=True, host=True)
@pytest.mark.parametrize("kind", ["checksums", "plain", "within"])
def test_what_was_committed_is_replayed(journals: Journals, kind: str) -> None:
    """Replay: committed blocks in order, escaped ones restored, across the end of the log."""
    layout = LAYOUTS[kind]
    one, two = Transaction(new(2001, 2002, 7 * 300)), Transaction(new(2011, 7 * 301))
    many = Transaction({block: contents(3000 + block) for block in range(30)})
    logs = [
        journals.log("one transaction", layout, one),
        journals.log("two transactions that change the same blocks", layout, one, two),
        journals.log(
            "a transaction without its commit block",
            layout,
            one,
            Transaction(new(9), damage="no commit"),
        ),
        journals.log(
            "nothing but a transaction without its commit block",
            layout,
            Transaction(new(9), damage="no commit"),
        ),
        journals.log("a log that goes on at its beginning", layout, one, two, start=layout.end - 2),
        journals.log(
            "a commit block that is the last block of the log",
            layout,
            one,
            two,
            start=layout.end - 5,
        ),
        journals.log("a large transaction in the middle of the log", layout, many, start=20),
        journals.log("transactions whose numbers wrap", layout, one, two, sequence=0xFFFFFFFF - 1),
    ]
    if kind == "plain":
        logs.append(journals.log("a log of blocks of 4 KiB", LARGE_BLOCKS, one, two))
    journals.recover(logs)


@pytest.mark.exercise("S5", points=2, gate=True, host=True)
def test_revoked_blocks(journals: Journals) -> None:
    """Revoked blocks: not replayed if the same or a later transaction revokes them; a newer copy
    is."""
    first, second = Transaction(new(2001, 2002)), Transaction(new(2011, first=20), revoked=(5,))
    again = Transaction(new(2021))
    logs = [
        journals.log("a block that a later transaction revokes", LAYOUT, first, second),
        journals.log(
            "a block that is revoked and then changed again", LAYOUT, first, second, again
        ),
        journals.log(
            "a block that is changed, revoked, changed and revoked",
            LAYOUT,
            first,
            second,
            again,
            second,
        ),
        journals.log(
            "a block that is changed again two transactions after its revoke block",
            LAYOUT,
            first,
            second,
            Transaction(new(2031, first=30)),
            again,
        ),
        journals.log(
            "a transaction that changes and revokes the same block",
            LAYOUT,
            first,
            Transaction(new(2011), revoked=(5,)),
        ),
        journals.log(
            "a transaction that only revokes", LAYOUT, first, Transaction({}, revoked=(6, 40))
        ),
        journals.log(
            "a revoke block of a transaction that is not complete",
            LAYOUT,
            first,
            Transaction(new(9, first=30), revoked=(5, 6), damage="no commit"),
        ),
        journals.log(
            "revoked blocks, and numbers that wrap",
            LAYOUT,
            first,
            second,
            again,
            sequence=0xFFFFFFFF,
        ),
    ]
    journals.recover(logs)


def earlier_round(layout: Layout, what: str, left: Transaction) -> Log:
    """A log after whose end an earlier round has left complete transactions: the first of them
    begins where the next one of this round would."""
    two = [Transaction(new(2001, 2002)), Transaction(new(2011, first=7))]
    blocks = sum(len(transaction_blocks(layout, each, 100)) for each in two)
    end = (layout.log_at + 1 + blocks) * layout.size
    older = disk_with(layout, [left] * 3, start=1 + blocks, sequence=90)
    image = disk_with(layout, two)
    wanted = new(2001, 2002, 2011)
    words = f"complete transactions of an earlier round, with {what}, after the end of the log"
    return Log(words, image[:end] + older[end:], layout, wanted)


@pytest.mark.exercise("S5", points=1, host=True)
def test_torn_transactions(journals: Journals) -> None:
    """A block of the log with a wrong checksum, or from an earlier round: it ends the log."""
    one, last = Transaction(new(2001, 2002)), Transaction(new(2021))
    logs = [
        journals.log(f"a transaction whose {what} is torn", LAYOUT, one, torn, last)
        for what in ("commit", "copy", "descriptor")
        for torn in [Transaction(new(2011), damage=what)]
    ]
    logs += [
        journals.log(words, LAYOUTS["plain"], one, other, last)
        for words, other in (
            ("a commit block without the magic", Transaction(new(2011), damage="no magic")),
            ("a commit block whose magic is too high", Transaction(new(2011), damage="high magic")),
            ("a transaction whose number is too high by 1", Transaction(new(2011), skipped=1)),
        )
    ]
    logs += [
        journals.log(f"a {kind} block of an earlier round in a transaction", layout, one, other)
        for layout in (LAYOUT, LAYOUTS["plain"])
        for kind in ("commit", "revoke")
        for other in [Transaction(new(2011), revoked=(6,), damage=f"old {kind}")]
    ]
    logs += [
        earlier_round(layout, what, left)
        for layout in (LAYOUT, LAYOUTS["plain"])
        for what, left in (
            ("copies", Transaction(new(9, first=10))),
            ("revoke blocks", Transaction({}, revoked=(5, 6))),
        )
    ]
    journals.recover(logs)


@pytest.mark.exercise("S5", points=1, host=True)
def test_checksums_of_version_1(journals: Journals) -> None:
    """Checksums of version 1: a transaction counts if its checksum is right, or if its commit block
    has none. Each transaction's checksum begins again."""
    layout = Layout(checksums=False, version_1=True)
    one, two = Transaction(new(2001, 7 * 300)), Transaction(new(2011, first=9), revoked=(5,))
    last = Transaction(new(2021, 2022, first=12))
    logs = [journals.log("three transactions with checksums of version 1", layout, one, two, last)]
    logs += [
        journals.log(words, layout, one, Transaction(two.blocks, two.revoked, damage), last)
        for damage, words in (
            ("copy", "a torn copy in the second of three transactions with checksums of version 1"),
            ("no checksum", "a commit block without a checksum, where others have version 1"),
        )
    ]
    journals.recover(logs)


@pytest.mark.exercise("S5", points=1, host=True)
def test_blocks_of_other_kinds(journals: Journals) -> None:
    """A block of another kind: it ends the log without an error."""
    one, last = Transaction(new(2001, 2002)), Transaction(new(2021))
    logs = [
        journals.log(
            f"a block of kind {kind} before a commit block",
            layout,
            one,
            Transaction(new(2011), kind=kind, damage=damage),
            last,
        )
        for kind in (0, 3, SUPER, 6, 0x101)
        for damage in ("", "copies")
        for layout in (LAYOUT, LAYOUTS["plain"])
    ]
    journals.recover(logs)


@pytest.mark.exercise("S5", points=2, host=True)
def test_power_cuts_of_recovery(journals: Journals) -> None:
    """A power cut at each write of recovery: the next recovery finishes it, and one more has
    nothing to do."""
    one = Transaction(new(2001, 2002, 7 * 300))
    two = Transaction(new(2011, 7 * 301, first=20), revoked=(6,))
    log = journals.log("two transactions", LAYOUT, one, two, one)
    check_cuts_in_recovery(journals, log, seed=3)
    steps = workload(4, LAYOUT, CALLS // 2)
    (session,) = journals.ask([(log.image, LAYOUT, ["recover", *map(str, steps)])])
    writes = session.writes[: session.answers[1].writes]
    assert not writes[-1].data, "what recovery writes last is not flushed"
    recovered = done_to(log.image, writes)
    _, number = fields_of(recovered, LAYOUT)
    after = next(each.transaction for each in session.answers if each.command == "begin")
    assert after == number, f"the superblock says {number}, and the next transaction is {after}"
    judge_cuts(recovered, LAYOUT, steps, session.after("recover"), seed=4)


@pytest.mark.exercise("S5", points=1, host=True)
def test_a_drive_that_fails_in_recovery(journals: Journals) -> None:
    """A request fails during recovery: an error, and what was committed is still in the log."""
    two = [Transaction(new(each, each)) for each in (9, 11)]
    round_the_end = Transaction(new(*range(11, 19)))
    logs = [
        journals.log("two transactions", LAYOUT, *two),
        journals.log(
            "copies on both sides of the end", LAYOUT, round_the_end, start=LAYOUT.end - 4
        ),
    ]
    for log in logs:
        (whole,) = journals.ask([log.question()])
        check_recovered(log, whole)
        requests = range(len(whole.writes) + MOST_READS)
        cases = [(log.image, log.layout, [f"fail {number} 1", "recover"]) for number in requests]
        for number, session in zip(requests, journals.ask(cases), strict=True):
            where = f"{log.words}, request {number} of recovery fails"
            judge_failed_recovery(where, log, whole, session)


def judge_failed_recovery(where: str, log: Log, whole: Session, session: Session) -> None:
    """`whole`: when nothing fails."""
    disk = done_to(log.image, session.writes)
    written = replayed(disk, log.layout)
    for block, wanted in log.wanted.items():
        after = written.get(block, block_of(disk, log.layout, block))
        assert after == wanted, f"{where}: what was committed is lost"
    is_whole = [each.lba for each in session.writes] == [each.lba for each in whole.writes]
    assert is_whole or session.error("recover") < 0, f"{where}, and it says that all went well"


@pytest.mark.exercise("S5", points=1, host=True)
def test_what_was_read_before_recovery(journals: Journals) -> None:
    """Blocks that the cache has read before recovery: they are read again, and then changed."""
    log = journals.log("a transaction", LAYOUT, Transaction(new(2001, 2002)))
    looks, tells = ([f"{word} {block}" for block in log.wanted] for word in ("look", "tell"))
    (session,) = journals.ask([(log.image, LAYOUT, [*looks, "recover", *tells, *CHANGE])])
    told = [each.transaction for each in session.answers if each.command == "tell"]
    wanted = [number_of(block) for block in log.wanted.values()]
    assert told == wanted, f"after replay the cache has contents {told}, not {wanted}"
    assert session.error("begin") == 0, f"after replay a change has error {-session.error('begin')}"
