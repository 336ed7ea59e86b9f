"""Threads of the kernel under test, whose code is in this process: nothing of it is in the guest.

def turn(number):
        for _ in range(3):
                said.append(number)
                yield "yield"

def main():
        yield from play.begin(turn, 7)
        yield from play.begin(turn, 8)
        yield from play.await_ends()

with played(lab) as play:
        play.run(main())

A thread is a generator. What it yields is a function of the kernel with its arguments, or a list of
these, and it gets what they return. The processor is set to the function, on the stack of the
thread; the return address is one where nothing is, and QEMU stops there. Which thread comes back is
seen from the stack pointer, and it must have kept the registers that a function must keep. So a
kernel can only say that a thread has run by letting it run. Functions that the kernel calls (a
thread's own, a timer's) are generators, too.

Where a thread comes back the guest's time goes on to the next event of a device: QEMU takes a
processor that is stopped for one that has nothing to do. Without a clock (Play.quiet) that is 17
us, else 122: then let threads do much at a time, in lists of calls.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from labs.tools.grading.lab import Lab
from labs.tools.machine.monitor import PM_TIMER_HERTZ, PM_TIMER_MASK, PM_TIMER_PORT
from tests.lesson2.support import recorded_traps
from tests.lesson4.layout import layout
from tests.lesson4.orders import (
    KEPT,
    NOBODY,
    Busy,
    Mixing,
    Order,
    Played,
    Player,
    Stepped,
    Tick,
    Trap,
)
from tests.lesson4.stage import Stage
from tests.lesson4.support import CLOCK_RATES, TIMER, at_interrupt
from tests.support.outside import APART, FRAME, LINK, Call, quiet, words_of
from tests.support.remote import INTERRUPTS, MASK, SCRATCH, SCRATCH_SIZE, WORD, Guest, stopped
from tests.support.standstill import standstill
from tests.support.told import fail

BACK, NEXT, LOOP, TRAP, MIX = (SCRATCH + each * APART for each in (1, 2, 3, 4, 5))
FUNCTIONS = SCRATCH + 16 * APART  # the first of those that the kernel calls
ROOM = SCRATCH + 0x10000  # for objects of the test's
RESULTS = SCRATCH + 0x20000  # of several calls, a piece for each thread
PIECE = 0x100
TICK_NS = 10_000_000
GENERAL = ("eax", "ecx", "edx", "ebx", "ebp", "esi", "edi", "eflags")
TRAP_CODE = bytes.fromhex("cc")  # INT3
LOOP_CODE = bytes.fromhex("e2fe")  # LOOP to itself: as many instructions as ECX says
# ADCL %EBX, %EAX; RCLL $3, %EBX; SBBL %EAX, %EDX; PUSHL %EDX; ADCL %EDX, %ESI; RCRL $5, %EDI; POPL
# %EDX; ADCL %EDI, %EBP; LEAL -1(%ECX), %ECX; JECXZ to the end; JMP to the beginning
MIX_CODE = bytes.fromhex("11d8 c1d303 19c2 52 11d6 c1df05 5a 11fd 8d49ff e302 ebe9")
MIX_END = MIX + len(MIX_CODE)
CODES = {NEXT: LINK, LOOP: LOOP_CODE, TRAP: TRAP_CODE, MIX: MIX_CODE}
FOR_EVER = MASK
MOST_YIELDS, MOST_STOPS = 300, 1000
CALENDAR = ((0x0A, 0x23), (0x0B, 0x42))  # an interrupt, 8192 times a second, that does not come
NANOSECONDS = {"icount": 8, "slower": 16}  # of an instruction
STACK = 0x2000  # KERNEL_STACK_SIZE
SCHEDULE = ("in_queue", "is_queued", "nice", "donated", "level", "quantum", "total", "started",
            "preempt_count")  # fmt: skip
TASK = ("esp", "pid", "life", "name", "kernel_stack", "frame", "space", "has_signal", "switches",
        "preemptions", "user_ticks", "system_ticks", "held",
        *(f"schedule.{each}" for each in SCHEDULE))  # fmt: skip
CLASS = ("name", "join", "enqueue", "pick", "charge", "tick", "preempts", "priority")


class Play(Stage):
    """A kernel that is stopped at its prompt, whose threads the test plays from there on."""

    def __init__(self, guest: Guest, lab: Lab, record: str) -> None:
        super().__init__(guest, "the threads' end")
        guest.own_places.append((range(SCRATCH, SCRATCH + SCRATCH_SIZE), "a thread of the test"))
        self._mode, self._record = lab.mode, record
        self._random = random.Random(lab.seed)
        self._functions: dict[int, tuple[Callable[..., Played], int]] = {}
        self.stepped: list[int] = []
        self._rate = 1  # ticks for each that a plain clock has
        self._away: dict[int, Player] = {}  # by the ESP with which they come back
        self._count = 0
        self._room = ROOM
        self._name = guest.text("test")
        self.player = Player(NOBODY, {})  # the one that does something now
        self.task = layout("task", *TASK)
        for place, code in CODES.items():
            guest.write(place, code)
        for place in (BACK, LOOP + len(LOOP_CODE), TRAP + len(TRAP_CODE)):
            guest.stop_at(place)

    # Memory

    def word(self, place: int | str, offset: int = 0) -> int:
        """32 bits of the direct map."""
        return int.from_bytes(self.guest.data(self.guest.address(place) + offset, WORD), "little")

    def set_word(self, place: int | str, value: int, offset: int = 0) -> None:
        """Changes them."""
        self.guest.put_data(self.guest.address(place) + offset, words_of(value))

    def long(self, address: int) -> int:
        """64 bits."""
        return self.word(address) | self.word(address, WORD) << 32

    def byte(self, address: int) -> int:
        """8 bits."""
        return self.guest.data(address, 1)[0]

    def of(self, task: int, member: str) -> int:
        """A member of 32 bits of a task."""
        return self.word(task, self.task[member])

    def set_of(self, task: int, member: str, value: int) -> None:
        """Changes it."""
        self.set_word(task, value, self.task[member])

    def set_byte(self, task: int, member: str, value: int) -> None:
        """Changes one of 8 bits."""
        self.guest.put_data(task + self.task[member], bytes([value & 0xFF]))

    @property
    def current(self) -> int:
        """The task that runs."""
        return self.word("current")

    def zeroed(self, size: int = 32) -> int:
        """Memory of the test's own: an object."""
        place = self._room
        self._room += -(-size // 16) * 16
        self.guest.put_data(place, bytes(size))
        return place

    # What the test plays

    def function(self, function: Callable[..., Played], parameters: int = 1) -> int:
        """The address of a function of the test, which gets this many arguments."""
        for place, known in self._functions.items():
            if known == (function, parameters):
                return place
        place = FUNCTIONS + APART * len(self._functions)
        self._functions[place] = (function, parameters)
        self.guest.stop_at(place)
        return place

    def panics(self, main: Played) -> bool:
        """Plays to a panic of the kernel, or to the end."""
        return self.reaches(main, "panic")

    def reaches(self, main: Played, place: str, times: int = 1) -> bool:
        """Plays until the kernel is at this place, for this time, or to the end."""
        return self.goes_to(place, lambda: self.run(main), times)

    def run(self, main: Played, most: int = MOST_STOPS) -> None:
        """Plays until the first thread has come to the end of this. Fails beyond so many stops."""
        first = self.player = Player(main, self.guest.registers())
        result: Any = None
        for _ in range(most):
            order: Order | Busy | Trap | Tick | Mixing | Stepped = ""
            try:
                order = self.player.play.send(result)
                entry, stack = self._entry(self.player, order)
            except StopIteration as end:
                if self.player is first:
                    break
                entry, stack = self.player.returns(end.value or 0), b""
            now = self._go(order, entry, stack)
            self.player, result = self._arrived(now)
        else:
            fail(f"the test does not come to its end: {self.player.words} is called for ever")
        if any(self.guest.data(place, len(code)) != code for place, code in CODES.items()):
            fail("the kernel writes to memory that is not its own")

    def _go(
        self,
        order: Order | Busy | Trap | Tick | Mixing | Stepped,
        entry: dict[str, int],
        stack: bytes,
    ) -> dict[str, int]:
        """Lets the guest go on, up to a place of the test. Returns the registers there."""
        if isinstance(order, Stepped):
            return self._step(entry, stack, order.most)
        if isinstance(order, Mixing):
            return self._mix(entry, order)
        return self.leap(entry, stack)

    def _mix(self, entry: dict[str, int], order: Mixing) -> dict[str, int]:
        now = self.mixed(entry, order.most, order.seen)
        if now["eip"] != MIX_END:
            self.player.kept = {name: now[name] for name in GENERAL}
        self._away[now["esp"]] = self.player
        if now["eip"] == MIX_END:
            return now
        self.guest.stop_at(now["eip"])
        return self.leap(*at_interrupt(now, self.timer_gate))

    def mixed(self, entry: dict[str, int], most: int, seen: list[dict[str, int]]) -> dict[str, int]:
        """The same without a tick: not an instruction of the kernel is executed. Returns the
        registers after it."""
        self.guest.put(entry)
        while (now := self.guest.registers())["eip"] != MIX_END and most:
            seen.append(now)
            self.guest.step()
            most -= 1
        return now

    def _step(self, entry: dict[str, int], stack: bytes, most: int) -> dict[str, int]:
        self.guest.write(entry["esp"], stack)
        self.guest.put(entry)
        self.stepped = []
        while (now := self.guest.registers())["eip"] not in (BACK, *self._functions):
            if len(self.stepped) == most:
                fail(f"{self.player.words}: expected at most {most} instructions, seen more")
            self.stepped.append(now["eip"])
            self.guest.step()
        return now

    def _entry(
        self, player: Player, order: Order | Busy | Trap | Tick | Mixing | Stepped
    ) -> tuple[dict[str, int], bytes]:
        """The registers and the stack with which an order begins."""
        player.kept = {name: self._random.getrandbits(32) for name in KEPT}
        player.calls = 0
        if isinstance(order, Busy):
            player.words = "a loop of its own"
            entry = player.now | player.kept | {"eip": LOOP, "ecx": order.instructions}
            self._away[entry["esp"]] = player
            return entry, b""
        if isinstance(order, Trap):
            player.words = "a trap of its own"
            entry = player.now | player.kept | {"eip": TRAP}
            self._away[entry["esp"]] = player
            return entry, b""
        if isinstance(order, Tick):
            player.words = "a tick"
            self._away[player.now["esp"]] = player
            return at_interrupt(player.now | player.kept | {"eip": BACK}, self.timer_gate)
        if isinstance(order, Mixing):
            player.words, player.kept = "a tick", {}
            return player.now | (order.begin or {}), b""
        if isinstance(order, Stepped):
            order = order.call
        if isinstance(order, list):
            return self._chain(player, order)
        function, *arguments = (order,) if isinstance(order, str) else order
        player.words = function if isinstance(function, str) else f"{function:#x}"
        stack = words_of(BACK, *arguments)
        esp = (player.now["esp"] - len(stack) & -16) - WORD
        self._away[esp + WORD] = player
        where = {"eip": self.guest.address(function), "esp": esp}
        return player.now | player.kept | where, stack

    def _chain(self, player: Player, calls: list[Call]) -> tuple[dict[str, int], bytes]:
        frames = (words_of(self.guest.address(name), NEXT, *rest) for name, *rest in calls)
        stack = b"".join(each.ljust(FRAME, b"\0") for each in frames) + words_of(BACK)
        esp = (player.now["esp"] - len(stack) & -16) - WORD
        results = RESULTS + PIECE * player.number
        player.kept["edi"] = results + WORD * len(calls)
        player.calls = len(calls)
        player.words = ", ".join(str(each[0]) for each in calls)
        self._away[esp + len(stack) - WORD] = player
        where = {"eip": self.guest.address(calls[0][0]), "esp": esp, "edi": results}
        return player.now | player.kept | where, stack[WORD:]

    def _arrived(self, now: dict[str, int]) -> tuple[Player, Any]:
        """Who has come back, or has begun, and with which result."""
        if now["eip"] in self._functions:
            function, count = self._functions[now["eip"]]
            home, *arguments = self.guest.read_words(now["esp"], 1 + count)
            self._count += 1
            return Player(function(*arguments), now, home, self._count), None
        player = self._away.pop(now["esp"], None)
        if player is None:
            fail(f"a thread goes on with ESP {now['esp']:#x}, where none was")
        for name, value in player.kept.items():
            if now[name] != value:
                fail(f"{name.upper()} was {value:#x} before {player.words}, and is {now[name]:#x}")
        if MIX <= now["eip"] <= MIX_END:
            player.now = now
            return player, now["eip"] == MIX_END
        player.now = now | {"esp": player.now["esp"]}  # as before the call: a caller cleans up
        if not player.calls:
            return player, now["eax"]
        place = RESULTS + PIECE * player.number
        return player, [self.word(place, WORD * n) for n in range(player.calls)]

    # What threads do

    @property
    def are_enabled(self) -> bool:
        """Are interrupts enabled, for the thread that plays now?"""
        return self.player.now["eflags"] & INTERRUPTS > 0

    def interrupts(self, enabled: bool) -> bool:
        """Enables or disables them. Were they?"""
        before, flags = self.are_enabled, self.player.now["eflags"]
        self.player.now["eflags"] = flags & ~INTERRUPTS | (INTERRUPTS if enabled else 0)
        return before

    def quiet(self) -> None:
        """No interrupt comes any more."""
        quiet(self.guest)

    def time(self) -> Played:
        """The kernel's clock, in nanoseconds."""
        low = yield "time_ns"
        return low | self.player.now["edx"] << 32

    def clock(self) -> int:
        """A clock that no kernel can set: QEMU's PM timer."""
        return self.guest.in32(PM_TIMER_PORT)

    def ticks_since(self, before: int) -> float:
        """How many ticks have passed since then."""
        return 100 * self._rate * (self.clock() - before & PM_TIMER_MASK) / PM_TIMER_HERTZ

    def busy_ticks(self, ticks: float) -> Busy:
        """Computes for as many ticks."""
        return Busy(int(ticks * TICK_NS / self._rate / NANOSECONDS[self._mode]))

    def fine_clock(self) -> None:
        """At a stop time goes on by 122 us at most, from here on."""
        self.guest.out8(0xA1, 0xFF)
        for register, value in CALENDAR:
            self.guest.out8(0x70, register)
            self.guest.out8(0x71, value)

    def fast_clock(self) -> Played:
        """Has a tick after a tenth of the instructions, say: to the kernel the processor is slower,
        and the timer faster."""
        self.fine_clock()
        self._rate = CLOCK_RATES[self._mode]
        before = self.interrupts(False)
        khz = yield "time_tsc_khz"
        yield [("time_initialize", khz // self._rate), ("pit_initialize", 100 * self._rate)]
        self.interrupts(before)

    def preempt_disable(self) -> None:
        """As the function in kernel/task/sched.h."""
        place = self.current + self.task["preempt_count"]
        self.set_word(place, self.word(place) + 1)

    def begin(self, function: Callable[..., Played], argument: int = 0) -> Played:
        """A thread that must be there. Returns its task."""
        place = self.function(function)
        task = yield "kthread_create", self._name, place, argument
        if not task:
            fail("kthread_create returns NULL")
        return task

    def begin_all(self, *threads: tuple[Callable[..., Played], int]) -> Played:
        """Several of them, each with its argument, before anything else."""
        calls = [("kthread_create", self._name, self.function(f), a) for f, a in threads]
        if not all((yield calls)):
            fail("kthread_create returns NULL")

    def begin_nice(self, function: Callable[..., Played], argument: int, nice: int) -> Played:
        """One that begins as nice as this."""
        self.preempt_disable()
        was_enabled = self.interrupts(False)
        task = yield from self.begin(function, argument)
        self.unlink(task)
        self.set_byte(task, "nice", nice)
        of = self.class_functions()
        yield [(of["join"], task), (of["enqueue"], task, 0)]
        self.interrupts(was_enabled)
        yield "preempt_enable"
        return task

    def class_functions(self) -> dict[str, int]:
        """The functions of the class in use."""
        place = self.word("sched_class")
        return {name: self.word(place, WORD * n) for n, name in enumerate(CLASS)}

    def unlink(self, task: int) -> None:
        """Takes a task out of the queue of its class, as list_remove does."""
        link = task + self.task["in_queue"]
        following, previous = self.word(link), self.word(link, WORD)
        self.guest.write(previous, words_of(following))
        self.guest.write(following + WORD, words_of(previous))

    def spin(self, _argument: int) -> Played:
        """A thread that uses the processor for ever."""
        while True:
            yield Busy(FOR_EVER)

    def use(self, name: str) -> Played:
        """All tasks are under this class from here on."""
        yield "sched_use", self.guest.text(name)

    def begin_mlfq(self) -> Played:
        """From here on under feedback queues. The caller has the lowest priority: whenever it runs,
        all others wait for something."""
        self.preempt_disable()
        self.set_byte(self.current, "nice", 19)
        yield from self.use("mlfq")

    def run_under_mlfq(self, function: Callable[..., Played], argument: int, nice: int) -> None:
        """Plays a thread, and those that it begins, to their ends under feedback queues, without
        interrupts."""

        def main() -> Played:
            self.quiet()
            yield from self.begin_mlfq()
            yield from self.begin_nice(function, argument, nice)
            yield from self.await_ends()

        self.run(main())

    def await_ends(self, count: int = 1) -> Played:
        """Yields until there are only so many tasks."""
        for _ in range(MOST_YIELDS):
            if self.word("task_count") <= count:
                return
            yield "yield"
        number = self.word("task_count") - count
        where = standstill(self.guest).lines
        fail(f"threads that do not come to their end: {number}", *where)

    def stack_of(self, task: int) -> int:
        """The lowest address of its stack."""
        return self.of(task, "kernel_stack")

    def ticks_of(self, *tasks: int, since: int = 0) -> list[int]:
        """How many ticks have interrupted each of these in its own loop, by QEMU's record, from
        tick number `since` on."""
        places = [each["ESP"] for each in self.ticks()[since:] if each["EIP"] == LOOP]
        stacks = map(self.stack_of, tasks)
        return [sum(each <= place < each + STACK for place in places) for each in stacks]

    def turns(self, *tasks: int, since: int = 0) -> list[tuple[int, int]]:
        """Which of these tasks ticks have interrupted in its own loop, by its index, one after the
        other, and how many ticks in a row. By QEMU's record."""
        stacks = [self.stack_of(each) for each in tasks]
        found = []
        for each in self.ticks()[since:]:
            own = [n for n, stack in enumerate(stacks) if stack <= each["ESP"] < stack + STACK]
            found.append(own[0] if own and each["EIP"] == LOOP else -1)
        runs = ((task, len([*ticks])) for task, ticks in groupby(found))
        return [(task, length) for task, length in runs if task >= 0]

    def ticks(self) -> list[dict[str, int]]:
        """The registers at each tick since power-on, by QEMU's record."""
        with open(self._record, errors="replace") as record:
            return [
                each.registers for each in recorded_traps(record.read()) if each.vector == TIMER
            ]


@contextmanager
def played(lab: Lab, record: bool = False, **fields: object) -> Iterator[Play]:
    """The lab's kernel, stopped where its first thread is about to begin. `record`: QEMU has one of
    all interrupts."""
    log = lab.scratch / "interrupts"
    log.unlink(missing_ok=True)
    if record:
        fields["extra"] = ("-d", "int", "-D", str(log))
    with stopped(lab, "prompt", **fields) as guest:
        yield Play(guest, lab, str(log))
