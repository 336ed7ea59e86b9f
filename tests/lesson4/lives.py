"""Exercise 4.5: processes that begin, end and wait for each other, again and again, while a tick
comes before another instruction of fork, exit and wait. The first program looks at them, and is
never disturbed.

In the kernel a task with a space is not pre-empted (exercise 4.2): there a tick does nothing before
the task goes on in user mode, but for the timers that are due. Where none is, one tick counts for
all instructions in a row that a task with a space executes."""

from __future__ import annotations

from collections.abc import Callable

from labs.tools.grading.lab import Lab
from tests.lesson4.layout import layout
from tests.lesson4.processes import (
    KILL,
    NOHANG,
    PRCTL,
    ROOM,
    SERVED,
    SET_SUBREAPER,
    SIGALRM,
    SIGKILL,
    VFORK,
    YIELD,
    Family,
    Played,
    family_of,
)
from tests.lesson4.races import Race
from tests.lesson4.stage import Registers
from tests.support.outside import MASKS, words_of
from tests.support.remote import WORD

STACK_BYTES = 0x2000
MOST_STOPS = 100_000
SENT = SERVED + 0x100
CHANGED = "a process ends with another status"


Life = Callable[[Family, "Alarm"], Played]  # returns what is wrong, or ""


def verdict_of(family: Family, child: int, expected: int) -> Played:
    """Does it end with this status? -1: any child. Returns what is wrong, or ""; where nobody ends,
    everybody waits, and the machine halts."""
    pid, status = yield from family.wait(child)
    if pid < 0 if child == -1 else pid != child:
        return "a process is told that has not ended"
    return "" if status == expected else CHANGED


def life(family: Family, _: Alarm) -> Played:
    """A child ends; its parent has waited for it, or not yet."""

    def parent() -> Played:
        child = yield from family.fork(lambda: family.leave(7))
        found = yield from family.wait()
        yield from family.leave(8 if found == (child, 7 << 8) else 9)

    pid = yield from family.fork(parent)
    return (yield from verdict_of(family, pid, 8 << 8))


def borrowed(family: Family, _: Alarm) -> Played:
    """The same of a child that uses its parent's memory."""

    def parent() -> Played:
        child = yield from family.fork(lambda: family.leave(3), VFORK)
        found = yield from family.wait(child, NOHANG)
        yield from family.leave(8 if found == (child, 3 << 8) else 9)

    pid = yield from family.fork(parent)
    return (yield from verdict_of(family, pid, 8 << 8))


def orphan(family: Family, _: Alarm) -> Played:
    """A child that nobody waits for is the first program's in the end."""

    def child() -> Played:
        yield (YIELD,)
        yield from family.leave(8)

    def parent() -> Played:
        yield from family.fork(child)
        yield from family.leave(8)

    pid = yield from family.fork(parent)
    problem = yield from verdict_of(family, pid, 8 << 8)
    return problem or (yield from verdict_of(family, -1, 8 << 8))


def alarm(family: Family, rings: Alarm) -> Played:
    """SIGALRM ends a parent that waits for a child which sleeps, and does not end before it."""
    sleeper = 0

    def parent() -> Played:
        nonlocal sleeper
        sleeper = yield from family.fork(family.rest_for_ever)
        rings.start()
        yield from family.wait()
        yield from family.leave(9)

    pid = yield from family.fork(parent)
    for _ in range(3):
        yield (YIELD,)
    family.tick_first()
    problem = yield from verdict_of(family, pid, SIGALRM)
    yield KILL, sleeper, SIGKILL
    return problem or (yield from verdict_of(family, -1, SIGKILL))


class Alarm:
    """A timer in the kernel that sends SIGALRM to the program that has started it."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._member = layout("task", "process")["process"]
        self._process = self._home = 0
        family.watch(SERVED, self._send)
        family.watch(SENT, self._go_home)

    def start(self) -> None:
        """For the program that is played now: at the next tick."""
        family = self._family
        self._process = family.word(family.word(family.guest.address("current")) + self._member)
        family.in_kernel("timer_start", ROOM, 1, 0, SERVED)

    def _send(self, now: Registers) -> None:
        """The timer's function: calls signal_send."""
        guest, self._home = self._family.guest, now["esp"]
        stack = words_of(SENT, self._process, SIGALRM)
        guest.write(now["esp"] - len(stack), stack)
        where = {"eip": guest.address("signal_send"), "esp": now["esp"] - len(stack)}
        guest.put(now | where)

    def _go_home(self, now: Registers) -> None:
        """And returns."""
        back = self._family.word(self._home)
        self._family.guest.put(now | {"eip": back, "esp": self._home + WORD})


LIVES: dict[str, Life] = {each.__name__: each for each in (life, borrowed, orphan, alarm)}


def search_lives(lab: Lab, scenario: Life) -> int:
    """Has a tick come before the instructions of exercise 4.5 that the scenario executes with
    interrupts enabled. Returns how many there are. Fails where something is wrong then."""
    with family_of(lab) as family:
        race = Race(lab, family.guest, "4.5")
        race.attach(family.watch, family.unwatch, family.tick)

        def main() -> Played:
            yield PRCTL, SET_SUBREAPER, 1, 0
            for port in MASKS:
                family.guest.out8(port, 0xFF)
            family.take_short_turns()
            family.copy_quickly()
            high = family.kernel_stack()
            if scenario is not alarm:
                race.is_calm = family.has_space
            race.is_driver = lambda now: high - STACK_BYTES <= now["esp"] < high
            rings = Alarm(family)
            yield from race.rounds(lambda: scenario(family, rings))

        family.play(main(), MOST_STOPS)
    return len(race.places)
