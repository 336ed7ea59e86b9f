"""A complete search for races with the timer, from outside the guest: a scenario is repeated, and
in each repetition a tick comes before another instruction, until it has come before every one of
the exercise's functions that is executed with interrupts enabled. No other interrupt comes at all,
so the answer is the same every time.

The idea is that of Landslide (Carnegie Mellon, 15-410), which tries the interleavings of threads.
First the scenario is played undisturbed, and in the exercise's functions in steps: so the test's
process knows the instructions. Then QEMU stops before each of them in turn, where a tick comes.
Where an instruction touches registers only, a tick before it is the same as one before the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from elftools.elf.elffile import ELFFile

from labs.tools.course.exercises import by_id
from labs.tools.grading.lab import Lab
from tests.lesson4.played import Play, Played, played
from tests.lesson4.support import INTERRUPTS, fail
from tests.support.outside import MASKS
from tests.support.remote import Guest

RANGES = 8  # of code that an exercise has, at most
STI = 0xFB  # after it one more instruction is executed before any interrupt
MOST_STOPS = 100_000

# Opcodes of the i386: INC to POP, PUSH of a constant, Jcc, NOP, MOV of a constant, RET, CALL, JMP.
PRIVATE = {*range(0x40, 0x60), 0x68, 0x6A, *range(0x70, 0x80), 0x8D, 0x90, *range(0xB0, 0xC0)}
PRIVATE |= {0xC3, 0xE8, 0xE9, 0xEB}
ARITHMETIC = {8 * row + column for row in range(8) for column in range(4)}
WITH_OPERAND = ARITHMETIC | {0x69, 0x6B, *range(0x80, 0x8C), 0xC0, 0xC1, *range(0xD0, 0xD4)}
WITH_OPERAND |= {0xF6, 0xF7}
ESCAPE, JUMPS = 0x0F, range(0x80, 0x90)
WITH_OPERAND_0F = {*range(0x40, 0x50), *range(0x90, 0xA0), 0xAF, 0xB6, 0xB7, 0xBE, 0xBF}
REGISTER = 0xC0  # from there on the second byte names registers, and no memory

Once = Callable[[], Played]
Scenario = Callable[[Play], Once]  # what it returns plays once, and returns what was wrong, or ""


class Race:
    """The instructions before which a tick comes, one after the other."""

    def __init__(self, lab: Lab, guest: Guest, exercise: str) -> None:
        self.guest = guest
        self.ranges = ranges(lab, exercise)
        self.places: list[tuple[int, int]] = []  # an address, and for which time it is executed
        self.come = 0  # ticks
        self.is_calm: Callable[[], bool] = lambda: False  # does a tick change nothing, for now?
        self.is_driver: Callable[[dict[str, int]], bool] = lambda _: False  # is never disturbed
        self._seen: dict[int, int] = defaultdict(int)
        self._watched: set[int] = set()
        self._watch: Callable[[int, Callable], None]
        self._unwatch: Callable[[int], None]
        self._tick: Callable[[dict[str, int]], None]

    def attach(self, watch: Callable, unwatch: Callable, tick: Callable) -> None:
        """These have QEMU stop at an address, and no more; and a tick come."""
        self._watch, self._unwatch, self._tick = watch, unwatch, tick

    def holds(self, address: int) -> bool:
        """Is it an address of the exercise's code?"""
        return any(low <= address < high for low, high in self.ranges)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """All instructions of the exercise that are executed meanwhile are noted."""
        for low, high in self.ranges:
            for place in self.guest.symbols.code_between(low, high):
                self._note_at(place)
        yield
        while self._watched:
            self._unwatch(self._watched.pop())

    def _note_at(self, place: int) -> None:
        if place not in self._watched:
            self._watched.add(place)
            self._watch(place, self._note)

    def _note(self, now: dict[str, int]) -> None:
        """Steps on in the exercise's code."""
        if self.is_driver(now):
            return
        was_enabled, is_same = now["eflags"] & INTERRUPTS, False
        while self.holds(now["eip"]):
            place, enabled = now["eip"], now["eflags"] & INTERRUPTS
            self._seen[place] += 1
            code = self.guest.data(place - 1, 4)
            if enabled and is_same:
                self.places.pop()
            is_same = False
            if enabled and (was_enabled or code[0] != STI):
                self.places.append((place, self._seen[place]))
                is_same = is_private(code[1:]) or self.is_calm()
            was_enabled = enabled
            self.guest.step()
            now = self.guest.registers()
        back = self.guest.read_word(now["esp"])
        if self.holds(back):
            self._note_at(back)

    @contextmanager
    def tick_at(self, number: int) -> Iterator[None]:
        """A tick comes before the instruction of this number."""
        place, left = self.places[number]
        before = self.come

        def count(now: dict[str, int]) -> None:
            nonlocal left
            left -= not self.is_driver(now)
            if left == 0:
                self._unwatch(place)
                self.come += 1
                self._tick(now)

        self._watch(place, count)
        yield
        if self.come == before:
            self._unwatch(place)

    def name_of(self, number: int) -> str:
        """In which function the instruction of this number is."""
        words = self.guest.symbols.describe(self.places[number][0]).split()
        return words[1].partition("+")[0] if len(words) > 1 else words[0]

    def rounds(self, once: Once) -> Played:
        """The scenario undisturbed, and then once for each place. Fails where it goes wrong."""
        with self.noting():
            problem = yield from once()
        if problem:
            fail(f"{problem}, undisturbed")
        for number in range(len(self.places)):
            with self.tick_at(number):
                problem = yield from once()
            if problem:
                fail(f"{problem}, with an interrupt in {self.name_of(number)}")
        if self.come < len(self.places):
            fail(f"of {len(self.places)} instructions only {self.come} are executed each time")


def search(lab: Lab, exercise: str, scenario: Scenario) -> int:
    """Has a tick come before every instruction of an exercise's functions that a scenario executes
    with interrupts enabled; returns how many there are. Fails where something is wrong then."""
    with played(lab) as play:
        race = Race(lab, play.guest, exercise)
        race.attach(play.watch, play.unwatch, play.tick)

        def main() -> Played:
            play.fine_clock()
            for port in MASKS:
                play.guest.out8(port, 0xFF)
            play.set_word("sched_quantum", 1)
            play.set_of(play.current, "quantum", 1)
            yield from race.rounds(scenario(play))

        play.run(main(), MOST_STOPS)
    return len(race.places)


def is_private(code: bytes) -> bool:
    """Do these bytes begin an instruction that touches registers only, or the top of the stack?"""
    first, second, third = code
    if first == ESCAPE:
        return second in JUMPS or (second in WITH_OPERAND_0F and third >= REGISTER)
    return first in PRIVATE or (first in WITH_OPERAND and second >= REGISTER)


def ranges(lab: Lab, exercise: str) -> list[tuple[int, int]]:
    """From where to where the code of an exercise's files is, in the kernel under test."""
    kernel = lab.build(f"build/lesson{lab.lesson}/kernel.elf")
    files = by_id(exercise).files
    every = units(kernel, kernel.stat().st_mtime_ns)
    found = [(low, high) for name, low, high in every if name in files]
    assert 0 < len(found) < RANGES, f"the code of {files} is in {len(found)} places"
    return found


@lru_cache(maxsize=4)
def units(kernel: Path, _modified: int) -> list[tuple[str, int, int]]:
    """The files of a kernel, each with the place of its code, by the debug information."""
    found = []
    with kernel.open("rb") as stream:
        for unit in ELFFile(stream).get_dwarf_info().iter_CUs():
            top = unit.get_top_DIE().attributes
            if "DW_AT_high_pc" in top:  # else in several places
                low, high = top["DW_AT_low_pc"].value, top["DW_AT_high_pc"]
                end = high.value if high.form == "DW_FORM_addr" else low + high.value
                found.append((top["DW_AT_name"].value.decode(), low, end))
    return found
