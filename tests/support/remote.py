"""A machine on the debugger's leash: stop it anywhere, change registers and memory, call functions.

with stopped(lab, "kmain") as guest:
    guest.call("snprintk", BUFFER, 16, guest.text("%d"), 7)
    assert guest.read(BUFFER, 2) == b"7\0"

QEMU's gdb stub is spoken to directly, for tests also stop 16-bit code, stand in for the BIOS, and
fake what a boot loader left behind.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import pytest

from labs.tools.grading.lab import Lab
from labs.tools.machine.explain import (
    PANIC,
    fault_report,
    is_stuck,
    parse_registers,
)
from labs.tools.machine.machine import STATUS_SYMBOL, STATUSES
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.result import Outcome
from labs.tools.machine.symbols import KERNEL_BASE, Symbols, symbols_of
from tests.support.gdb_stub import StubGone
from tests.support.guest_memory import PIECE, NotMapped, place_of, setting, writes
from tests.support.leash import Leash, may_stay, standing
from tests.support.second_machine import logged
from tests.support.segment import Segment
from tests.support.standstill import describe, panic_details, standstill

GENERAL = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip", "eflags")
REGISTERS = (*GENERAL, "cs", "ss", "ds", "es", "fs", "gs")
CONTROL = {"cr0": 19, "cr2": 20, "cr3": 21, "cr4": 22}  # QEMU's numbers: target/i386/gdbstub.c
SEGMENT = re.compile(r"^(\w\w) *=(\w{4}) (\w{8}) (\w{8}) (\w{8})", re.MULTILINE)
TABLE = re.compile(r"^([GI]DT) *= +(\w{8}) (\w{8})", re.MULTILINE)
INTERRUPTED = "T02"  # how the stub says that the guest was stopped
TRAP = "T05"  # how the stub says that a breakpoint was reached, or a step made
INTERRUPTS = 0x200
WORD = 4
MASK = 0xFFFFFFFF
FAULT_LINES = ("First: ", "Then, ")
TRIPLE_FAULT = "triple fault (an exception could not be delivered, so the processor was reset)"
LAST_SELECTOR = 0x40  # what is above it in CS is a real-mode segment, the BIOS's
BOOT_SECONDS = 6  # of processor time, for what takes the slowest loader one
SOON = 1  # of processor time: nearly all that is asked for is done
CALL_SECONDS = 3  # of processor time, for what takes the guest a tenth of one
MACHINE_SECONDS = 20  # of processor time, for all that a test has a machine do
OUTPUT_LIMIT = 256 << 10
FLOOD = 16 << 10  # bytes of output: a kernel that does not come to an end says less

# Memory of the stopped kernel that nobody uses: the direct map of 256 to 512 KiB.
SCRATCH = 0xC0040000
SCRATCH_SIZE = 0x40000
TEXT_AREA = SCRATCH + SCRATCH_SIZE - 0x10000


class Guest:
    """A machine that stands still until it is told to run to a place.

    Places are symbols of the kernel or addresses; addresses of memory are those that the processor
    has at that moment. A machine that ends, or runs too long, fails the test with what it said.
    """

    def __init__(self, lab: Lab, leash: Leash) -> None:
        self._memory = leash.memory
        self._lab = lab
        self._config = leash.config
        self._stub = leash.stub
        self._serial = leash.serial
        self._breakpoints = leash.breakpoints
        self._free_text = TEXT_AREA
        self._now: dict[str, int] | None = None  # the registers, where they are known
        self.symbols = symbols_of(leash.config.kernel)
        self.more_symbols: list[Symbols] = []  # of code that a test has put beside the kernel
        self.own_places: list[tuple[range, str]] = []  # where nothing is, or a test's; in words

    @property
    def process_id(self) -> int:
        """QEMU's process."""
        return self._stub.process_id

    # Registers

    def registers(self) -> dict[str, int]:
        """The general registers, EIP, EFLAGS and the selectors."""
        if self._now is None:
            data = bytes.fromhex(self._stub.ask("g")[: 2 * WORD * len(REGISTERS)])
            words = struct.unpack(f"<{len(REGISTERS)}I", data)
            self._now = dict(zip(REGISTERS, words, strict=True))
        return dict(self._now)

    def set(self, **values: int) -> None:
        """Sets registers: set(eax=1, eflags=0x402). A selector brings its descriptor with it."""
        self.put(self.registers() | values)

    def put(self, every: Mapping[str, int]) -> None:
        """Sets all of what registers() has."""
        self._now = None
        answer = self._stub.ask(setting(every[name] for name in REGISTERS))
        assert answer == "OK", f"QEMU does not set the registers: {answer}"

    def set_control(self, name: str, value: int) -> None:
        """Sets cr0, cr2, cr3 or cr4."""
        packet, self._now = f"P{CONTROL[name]:x}={value.to_bytes(WORD, 'little').hex()}", None
        assert self._stub.ask(packet) == "OK"
        assert self.dump()[name.upper()] == value

    def dump(self) -> dict[str, int]:
        """The registers as QEMU's monitor names them, in capitals: CR0, EFL, EIP, ..."""
        return parse_registers(self.monitor("info registers"))

    def segments(self) -> dict[str, Segment]:
        """CS to GS and TR with their hidden halves."""
        found = SEGMENT.findall(self.monitor("info registers"))
        return {name: Segment(*(int(field, 16) for field in fields)) for name, *fields in found}

    def tables(self) -> dict[str, tuple[int, int]]:
        """Base and limit of GDT and IDT."""
        found = TABLE.findall(self.monitor("info registers"))
        return {name: (int(base, 16), int(limit, 16)) for name, base, limit in found}

    # Memory

    def read(self, address: int, length: int) -> bytes:
        """Bytes of memory. Raises NotMapped."""
        data = b""
        for at in range(address, address + length, PIECE):
            piece = self._stub.ask(f"m{at:x},{min(PIECE, address + length - at):x}")
            if piece.startswith("E"):
                raise NotMapped(f"no memory at {at:#x}")
            data += bytes.fromhex(piece)
        return data

    def write(self, address: int, data: bytes) -> None:
        """Changes memory. Raises NotMapped."""
        for packet in writes(address, data):
            if self._stub.ask(packet) != "OK":
                raise NotMapped(f"no memory at 0x{packet[1:].partition(',')[0]}")

    def read_word(self, address: int) -> int:
        """32 bits of memory."""
        return self.read_words(address, 1)[0]

    def read_words(self, address: int, count: int) -> tuple[int, ...]:
        """This many times 32 bits of memory."""
        return struct.unpack(f"<{count}I", self.read(address, WORD * count))

    def read_physical_words(self, address: int, count: int) -> tuple[int, ...]:
        """The same at a physical address."""
        self._stub.ask("Qqemu.PhyMemMode:1")
        try:
            return self.read_words(address, count)
        finally:
            self._stub.ask("Qqemu.PhyMemMode:0")

    def data(self, address: int, length: int) -> bytes:
        """Bytes of the direct map as they are in memory, whatever the page tables say. It is no
        packet. Raises NotMapped."""
        return self._memory[place_of(address, length, self._memory)]

    def put_data(self, address: int, data: bytes) -> None:
        """Changes them. There may be no code: QEMU does not see that it has changed."""
        self._memory[place_of(address, len(data), self._memory)] = data
        self._stub.sent.append((address, data))

    def text(self, text: str | bytes) -> int:
        """Puts a text with its closing NUL into scratch memory; returns its address."""
        data = text.encode("latin-1") if isinstance(text, str) else text
        address = self._free_text
        if address + len(data) >= TEXT_AREA + 0xF000:
            address = TEXT_AREA
        self.write(address, data + b"\0")
        self._free_text = address + len(data) + 1
        return address

    # Ports, and QEMU itself

    def monitor(self, command: str) -> str:
        """Runs a command of QEMU's monitor and returns what it prints."""
        return self._stub.monitor(command)

    def out8(self, port: int, value: int) -> None:
        """Writes to a port, as OUT would."""
        self.monitor(f"o /b {port:#x} {value:#x}")

    def in8(self, port: int) -> int:
        """Reads from a port, as IN would."""
        return int(self.monitor(f"i /b {port:#x}").split("=")[1], 16)

    def in32(self, port: int) -> int:
        """Reads 32 bits from a port."""
        return int(self.monitor(f"i /w {port:#x}").split("=")[1], 16)

    # Running

    def address(self, place: str | int) -> int:
        """The address of a place."""
        return self.symbols.find(place).address if isinstance(place, str) else place

    def linear(self) -> int:
        """Where the processor is, in real mode and in flat segments alike."""
        registers = self.registers()
        is_segment = registers["cs"] > LAST_SELECTOR
        return registers["eip"] + (registers["cs"] << 4 if is_segment else 0)

    @contextmanager
    def stopping_at(self, *addresses: int) -> Iterator[None]:
        """Breakpoints at these addresses, for a `with` statement."""
        added = set(addresses) - self._breakpoints
        for address in added:
            self.stop_at(address)
        yield
        for address in added:
            self.go_past(address)

    def stop_at(self, address: int) -> None:
        """A breakpoint that stays."""
        self._stub.ask(f"Z1,{address:x},1")
        self._breakpoints.add(address)

    def go_past(self, address: int) -> None:
        """No breakpoint any more."""
        self._stub.ask(f"z1,{address:x},1")
        self._breakpoints.remove(address)

    def stops_at(self, address: int) -> bool:
        """Is there a breakpoint?"""
        return address in self._breakpoints

    def run_to(
        self, *places: str | int, seconds: float = BOOT_SECONDS, goal: str = "", why: str = ""
    ) -> str | int:
        """Runs until one of the places is reached, and returns it. The failure says `goal`, or the
        places, and `why`."""
        addresses = {self.address(place): place for place in places}
        goal = f"{goal or names(places)}{f' ({why})' if why else ''}"
        with self.stopping_at(*addresses):
            reached = self.resume(seconds, goal)
        return addresses.get(reached, reached)

    def resume(self, seconds: float = BOOT_SECONDS, goal: str = "") -> int:
        """Runs to a breakpoint (see stopping_at) and returns its address."""
        goal = goal or " or ".join(map(self.symbols.describe, sorted(self._breakpoints)))
        if self.linear() in self._breakpoints:
            self.step()
            if (here := self.linear()) in self._breakpoints:
                return here
        return self.go(seconds, goal)

    def go(self, seconds: float, goal: str) -> int:
        """The same from a place without a breakpoint."""
        signal = self._continue(seconds, goal)
        here = self.linear()
        if signal != TRAP or here not in self._breakpoints:
            raise self._ended(goal)
        return here

    def leap(
        self, every: Mapping[str, int], data: bytes, seconds: float, goal: str
    ) -> dict[str, int]:
        """Sets all registers, writes data to the stack's top, and runs to a breakpoint. Returns the
        registers there."""
        registers = setting(every[name] for name in REGISTERS)
        signal = self._continue(seconds, goal, *writes(every["esp"], data), registers)
        now = self.registers()
        if signal != TRAP or now["eip"] not in self._breakpoints:
            raise self._ended(goal)
        return now

    def _continue(self, seconds: float, goal: str, *before: str) -> str:
        """Runs to a stop, and returns its signal. `before` are packets that come first."""
        self._now = None
        try:
            answers = self._stub.start(*before)
            assert set(answers) <= {"OK"}, f"QEMU does not set registers and memory: {answers}"
            left = MACHINE_SECONDS - self._stub.processor_seconds()
            signal = self._stop_within(min(seconds, left))
        except StubGone as gone:
            raise StubGone(f"the machine ended before it reached {goal}; {self._last()}") from gone
        if signal != INTERRUPTED:
            return signal
        self._lab.stuck.append(Outcome.HANG)
        floods = len(self.said_bytes()) >= FLOOD
        found = standstill(self)
        how = "it floods the serial line" if floods else found.headline
        raise self._failure(f"the machine does not reach {goal}: {how}", found.lines)

    def _stop_within(self, seconds: float) -> str:
        """The signal of the guest's stop. A guest that does not stop is interrupted: early, where
        only a reset could end what it does. Looking for that is no packet that the guest notices.
        """
        with suppress(TimeoutError):
            return self._stub.receive(min(seconds, SOON))[: len(TRAP)]
        signal = self._stub.interrupt()[: len(TRAP)]
        done = len(self._stub.sent)
        if signal != INTERRUPTED or is_stuck(self.monitor("info registers"), self.read):
            return signal
        self._stub.send("c")
        del self._stub.sent[done:]
        with suppress(TimeoutError):
            return self._stub.receive(seconds - SOON)[: len(TRAP)]
        return self._stub.interrupt()[: len(TRAP)]

    def step(self) -> None:
        """One instruction; no interrupt comes in between."""
        self._now = None
        self._stub.ask("s")

    def finish(self, seconds: float = CALL_SECONDS) -> str:
        """Runs to the machine's end; returns all that it said."""
        self._continue(seconds, "its end")
        return self.said()

    def call(
        self,
        function: str | int,
        *arguments: int,
        stop_at: tuple[str | int, ...] = (),
        name: str = "",
    ) -> int | None:
        """Calls a C function of the stopped kernel with interrupts disabled and returns EAX;
        registers are as before afterwards. An argument is 32 bits: give a 64-bit one as two. None
        where it went to one of `stop_at` instead; there it is left. A failure says `name`, if it is
        given.
        """
        after = self._call(function, arguments, stop_at, name)
        return after and after["eax"]

    def call64(self, function: str | int, *arguments: int) -> int:
        """The same for a function that returns EDX:EAX."""
        after = self._call(function, arguments, (), "")
        return after["edx"] << 32 | after["eax"]

    def call_in_steps(self, function: str | int, *arguments: int, most: int) -> tuple[int, int]:
        """The same an instruction at a time: how many it takes, and EAX. After `most` of them it is
        left where it is: one more, and what EAX has there."""
        before, count = self._enter(function, arguments), 0
        while (now := self.registers())["eip"] != before["eip"] and count <= most:
            self.step()
            count += 1
        if count <= most:
            self.set(**{name: before[name] for name in GENERAL})
        return count, now["eax"]

    def _enter(self, function: str | int, arguments: tuple[int, ...]) -> dict[str, int]:
        """Puts the processor at the start of a function, as if it had been called from where it
        was. Returns the registers there."""
        before = self.registers()
        stack = (before["esp"] - 0x200 - WORD * len(arguments) & ~15) - WORD
        words = (word & MASK for word in (before["eip"], *arguments))
        self.write(stack, struct.pack(f"<{1 + len(arguments)}I", *words))
        flags = before["eflags"] & ~INTERRUPTS
        self.set(esp=stack, eip=self.address(function), eflags=flags)
        return before

    def _call(
        self,
        function: str | int,
        arguments: tuple[int, ...],
        stop_at: tuple[str | int, ...],
        name: str,
    ) -> dict[str, int] | None:
        """Calls, and returns the registers of the function's end."""
        before = self._enter(function, arguments)
        goal = f"the end of {name or names((function,))}, which the test has called"
        reached = self.run_to(before["eip"], *stop_at, seconds=CALL_SECONDS, goal=goal)
        if reached != before["eip"]:
            return None
        after = self.registers()
        self.set(**{name: before[name] for name in GENERAL})
        return after

    # What it said

    def said_bytes(self) -> bytes:
        """What came out of the serial line, as it is, up to a limit."""
        if not self._serial.exists():
            return b""
        with self._serial.open("rb") as stream:
            return stream.read(OUTPUT_LIMIT)

    def said(self) -> str:
        """The same as text, with the host's line ends."""
        return self.said_bytes().decode(errors="replace").replace("\r\n", "\n")

    def _ended(self, goal: str) -> BaseException:
        """What fails the test when the machine has ended: by a panic, by a triple fault (nobody has
        ended it), or by a kernel or a program that went another way."""
        said = self.said()
        on_the_way = f"the test was on the way to {goal}"
        if panics := list(PANIC.finditer(said)):
            message = panics[-1][0].removeprefix("PANIC: ")
            details = panic_details(self, said[panics[-1].start() :])
            return self._failure(f"the kernel panicked: {message}", [*details, on_the_way])
        if not self._has_status() and (chain := self._triple_fault()):
            return self._failure(TRIPLE_FAULT, [*chain, on_the_way])
        return self._failure(f"the machine ended before it reached {goal}; {self._last()}")

    def _last(self) -> str:
        """What it said last, in words; of our loader, which stops in the end, the reason."""
        lines = self.said().strip().removesuffix("boot: stopped").strip().splitlines()
        return f"it said: {lines[-1]}" if lines else "it printed nothing"

    def _triple_fault(self) -> list[str]:
        """Drives a second machine in the same way, which logs its exceptions: those that led to a
        triple fault, if there was one."""
        with logged(self._config, self._stub.sent) as log:
            report = fault_report(log, self.symbols)
        return [line for line in report.splitlines() if line.startswith(FAULT_LINES)]

    def _has_status(self) -> bool:
        """Whether whoever ran last, the boot sector, our loader or the kernel, has ended the
        machine: the latter two leave a status. Read by physical addresses: page tables may be gone.
        """
        is_loaded = False
        for symbols, base, first in self._stages():
            with suppress(KeyError, NotMapped):
                if self.read_physical_words(symbols.find(first).address, 1)[0] == 0:
                    continue
                is_loaded = True
                place = symbols.find(STATUS_SYMBOL).address - base
                if self.read_physical_words(place, 1)[0] in STATUSES:
                    return True
        return not is_loaded

    def _stages(self) -> list[tuple[Symbols, int, str]]:
        """Kernel and loader: symbols, how much higher than in memory they are linked, and a symbol
        at a physical address, where memory is 0 until it is loaded."""
        own = [(self.symbols, KERNEL_BASE, "_start")]
        is_ours = self._config.boot == "disk" and self.symbols.loader
        return [*own, (self.symbols.loader, 0, "loader_main")] if is_ours else own

    def _failure(self, message: str, details: Sequence[str] = ()) -> BaseException:
        """What fails the test. Its first line is the same in each run; the details, which a student
        reads below it (labs/tools/grading/lab_words.py), may differ."""
        where = f"It is at {describe(self, self.linear())}."
        lines = [message, *(f"  where: {each}" for each in details), where]
        text = "\n".join([*lines, f"It said:\n{self.said()[-2000:]}"])
        return pytest.fail.Exception(text, pytrace=False)


def names(places: tuple[str | int, ...]) -> str:
    """Places in words."""
    return " or ".join(place if isinstance(place, str) else f"{place:#x}" for place in places)


@contextmanager
def halted(lab: Lab, config: Config, serial: tuple[str, ...] = ()) -> Iterator[Guest]:
    """A machine before its first instruction. `serial` is another chardev than a file."""
    with Leash(config, serial) as leash:
        yield Guest(lab, leash)


@contextmanager
def stopped(
    lab: Lab,
    place: str | int,
    script: str | None = "",
    serial: tuple[str, ...] = (),
    goal: str = "",
    **fields: object,
) -> Iterator[Guest]:
    """The lab's kernel, stopped at a place, which `goal` names in words. `fields` are those of
    Config. The machine is kept there for the next test that asks for such a one."""
    config = lab.config(script, **fields)
    goal = goal or ("its prompt" if place == "prompt" else "")
    if serial or lab.note or not may_stay(config):  # a replay does all that is noted
        with halted(lab, config, serial) as guest:
            guest.run_to(place, goal=goal)
            yield guest
        return
    with standing(config, place) as (leash, is_there):
        guest = Guest(lab, leash)
        if not is_there:
            guest.run_to(place, goal=goal)
            leash.stay()
        yield guest
