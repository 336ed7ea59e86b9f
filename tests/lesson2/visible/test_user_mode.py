"""Exercise 2.6: into ring 3, and back by an exception.

Not looked at here, but by the graders: every register and flag of user mode, ports in pairs, and a
stack of another depth.
"""

from __future__ import annotations

import pytest

from labs.tools.grading.lab import Lab
from labs.tools.machine.explain import VECTOR_NAMES
from tests.lesson2.support import (
    FRAME_BYTES,
    INTERRUPTS,
    USER_DATA,
    Trap,
    mask_all_lines,
    run_recorded,
    stopped_at,
    trap_frame,
    user_exceptions,
)
from tests.support.told import Usual, expect, told

GENERAL_PROTECTION, PAGE_FAULT, INVALID_OPCODE = 13, 14, 6
IN_GDB = "make gdb LESSON=2 BOOT=direct, then: tbreak user_enter, continue (type: probe nothing)"
DATA_SEGMENTS = ("DS", "ES", "FS", "GS")
NEAR = 64  # bytes: what is saved there may differ
USUALLY = (
    Usual("EFLAGS.IF", "the EFLAGS that IRET gets have bit 9 clear: PUSHF delivers the kernel's"),
    Usual(
        "selector in",
        "the data segment registers are not loaded with USER_DATA: IRET clears the kernel's",
    ),
    Usual(
        "an allowed port",
        "task_state_allow_port sets the port's bit: a set bit forbids, and a clear one allows; or "
        "it clears another one: the port's is bit port % 8 of byte port / 8",
    ),
    Usual(
        "only port 0x64",
        "task_state_allow_port clears more than one bit: a byte of the map has the bits of eight "
        "ports",
    ),
    Usual(
        "port that is not allowed",
        "the map does not forbid each port: io_map_base leads to it, and all of it is 0xff",
    ),
    Usual("exception 6", "CS is the kernel's: the selector for IRET is USER_CODE"),
    Usual(
        "exception 8.*page fault at 0xf", "esp0 of the TSS is not set: the way back has no stack"
    ),
    Usual("exception 8.*page fault at 0x0", "ss0 of the TSS is not set: it is KERNEL_DATA"),
    Usual(
        "user_enter has saved",
        "esp0 is ESP as it is when user_enter calls task_state_set_stack, below what is pushed "
        "there: not EBP, nor an end of the stack",
    ),
    "the words for IRET, the last one first, are: SS, ESP, EFLAGS, CS, EIP",
    "CS and SS are USER_CODE and USER_DATA: their two lowest bits are 3",
    "esp0 and ss0 of the TSS are not set, so the way back has no stack",
)


@pytest.mark.exercise("2.6", points=1, gate=True)
def test_ring_3_is_entered(lab):
    """A snippet runs in ring 3, says QEMU, and ends with an invalid opcode; IF is set."""
    with told(USUALLY, IN_GDB):
        traps = exceptions(lab, "probe nothing; probe nothing")
        what = "exceptions in ring 3 that QEMU has seen in two times `probe nothing`"
        expect(what, listed(traps), named(INVALID_OPCODE, INVALID_OPCODE))
        flags = ["enabled" if trap.registers["EFL"] & INTERRUPTS else "disabled" for trap in traps]
        expect("interrupts (EFLAGS.IF) in user mode", flags[0], "enabled")
        for name in DATA_SEGMENTS:
            seen = f"{traps[0].registers[name]:#x}"
            expect(f"selector in {name} in user mode", seen, f"{USER_DATA:#x}")


@pytest.mark.exercise("2.6", points=1)
def test_ring_3_is_held(lab):
    """HLT, the kernel's memory, and ports are out of its reach; but not a port that is allowed. A
    trap begins on the kernel's stack as user_enter left it."""
    with told(USUALLY, IN_GDB):
        traps = exceptions(
            lab,
            "probe hlt; probe read 0xc0100000; probe in 0x60; allow 0x64; probe in 0x64; "
            "probe in 0x60",
        )
        what = "exceptions in ring 3 that QEMU has seen in `probe hlt; probe read 0xc0100000`"
        expect(what, listed(traps[:2]), named(GENERAL_PROTECTION, PAGE_FAULT))
        codes = [trap.error_code for trap in traps[:2]]
        expect("their error codes (5: user mode, a page that is present)", codes, [0, 5])
        what = "exceptions in `probe in 0x60`, of a port that is not allowed"
        expect(what, listed(traps[2:3]), named(GENERAL_PROTECTION))
        what = "exceptions in `allow 0x64; probe in 0x64`, of an allowed port"
        expect(what, listed(traps[3:4]), named(INVALID_OPCODE))
        what = "exceptions in `probe in 0x60` when only port 0x64 is allowed"
        expect(what, listed(traps[4:]), named(GENERAL_PROTECTION))
        require_stack_as_it_is(lab)


def require_stack_as_it_is(lab: Lab) -> None:
    """A trap from user mode begins right below what user_enter has pushed: EBP, EBX, ESI, EDI."""
    with stopped_at(lab, "user_enter", "probe nothing") as machine:
        saved = machine.registers()["esp"] - 16
        mask_all_lines(machine)
        machine.run_to("trap_dispatch")
        frame, _ = trap_frame(machine)
    apart = saved - (frame + FRAME_BYTES)
    what = "bytes from what user_enter has saved down to where a trap from user mode begins"
    expect(what, 0 if 0 <= apart <= NEAR else apart, 0)


def exceptions(lab: Lab, script: str) -> list[Trap]:
    """What ring 3 caused itself in a script that must come to its end."""
    result, traps = run_recorded(lab, script)
    result.check()
    return user_exceptions(traps)


def listed(traps: list[Trap]) -> str:
    """Exceptions in words."""
    return named(*(trap.vector for trap in traps))


def named(*vectors: int) -> str:
    """Vectors in words."""
    names = (f"{vector} ({VECTOR_NAMES.get(vector, 'an interrupt')})" for vector in vectors)
    return ", ".join(names) or "none"
