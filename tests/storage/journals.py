"""Gives commands to the program of tests/storage/host/journal.c, whose disk is on this side, and
judges what it answers and what it writes (S5)."""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

from labs.tools.grading.lab import Lab
from tests.storage.drive import SECTOR, Drive, Write
from tests.storage.journal import (
    ESCAPES,
    Layout,
    Transaction,
    apply,
    block_of,
    contents,
    copies_to_replay,
    disk_with,
    replayed,
    states,
    story,
    transactions_of,
)
from tests.storage.mapping import cause_in
from tests.support.told import fail

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = (
    "fs/jbd2/change.c",
    "fs/jbd2/checksum.c",
    "fs/jbd2/commit.c",
    "fs/jbd2/log.c",
    "fs/jbd2/open.c",
    "fs/jbd2/recover.c",
    "fs/jbd2/revoke.c",
    "fs/cache/bcache.c",
    "kernel/lib/string.c",
)
OWN = (
    HERE / "host/journal.c",
    HERE / "host/asked.c",
    HERE / "host/asked_disk.c",
    ROOT / "tests/host/ext/shim.c",
    ROOT / "tests/host/ext/record.c",
)
ANSWER = re.compile(r"done [a-z]{2,8} -?\d{1,9} \d{1,10}")
BUFFERS = 24  # of the cache, so that dirty blocks are written early
EROFS = 30
EUCLEAN = 117  # contents that contradict themselves

programs: dict[Path, Path] = {}


class Answer(NamedTuple):
    """What became of a command; `writes` is how many had reached the disk then. transaction: the
    open one; of recover, how many blocks it says that it has written."""

    command: str
    error: int
    transaction: int
    writes: int


@dataclass
class Session:
    """The answers to one question, and what was written."""

    answers: list[Answer] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)

    def error(self, command: str) -> int:
        """Of the last one of this name."""
        found = [each.error for each in self.answers if each.command == command]
        assert found, f"the program ended before it had answered {command}"
        return found[-1]

    def after(self, command: str) -> Session:
        """What was answered and written after the first of this name."""
        index = next(at for at, each in enumerate(self.answers) if each.command == command)
        skipped = self.answers[index].writes
        rest = [each._replace(writes=each.writes - skipped) for each in self.answers[index + 1 :]]
        return Session(rest, self.writes[skipped:])


class Journals:
    """The program, made of the tree's journal. chance: what is not the same each time."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.chance = random.Random(lab.seed)
        if lab.root not in programs or not programs[lab.root].exists():
            programs[lab.root] = lab.host(SOURCES, OWN, "journal")
        self._program = programs[lab.root]

    def ask(
        self, questions: Iterable[tuple[bytes, Layout, Sequence[str]]], buffers: int = BUFFERS
    ) -> list[Session]:
        """Gives each disk its commands, one after another."""
        desk = Desk(questions, buffers)
        done = self._lab.converse(self._program, desk.answer)
        if done.returncode != 0 or desk.commands:
            said = done.stdout.decode(errors="replace")
            panic = [line for line in said.splitlines() if line.startswith("panic ")]
            errors = done.stderr.decode(errors="replace")
            fail(f"the journal: {(panic or [cause_in(said + errors, done.returncode)])[0]}")
        return desk.sessions

    def log(self, words: str, layout: Layout, *transactions: Transaction, **place: object) -> Log:
        """A disk with such a log, of other blocks and other contents: nobody knows before what is
        to be written where. `place` is for disk_with."""
        used = {block for each in transactions for block in (*each.blocks, *each.revoked)}
        inside = sorted(block for block in used if block < layout.blocks)
        places = sorted(self.chance.sample(range(layout.blocks), len(inside)))
        blocks = dict(zip(inside, places, strict=True))
        shift = ESCAPES * self.chance.randrange(1 << 20)
        other = [
            replace(
                each,
                blocks={
                    blocks.get(block, block): contents(number_of(data) + shift, layout.size)
                    for block, data in each.blocks.items()
                },
                revoked=tuple(blocks.get(block, block) for block in each.revoked),
            )
            for each in transactions
        ]
        return log_of(words, layout, *other, **place)

    def recover(self, logs: Sequence[Log]) -> None:
        """Recovers each of these disks, in any order, and judges that."""
        some = self.chance.sample(logs, len(logs))
        for log, session in zip(some, self.ask(log.question() for log in some), strict=True):
            check_recovered(log, session)


class Desk:
    """What answers the program: its next command, and its disk's requests. Two commands are of the
    disk alone, and the program does not know of them: "fail AFTER COUNT" (Drive.fail), and "bad
    LBA", a bad sector."""

    def __init__(
        self, questions: Iterable[tuple[bytes, Layout, Sequence[str]]], buffers: int
    ) -> None:
        self.sessions: list[Session] = []
        self.commands: deque[tuple[str, bytes]] = deque()
        self._drive = Drive(bytearray())
        for image, layout, commands in questions:
            size = layout.sectors or len(image) // SECTOR
            words = (size, layout.size, layout.log_at, layout.log, int(layout.checksums))
            self.commands.append((" ".join(map(str, ("disk", *words, buffers))), image))
            self.commands.extend((command, b"") for command in commands)

    def answer(self, question: bytes) -> bytes:
        """The line for a line."""
        text = question.decode(errors="replace")
        if not text.startswith(("next", "done ")):
            return f"{self._drive.answer(question)}\n".encode()
        if ANSWER.fullmatch(text) and self.sessions:
            _, command, error, number = text.split()
            session = self.sessions[-1]
            session.answers.append(Answer(command, int(error), int(number), len(session.writes)))
        return f"{self._next()}\n".encode()

    def _next(self) -> str:
        """The program's next command."""
        while self.commands:
            command, image = self.commands.popleft()
            word, *words = command.split()
            if word == "fail":
                self._drive.fail(int(words[0]), int(words[1]) if words[1:] else 0)
            elif word == "bad":
                self._drive.bad = int(words[0])
            else:
                if image:
                    self._drive = Drive(bytearray(image))
                    self.sessions.append(Session([], self._drive.writes))
                return command
        return ""


# ---- what a workload promises -------------------------------------------------------------------


class Step(NamedTuple):
    """A command of a workload, and what it does: ("change", 5, 77), ("commit",)."""

    name: str
    block: int = 0
    number: int = 0

    def __str__(self) -> str:
        return f"{self.name} {self.block} {self.number}".removesuffix(" 0 0")


def workload(seed: int, layout: Layout, calls: int) -> list[Step]:
    """Random changes; block 0 gets a new number in each, by which one sees later how many calls
    have survived. Freed blocks are revoked, and get data once their transaction is committed."""
    chance = random.Random(seed)
    free: set[int] = set()
    may_take: set[int] = set()  # by data: the transaction that freed it is committed
    steps: list[Step] = []
    number = 1
    for call in range(calls):
        changed = chance.sample(range(1, layout.blocks), chance.randint(1, 5))
        steps.append(Step("begin", len(changed) + 1))
        for block in changed:
            number += 1
            if block not in free and chance.random() < 0.25:
                steps.append(Step("revoke", block, 1))
                free.add(block)
            elif block not in free or chance.random() < 0.3:
                steps.append(Step("change", block, number))
                free.discard(block)
                may_take.discard(block)
        steps += [Step("change", 0, (call + 1) << 16 | 1), Step("end")]
        if chance.random() < 0.4:
            steps.append(Step("commit"))
            may_take |= free
        for block in chance.sample(sorted(may_take), min(2, len(may_take))):
            number += 1
            steps.append(Step("data", block, number))
        if chance.random() < 0.3:
            steps.append(Step("flush"))
        steps += [Step("look", chance.choice(sorted(set(range(layout.blocks)) - free)))]
    return steps


class Promise(NamedTuple):
    """After a commit: the numbers of the blocks that are metadata, and how many writes had been
    done when it had returned."""

    blocks: dict[int, int]
    writes: int


def promises(
    image: bytes, layout: Layout, steps: Sequence[Step], session: Session
) -> list[Promise]:
    """The states of the file system between which a power cut may choose: after each commit, also
    those that a call made by itself (the number of the open transaction tells)."""
    now = {block: number_of(block_of(image, layout, block)) for block in range(layout.blocks)}
    found = [Promise(dict(now), 0)]
    answers = [each for each in session.answers if each.command not in ("open", "recover")]
    assert len(answers) == len(steps), f"{len(answers)} answers to {len(steps)} commands"
    transaction, is_open = answers[0].transaction, False
    for step, answer in zip(steps, answers, strict=True):
        assert answer.error == 0, f"{step} gives error {-answer.error}"
        if answer.transaction != transaction or (step.name == "commit" and is_open):
            found.append(Promise(dict(now), answer.writes))
            transaction, is_open = answer.transaction, False
        is_open |= step.name in ("change", "revoke")
        if step.name == "change":
            now[step.block] = step.number
        elif step.name == "revoke":
            now.pop(step.block, None)
    return found


def data_of(steps: Sequence[Step], session: Session) -> dict[int, tuple[int, int]]:
    """For each block that a file has got, and keeps to the end: the index and the number of the
    last write of its data."""
    answers = [each for each in session.answers if each.command not in ("open", "recover")]
    found: dict[int, tuple[int, int]] = {}
    for step, answer in zip(steps, answers, strict=True):
        if step.name == "data":
            found[step.block] = (answer.writes - 1, step.number)
        elif step.name == "change":
            found.pop(step.block, None)
    return found


def refuse(message: str, writes: Sequence[Write], layout: Layout) -> NoReturn:
    """Fails with a message, and with what the drive had got until then."""
    pytest.fail("\n".join([message, *story(writes, layout)]), pytrace=False)


def judge_cuts(
    image: bytes, layout: Layout, steps: Sequence[Step], session: Session, seed: int
) -> int:
    """Every state that a power cut may leave is that of a commit after replay, and none that was
    promised is missing. Returns how many states there were."""
    kept = promises(image, layout, steps, session)
    data = data_of(steps, session)
    count = 0
    for cut, words, state, sure in states(image, session.writes, seed):
        count += 1
        got = session.writes[:cut]
        where = (
            f"the power fails after write {cut} of {len(session.writes)}, and of the writes since "
            f"the last FLUSH the drive has kept {words}"
        )
        written = replayed(bytes(state), layout)
        after = {
            block: written.get(block, block_of(state, layout, block)) for block in kept[0].blocks
        }
        survived = which(after, kept, layout)
        if survived is None:
            refuse(f"{where}: after replay the blocks are not those of any commit", got, layout)
        promised = max(index for index, each in enumerate(kept) if each.writes <= cut)
        if survived < promised:
            lost = f"commit {promised} had returned, and after replay only {survived} are there"
            refuse(f"{where}: {lost}", got, layout)
        if wrong := overwritten(after, kept[survived], data, sure, layout):
            refuse(f"{where}: {wrong}", got, layout)
    return count


def number_of(block: bytes) -> int:
    """Whose contents these are."""
    return int.from_bytes(block[4:8], "little")


def which(after: dict[int, bytes], kept: Sequence[Promise], layout: Layout) -> int | None:
    """The last commit whose blocks these are."""
    for index in reversed(range(len(kept))):
        if kept[index].blocks[0] != number_of(after[0]):
            continue
        blocks = kept[index].blocks
        if all(after[block] == contents(number, layout.size) for block, number in blocks.items()):
            return index
    return None


def overwritten(
    after: dict[int, bytes],
    kept: Promise,
    data: dict[int, tuple[int, int]],
    sure: set[int],
    layout: Layout,
) -> str:
    """Says which data, in a block that was freed and given to a file, a replay has overwritten."""
    for block, (index, number) in data.items():
        if block in kept.blocks or index not in sure:
            continue
        if after[block] != contents(number, layout.size):
            return (
                f"block {block} had been freed, and given to a file whose data was on the disk: "
                "replay has written an older copy of the block over it"
            )
    return ""


def check_kept(
    where: str, image: bytes, layout: Layout, writes: Sequence[Write], blocks: dict[int, int]
) -> None:
    """After these writes and replay these blocks have the contents of these numbers."""
    disk = done_to(image, writes)
    written = replayed(disk, layout)
    for block, number in blocks.items():
        seen = written.get(block, block_of(disk, layout, block))
        if seen != contents(number, layout.size):
            refuse(f"{where}: block {block} is not what was committed", writes, layout)


def done_to(image: bytes, writes: Sequence[Write]) -> bytes:
    """The disk after these writes."""
    disk = bytearray(image)
    for each in writes:
        apply(disk, each)
    return bytes(disk)


# ---- checkpoints --------------------------------------------------------------------------------


def start_in(write: Write, layout: Layout) -> int | None:
    """Where a superblock that was written says that the log begins; None for any other write."""
    is_super = write.data and write.lba * SECTOR == layout.log_at * layout.size
    return int.from_bytes(write.data[0x1C:0x20], "big") if is_super else None


def is_in_log(write: Write, layout: Layout) -> bool:
    """Whether it goes into the log, and is not the superblock."""
    first = write.lba * SECTOR // layout.size - layout.log_at
    return bool(write.data) and layout.first <= first < layout.end


def check_checkpoints(session: Session, layout: Layout) -> int:
    """Of a session that does not close the journal: freeing the log says where it begins now,
    and that is flushed before the log is overwritten. Returns how many checkpoints there were."""
    count, has_log, is_flushed = 0, False, True
    for index, write in enumerate(session.writes):
        start = start_in(write, layout)
        got = session.writes[: index + 1]
        if start is not None:
            if start == 0:
                refuse("the journal is in use, and its log is said to be empty", got, layout)
            count, is_flushed, has_log = count + has_log, not has_log, True
        is_flushed |= not write.data
        if is_in_log(write, layout) and not is_flushed:
            early = "before it is safe on the disk that it begins elsewhere"
            refuse(f"the log is overwritten {early}", got, layout)
    return count


# ---- recovery -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Log:
    """A disk whose log has transactions, and the blocks that recovery must write."""

    words: str
    image: bytes
    layout: Layout
    wanted: dict[int, bytes]

    def question(self) -> tuple[bytes, Layout, Sequence[str]]:
        """What is asked."""
        return self.image, self.layout, ["recover"]


def log_of(words: str, layout: Layout, *transactions: Transaction, **place: object) -> Log:
    """A disk with such a log; `place` is for disk_with."""
    image = disk_with(layout, transactions, **place)
    return Log(words, image, layout, replayed(image, layout))


def check_recovered(log: Log, session: Session) -> None:
    """Each block is what it must be, and the log is empty."""
    assert session.error("open") == 0, f"{log.words}: the journal could not be opened"
    error = session.error("recover")
    assert error == 0, f"{log.words}: recovery gives error {-error}"
    told = session.answers[-1].transaction
    disk = done_to(log.image, session.writes)
    for block in range(log.layout.blocks):
        before, after = (block_of(each, log.layout, block) for each in (log.image, disk))
        wanted = log.wanted.get(block, before)
        assert after == wanted, f"{log.words}: block {block} {difference(before, after, wanted)}"
    count = copies_to_replay(log.image, log.layout)
    assert told == count, f"{log.words}: {count} blocks are to be written, and recovery says {told}"
    start, sequence = fields_of(disk, log.layout)
    assert start == 0, f"{log.words}: after recovery the superblock says that the log is not empty"
    used = fields_of(log.image, log.layout)[1] + len(transactions_of(log.image, log.layout))
    assert 0 < (sequence - used) % 2**32 < 2**31, (
        f"{log.words}: the next transaction would have number {sequence}, which blocks of the log "
        "may have already"
    )


def difference(before: bytes, after: bytes, wanted: bytes) -> str:
    """What is wrong with a block, in words."""
    if wanted == before:
        return "was overwritten, and must not be"
    if after == before:
        return "was not replayed"
    if after[4:] == wanted[4:]:
        return f"begins with {after[:4].hex()}, not with {wanted[:4].hex()}"
    return f"has the contents of number {number_of(after)}, not of {number_of(wanted)}"


def fields_of(disk: bytes, layout: Layout) -> tuple[int, int]:
    """s_start and s_sequence."""
    block = block_of(disk, layout, layout.log_at)
    return int.from_bytes(block[0x1C:0x20], "big"), int.from_bytes(block[0x18:0x1C], "big")


def check_cuts_in_recovery(journals: Journals, log: Log, seed: int) -> int:
    """The power fails during recovery, after each write: the next recovery does the rest. Returns
    how many states there were."""
    (session,) = journals.ask([log.question()])
    check_recovered(log, session)
    found = [
        (cut, words, bytes(state))
        for cut, words, state, _ in states(log.image, session.writes, seed)
    ]
    again = journals.ask([(state, log.layout, ["recover", "close"]) for _, _, state in found])
    for (cut, words, state), after in zip(found, again, strict=True):
        where = (
            f"{log.words}; the power fails during recovery, after write {cut} of "
            f"{len(session.writes)}, which leaves {words} since the last flush; recovery once more"
        )
        assert after.error("recover") == 0, f"{where}: error {-after.error('recover')}"
        disk = done_to(state, after.writes)
        for block, wanted in log.wanted.items():
            assert block_of(disk, log.layout, block) == wanted, (
                f"{where}: block {block} is not what was committed"
            )
    return len(found)
