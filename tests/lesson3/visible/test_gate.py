"""Exercise 3.1: the gate for INT 0x80, and the way from the number to the function.

Not looked at here, but by the graders: work before the way back to user mode (it needs a signal at
the right instruction), and the records of a trace (3.5 writes them).
"""

from __future__ import annotations

import pytest

from labs.tools.machine.symbols import read_symbols
from tests.lesson3.support import (
    ENOSYS,
    GETPID,
    INTERRUPTS,
    STACK,
    USER_CODE,
    USER_DATA,
    Caller,
    ring3,
    same,
    signed,
)
from tests.support.remote import CALL_SECONDS, Guest
from tests.support.told import Usual, expect, fail, told

CALLS = 512  # SYSCALL_LIMIT in kernel/syscall/syscall.h: numbers are 0 to 511
COMMON = (
    Usual(
        "ended by signal 11",
        "the gate is not at SYSCALL_VECTOR, its privilege level is not 3, or its selector is not "
        "KERNEL_CODE: INT 0x80 in user mode is then a general protection fault, which ends the "
        "program by signal 11 (SIGSEGV)",
    ),
    Usual(
        r"(?s)panicked.*where: \S*dispatch",
        "syscall_dispatch does not get the address of the frame: push esp, then call",
    ),
    Usual(
        r"(?s)panicked.*where: syscall_(?:leave|entry)",
        "the stack is not as it was: each push needs its pop before restore_registers and IRET",
    ),
)
IN_GDB = "make LESSON=3 gdb, then: tbreak syscall_dispatch, continue, frame"


@pytest.mark.exercise("3.1", points=1, gate=True)
def test_getpid(lab):
    """User mode asks for its process's number by INT 0x80, and goes on with the answer in EAX."""
    usually = (
        *COMMON,
        "the result is not written into the frame's eax, which restore_registers loads",
    )
    with told(usually, IN_GDB), ring3(lab) as caller:
        for time in ("first", "second"):
            expect(f"the {time} getpid (call {GETPID}) of process 1", caller.result(GETPID), 1)


@pytest.mark.exercise("3.1", points=1)
def test_unknown_number(lab):
    """A number that no call has is -ENOSYS: any 32 bits, and the numbers next to the table's."""
    usually = (
        Usual(
            "before the table", "the number is compared as a signed one: -1 is below every limit"
        ),
        Usual(
            "panicked.*from address 0x000000",
            "a number below the limit may have no call: its place in the table is NULL",
        ),
        Usual("after the table", "the number is compared with <= in place of <"),
        Usual(f"seen {ENOSYS}$", "the error is positive: ENOSYS in place of -ENOSYS"),
        Usual(f"EAX after.*seen (?!{ENOSYS}$)", "the result is not written into the frame's eax"),
    )
    with told(usually, "make hint EX=3.1"), ring3(lab) as caller:
        refuse(caller, 0, 400, CALLS - 1)
        refuse_outside_the_table(caller)
        refuse(caller, 0x80000000, 0xFFFFFFFF)


def refuse(caller: Caller, *numbers: int) -> None:
    """Makes calls of these numbers, which no call has."""
    for number in numbers:
        what = f"EAX after INT 0x80 with the unknown number {signed(number)} in EAX"
        found = caller.result(number)
        expect(what, words_of(found), words_of(-ENOSYS))


def words_of(result: int) -> str:
    """A call's result, with its name if it is the one that is expected here."""
    return f"{result} (-ENOSYS)" if result == -ENOSYS else str(result)


def refuse_outside_the_table(caller: Caller) -> None:
    """Asks for the two numbers that the table of calls just has no place for: what is there in
    memory is something else, and not 0 while the test asks."""
    for number, side in ((CALLS, "after"), (-1, "before")):
        with caller.in_kernel() as guest:
            outside = table_of_calls(guest) + 4 * number
            kept = guest.read(outside, 4)
            guest.write(outside, b"\x11\x22\x33\xc4")
            found = guest.call("syscall_find", number & 0xFFFFFFFF)
            guest.write(outside, kept)
        if found:
            fail(
                f"syscall_find({number}): expected NULL, because the table has the numbers 0 to "
                f"{CALLS - 1}; seen the word {side} the table",
                f"calls[{number}] in kernel/syscall/gate.c",
            )


def table_of_calls(guest: Guest) -> int:
    """Where kernel/syscall/gate.c has its table: other files have shorter ones of this name."""
    found = read_symbols(guest.symbols.path)
    return next(each.address for each in found if (each.name, each.size) == ("calls", 4 * CALLS))


@pytest.mark.exercise("3.1", points=1)
def test_other_registers_stay(lab):
    """After a call the program is in user mode again, and all its registers but EAX are what they
    were, the segments' too."""
    mine = {"ebx": 0x1111, "ecx": 0x2222, "edx": 0x3333, "esi": 0x4444, "edi": 0x5555}
    mine |= {"ebp": 0x6666, "esp": STACK - 8, "ds": USER_DATA, "es": USER_DATA}
    usually = (
        *COMMON,
        "what syscall_entry pushes and what it pops are not the same words in reverse order",
    )
    with told(usually, IN_GDB), ring3(lab) as caller:
        after = caller.call(GETPID, **mine)
        same(after, mine | {"cs": USER_CODE, "ss": USER_DATA}, "user mode's registers after getpid")


@pytest.mark.exercise("3.1", points=1)
def test_interrupts_in_a_call(lab):
    """A call runs with interrupts enabled: it may last long, and the clock must go on."""
    usually = "GATE_INTERRUPT in place of GATE_TRAP: an interrupt gate clears the interrupt flag"
    with told(usually, "make LESSON=3 gdb, then: idt 128"), ring3(lab) as caller:
        caller.prepare(GETPID, ())
        caller.guest.run_to("syscall_dispatch", seconds=CALL_SECONDS)
        flags = caller.guest.registers()["eflags"]
        state = "enabled" if flags & INTERRUPTS else "disabled"
        expect("interrupts where INT 0x80 reaches syscall_dispatch", state, "enabled")
