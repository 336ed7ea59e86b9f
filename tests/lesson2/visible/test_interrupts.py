"""Exercise 2.3: the table of gates, the stubs, and the way in and out.

Not looked at here, but by the graders: every vector and its error code, every register of the frame
in both directions, nested traps, and user mode.
"""

from __future__ import annotations

import struct

import pytest

from labs.tools.grading.lab import Lab
from labs.tools.machine.explain import PANIC
from labs.tools.machine.result import GuestFailure, Outcome
from tests.lesson2.support import (
    KERNEL_CODE,
    KERNEL_DATA,
    LOOP,
    TIMER,
    USER_CODE,
    USER_DATA,
    go_round,
    run_recorded,
    stopped_at,
    trap_frame,
)
from tests.support.remote import Guest, NotMapped
from tests.support.told import Usual, expect, fail, require, told

VECTORS, GATE_SIZE = 256, 8
KERNELS = f"{KERNEL_DATA:#x}, {KERNEL_DATA:#x}"
PAGE_FAULT = 14
ELSEWHERE = "a gate does not lead to its stub: test_table_of_gates says why"
IN_GDB = "make gdb LESSON=2 BOOT=direct, then: tbreak trap_dispatch, continue, print *frame"


@pytest.mark.exercise("2.3", points=1)
def test_table_of_gates(lab):
    """The IDT register, and the gates of a page fault and of the timer."""
    usually = (
        Usual(
            "^limit",
            "the limit of the IDT register is the offset of the last byte: the size - 1; with "
            "1023, that of the BIOS, LIDT has not been executed",
        ),
        Usual("^selector .*seen 0x0$", "each of the 256 vectors has a gate"),
        Usual("^selector .*seen 0x(?!0$)", "a gate's selector is KERNEL_CODE"),
        Usual("^offset", "a gate's offset is split into bits 0 to 15 and bits 16 to 31"),
    )
    then = "make gdb LESSON=2 BOOT=direct, then: tbreak prompt, continue, monitor info registers"
    with told(usually, then), stopped_at(lab, "prompt") as machine:
        base, limit = machine.tables()["IDT"]
        expect("limit of the IDT register", limit, VECTORS * GATE_SIZE - 1)
        for vector in (PAGE_FAULT, TIMER):
            require_gate(machine, base, vector)


def require_gate(machine: Guest, base: int, vector: int) -> None:
    """A gate leads to its stub, in the kernel's code segment."""
    gate = machine.read(base + GATE_SIZE * vector, GATE_SIZE)
    low, selector, _, _, high = struct.unpack("<HHBBH", gate)
    expect(f"selector of gate {vector}", f"{selector:#x}", f"{KERNEL_CODE:#x}")
    stub = machine.read_words(machine.address("trap_stubs"), VECTORS)[vector]
    what = f"offset of gate {vector}, trap_stub_{vector}"
    expect(what, f"{high << 16 | low:#x}", f"{stub:#x}")


@pytest.mark.exercise("2.3", points=1, gate=True)
def test_exceptions_are_reported(lab):
    """A page fault comes with the processor's error code, a division by zero without one."""
    usually = (
        Usual(
            r"vector \d{4,}",
            "trap_dispatch does not get the address of the frame: push esp, then call",
        ),
        Usual("where no code is", ELSEWHERE),
        "the stub pushes 0 where the processor pushes no error code, and nothing where it does",
        "the order of pushes is not that of struct trap_frame in kernel/cpu/trap.h, from its end",
    )
    with told(usually, IN_GDB):
        report(lab, "crash null", 14, "exception 14, page fault (error code 0x2)")
        report(lab, "crash divide", 0, "exception 0, divide error (error code 0x0)")


def report(lab: Lab, command: str, vector: int, sentence: str) -> None:
    """A command of the kernel's prompt ends in a panic that says this."""
    result, traps = run_recorded(lab, command)
    said = PANIC.search(result.serial)
    if result.outcome is not Outcome.PANIC or not said:
        raise GuestFailure(result.explain(), result)
    seen = said[0].removeprefix("PANIC: ")
    if sentence not in seen:
        expect(f"`{command}`, the kernel's report", repr(seen), repr(sentence))
    expect(f"`{command}`, the last vector that QEMU has seen", traps[-1].vector, vector)


@pytest.mark.exercise("2.3", points=1, gate=True)
def test_interrupts_return(lab):
    """The timer interrupts the kernel again and again, and it goes on as if nothing had been."""
    usually = (
        Usual(
            "seen [01];",
            "the frame's vector is not 32, so no EOI is sent: the vector is pushed after the error "
            "code, or after the 0 that stands for one",
        ),
        Usual("seen [01];", "the timer's vector has no gate"),
        Usual(
            "exception 13",
            "before IRET the stack is not as the processor left it: vector and error code are "
            "still on it, or trap_dispatch's argument",
        ),
        Usual(
            "exception 13",
            "registers are popped in the order in which they were pushed, and not the other way "
            "round",
        ),
        Usual("exception 6", "it ends with RET in place of IRET, which also pops CS and EFLAGS"),
    )
    with told(usually, IN_GDB):
        result, traps = run_recorded(lab, "probe work")
        result.check()
        ticks = sum(trap.vector == TIMER for trap in traps)
        wanted = "timer interrupts (vector 32): expected 2 or more"
        require(ticks >= 2, f"{wanted}, seen {ticks}; it works without an error until then")


@pytest.mark.exercise("2.3", points=1)
def test_registers_come_back(lab):
    """trap_dispatch finds every register of code that loops in the frame, also the segment
    registers, and has segments of its own; that code finds its registers as they were before a
    tick."""
    usually = (
        Usual("address of a frame", "the frame's address is its argument: push esp, then call"),
        Usual(
            r"wrong places\n +where: ERROR_CODE",
            "no 0 is pushed where the processor pushes no error code",
        ),
        Usual(
            r"wrong places\n +where: (?!ERROR_CODE|VECTOR: .*seen 0xd\b)",
            "the field at the highest address is pushed first: the error code, the vector, DS, ES, "
            "FS, GS, and then PUSHA's registers",
        ),
        Usual(r"VECTOR: .*seen 0xd\b", "the timer's vector has no gate"),
        Usual("double fault", ELSEWHERE),
        Usual(
            "DS and ES in",
            "save_registers does not load DS and ES with KERNEL_DATA: user mode may have left "
            "anything there",
        ),
        "pops are not in the opposite order of the pushes",
        "the handler's DS and ES are loaded before those of the interrupted code are pushed",
    )
    values = {"eax": 0xA, "ebx": 0xB, "ecx": 0xC, "edx": 0xD, "esi": 0x51, "edi": 0xD1, "ebp": 0}
    values |= {"ds": USER_DATA, "es": USER_CODE, "fs": KERNEL_DATA, "gs": USER_DATA}
    with told(usually, IN_GDB), stopped_at(lab, "prompt") as machine:
        go_round(machine)
        machine.set(**values)
        machine.run_to("trap_dispatch", goal="the timer's interrupt")
        pushed = values | {"vector": TIMER, "error_code": 0}
        require_words(frame_of(machine), pushed, "struct trap_frame has words in wrong places")
        inside = machine.registers()
        expect("DS and ES in trap_dispatch", f"{inside['ds']:#x}, {inside['es']:#x}", KERNELS)
        machine.run_to(LOOP, goal="the interrupted code, after the handler")
        what = "after an interrupt registers are not what they were"
        require_words(machine.registers(), values, what)


def frame_of(machine: Guest) -> dict[str, int]:
    """The words of the frame whose address trap_dispatch has got."""
    try:
        return trap_frame(machine)[1]
    except NotMapped:
        argument = machine.read_word(machine.registers()["esp"] + 4)
        fail(f"trap_dispatch's argument: expected the address of a frame, seen {argument:#x}")


def require_words(found: dict[str, int], expected: dict[str, int], message: str) -> None:
    """Fails with the words, by name, that are not as expected."""
    wrong = [
        f"{name.upper()}: expected {value:#x}, seen {found[name]:#x}"
        for name, value in expected.items()
        if found[name] != value
    ]
    require(not wrong, message, *wrong)
