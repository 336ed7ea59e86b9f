"""Exercise 2.4, hidden: the two 8259s and the 8254, asked for their state by QEMU's monitor.

Lines are raised by serial ports that QEMU plugs in for the test: a UART whose transmitter is empty
raises its line as soon as that interrupt is enabled.
"""

from __future__ import annotations

import random
import re
import struct
from contextlib import contextmanager

import pytest

from tests.lesson2.support import (
    INTERRUPTS,
    KERNEL_CODE,
    LOOP,
    SCRATCH,
    TIMER,
    Lab,
    go_round,
    mask_all_lines,
    recorded_traps,
    stopped_at,
    switched_on,
    trap_frame,
)
from tests.support.remote import Guest

FIRST, SECOND = "pic0", "pic1"
STATE = re.compile(r"^(pic[01]): irr=(\w+) imr=(\w+) isr=(\w+) .*irq_base=(\w+)", re.MULTILINE)
WRITE = re.compile(r"pic_ioport_write master (\d) addr 0x(\d) val 0x(\w+)")
UARTS = (0x3E8, 0x2E8, 0x2F8)
TRANSMITTER_EMPTY = 0x02  # in the UART's interrupt enable register
RETURN = b"\xc3"
FREQUENCY = 1193182  # Hz, of the timer; the PM timer's is three times that
PM_TIMER, PM_TIMER_MASK = 0x608, (1 << 24) - 1
RATE_GENERATOR = 0x34  # low then high byte, mode 2, binary
STATUS_BITS = 0x3F
PERIODS = 6


class Controllers:
    """A stopped kernel that goes round in a loop, and lines that can be raised."""

    def __init__(self, machine: Guest, ports: dict[int, int]) -> None:
        self.machine = machine
        self.ports = ports
        self.dispatch = machine.address("trap_dispatch")
        go_round(machine)

    def state(self) -> dict[str, dict[str, int]]:
        """IRR, IMR, ISR and first vector of both."""
        found = STATE.findall(self.machine.monitor("info pic"))
        names = ("irr", "imr", "isr", "base")
        return {
            name: dict(zip(names, (int(each, 16) for each in words), strict=True))
            for name, *words in found
        }

    def in_service(self) -> tuple[int, int]:
        """The lines in service, of the first and the second controller."""
        state = self.state()
        return state[FIRST]["isr"], state[SECOND]["isr"]

    def handler(self, line: int) -> int:
        """Registers a handler for the line that does nothing; returns its address."""
        address = SCRATCH + 0x100 + 16 * line
        self.machine.write(address, RETURN)
        self.machine.call(self.machine.address("irq_register"), line, address)
        return address

    def set_line(self, line: int, is_high: bool) -> None:
        """Raises or lowers a line."""
        self.machine.out8(self.ports[line] + 1, TRANSMITTER_EMPTY if is_high else 0)

    def forge(self, line: int, *places: int) -> int:
        """Enters the vector of a line that is not in service, as a spurious interrupt does, from
        where the processor is; runs to a place."""
        machine = self.machine
        now = machine.registers()
        base, _ = machine.tables()["IDT"]
        low, high = machine.read_words(base + 8 * (TIMER + line), 2)
        stack = now["esp"] - 512
        machine.write(stack, struct.pack("<3I", LOOP, KERNEL_CODE, 2))
        entry = low & 0xFFFF | high & 0xFFFF0000
        machine.set(eip=entry, esp=stack, eflags=2)
        return machine.run_to(LOOP, *places)


@contextmanager
def controllers(lab: Lab, *lines: int):
    """The kernel with all lines shut, and UARTs on these lines."""
    ports = dict(zip(lines, UARTS, strict=False))
    extra = []
    for line, port in ports.items():
        extra += ["-chardev", f"null,id=line{line}"]
        extra += ["-device", f"isa-serial,iobase={port:#x},irq={line},chardev=line{line}"]
    with stopped_at(lab, "prompt", extra=tuple(extra)) as machine:
        mask_all_lines(machine)
        yield Controllers(machine, ports)


@pytest.mark.exercise("2.4", points=2, gate=True)
def test_irqs_are_remapped_and_masked(lab):
    """After pic_initialize: IRQ 0 to 15 have vectors 32 to 47, and every IRQ is masked, whatever it
    was before."""
    with stopped_at(lab, "pic_initialize") as machine:
        machine.out8(0x21, 0)
        machine.out8(0xA1, 0)
        machine.run_to(machine.read_words(machine.registers()["esp"], 1)[0])
        state = Controllers(machine, {}).state()
    assert [state[name]["base"] for name in (FIRST, SECOND)] == [32, 40]
    assert [state[name]["imr"] for name in (FIRST, SECOND)] == [0xFF, 0xFF], "lines are open"


@pytest.mark.exercise("2.4", points=1)
def test_initialization_words(lab):
    """Initialization words: each controller gets its four, in order. A mask may have been written
    before."""
    trace = lab.scratch / "trace"
    with switched_on(lab, extra=("-trace", "pic_ioport_write", "-D", str(trace))) as machine:
        machine.run_to(machine.address("pic_initialize"))
        start = trace.stat().st_size
        machine.run_to(machine.read_words(machine.registers()["esp"], 1)[0])
        text = trace.read_text()[start:]
    for master, vector, cascade in (("1", 0x20, 4), ("0", 0x28, 2)):
        writes = [(int(a), int(v, 16)) for m, a, v in WRITE.findall(text) if m == master]
        first = next(
            index for index, (address, value) in enumerate(writes) if address == 0 and value & 0x10
        )
        words = [value for _, value in writes[first : first + 4]]
        assert [address for address, _ in writes[first : first + 4]] == [0, 1, 1, 1]
        assert words[:3] == [0x11, vector, cascade], f"ICW1 to 3 are {words[:3]}"
        assert words[3] & 0x13 == 1, f"ICW4 is {words[3]:#x}: 8086 mode, and no automatic end"


@pytest.mark.exercise("2.4", points=3, gate=True)
def test_end_of_interrupt(lab):
    """EOIs of both controllers: an IRQ is in service in its handler, no longer in service after it,
    and can come again."""
    lines = (7, 8, 15)
    with controllers(lab, *lines) as pics:
        machine = pics.machine
        handlers = {line: pics.handler(line) for line in lines}
        for line in (*lines, *lines):
            pics.set_line(line, True)
            machine.run_to(pics.dispatch)
            _, frame = trap_frame(machine)
            assert frame["vector"] == TIMER + line
            assert machine.run_to(handlers[line], LOOP) == handlers[line], (
                f"line {line}: no handler"
            )
            expected = (1 << line, 0) if line < 8 else (1 << 2, 1 << line - 8)
            assert pics.in_service() == expected, f"line {line} is not in service in its handler"
            assert not machine.registers()["eflags"] & INTERRUPTS
            pics.set_line(line, False)
            machine.run_to(LOOP)
            assert pics.in_service() == (0, 0), (
                f"line {line}: in service after the handler (first, second): {pics.in_service()}"
            )
            assert machine.registers()["eflags"] & INTERRUPTS


@pytest.mark.exercise("2.4", points=4)
def test_spurious_irq_7(lab):
    """A spurious IRQ 7 while IRQ 5 is in service: no handler is called, and no EOI is sent."""
    with controllers(lab, 5, 7) as pics:
        handlers = {line: pics.handler(line) for line in (5, 7)}
        pics.set_line(5, True)
        pics.machine.run_to(handlers[5])
        assert pics.forge(7, handlers[7]) == LOOP, "the handler of line 7 was called"
        assert pics.in_service() == (1 << 5, 0), "an EOI was sent for a spurious interrupt"
        # A request that waits is not yet in service.
        pics.set_line(7, True)
        assert pics.forge(7, handlers[7]) == LOOP, "line 7 is requested, but not in service"
        assert pics.in_service() == (1 << 5, 0)


@pytest.mark.exercise("2.4", points=4)
def test_spurious_irq_15(lab):
    """A spurious IRQ 15 while IRQ 10 is in service: the first controller gets an EOI, the second
    gets none. A request that waits is not in service yet, and the mask does not matter."""
    with controllers(lab, 10, 15) as pics:
        handlers = {line: pics.handler(line) for line in (10, 15)}
        pics.set_line(10, True)
        pics.machine.run_to(handlers[10])
        assert pics.in_service() == (1 << 2, 1 << 2)
        for is_requested, mask in ((False, 0x7B), (True, 0x7B), (False, 0xFB)):
            pics.set_line(15, is_requested)
            pics.machine.out8(0xA1, mask)
            assert pics.forge(15, handlers[15]) == LOOP, "the handler of line 15 was called"
            assert pics.in_service() == (0, 1 << 2), (
                f"in service afterwards (first, second): {pics.in_service()}, not (0, 4)"
            )


@pytest.mark.exercise("2.4", points=1)
def test_irq_of_the_first_controller(lab):
    """IRQ 5 while IRQ 10 is in service: its EOI goes to the first controller alone."""
    with controllers(lab, 10) as pics:
        handlers = {line: pics.handler(line) for line in (5, 10)}
        pics.set_line(10, True)
        pics.machine.run_to(handlers[10])
        assert pics.forge(5, handlers[5]) == handlers[5], "the handler of line 5 was not called"
        pics.machine.run_to(LOOP)
        first, second = pics.in_service()  # an EOI may name its line, or end what is in service
        assert second == 1 << 2, f"in service afterwards (first, second): {first}, {second}"


def rates(seed: int) -> list[int]:
    """Frequencies whose divisor is just rounded up, just down, and the slowest and the usual one;
    and one whose divisor fits into a byte, rounded up."""
    chooser = random.Random(seed)
    candidates = chooser.sample(range(60, 400), 340)
    up = next(hz for hz in candidates if 0.5 < FREQUENCY / hz % 1 < 0.6)
    down = next(hz for hz in candidates if 0.4 < FREQUENCY / hz % 1 < 0.5)
    high = chooser.sample(range(4700, 10_000), 100)
    return [100, up, down, 18, next(hz for hz in high if 0.5 < FREQUENCY / hz % 1 < 0.6)]


@pytest.mark.exercise("2.4", points=3, gate=True)
def test_divisor(lab):
    """The divisor: the nearest one, measured exactly between two ticks. 65536 is written as 0."""
    with controllers(lab) as pics:
        machine = pics.machine
        for hz in rates(lab.seed):
            divisor = min(65536, int(FREQUENCY / hz + 0.5))
            machine.call(machine.address("pit_initialize"), hz)
            machine.out8(0x43, 0xE2)
            assert machine.in8(0x40) & STATUS_BITS == RATE_GENERATOR, f"{hz} Hz: not mode 2"
            passed, counts = ticks_of(machine, pics.dispatch)
            assert max(counts) <= divisor, f"{hz} Hz: the timer counts from more than {divisor}"
            # Both count the same crystal, one up, the other down from the divisor again and again.
            off = passed + counts[-1] - counts[0] + divisor / 2
            assert abs(off % divisor - divisor / 2) < 3, f"{hz} Hz: the divisor is not {divisor}"
            assert passed / divisor > PERIODS - 1, f"{hz} Hz: the ticks come too often"
            mask_all_lines(machine)
            go_round(machine)
            machine.out8(0x20, 0x20)


def ticks_of(machine: Guest, dispatch: int) -> tuple[float, list[int]]:
    """Lets some ticks come: how much time has passed in the timer's clocks, and what it counted at
    the beginning and after each tick. Time is added up from short pieces: the PM timer wraps."""
    passed, (before, count) = 0.0, clocks(machine)
    counts = [count]
    with machine.stopping_at(dispatch):
        for _ in range(PERIODS):
            machine.resume()
            assert trap_frame(machine)[1]["vector"] == TIMER
            now, count = clocks(machine)
            passed += (now - before) % ((PM_TIMER_MASK + 1) / 3)
            before = now
            counts.append(count)
    return passed, counts


def clocks(machine: Guest) -> tuple[float, int]:
    """The PM timer, in the interval timer's clocks; and the interval timer's own count."""
    machine.out8(0x43, 0xD2)
    count = machine.in8(0x40) | machine.in8(0x40) << 8
    return (machine.in32(PM_TIMER) & PM_TIMER_MASK) / 3, count or 65536


@pytest.mark.exercise("2.4", points=1)
@pytest.mark.parametrize("hz", [0, 17, 65537])
def test_frequency_out_of_range(lab, hz):
    """A frequency out of range: a panic before it is divided by. 65536 Hz is in the range."""
    with stopped_at(lab, "prompt") as machine:
        function, elsewhere = machine.address("pit_initialize"), machine.address("panic")
        trap = machine.address("trap_dispatch")
        assert machine.call(function, 65536, stop_at=(elsewhere, trap)) is not None
        assert machine.call(function, hz, stop_at=(elsewhere, trap)) is None, f"{hz} Hz is accepted"
        assert machine.registers()["eip"] == elsewhere, f"{hz} Hz: an exception, and no panic"


@pytest.mark.exercise("2.4", points=2)
def test_no_tick_is_lost(lab):
    """Ticks: as many as interrupts of the timer, and none of them as vector 8."""
    log = lab.scratch / "interrupts"
    with switched_on(lab, "probe work", extra=("-d", "int", "-D", str(log))) as machine:
        machine.run_to(machine.address("machine_exit"))
        mask_all_lines(machine)
        ticks = machine.call(machine.address("pit_ticks"))
        traps = recorded_traps(log.read_text(errors="replace"))
    vectors = [trap.vector for trap in traps if trap.registers["CR0"] >> 31]
    assert 8 not in vectors, "IRQ 0 came as vector 8"
    assert ticks == vectors.count(TIMER), f"{ticks} ticks, {vectors.count(TIMER)} interrupts"
    assert ticks >= 2, f"only {ticks} ticks while ring 3 worked"
