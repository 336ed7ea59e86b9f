"""Exercise 3.4, hidden: what SYSENTER does not save, whom it must not believe, and when it must not
be the way back."""

from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest

from tests.lesson3.support import (
    AFTER_GATE,
    ALIGNMENT,
    ARGUMENTS,
    BRK,
    DATA,
    DIRECTION,
    EFAULT,
    EXECVE,
    FAST,
    FRAME,
    GETPID,
    IDENTITY,
    INTERRUPTS,
    IO_PRIVILEGE,
    KERNEL_BASE,
    KERNEL_CODE,
    KERNEL_DATA,
    NESTED,
    OPEN,
    READ,
    SEGMENTS,
    SHARED_PAGE,
    SPACE_END,
    STACK,
    STATUS_FLAGS,
    TRAP,
    UNAME,
    USER_CODE,
    USER_DATA,
    WRITE,
    Caller,
    ring3,
    signed,
    steps_to,
)
from tests.support.remote import SCRATCH

LEAST_STACK = 19  # words: a trap frame
MSR_CS, MSR_ESP, MSR_EIP = 0x174, 0x175, 0x176
READ_MSR = b"\x8b\x4c\x24\x04\x0f\x32\xc3"  # mov ecx, [esp + 4]; rdmsr; ret
FLAGS_KEPT = STATUS_FLAGS | DIRECTION | NESTED | ALIGNMENT | IDENTITY | INTERRUPTS
DEBUG, BREAKPOINT = 1, 3
BUDGET = 125  # instructions, the stub's included
SYSEXIT = b"\x0f\x35"


def registers_of_sysenter(guest) -> list[int]:
    """The three of the processor's registers."""
    guest.write(SCRATCH, READ_MSR)
    return [guest.call(SCRATCH, number) for number in (MSR_CS, MSR_ESP, MSR_EIP)]


def place_of_return(caller: Caller) -> int:
    """Where SYSENTER's calls come back."""
    return caller.guest.read_word(caller.guest.address("shared_sysenter_return"))


@pytest.mark.exercise("3.4", points=2, gate=True)
def test_processor_registers(lab):
    """The three MSRs: code segment, a kernel stack, entry. A call by SYSENTER reaches
    syscall_dispatch, and its result comes back."""
    with ring3(lab) as caller:
        pid = caller.renumber(random.Random(lab.seed))
        look_at_registers(caller)
        caller.stop_in_shared_call("sysenter_entry", GETPID)
        reached = caller.guest.run_to("syscall_dispatch", "syscall_entry", AFTER_GATE)
        assert reached == "syscall_dispatch", "a call by SYSENTER is not made before it comes back"
        found = caller.back()["eax"]
    assert found == pid, f"the program is number {pid}, and getpid returns {found}"


def look_at_registers(caller: Caller) -> None:
    """Looks at what SYSENTER will load."""
    with caller.in_kernel() as guest:
        told = guest.call("sysenter_is_there") & 0xFF
        assert told == 1, "the processor has SYSENTER, and sysenter_is_there says no"
        code, stack, entry = registers_of_sysenter(guest)
        bss = range(guest.address("bss_start") + 4 * LEAST_STACK, guest.address("bss_end") + 1)
        assert code == KERNEL_CODE
        assert entry == guest.address("sysenter_entry")
        assert stack % 4 == 0 and stack in bss, (
            f"SYSENTER's stack begins at {stack:#x}, which is not the end of an array of the kernel"
        )
        with suppress(KeyError):  # the array that the source offers, if it is used
            first = guest.symbols.find("first_stack")
            assert stack == first.address + first.size, (
                f"SYSENTER's stack begins at {stack:#x}; the array for it ends at "
                f"{first.address + first.size:#x}"
            )


@pytest.mark.exercise("3.4", points=1)
def test_processor_without_it(lab):
    """A processor without SYSENTER: no MSR is written, and programs are not told of it."""
    with ring3(lab, "-cpu", "qemu32,-sep") as caller:
        assert caller.result(GETPID) == 1
        with caller.in_kernel() as guest:
            assert guest.call("sysenter_is_there") & 0xFF == 0
            assert registers_of_sysenter(guest) == [0, 0, 0]


@pytest.mark.exercise("3.4", points=2)
def test_every_register_in_many_calls(lab):
    """Calls through the shared page with random registers and flags (300, then 50): only the result
    changes."""
    seeded = random.Random(lab.seed)
    with ring3(lab) as caller:
        for _ in range(300 if lab.mode == "icount" else 50):
            before = {name: seeded.getrandbits(32) for name in ARGUMENTS}
            before["esp"] = STACK - 4 * seeded.randrange(64)
            flags = seeded.getrandbits(22) & (FLAGS_KEPT & ~INTERRUPTS) | INTERRUPTS | 2
            after = caller.call_shared(GETPID, **before, eflags=flags)
            assert after["eax"] == 1
            changed = [name for name, value in before.items() if after[name] != value]
            assert not changed, f"a call by SYSENTER changes {', '.join(changed)}"
            differ = (after["eflags"] ^ flags) & (FLAGS_KEPT | IO_PRIVILEGE)
            assert not differ, f"a call by SYSENTER changes the flags {differ:#x}"


@pytest.mark.exercise("3.4", points=2)
def test_what_the_call_sees(lab):
    """The frame of a fast call: field by field that of INT 0x80, on the same stack. C has its own
    flags and segments, and interrupts are enabled."""
    seeded = random.Random(lab.seed)
    values = {name: seeded.getrandbits(32) for name in ARGUMENTS}
    number = seeded.getrandbits(32) | 1 << 31
    flags = INTERRUPTS | DIRECTION | NESTED | 2
    with ring3(lab) as caller:
        chosen = {"ds": caller.moved_segment(), "es": 0, "fs": USER_DATA, "gs": 0}
        by_gate = caller.stop_in_call(number, *values.values(), eflags=flags, **chosen)
        caller.back()
        inside = caller.stop_in_shared_call(
            "syscall_dispatch", number, **values, eflags=flags, **chosen
        )
        frame = caller.frame()
        home = place_of_return(caller)
        after = caller.back()
    same = {*FRAME, "address"} - {"esp_ignored", "eip", "user_esp", "eflags"}
    differ = [name for name in same if frame[name] & 0xFFFFFFFF != by_gate[name] & 0xFFFFFFFF]
    segments = {*SEGMENTS, "cs", "user_ss"}
    differ = [
        name for name in differ if name not in segments or (frame[name] ^ by_gate[name]) & 0xFFFF
    ]
    assert not differ, f"other than by INT 0x80: {', '.join(differ)}"
    assert frame["eip"] == home and frame["cs"] & 0xFFFF == USER_CODE
    assert frame["eflags"] & flags == flags, "the program's flags are not in the frame"
    assert not inside["eflags"] & DIRECTION, "the program's direction flag is set in C"
    assert not inside["eflags"] & NESTED, "NT is set: the next IRET is a task switch"
    assert inside["eflags"] & INTERRUPTS, "interrupts are disabled in the call"
    assert (inside["ds"], inside["es"]) == (KERNEL_DATA, KERNEL_DATA)
    assert {name: after[name] for name in SEGMENTS} == chosen


@pytest.mark.exercise("3.4", points=2)
def test_both_gates_give_the_same_answers(lab):
    """Good and bad calls with up to six arguments: both gates give the same results."""
    seeded = random.Random(lab.seed)
    calls = [(GETPID,), (UNAME, DATA + 0x100), (UNAME, 4), (BRK, 0), (400,), (0xFFFFFFFF,)]
    calls += [(OPEN, DATA, 0), (OPEN, 0, 0), (READ, 77, DATA, 4), (WRITE, 1, KERNEL_BASE, 4)]
    calls += [(EXECVE, DATA, 1, 0), (EXECVE, 4, 0, 0), (140, 1, 0, 0, DATA, 0), (54, 1, 0x5413, 0)]
    seeded.shuffle(calls)
    with ring3(lab) as caller:
        caller.write(DATA, b"/bin/nothing\0")
        for call in calls:
            one = caller.result(*call)
            other = signed(caller.call_shared(*call)["eax"])
            assert one == other, f"call {call}: {one} by INT 0x80, {other} by SYSENTER"


@pytest.mark.exercise("3.4", points=1)
def test_sixth_argument(lab):
    """The sixth argument: it is read where EBP points, also from the last word below the kernel."""
    seeded = random.Random(lab.seed)
    with ring3(lab) as caller:
        for place in (STACK - 64, SPACE_END - 4, DATA, SHARED_PAGE, KERNEL_BASE - 4):
            word = seeded.getrandbits(32)
            if place < SPACE_END:
                caller.write(place, struct.pack("<I", word))
            expected = caller.guest.read_word(place)
            frame = caller.stop_in_call(400, eip=FAST, ebp=place)
            assert (frame["ebp"], frame["user_esp"]) == (expected, place)
            assert caller.guest.run_to(place_of_return(caller))


@pytest.mark.exercise("3.4", points=2, gate=True)
def test_bad_stack_pointer(lab):
    """EBP in the kernel, across its start, or unmapped: EFAULT, and no call is made."""
    places = (0, 4, 0x60000000, SPACE_END, SPACE_END - 3, KERNEL_BASE - 3, KERNEL_BASE - 1)
    places += (KERNEL_BASE, SCRATCH, 0xFFFFFFFC, 0xFFFFFFFF, 0x80000000)
    seeded = random.Random(lab.seed)
    with ring3(lab) as caller:
        home = place_of_return(caller)
        caller.guest.write(SCRATCH, b"\x5a" * 64)
        for place in places:
            kept = {name: seeded.getrandbits(32) for name in ("ebx", "esi", "edi")}
            caller.prepare(GETPID, (), eip=FAST, ebp=place, **kept)
            reached = caller.guest.run_to("syscall_dispatch", home)
            assert reached == home, f"EBP {place:#x} is believed, and the call is made"
            after = caller.guest.registers()
            assert signed(after["eax"]) == -EFAULT, f"EBP {place:#x}: {signed(after['eax'])}"
            assert after["esp"] == place
            assert {name: after[name] for name in kept} == kept, f"EBP {place:#x}: other registers"
            assert after["eflags"] & INTERRUPTS
        caller.prepare(GETPID, (), eip=FAST, ebp=KERNEL_BASE)
        work = caller.guest.address("trap_return_work")
        caller.guest.run_to("sysenter_entry")
        caller.guest.write(work, struct.pack("<I", 1 << 31))
        reached = caller.guest.run_to("trap_return", home)
        assert reached == "trap_return", "a call that is refused comes back, and work was not done"
        caller.guest.write(work, bytes(4))
        caller.guest.run_to(home)
        assert caller.result(GETPID) == 1


@pytest.mark.exercise("3.4", points=2, gate=True)
def test_trap_flag(lab):
    """TF set just before SYSENTER: the kernel is not single-stepped, and goes on."""
    with ring3(lab) as caller:
        flags = TRAP | INTERRUPTS | 2
        caller.write(STACK - 64, bytes(4))
        caller.prepare(GETPID, (), eip=FAST, ebp=STACK - 64, eflags=flags)
        reached = caller.guest.run_to("syscall_dispatch", "panic_announce")
        assert reached == "syscall_dispatch", "the program's trap flag makes the kernel panic"
        assert not caller.guest.registers()["eflags"] & TRAP
        caller.guest.run_to(place_of_return(caller))
        assert caller.guest.registers()["eax"] == 1
        assert caller.result(GETPID) == 1


@pytest.mark.exercise("3.4", points=1)
def test_only_this_trap_is_fixed_up(lab):
    """The debug exception at sysenter_entry: only TF changes in its frame. Other debug exceptions
    are reported."""
    with ring3(lab) as caller, caller.in_kernel() as guest:
        entry = guest.address("sysenter_entry")

        def trap(vector: int, eip: int) -> int | None:
            flags = 0xFFFFFFFF & ~INTERRUPTS
            guest.write(SCRATCH, struct.pack("<17I", *[0] * 12, vector, 0, eip, 8, flags))
            before = guest.registers()
            if guest.call("trap_dispatch", SCRATCH, stop_at=("panic_announce",)) is None:
                guest.set(**before)
                return None
            assert guest.read_word(SCRATCH + 4 * 14) == eip
            return guest.read_word(SCRATCH + 4 * 16)

        assert trap(DEBUG, entry) == 0xFFFFFFFF & ~INTERRUPTS & ~TRAP
        assert trap(DEBUG, entry + 7) is None
        assert trap(BREAKPOINT, entry) is None


@pytest.mark.exercise("3.4", points=2)
def test_work_before_the_way_back(lab):
    """Work that waits before the return: it is done, and IRET returns with every register that it
    has changed."""
    with ring3(lab) as caller:
        guest = caller.guest
        work = guest.address("trap_return_work")
        caller.stop_in_shared_call("syscall_dispatch", GETPID, 1, 2, 3, 4, 5, 6)
        guest.write(work, struct.pack("<I", 1 << 31))
        reached = guest.run_to("trap_return", AFTER_GATE)
        assert reached == "trap_return", "back in ring 3, and the work was not done"
        assert not guest.registers()["eflags"] & INTERRUPTS, "the look and the way are not one"
        frame = caller.frame()
        assert frame["eax"] == 1
        guest.write(work, bytes(4))
        wanted = {"ecx": 0x7777, "edx": 0x8888, "ebx": 0x9999, "ebp": 0xAAAA}
        for name, value in wanted.items():
            guest.write(frame["address"] + 4 * FRAME.index(name), struct.pack("<I", value))
        for name, value in {"eip": AFTER_GATE, "user_esp": STACK - 256}.items():
            guest.write(frame["address"] + 4 * FRAME.index(name), struct.pack("<I", value))
        after = caller.back()
    assert {name: after[name] for name in wanted} == wanted
    assert after["esp"] == STACK - 256


@pytest.mark.exercise("3.4", points=2)
def test_frame_that_was_changed(lab):
    """A call that changes EIP in its frame, as sigreturn does: it does not return by SYSEXIT, even
    if half of the address is the same."""
    with ring3(lab) as caller:
        guest = caller.guest
        caller.stop_in_shared_call("syscall_dispatch", 400, 1, 2, 3, 4, 5, 6)
        address = caller.frame()["address"]
        place = DATA + (place_of_return(caller) & 0xFFFF)
        for name, value in {"eip": place, "ecx": 0x7777, "edx": 0x8888}.items():
            guest.write(address + 4 * FRAME.index(name), struct.pack("<I", value))
        guest.run_to(place)
        after = guest.registers()
    assert (after["ecx"], after["edx"]) == (0x7777, 0x8888)


@pytest.mark.exercise("3.4", points=2)
def test_interrupts_stay_disabled(lab):
    """From the check for work to SYSEXIT: interrupts are disabled, also in a call that is refused.
    User mode has them enabled."""
    with ring3(lab) as caller:
        home = place_of_return(caller)
        for refused in (False, True):
            if refused:
                caller.back()
                caller.prepare(GETPID, (), eip=FAST, ebp=KERNEL_BASE)
            else:
                caller.stop_in_shared_call("syscall_dispatch", GETPID)
            path = steps_to(caller.guest, home, 300)
            after = caller.guest.registers()
            assert after["eflags"] & INTERRUPTS, "ring 3 goes on with interrupts disabled"
            seen = [each["eflags"] & INTERRUPTS for each in path]
            assert not any(seen[-12:-1]), "interrupts are enabled before SYSEXIT, without a frame"


@pytest.mark.exercise("3.4", points=1)
def test_call_begins_again(lab):
    """A call that begins again: two bytes before the return address is INT 0x80, which does the
    same."""
    with ring3(lab) as caller:
        home = place_of_return(caller)
        assert caller.guest.read(home - 2, 2) == b"\xcd\x80"
        assert SHARED_PAGE < home < KERNEL_BASE


@pytest.mark.exercise("3.4", points=1, gate=True)
def test_cost(lab):
    """The cost of getpid through the shared page: at most 125 instructions, by SYSENTER and
    SYSEXIT."""
    with ring3(lab) as caller:
        caller.call_shared(GETPID)
        caller.prepare_shared(GETPID, ())
        path = steps_to(caller.guest, AFTER_GATE, 4 * BUDGET)
        entry = caller.guest.address("sysenter_entry")
        last = max(i for i, each in enumerate(path) if each["eip"] >= KERNEL_BASE)
        way_back = caller.guest.read(path[last]["eip"], len(SYSEXIT))
    assert entry in {each["eip"] for each in path}
    assert way_back == SYSEXIT, "a call without work comes back by another way than SYSEXIT"
    assert len(path) <= BUDGET, f"getpid takes {len(path)} instructions, more than {BUDGET}"
