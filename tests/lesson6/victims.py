"""Exercise 6.6: who is killed when there is no memory. The processes are the test's own; the kernel
asks for them, and sends its signal, in the test's process.

with outside(lab, Victims, "prompt") as run:
    killed, said = run.kill([Candidate(1, 5000), Candidate(7, 300)])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from errno import ENOMEM
from random import Random

from tests.lesson6.spaces import SPACE_PAGES, Spaces, offset_of
from tests.support.met import Met
from tests.support.remote import Guest
from tests.support.told import expect, fail

PROCESS, TASK = "kernel/process/process.h", "kernel/task/task.h"
INIT, SIGKILL = 1, 9
LEADER = 8
MOST = 8  # processes
LIVES, STOPPED, ZOMBIE = range(4), 3, 4  # of enum task_life: the first four are alive
ADDRESS = 0x40000000
CASES = (
    *("init has the most", "a leader has the most, and goes", "a leader has the most, and stays"),
    *("a child of vfork goes", "a zombie that was killed is there", "one is dying already"),
    *("there is only init", "the first one goes", "the last one goes", "one between others goes"),
    *("a small leader is dying already", "a small leader goes", "a stopped process goes"),
    "a leader goes by less than a page",
)


@dataclass(frozen=True)
class Candidate:
    """A process. space: of which other one, by its number in the list, it uses the space; -1: its
    own."""

    pid: int
    pages: int  # 0: a zombie
    leads: bool = False
    is_dying: bool = False
    space: int = -1
    life: int = 0  # of LIVES; without pages it is a zombie


def weight(each: Candidate) -> int:
    """What its end is worth, in LEADERths of a page."""
    return each.pages if each.leads else each.pages * LEADER


def victim(every: Sequence[Candidate]) -> Candidate | None:
    """Who has to go; nobody while one is dying, or when there is only init. Of a space that a
    child of vfork uses, too, it is the child."""
    if any(each.is_dying and each.pages for each in every):
        return None
    others = [each for each in every if each.pid != INIT and each.pages]
    return max(others, key=lambda each: (weight(each), each.space >= 0), default=None)


class Victims(Spaces):
    """Processes of the test's own, in a kernel that has no memory."""

    def __init__(self, guest: Guest) -> None:
        super().__init__(guest)
        names = ("task", "session", "is_borrowing", "signals.pending")
        self._process = {name: offset_of(PROCESS, "process", name) for name in names}
        names = ("space", "pid", "name", "life")
        self._task = {name: offset_of(TASK, "task", name) for name in names}
        self._processes = [self._room_for(self._process) for _ in range(MOST)]
        self._tasks = [self._room_for(self._task) for _ in range(MOST)]
        self._spaces = [self.room(48) for _ in range(MOST)]
        self._every: Sequence[Candidate] = ()
        self._sent: list[tuple[int, int]] = []
        self._own = self.empty_space()
        served = {"process_next": self._next, "signal_send": self._send}
        for name, handler in {**served, "space_fault": lambda *_: -ENOMEM}.items():
            self.kernel.serve(guest.address(name), handler)

    def _room_for(self, offsets: dict[str, int]) -> int:
        return self.room(max(offsets.values()) + 64)

    def _next(self, process: int, *_: int) -> int:
        if process and process not in self._processes[: len(self._every)]:
            fail(f"process_next gets {process:#x}, which is no process")
        number = self._processes.index(process) + 1 if process else 0
        return self._processes[number] if number < len(self._every) else 0

    def _send(self, process: int, signal: int, *_: int) -> None:
        self._sent.append((process, signal))
        self.kernel.set_word(process + self._process["signals.pending"], 1 << signal - 1)

    def kill(self, every: Sequence[Candidate]) -> tuple[list[tuple[int, int]], str]:
        """There is no page for a program: who gets which signal, as pid and signal, and what the
        kernel says."""
        self._every, self._sent = every, []
        for number, each in enumerate(every):
            self._lay(number, each)
        before = len(self.guest.said_bytes())
        self.run_space(self._own)
        if not self.call("copy_to_user", ADDRESS, self._moved, 1):
            fail("a copy to a program for which there is no memory is made")
        said = self.guest.said_bytes()[before:].decode(errors="replace").replace("\r", "")
        pids = {self._processes[number]: each.pid for number, each in enumerate(every)}
        return [(pids.get(process, 0), signal) for process, signal in self._sent], said

    def _lay(self, number: int, each: Candidate) -> None:
        process, task = self._processes[number], self._tasks[number]
        space = self._spaces[each.space if each.space >= 0 else number]
        if each.space < 0:
            self.kernel.set_word(space + SPACE_PAGES, each.pages)
        words = {
            process + self._process["task"]: task,
            process + self._process["session"]: each.pid if each.leads else 2,
            process + self._process["is_borrowing"]: int(each.space >= 0),
            process + self._process["signals.pending"]: each.is_dying << SIGKILL - 1,
            task + self._task["pid"]: each.pid,
            task + self._task["space"]: space if each.pages else 0,
            task + self._task["life"]: each.life if each.pages else ZOMBIE,
        }
        for address, word in words.items():
            self.kernel.set_word(address, word)
        self.guest.put_data(task + self._task["name"], f"p-{each.pid}".encode() + b"\0")


def require_victims(run: Victims, random: Random) -> None:
    """Each case, among others: who has to go does, and the kernel says so."""
    met = Met(*CASES)
    for case in CASES:
        every = processes_of(case, random)
        wanted = victim(every)
        met(case, is_case(case, every, wanted))
        killed, said = run.kill(every)
        what = f"where {case}, of {in_words(every)}"
        expected = [(wanted.pid, SIGKILL)] if wanted else []
        expect(f"who gets which signal {what}", killed, expected)
        lines = [f"out of memory: killed {each.pid} (p-{each.pid}), {each.pages * 4} KiB"
                 for each in ([wanted] if wanted else [])]  # fmt: skip
        expect(f"what is printed {what}", said.splitlines(), lines)
    met.require()


def processes_of(case: str, random: Random) -> list[Candidate]:
    """Processes that make a case, in random order."""
    count = random.randrange(2, 5)
    pages = random.sample(range(10, 60), count)
    pids = iter(random.sample(range(3, 400), MOST))
    every = [Candidate(next(pids), 16 * each) for each in pages]
    most = 16 * max(pages)
    one = Candidate(next(pids), 0)
    if case in ("there is only init", "a small leader goes"):
        every.clear()
    if special := special_of(case, one, most, random):
        every.append(special)
    random.shuffle(every)
    if case.endswith("one goes") or case.startswith("one between"):
        every.sort(key=lambda each: each.pages == most)
        at = {"the first one goes": 0, "the last one goes": len(every) - 1}
        every.insert(at.get(case, 1), every.pop())
    if case.startswith("one between"):
        every.append(replace(one, pages=random.randrange(1, 100)))
    init = Candidate(INIT, 20 * most if case == "init has the most" else random.randrange(1, 100))
    every.insert(random.randrange(len(every) + 1) if "one goes" not in case else 1, init)
    if case == "a child of vfork goes":
        number = next(n for n, each in enumerate(every) if each.pages == most)
        every[number] = replace(every[number], leads=random.randrange(2) > 0)
        every.append(replace(one, pages=most, space=number))
    lives = [STOPPED] if case == "a stopped process goes" else LIVES
    return [replace(each, life=random.choice(lives)) for each in every]


def special_of(case: str, one: Candidate, most: int, random: Random) -> Candidate | None:
    """The process that makes a case, if one by itself does. most: pages of the largest other."""
    little, times = random.randrange(1, LEADER), random.randrange(2, 7)
    return {
        "there is only init": replace(one, is_dying=True),
        "a zombie that was killed is there": replace(one, is_dying=True),
        "one is dying already": replace(one, pages=random.randrange(1, 2 * most), is_dying=True),
        "a small leader goes": replace(one, pages=little, leads=True),
        "a small leader is dying already": replace(one, pages=little, is_dying=True, leads=True),
        "a leader goes by less than a page": replace(one, pages=LEADER * most + little, leads=True),
        "a leader has the most, and goes": replace(one, pages=10 * most, leads=True),
        "a leader has the most, and stays": replace(one, pages=times * most, leads=True),
    }.get(case)


def is_case(case: str, every: Sequence[Candidate], wanted: Candidate | None) -> bool:
    """Whether processes are a case."""
    most = max(each.pages for each in every)
    largest = next(each for each in every if each.pages == most)
    own = every.index(wanted) if wanted else -1
    return {
        "init has the most": largest.pid == INIT and wanted is not None,
        "a leader has the most, and goes": largest.leads and wanted == largest,
        "a leader has the most, and stays": largest.leads and wanted != largest,
        "a child of vfork goes": wanted is not None and wanted.space >= 0,
        "a zombie that was killed is there": any(e.is_dying for e in every) and wanted is not None,
        "one is dying already": any(e.is_dying and e.pages for e in every) and wanted is None,
        "a small leader is dying already": wanted is None
        and any(e.is_dying and e.leads and e.pages < LEADER for e in every),
        "a small leader goes": wanted is not None and wanted.leads and wanted.pages < LEADER,
        "a leader goes by less than a page": wanted is not None
        and wanted.leads
        and any(0 < weight(wanted) - weight(e) < LEADER for e in every),
        "there is only init": wanted is None and all(e.pid == INIT or not e.pages for e in every),
        "a stopped process goes": wanted is not None and wanted.life == STOPPED,
        "the first one goes": own == 0,
        "the last one goes": own == len(every) - 1,
        "one between others goes": 0 < own < len(every) - 1,
    }[case]


def in_words(every: Sequence[Candidate]) -> str:
    """Processes as a person reads them, the oldest first."""
    texts = []
    for each in every:
        more = [word for word, holds in (("leads its session", each.leads),
                ("was killed", each.is_dying), ("vfork", each.space >= 0)) if holds]  # fmt: skip
        texts.append(f"{each.pid} ({', '.join([f'{each.pages} pages', *more])})")
    return ", ".join(texts)
