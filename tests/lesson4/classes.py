"""A scheduling class by itself, whose functions are called from outside the guest, with tasks that
are nothing but their schedule. Steps, results and models of it are in the test's process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from labs.tools.grading.lab import Lab
from tests.lesson4.layout import layout
from tests.support.outside import Call, Outside, words_of
from tests.support.remote import SCRATCH, WORD, Guest, stopped

JOIN, ENQUEUE, PICK, CHARGE, TICK, DEQUEUE, NICE, PREEMPTS, DONATE, LEVEL = range(10)
STEPS = ("join", "enqueue", "pick", "charge", "tick", "(leaves)", "(niceness)", "preempts",
         "(donation)", "(level)")  # fmt: skip
FAKES, NO_TASK, NONE = 8, 999, 127
FAKES_AT = SCRATCH + 0x10000
BYTES = SCRATCH + 0x20000  # what steps copy
MOST = 40  # steps, without a stop
TSC_KHZ = 1_000_000
STAMPS_PER_TICK = 10 * TSC_KHZ
FUNCTIONS = ("name", "join", "enqueue", "pick", "charge", "tick", "preempts", "priority")

SCHEDULE = ("in_queue", "is_queued", "nice", "donated", "level", "left", "virtual_time")

Step = tuple[int, int, int]  # what, to which task, and a value


class Class:
    """The class of a symbol, in a stopped kernel, with a clock that everybody knows."""

    def __init__(self, guest: Guest, symbol: str, quantum: int) -> None:
        self.guest = guest
        self.kernel = Outside(guest)
        self.members = layout("task", *(f"schedule.{each}" for each in SCHEDULE))
        words = self.kernel.words(guest.address(symbol), len(FUNCTIONS))
        self.functions = dict(zip(FUNCTIONS, words, strict=True))
        guest.put_data(FAKES_AT, bytes(FAKES * self.members["size"]))
        self.kernel.set_word("sched_quantum", quantum)
        self.kernel.call("time_initialize", TSC_KHZ)

    def task(self, number: int) -> int:
        """The address of one of the tasks."""
        return FAKES_AT + number * self.members["size"]

    def number_of(self, address: int) -> int:
        """Which of them it is; NO_TASK for NULL."""
        number, rest = divmod(address - FAKES_AT, self.members["size"])
        return number if address and rest == 0 and 0 <= number < FAKES else address or NO_TASK

    def byte(self, number: int, member: str) -> int:
        """A field of 8 bits."""
        return self.guest.data(self.task(number) + self.members[member], 1)[0]

    def set_byte(self, number: int, member: str, value: int) -> None:
        """Changes it."""
        self.guest.put_data(self.task(number) + self.members[member], bytes([value & 0xFF]))

    def virtual_time(self, number: int) -> int:
        """What a task has had under fair shares."""
        low, high = self.kernel.words(self.task(number) + self.members["virtual_time"], 2)
        return low | high << 32

    def call(self, function: str, *arguments: int) -> int:
        """Calls a function of the class."""
        return self.kernel.call(self.functions[function], *arguments)

    def run(self, steps: Sequence[Step]) -> Iterator[tuple[int, Step, int]]:
        """Does steps. Yields the index of each, itself, and what a test wants to know of it. The
        guest does not know the steps after a pick before it has picked."""
        part: list[tuple[int, Step]] = []
        for index, step in enumerate(steps):
            part.append((index, step))
            if step[0] in (PICK, DEQUEUE) or len(part) == MOST or index + 1 == len(steps):
                yield from self._part(part)
                part = []

    def _part(self, part: list[tuple[int, Step]]) -> Iterator[tuple[int, Step, int]]:
        leaves = part[-1][1][0] == DEQUEUE
        calls: list[Call] = []
        ends: list[int] = []
        for at, (_, step) in enumerate(part[: len(part) - leaves]):
            calls += self._calls(BYTES + WORD * at, *step)
            ends.append(len(calls) - 1)
        results = self.kernel.chain(*calls)
        if leaves:
            self._take_out(part[-1][1][1])
        for at, (index, step) in enumerate(part):
            result = results[ends[at]] if at < len(ends) else 0
            yield index, step, self._result(step, result, BYTES + WORD * at)

    def _calls(self, room: int, what: int, number: int, value: int) -> list[Call]:
        """The calls that a step is, of which the last one has the result. `room` is for bytes that
        they need."""
        task, of = self.task(number), self.functions
        match what:
            case 0:  # JOIN
                self.guest.put_data(room, bytes([value & 0xFF, NONE]))
                return [
                    self._copy(number, "nice", room),
                    self._copy(number, "donated", room + 1),
                    (of["join"], task),
                ]
            case 1:  # ENQUEUE
                self.guest.put_data(room, bytes([1]))
                return [self._copy(number, "is_queued", room), (of["enqueue"], task, value)]
            case 2:  # PICK
                return [(of["pick"],)]
            case 3:  # CHARGE
                return [(of["charge"], task, value, value >> 32)]
            case 4:  # TICK
                return [(of["tick"], task)]
            case 7:  # PREEMPTS
                return [(of["preempts"], task, self.task(value))]
            case 9:  # LEVEL
                return [("memcpy", room, task + self.members["level"], 1)]
            case _:  # NICE, DONATE
                self.guest.put_data(room, bytes([value & 0xFF]))
                return [self._copy(number, "nice" if what == NICE else "donated", room)]

    def _copy(self, number: int, member: str, room: int) -> Call:
        """Changes a byte of a task."""
        return "memcpy", self.task(number) + self.members[member], room, 1

    def _result(self, step: Step, result: int, room: int) -> int:
        """What a test wants to know of EAX."""
        match step[0]:
            case 2:  # PICK
                number = self.number_of(result)
                if number < FAKES:
                    self.set_byte(number, "is_queued", 0)
                return number
            case 4 | 7:  # TICK, PREEMPTS: of a bool the lowest 8 bits mean something
                return result & 0xFF
            case 9:  # LEVEL
                return self.guest.data(room, 1)[0]
        return 0

    def _take_out(self, number: int) -> None:
        """As kernel/task/sched.c does, with list_remove: out of the list that it is linked in."""
        link = self.task(number) + self.members["in_queue"]
        following, previous = self.kernel.words(link, 2)
        self.set_byte(number, "is_queued", 0)
        self.put_word(previous, following)
        self.put_word(following + WORD, previous)

    def put_word(self, address: int, value: int) -> None:
        """Changes a word, wherever it is."""
        self.guest.write(address, words_of(value))


@contextmanager
def sched_class(lab: Lab, symbol: str, quantum: int, **fields: object) -> Iterator[Class]:
    """A class of the kernel under test, for a `with` statement."""
    with stopped(lab, "prompt", **fields) as guest:
        yield Class(guest, symbol, quantum)
