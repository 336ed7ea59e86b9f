"""Programs on the kernel under test, whose code is in this process: of them the guest has a few
instructions, and memory.

def child():
        yield from family.leave(7)

def main():
        pid = yield from family.fork(child)
        assert (yield from family.wait()) == (pid, 7 << 8)

with family_of(lab) as family:
    family.play(main())

A program is a generator. What it yields is a system call, its number first, and it gets what that
returns. The processor, in user mode, has the registers that the test has set, and makes the call;
QEMU stops after it. Which program comes back is known by EBP: the test gives each a number there
that it has made just before, and a child has its parent's. So a kernel can only say that a program
has run by letting it run. What a call writes to a program's memory, and what a child has in its
own, the test reads there.

Where a program comes back the guest's time goes on by at most 122 us, as tests/lesson4/played.py
says.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from labs.tools.grading.lab import Lab
from tests.lesson3.support import signed, with_files
from tests.lesson4.layout import layout
from tests.lesson4.stage import SECONDS, Registers, Stage
from tests.lesson4.support import INTERRUPTS, fail
from tests.support.outside import words_of
from tests.support.remote import MASK, SCRATCH, WORD, Guest, stopped

BASE, SIZE = 0x08048000, 0x4000
CODE = {
    0x100: "ebfe",  # START: JMP to itself
    0x110: "cd80 ebfe",  # CALL: INT 0x80
    0x120: "e2fe ebfe",  # LOOP: as many instructions as ECX says
    0x130: "dbe3 db03 660f6e2b ebfe",  # FNINIT; FILDL (EBX); MOVD (EBX), XMM5
    0x140: "db1b 660f7e6b04 ebfe",  # FISTPL (EBX); MOVD XMM5, 4(EBX)
    0x180: "8903 ebfe",  # MOVL %EAX, (%EBX)
    # MOVL %EDI, %EAX; INT 0x80; TESTL %EAX, %EAX; JNZ out; DECL %ESI; JNZ to the beginning
    0x190: "89f8 cd80 85c0 7503 4e 75f5 ebfe",
    # vfork; TESTL %EAX, %EAX; JZ child; JS out; INCL %ESI; JMP to the beginning; child: exit(EDI)
    0x1A0: "b8be000000 cd80 85c0 7405 780a 46 ebf0 89fb 31c0 40 cd80 ebfe",
    # waitpid; TESTL %EAX, %EAX; JS out; CMPL %EDI, (%ECX); JNE to the beginning; INCL %ESI; JMP
    0x1C0: "b807000000 cd80 85c0 7807 3939 75f1 46 ebee ebfe",
    # ADCL %EBX, %EAX; RCLL $3, %EBX; SBBL %EAX, %EDX; ADCL %EDX, %ESI; RCRL $5, %EDI; ADCL %EDI,
    # %EBP; LEAL (%ESP, %EBP), %ESP; LEAL -1(%ECX), %ECX; JECXZ to the end; JMP to the beginning
    0x150: "11d8 c1d303 19c2 11d6 c1df05 11fd 8d242c 8d49ff e302 ebe8 ebfe",
}
START, CALL, LOOP, SET_UNIT, GET_UNIT, STORE, REPEAT, CROWD, REAP, MIX = (
    BASE + each for each in CODE
)
MIX_END = MIX + 24
AFTER = {CALL: CALL + 2, LOOP: LOOP + 2, SET_UNIT: SET_UNIT + 8, GET_UNIT: GET_UNIT + 7}
AFTER |= {STORE: STORE + 2, MIX: MIX_END}
AFTER |= {REPEAT: REPEAT + 11, CROWD: CROWD + 23, REAP: REAP + 18}
DATA = BASE + 0x1000
STATUS, TIME, TIMES, ACTION, PIPE, BYTE, OWN = (DATA + 0x100 * n for n in range(7))
STACK = DATA + 0x2000
CALL_BYTES = 5  # of a call
COPIES_ON_WRITE = 6  # kernels from this lesson on
SLOT_START, SLOT_SIZE = 0x08000000, 0x400000  # of a space in lessons 3 to 5
BACK, SERVED = SCRATCH + 0x100, SCRATCH + 0x200  # nothing is there
ROOM = SCRATCH + 0x1000

EXIT, FORK, READ, CLOSE, WAITPID, GETPID, ALARM = 1, 2, 3, 6, 7, 20, 27
KILL, PIPE_CALL, TIMES_CALL, SETPGID, GETPPID, SETSID = 37, 42, 43, 57, 64, 66
CLONE, YIELD, NANOSLEEP, PRCTL, SIGACTION, VFORK = 120, 158, 162, 172, 174, 190
CLONE_VM, CLONE_VFORK, CLONE_THREAD = 0x100, 0x4000, 0x10000
PARENT_SETTID, CHILD_CLEARTID, CHILD_SETTID = 0x100000, 0x200000, 0x1000000
SIGHUP, SIGKILL, SIGALRM, SIGTERM, SIGCHLD, SIGCONT, SIGSTOP = 1, 9, 14, 15, 17, 18, 19
IGNORE, SET_SUBREAPER = 1, 36
NOHANG, UNTRACED, GOES_ON, ALL = 1, 2, 8, 0x40000000
NAMES = {EXIT: "exit", FORK: "fork", WAITPID: "waitpid", CLONE: "clone", VFORK: "vfork"}

ARGUMENTS = ("ebx", "ecx", "edx", "esi", "edi")
KERNEL = {"cs": 0x08, "ss": 0x10, "ds": 0x10, "es": 0x10}
MIXED = ("eax", "ebx", "edx", "esi", "edi", "ebp")
SEGMENTS = ("cs", "ss", "ds", "es", "fs", "gs")
FLAGS, CARRY, DIRECTION = 0x202, 0x1, 0x400
KEPT_FLAGS = 0xCD5  # status flags, direction
REST_NS = 30_000_000
INSTRUCTION_NS = {"icount": 8, "slower": 16}
MOST_STOPS = 6000
CALENDAR = ((0x0A, 0x23), (0x0B, 0x42))  # as in tests/lesson4/played.py

Played = Generator["tuple | Order", Any, Any]
Child = Callable[[], Played]


@dataclass(frozen=True)
class Order:
    """What a program does: instructions at a place of its code, with these registers. A call that
    makes a child has what that plays; `stack`: the child begins there. `after`: all registers as
    they must be afterwards."""

    place: int
    registers: Registers
    child: Child | None = None
    stack: int = 0
    words: str = ""
    after: Registers | None = None


@dataclass
class Program:
    """A program that runs, or waits: what it plays, and its registers."""

    play: Played
    now: Registers
    task: int = 0  # as it makes a child
    order: Order = field(default_factory=lambda: Order(START, {}))


class Family(Stage):
    """A program in user mode, and its children and theirs."""

    def __init__(self, guest: Guest, lab: Lab) -> None:
        super().__init__(guest, "the end of the programs' calls")
        self._lab, self._random = lab, random.Random(lab.seed)
        self._away: dict[int, Program] = {}  # by EBP
        self._unborn: dict[int, Order] = {}
        self.results_in_children: list[int] = []  # of fork
        self._has_tick = False
        self._task_state = 0  # where the processor has it
        for place in AFTER.values():
            guest.stop_at(place)
        fine_clock(guest)

    # Memory of the program that is played now

    def word(self, address: int) -> int:
        """32 bits."""
        return self.guest.read_word(address)

    def set_words(self, address: int, *values: int) -> int:
        """Changes them. Returns the address. A kernel that copies pages when they are written to
        must see that."""
        if self._lab.kernel < COPIES_ON_WRITE:
            self.guest.write(address, words_of(*values))
            return address
        before = self.guest.registers()
        for at, value in enumerate(values):
            words = {"eip": STORE, "ebx": address + WORD * at, "eax": value & MASK, "eflags": 2}
            self.leap(before | words, b"")
        self.guest.put(before)
        return address

    def number(self) -> int:
        """Any."""
        return self._random.getrandbits(31)

    # Playing

    def play(self, main: Played, most: int = MOST_STOPS) -> None:
        """Plays until the first program has come to its end. Others are at theirs by EXIT."""
        first = program = Program(main, self.guest.registers())
        result: Any = None
        for _ in range(most):
            try:
                order = program.play.send(result)
            except StopIteration:
                if program is first:
                    self._require_own_code()
                    return
                order = (EXIT, 0)
            entry, stack = self._entry(program, order), b""
            if self._has_tick:
                self._has_tick = False
                entry, stack = self._ticked(entry)
            now = self.leap(entry, stack)
            program, result = self._arrived(now)
        fail(f"the test does not come to its end: {program.order.words} is called for ever")

    def _require_own_code(self) -> None:
        """The program is in memory as it was put there."""
        if self.guest.read(BASE, len(IMAGE)) != IMAGE:
            fail("the kernel writes to the code of a program")

    def _entry(self, program: Program, order: tuple | Order) -> Registers:
        if not isinstance(order, Order):
            order = call_of(*order)
        mark = order.registers.get("ebp", self._random.getrandbits(32))
        others = {name: self._random.getrandbits(32) for name in ARGUMENTS}
        own = others | {"esp": STACK, "eflags": FLAGS} | order.registers
        program.now = program.now | own | {"eip": order.place, "ebp": mark}
        program.order = order
        self._away[order.after["ebp"] if order.after else mark] = program
        if order.child:
            self._unborn[mark] = order
            program.task = self._current()
        return program.now

    def _arrived(self, now: Registers) -> tuple[Program, Any]:
        """Who has come back, or is born, and with which result."""
        mark, result = now["ebp"], signed(now["eax"])
        if mark in self._unborn and now["eip"] == AFTER[CALL] and self._is_child(mark, result):
            order = self._unborn.pop(mark)
            self.results_in_children.append(result)
            child = Program(order.child(), now, order=order)
            expected = order.stack or order.registers.get("esp", STACK)
            if now["esp"] != expected:
                fail(
                    f"{order.words} in the child: expected ESP {expected:#x}, seen {now['esp']:#x}"
                )
            return child, None
        program = self._away.pop(mark, None)
        if program is None:
            fail(f"a program goes on with EBP {mark:#x}, which no program has")
        order = program.order
        if now["eip"] != AFTER[order.place]:
            fail(f"a program goes on at {now['eip']:#x} after {order.words}")
        for name, value in (order.after or {}).items():
            if now[name] != value:
                fail(f"{order.words}: expected {name.upper()} {value:#x}, seen {now[name]:#x}")
        if not order.after and now["esp"] != program.now["esp"]:
            fail(f"ESP was {program.now['esp']:#x} before {order.words}, and is {now['esp']:#x}")
        if order.child and result < 0:
            self._unborn.pop(mark, None)
        program.now = now
        return program, result

    def _is_child(self, mark: int, result: int) -> bool:
        """Does a child come, or its parent? Where a child does not get 0, by who is current."""
        parent = self._away.get(mark)
        return result == 0 or parent is None or (result > 0 and parent.task != self._current())

    def _current(self) -> int:
        place = self.guest.address("current")
        return int.from_bytes(self.guest.data(place, WORD), "little")

    # What programs do

    def fork(self, child: Child, number: int = FORK, *arguments: int, stack: int = 0,
             **registers: int) -> Played:  # fmt: skip
        """Makes a child, by this call. Returns its pid, or an error."""
        call = call_of(number, *arguments)
        values = call.registers | registers
        return (yield Order(CALL, values, child, stack, call.words))

    def leave(self, code: int = 0) -> Played:
        """Ends."""
        yield EXIT, code

    def wait(self, which: int = -1, options: int = 0) -> Played:
        """waitpid. Returns what that returns, and the status."""
        before = self.number()
        self.set_words(STATUS, before)
        pid = yield WAITPID, which, STATUS, options
        return pid, signed(self.word(STATUS)) if pid > 0 else 0

    def wait_for(self, which: int = -1, options: int = 0) -> Played:
        """The same. Returns the status, or -1 if it is another child."""
        pid, status = yield from self.wait(which, options)
        return status if pid == which or (which < 1 and pid > 0) else -1

    def repeat(self, count: int, number: int, *arguments: int) -> Played:
        """Makes a call of three arguments so often, or until it does not return 0. Returns what the
        last one has returned."""
        values = dict(zip(ARGUMENTS, arguments, strict=False)) | {"esi": count, "edi": number}
        return (yield Order(REPEAT, values, words=f"system call {number}"))

    def crowd(self, code: int) -> Played:
        """Makes children by vfork that end with this code, until there is an error. Returns it, and
        how many there are."""
        error = yield Order(CROWD, {"esi": 0, "edi": code}, words="vfork")
        return error, self.guest.registers()["esi"]

    def reap(self, status: int) -> Played:
        """Waits for children until there is an error. Returns it, and how many had this status."""
        values = dict(zip(ARGUMENTS, (-1 & MASK, STATUS, 0, 0, status), strict=True))
        error = yield Order(REAP, values, words="waitpid")
        return error, self.guest.registers()["esi"]

    def rest(self, times: int = 1) -> Played:
        """Sleeps for three ticks, so many times."""
        for _ in range(times):
            yield NANOSLEEP, self.set_words(TIME, 0, REST_NS), 0

    def rest_for_ever(self) -> Played:
        """Sleeps until a signal ends the program."""
        while True:
            yield from self.rest()

    def compute(self, milliseconds: float) -> Played:
        """Uses the processor in user mode."""
        count = int(milliseconds * 1e6 / INSTRUCTION_NS[self._lab.mode])
        yield Order(LOOP, {"ecx": count}, words="a loop of its own")

    def compute_ticks(self, ticks: int) -> Played:
        """Uses the processor for at least so many ticks, in pieces of 10 ms."""
        for _ in range(ticks + 1):
            yield from self.compute(10)

    def mix(self, rounds: int, direction: bool) -> Order:
        """Calculates in every register and flag: as it does now, alone, and with interrupts
        disabled, so that the kernel executes nothing."""
        self._require_own_code()
        before = self.guest.registers()
        values = {name: self._random.getrandbits(32) for name in (*MIXED, "esp")}
        values["fs"] = 0 if direction else before["ds"]
        begin = values | {"ecx": rounds, "eflags": FLAGS | (DIRECTION if direction else 0)}
        entry = before | begin | {"eip": MIX, "eflags": begin["eflags"] & ~INTERRUPTS}
        after = self.guest.leap(entry, b"", SECONDS, "the end of a calculation")
        self.guest.put(before)
        wanted = {name: after[name] for name in (*MIXED, "esp", "ecx", "fs")}
        flags = after["eflags"] | INTERRUPTS
        words = "a calculation that is interrupted"
        return Order(MIX, begin, words=words, after=wanted | {"eflags": flags})

    def ignore(self, signal: int) -> Played:
        """Ignores a signal."""
        yield SIGACTION, signal, self.set_words(ACTION, IGNORE, 0, 0, 0, 0), 0, 8

    def attend(self, signal: int) -> Played:
        """Takes a signal as usual again."""
        yield SIGACTION, signal, self.set_words(ACTION, 0, 0, 0, 0, 0), 0, 8

    def pipe(self) -> Played:
        """A pipe's two descriptors."""
        yield PIPE_CALL, self.set_words(PIPE, MASK, MASK)
        return self.word(PIPE), self.word(PIPE + WORD)

    def times(self) -> Played:
        """Ticks in user mode and in the kernel, its own and its children's."""
        yield TIMES_CALL, self.set_words(TIMES, MASK, MASK, MASK, MASK)
        return self.guest.read_words(TIMES, 4)

    def set_unit(self, number: int) -> Played:
        """Puts a number into x87 and SSE registers."""
        yield Order(SET_UNIT, {"ebx": self.set_words(OWN, number)}, words="MOVD")

    def unit(self) -> Played:
        """The numbers that are in those registers."""
        yield Order(GET_UNIT, {"ebx": self.set_words(OWN, 0, 0)}, words="MOVD")
        return self.guest.read_words(OWN, 2)

    # The kernel's side

    def kernel_stack(self) -> int:
        """Where the stack ends that the kernel uses for the program that is played now."""
        self._task_state = self._task_state or self.guest.segments()["TR"].base
        return self.word(self._task_state + WORD)

    def in_kernel(self, function: str, *arguments: int) -> int:
        """Calls a function of the kernel for it, with interrupts disabled. Returns EAX."""
        before = self.guest.registers()
        stack = words_of(BACK, *arguments)
        esp = self.kernel_stack() - 0x200
        where = {"eip": self.guest.address(function), "esp": esp, "eflags": 2}
        with self.guest.stopping_at(BACK):
            after = self.leap(before | KERNEL | where, stack)
        self.guest.put(before)
        return after["eax"]

    def has_space(self) -> bool:
        """Does the current task have one? Else it is a kernel thread, or about to end."""
        place = self._current() + layout("task", "space")["space"]
        return any(self.guest.data(place, WORD))

    def take_short_turns(self) -> None:
        """A turn has one tick from now on."""
        self.guest.write(self.guest.address("sched_quantum"), words_of(1))
        task = self._current()
        self.guest.write(task + layout("task", "schedule.quantum")["quantum"], words_of(1))

    def copy_quickly(self) -> None:
        """From now on a copy of a space has what the test's programs use, and not all 4 MiB."""
        memcpy = self.guest.address("memcpy")
        place = BASE - SLOT_START

        def copy(now: Registers, back: int, to: int, source: int) -> None:
            self.guest.put_data(to + place, self.guest.data(source + place, SIZE))
            self.guest.put(now | {"eip": back, "eax": to})

        def look(now: Registers) -> None:
            back, to, source, size = self.guest.read_words(now["esp"], 4)
            if size == SLOT_SIZE:
                copy(now | {"esp": now["esp"] + WORD}, back, to, source)
                self.unwatch(memcpy)
                self.watch(back - CALL_BYTES, lambda at: copy_at(at, back))

        def copy_at(now: Registers, back: int) -> None:
            copy(now, back, *self.guest.read_words(now["esp"], 2))

        self.watch(memcpy, look)

    def tick_first(self) -> None:
        """A tick comes before what is done next, in user mode."""
        self._has_tick = True

    def _ticked(self, now: Registers) -> tuple[Registers, bytes]:
        """Where an interrupt leads from user mode, and what is on the stack then."""
        pushed = words_of(*(now[name] for name in ("eip", "cs", "eflags", "esp", "ss")))
        esp = self.kernel_stack() - len(pushed)
        where = {"eip": self.timer_gate, "esp": esp, "eflags": now["eflags"] & ~INTERRUPTS}
        return now | {"cs": KERNEL["cs"], "ss": KERNEL["ss"]} | where, pushed

    def free_pages(self) -> int:
        """How many pages of memory are free, by the given allocator."""
        return self.in_kernel("page_free_count")

    def tasks(self) -> int:
        """How many tasks there are."""
        return self.word(self.guest.address("task_count"))


def call_of(number: int, *arguments: int) -> Order:
    """A system call."""
    registers = dict(zip(ARGUMENTS, arguments, strict=False))
    words = NAMES.get(number, f"system call {number}")
    return Order(CALL, {"eax": number, **registers}, words=words)


def fine_clock(guest: Guest) -> None:
    """At a stop time goes on by 122 us at most, from here on: an interrupt that does not come."""
    guest.out8(0xA1, 0xFF)
    for register, value in CALENDAR:
        guest.out8(0x70, register)
        guest.out8(0x71, value)


def image() -> bytes:
    """The program, as an ELF file."""
    header = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    header += struct.pack("<2H5I6H", 2, 3, 1, START, 52, 0, 0, 52, 32, 1, 40, 0, 0)
    text = bytearray(0x200)
    text[: len(header)] = header
    text[len(header) : len(header) + 32] = struct.pack(
        "<8I", 1, 0, BASE, BASE, len(text), SIZE, 7, 4096
    )
    for place, code in CODE.items():
        data = bytes.fromhex(code)
        text[place : place + len(data)] = data
    return bytes(text)


IMAGE = image()


@contextmanager
def family_of(lab: Lab, *options: str, **fields: object) -> Iterator[Family]:
    """The lab's kernel, where the program is about to begin."""
    files = with_files(lab, {"bin/player": IMAGE}, *options)
    goal = "the first instruction of a program that the kernel loads"
    with stopped(lab, START, "run /bin/player", goal=goal, **files, **fields) as guest:
        yield Family(guest, lab)
