"""Exercise 4.2, hidden: how long a turn is, whom the clock may interrupt, and what it leaves."""

from __future__ import annotations

import random
import re
import struct
from collections import defaultdict
from itertools import pairwise

import pytest

from tests.lesson4.search import search
from tests.lesson4.support import (
    INTERRUPTS,
    MASK,
    NEW,
    PREEMPTED,
    SLEEPS,
    WOKEN,
    WORK_SCHEDULE,
    WORK_SIGNAL,
    WORK_TICK,
    YIELDED,
    Change,
    Threads,
    fail,
    interrupt,
    run_programs,
    threads,
    tick_stamps,
)

CLOCK = "tests/lesson4/hidden/clock.c"
HOLDS = "tests/lesson4/threads/clock.c"
ROBIN = "tests/lesson4/hidden/robin.c"
JOIN, ENQUEUE, PICK, _, TICK, DEQUEUE = range(6)  # steps of class_steps.h
NAMES = ("join", "enqueue", "pick", "", "tick", "(leaves)")
SERVICE = re.compile(r"^pic[01]: .*isr=(\w+)", re.MULTILINE)
LONGEST = 1000  # instructions of a thread that mixes
GENERAL = ("eax", "ecx", "edx", "ebx", "ebp", "esi", "edi", "eip")
STATUS_FLAGS = 0x8D5


def turns(record: list[Change], pids: list[int]) -> list[tuple[int, int, int]]:
    """Whole turns of these tasks: pid, time stamps, why it ended."""
    found = ((a.after, b.stamp - a.stamp, b.reason) for a, b in pairwise(record))
    return [turn for turn in found if turn[0] in pids]


def check_length(lab, stamps: int, ticks: int, what: str) -> None:
    """A time must be this many ticks."""
    found = stamps / tick_stamps(lab)
    assert abs(found - ticks) <= 0.02, f"{what} takes {found:.2f} ticks, not {ticks}"


@pytest.mark.exercise("4.2", points=3, gate=True)
def test_turns(lab):
    """Threads that never yield: each in turn, each for one quantum, to the tick."""
    seeded = random.Random(lab.seed)
    count, quantum = seeded.randrange(3, 6), seeded.randrange(2, 5)
    with threads(lab, CLOCK, "share", count, 4 * count * quantum, quantum) as run:
        *pids, begin, end = run.answers()
        record = run.changes()[begin - run.first_change : end - run.first_change]
    found = turns(record, pids)[1:]
    assert len(found) >= 2 * count, f"only {len(found)} turns in {4 * count * quantum} ticks"
    order = [pid for pid, _, _ in found]
    first = pids.index(order[0])
    assert order == [pids[(first + n) % count] for n in range(len(order))], "not in turn"
    for _, stamps, reason in found[:-1]:
        assert reason == PREEMPTED
        check_length(lab, stamps, quantum, f"a turn with a quantum of {quantum} ticks")


@pytest.mark.exercise("4.2", points=2)
@pytest.mark.parametrize(("sleeps", "reason"), [(0, YIELDED), (1, SLEEPS)])
def test_quantum_after_a_yield(lab, sleeps, reason):
    """A thread that yields, or sleeps, late in its turn gets a whole turn the next time."""
    quantum = 5
    with threads(lab, CLOCK, "yields_early", quantum, 9 * tick_stamps(lab) // 2, sleeps) as run:
        pids = run.answers()
        record = run.changes()
    found = turns(record, pids)
    own = [(stamps, reason) for pid, stamps, reason in found if pid == pids[0]]
    assert own[0][1] == reason
    check_length(lab, own[1][0], quantum, f"the turn behind the {('yield', 'sleep')[sleeps]}")


@pytest.mark.exercise("4.2", points=2)
def test_alone_for_long(lab):
    """A thread that was alone for many quanta is still interrupted when another one comes."""
    quantum = 3
    with threads(lab, CLOCK, "alone_then_not", quantum, 4 * quantum + 2) as run:
        has_run, stamps = run.answers()
    assert has_run, "the new thread has not run at all"
    allowed = quantum + 1.1
    waited = stamps / tick_stamps(lab)
    assert waited <= allowed, f"it had to wait {waited:.1f} ticks"


@pytest.mark.exercise("4.2", points=2)
def test_preempt_count(lab):
    """preempt_disable nests; behind the last preempt_enable the change comes at once."""
    with threads(lab, HOLDS, "holds", 8) as run:
        found = run.answers()
    assert found[0] == 1, "another thread ran before the last preempt_enable"
    assert found == [1, 2, 3], "another thread was due, and did not run at the last preempt_enable"


class Robin:
    """Round robin as it should be, in steps that fit each other, and what comes of each."""

    def __init__(self, seeded: random.Random, quantum: int) -> None:
        self.seeded, self.quantum = seeded, quantum
        self.left: dict[int, int] = {}
        self.queue: list[int] = []
        self.asleep = list(range(1, 5))
        self.steps: list[tuple[int, int, int]] = []
        self.wanted: list[int] = []

    def add(self, step: int, number: int, value: int = 0) -> int:
        """One more step."""
        result = 0
        if step in (JOIN, ENQUEUE):
            self.left[number] = self.quantum
        if step == ENQUEUE:
            self.queue.append(number)
        elif step == PICK:
            result = self.queue.pop(0)
        elif step == DEQUEUE:
            self.queue.remove(number)
        elif step == TICK:
            self.left[number] -= 1
            result = int(self.left[number] == 0)
            self.left[number] = self.left[number] or self.quantum
        self.steps.append((step, number, value))
        self.wanted.append(result)
        return result

    def wake(self) -> None:
        """One that has slept competes, or a new one."""
        number = self.asleep.pop(0)
        is_new = number not in self.left or self.seeded.random() < 0.2
        if is_new:
            self.add(JOIN, number)
        self.add(ENQUEUE, number, NEW if is_new else WOKEN)

    def turn(self) -> None:
        """The first in the queue runs for some ticks, as others wake; sometimes all come from
        another class meanwhile, or one leaves the queue. It may lose the processor late."""
        number = self.add(PICK, 0)
        for _ in range(self.seeded.randrange(2 * self.quantum)):
            self.add(TICK, number)
            kind = self.seeded.random()
            if self.asleep and kind < 0.2:
                self.wake()
            elif kind < 0.25:
                self.add(JOIN, number)
            elif self.queue and kind < 0.3:
                self.asleep.append(self.seeded.choice(self.queue))
                self.add(DEQUEUE, self.asleep[-1])
        if self.seeded.random() < 0.3:
            self.asleep.append(number)
        else:
            self.add(ENQUEUE, number, self.seeded.choice((YIELDED, PREEMPTED)))

    def check(self, lab) -> None:
        """Makes the steps, and compares what comes of each."""
        with threads(lab, ROBIN, "class_steps", len(self.steps), self.quantum) as run:
            words = [word & MASK for step in self.steps for word in step]
            run.guest.write(run.address("steps"), struct.pack(f"<{len(words)}I", *words))
            found = run.answers()[1:]
        for index, (step, seen) in enumerate(zip(self.steps, found, strict=True)):
            what, number, value = step
            words = f"step {index}, {NAMES[what]} of task {number} with {value}"
            assert seen == self.wanted[index], f"{words}: {seen}, not {self.wanted[index]}"


@pytest.mark.exercise("4.2", points=2)
def test_class_by_itself(lab):
    """Hundreds of steps of the class: whoever comes, and for whatever reason, is the last, and
    begins a whole turn of its own."""
    seeded = random.Random(lab.seed)
    robin = Robin(seeded, seeded.randrange(3, 7))
    while len(robin.steps) < 600:
        while not robin.queue or (robin.asleep and seeded.random() < 0.3):
            robin.wake()
        robin.turn()
    robin.check(lab)


@pytest.mark.exercise("4.2", points=1)
def test_long_turn(lab):
    """A turn of hundreds of ticks, twice, of a task that is alone."""
    quantum = random.Random(lab.seed).randrange(260, 330)
    robin = Robin(random.Random(), quantum)
    robin.add(JOIN, 1)
    for _ in range(2 * quantum):
        robin.add(TICK, 1)
    robin.check(lab)


@pytest.mark.exercise("4.2", points=2)
def test_kernel_of_a_program(lab):
    """A task with a space is not interrupted in the kernel, for as long as it works there."""
    with threads(lab, CLOCK, "works_for_a_program", 8) as run:
        found = run.answers()
    assert found[0] == 1, "a task with a space was interrupted in the kernel"
    assert found == [1, 2, 3], "a thread that was due did not run when the space was gone"


@pytest.mark.exercise("4.2", points=2)
def test_code_with_interrupts_off(lab):
    """An exception in code that has interrupts disabled does not change tasks on its way back."""
    with threads(lab, CLOCK, "interrupts_off") as run:
        found = [word for word in run.answers() if word != 7]
    assert found[0] == 0, "tasks were changed where interrupts were disabled"
    assert found[1] == 1, "with interrupts enabled, the request was not answered"


@pytest.mark.exercise("4.2", points=2, gate=True)
def test_ticks(lab):
    """A tick is counted once, for ring 3 or the kernel, and lets the timers expire: not in the
    handler, but on the way back. Other work that waits goes on waiting."""
    every = WORK_TICK | WORK_SCHEDULE | WORK_SIGNAL
    with threads(lab, CLOCK, "ticks") as run:
        in_handler, expired, system, user, kept, work, system_after, user_after = run.answers()
    assert in_handler == 0, "the timers expire before the interrupt is done"
    assert expired < 100, "interrupts are enabled when a timer's function is called"
    assert expired == 1, f"a timer that is due was called {expired} times"
    assert (system, user) == (1, 0), f"one tick counts {system} in the kernel, {user} in ring 3"
    assert kept, "with the tick the signal is forgotten that waits for ring 3"
    assert work == every, f"the handler leaves {work:#x} to be done: what waited is forgotten"
    assert (system_after, user_after) == (1, 1), "a tick in ring 3 is not counted there"


@pytest.mark.exercise("4.2", points=1)
def test_woken_by_the_tick(lab):
    """Who is woken by the tick that ends a turn gets the next one, and not the one behind it."""
    with threads(lab, CLOCK, "woken_by_the_tick") as run:
        (asks,) = run.answers()
    assert asks, "the turn is judged before the timers have woken anybody"


@pytest.mark.exercise("4.2", points=1)
def test_woken_waits_its_turn(lab):
    """Under round robin who wakes is the last in the queue, like who comes."""
    with threads(lab, CLOCK, "woken_last") as run:
        found = run.answers()
    assert found == [1, 2, 9], f"1 and 2 waited already as 9 woke, and they ran as {found}"


@pytest.mark.exercise("4.2", points=2)
def test_before_ring_3(lab):
    """What one piece of work asks for is done as well, before ring 3; of both the change of tasks
    comes first, and then the signal is nobody's: task_load asks anew who has one."""
    mark = random.Random(lab.seed).getrandbits(31)
    with threads(lab, CLOCK, "before_user", mark) as run:
        found = run.answers()
    assert found[0] == mark, "the signal is not delivered with the trap's frame"
    assert found[:3] == [mark, 5, 0], "the change that the delivery asked for is not made"
    assert found[3:] == [6, 0], f"6 was to run before signals are looked at: {found[3:]}"


@pytest.mark.exercise("4.2", points=1)
def test_many_signals(lab):
    """Signals that come one with the other, before user mode: all are delivered, and none on the
    way back to the kernel; who gives the processor away there is pre-empted, and does not yield."""
    signals = random.Random(lab.seed).randrange(5, 15)
    with threads(lab, CLOCK, "many_signals", signals) as run:
        kernel, user, preemptions = run.answers()
    assert kernel == 0, "a signal is delivered to code in the kernel"
    assert user == signals, f"of {signals} signals {user} are delivered before user mode"
    assert preemptions == 1, f"one pre-emption counts as {preemptions}"


@pytest.mark.exercise("4.2", points=2)
def test_end_of_interrupt_comes_first(lab):
    """Whenever tasks are changed, neither interrupt controller waits for an EOI."""
    with threads(lab, CLOCK, "share", 3, 1000, 1) as run:
        for _ in range(12):
            run.guest.run_to("switch_to")
            services = SERVICE.findall(run.guest.monitor("info pic"))
            assert [int(word, 16) for word in services] == [0, 0], "an interrupt is not done yet"
            assert not run.guest.registers()["eflags"] & INTERRUPTS, "interrupts are enabled"


@pytest.mark.exercise("4.2", points=3)
def test_programs_in_ring_3(lab):
    """Programs that calculate in every register and flag, ESP and DF among them: together they get
    the results that each gets alone."""
    seeded = random.Random(lab.seed)
    seeds = [seeded.randrange(1 << 20) * 2 + odd for odd in (0, 1, 1, 0)]
    rounds = 300_000 if lab.mode == "icount" else 100_000
    source = "tests/lesson4/hidden/mix.c"
    quantum = ("-fw_cfg", "name=opt/org.apprentice/quantum,string=1")
    alone = [f"{rounds} {seed}" for seed in seeds]
    together = f"{rounds} {' '.join(map(str, seeds))}"
    lines = run_programs(lab, source, *alone, together, options=quantum)
    count = len(seeds)
    assert len(lines) == 2 * count, f"{2 * count} results were to be printed: {lines}"
    assert [int(line.split()[0]) for line in lines[:count]] == seeds
    assert sorted(lines[count:]) == sorted(lines[:count]), "an interrupted calculation went wrong"


# ---- instruction by instruction -----------------------------------------------------------------


class Mixers:
    """Threads that are run one instruction at a time, with a tick wherever the test wants one."""

    def __init__(self, run: Threads) -> None:
        self.run, self.guest = run, run.guest
        self.start, self.end = run.address("mix_loop"), run.address("mix_end")
        self.homes: dict[int, int] = {}
        self.history: dict[int, list[tuple]] = defaultdict(list)

    def to_loop(self, *places: int) -> None:
        """Runs to where a thread begins its loop, or to one of the places."""
        self.guest.run_to(self.start, *places, goal="a thread that was interrupted")

    def steps(self, count: int) -> bool:
        """Executes so many instructions of the loop, and notes all registers before each. False if
        the thread has come to its end."""
        for _ in range(count):
            registers = self.guest.registers()
            if registers["eip"] == self.end:
                return False
            thread = registers["esp"] & ~0x3FFF
            self.homes.setdefault(thread, registers["esp"])
            state = (
                *(registers[name] for name in GENERAL),
                registers["esp"] - self.homes[thread],
                registers["eflags"] & STATUS_FLAGS,
            )
            self.history[thread].append(state)
            self.guest.step()
        return self.guest.registers()["eip"] != self.end


def alone(lab, values: list[int]) -> list[tuple]:
    """The states of one thread that nobody interrupts."""
    with threads(lab, CLOCK, "mixers", *values, 1) as run:
        mixers = Mixers(run)
        mixers.to_loop()
        mixers.steps(LONGEST)
    (history,) = mixers.history.values()
    return history


@pytest.mark.exercise("4.2", points=3)
def test_single_steps(lab):
    """Three threads with a tick after every few instructions: each has the registers and flags that
    it has alone, at each instruction."""
    seeded = random.Random(lab.seed)
    rounds = 4
    questions = [[*(seeded.getrandbits(32) for _ in range(5)), rounds, seeded.getrandbits(32)]
                 for _ in range(3)]  # fmt: skip
    expected = [alone(lab, values) for values in questions]
    words = [word for values in questions for word in (*values, 1)]
    with threads(lab, CLOCK, "mixers", *words) as run:
        mixers = Mixers(run)
        interrupted: set[int] = set()
        ended = ticks = 0
        while ended < len(questions):
            mixers.to_loop(*interrupted)
            if mixers.steps(seeded.randrange(1, 6)):
                interrupted.add(interrupt(run.guest))
                ticks += 1
            else:
                ended += 1
    assert ticks > 10
    found = list(mixers.history.values())
    assert len(found) == 3
    for history in found:
        if history not in expected:
            step = max(first_difference(history, each) for each in expected)
            fail(f"a thread's registers differ from its own run alone, from step {step} on")


def first_difference(one: list[tuple], other: list[tuple]) -> int:
    """The first place where two histories differ."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


@pytest.mark.exercise("4.2", points=1, once=True)
def test_tick_anywhere(lab):
    """A tick that comes while pre-emption is disabled has its effect at the end of that, wherever
    another one comes."""
    search(
        lab,
        "4.2",
        "end_of_holding",
        {
            1: "no other thread runs when preempt_enable returns",
            2: "another thread runs before preempt_enable",
        },
    )
