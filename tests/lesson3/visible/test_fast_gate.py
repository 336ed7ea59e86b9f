"""Exercise 3.4: SYSENTER, and the page that knows how to use it.

Not looked at here, but by the graders: flags that user mode has set (nested task, I/O
privilege), a stack pointer that is no good, the sixth argument, and the ways back by IRET.
"""

from __future__ import annotations

import pytest

from tests.lesson3.support import (
    DATA,
    EFAULT,
    FAST,
    GETPID,
    INTERRUPTS,
    STACK,
    TRAP,
    UNAME,
    ring3,
    same,
    signed,
)
from tests.support.told import Usual, expect, fail, told

COMMON = (
    Usual(
        "ended by signal 11",
        "the way back is wrong: SYSEXIT takes EIP from EDX, and ESP from ECX; the program's ESP is "
        "what the stub has put into EBP",
    ),
    Usual(
        "general protection fault",
        "MSR 0x174 is not the kernel's code segment: CS is this one, and SS the next descriptor",
    ),
)
IN_GDB = "make LESSON=3 gdb, then: tbreak sysenter_entry, continue, stepi, info registers"


@pytest.mark.exercise("3.4", points=1, gate=True)
def test_getpid_by_sysenter(lab):
    """The processor has SYSENTER, and the shared page's stub uses it, not INT 0x80."""
    usually = (
        *COMMON,
        Usual("sysenter_is_there", "another bit of CPUID's EDX: SEP is bit 11 of leaf 1"),
        "an MSR has another value: 0x174 the kernel's code segment, 0x176 sysenter_entry",
    )
    with told(usually, IN_GDB), ring3(lab) as caller:
        with caller.in_kernel() as guest:
            there = guest.call("sysenter_is_there") & 0xFF
            expect("sysenter_is_there() on a processor with SYSENTER", bool(there), True)
        caller.stop_in_shared_call("sysenter_entry", GETPID)
        expect("getpid of process 1 through the shared page", caller.call_shared(GETPID)["eax"], 1)


@pytest.mark.exercise("3.4", points=1)
def test_arguments_by_sysenter(lab):
    """A structure arrives, a bad pointer is EFAULT, as by INT 0x80."""
    usually = (*COMMON, "the frame is not in INT 0x80's order (struct trap_frame)")
    with told(usually, IN_GDB), ring3(lab) as caller:
        for address, name, expected in ((DATA, "a buffer", 0), (0, "a null pointer", -EFAULT)):
            found = signed(caller.call_shared(UNAME, address)["eax"])
            expect(f"uname with {name}, by SYSENTER (EFAULT is {EFAULT})", found, expected)
        found = caller.guest.read(DATA, 6)
        expect("the first bytes of uname's structure", found, b"Linux\0")


@pytest.mark.exercise("3.4", points=1)
def test_registers_after_the_stub(lab):
    """SYSEXIT takes ECX and EDX; the stub's caller has them all the same."""
    mine = {"ebx": 0x1111, "ecx": 0x2222, "edx": 0x3333, "esi": 0x4444, "edi": 0x5555}
    mine |= {"ebp": 0x6666, "esp": STACK - 8}
    usually = (*COMMON, "the stub in shared_page.asm does not pop in the reverse order")
    with told(usually, IN_GDB), ring3(lab) as caller:
        after = caller.call_shared(GETPID, **mine)
        same(after, mine, "user mode's registers after a call through the shared page")


@pytest.mark.exercise("3.4", points=1)
def test_interrupts_by_sysenter(lab):
    """SYSENTER disables interrupts: they are enabled again while the call runs, and after it. The
    call is made by SYSENTER, and comes back to return_here."""
    usually = (
        Usual(
            "frame of a call",
            "the frame has another EIP than return_here, or INT 0x80 makes the call after SYSENTER",
        ),
        *COMMON,
        Usual("while a call", "SYSENTER clears IF, and STI is missing before syscall_dispatch"),
        "the flags that the program gets back lack IF: STI is the last before SYSEXIT",
    )
    with told(usually, IN_GDB), ring3(lab) as caller:
        flags = caller.stop_in_shared_call("syscall_dispatch", GETPID)["eflags"]
        if not flags & INTERRUPTS:
            fail(
                "interrupts while a call by SYSENTER runs: expected enabled, seen disabled",
                "syscall_dispatch, called from sysenter_entry",
            )
        there = caller.guest.read_word(caller.guest.address("shared_sysenter_return"))
        what = "EIP in the frame of a call by SYSENTER (return_here)"
        expect(what, f"{caller.frame()['eip']:#x}", f"{there:#x}")
        flags = caller.back()["eflags"]
        state = "enabled" if flags & INTERRUPTS else "disabled"
        expect("interrupts in user mode after a call by SYSENTER", state, "enabled")


@pytest.mark.exercise("3.4", points=1)
def test_trap_flag_of_a_program(lab):
    """A program that sets TF just before SYSENTER: its call is made, and the kernel is not stepped
    through."""
    usually = (
        Usual(
            "exception 1,",
            "sysenter_initialize does not register sysenter_fix_up (trap_register_fixup), or it "
            "does not clear TF in the frame",
        ),
        *COMMON,
    )
    with told(usually, IN_GDB), ring3(lab) as caller:
        caller.write(STACK - 64, bytes(4))
        flags = TRAP | INTERRUPTS | 2
        caller.prepare(GETPID, (), eip=FAST, ebp=STACK - 64, eflags=flags)
        caller.guest.run_to("syscall_dispatch", goal="a call by SYSENTER, with TF set")
        stepped = bool(caller.guest.registers()["eflags"] & TRAP)
        expect("TF in the kernel", stepped, False)
