"""Exercise 3.1, hidden: every register and flag, every number, the way back, and its price."""

from __future__ import annotations

import random
import struct

import pytest

from labs.tools.machine.symbols import read_symbols
from tests.lesson3.support import (
    AFTER_GATE,
    ALIGNMENT,
    ARGUMENTS,
    DATA,
    DIRECTION,
    EFAULT,
    ENOSYS,
    FRAME,
    GATE,
    GETPID,
    IDENTITY,
    INTERRUPTS,
    IO_PRIVILEGE,
    KERNEL_CODE,
    KERNEL_DATA,
    NESTED,
    SEGMENTS,
    STACK,
    STATUS_FLAGS,
    UNAME,
    USER_CODE,
    USER_DATA,
    ring3,
    steps_to,
)

BUDGET = 80  # instructions, INT and IRET included
LIMIT = 512
TRAP_GATE_3 = 0xEF00
FLAGS_KEPT = STATUS_FLAGS | DIRECTION | NESTED | ALIGNMENT | IDENTITY | INTERRUPTS


@pytest.mark.exercise("3.1", points=1, gate=True)
def test_gate_in_memory(lab):
    """Gate 0x80: a trap gate for ring 3 to syscall_entry; the gates next to it stay closed. A call
    reaches syscall_dispatch, and its result comes back."""
    with ring3(lab) as caller:
        guest = caller.guest
        pid = caller.renumber(random.Random(lab.seed))
        base, _ = guest.tables()["IDT"]
        low, high = guest.read_words(base + 8 * 0x80, 2)
        others = [guest.read_word(base + 8 * vector + 4) & 0xFFFF for vector in (0x7F, 0x81)]
        entry = guest.address("syscall_entry")
        caller.stop_in_call(GETPID)
        found = caller.back()["eax"]
    assert high & 0xFFFF == TRAP_GATE_3, (
        f"gate 0x80 has the bits {high & 0xFFFF:#06x}; 0xef00 is a trap gate for ring 3"
    )
    assert (low & 0xFFFF | high & 0xFFFF0000, low >> 16) == (entry, KERNEL_CODE)
    assert others == [0x8E00] * 2
    assert found == pid, f"the program is number {pid}, and getpid returns {found}"


@pytest.mark.exercise("3.1", points=2, gate=True)
def test_every_register_in_many_calls(lab):
    """Calls with random registers and flags (1000, then 100): only EAX changes."""
    seeded = random.Random(lab.seed)
    with ring3(lab) as caller, caller.guest.stopping_at(AFTER_GATE):
        pid = caller.renumber(seeded)
        for _ in range(1000 if lab.mode == "icount" else 100):
            number = seeded.choice((GETPID, 400, seeded.getrandbits(32) | 1 << 31))
            before = {name: seeded.getrandbits(32) for name in ARGUMENTS}
            before["esp"] = STACK - 4 * seeded.randrange(64)
            flags = seeded.getrandbits(22) & (FLAGS_KEPT & ~INTERRUPTS) | INTERRUPTS | 2
            caller.prepare(number, (), **before, eflags=flags)
            assert caller.guest.resume() == AFTER_GATE
            after = caller.guest.registers()
            expected = pid if number == GETPID else -ENOSYS & 0xFFFFFFFF
            assert after["eax"] == expected, f"call {number:#x} returns {after['eax']:#x}"
            changed = [name for name, value in before.items() if after[name] != value]
            assert not changed, f"call {number:#x} changes {', '.join(changed)}"
            differ = (after["eflags"] ^ flags) & (FLAGS_KEPT | IO_PRIVILEGE)
            assert not differ, f"call {number:#x} changes the flags {differ:#x}"


@pytest.mark.exercise("3.1", points=1)
def test_segment_registers(lab):
    """User segment registers with other bases or null selectors: the kernel is not affected, and
    they come back."""
    with ring3(lab) as caller:
        moved = caller.moved_segment()
        chosen = {"ds": moved, "es": moved, "fs": USER_DATA, "gs": 0}
        after = caller.call(GETPID, **chosen)
        assert after["eax"] == 1
        assert {name: after[name] for name in SEGMENTS} == chosen
        assert (after["cs"], after["ss"]) == (USER_CODE, USER_DATA)


@pytest.mark.exercise("3.1", points=2, gate=True)
def test_any_number(lab):
    """Call numbers -1, 2^31 - 1, the table's end, and numbers whose offset wraps: ENOSYS where
    there is no call."""
    wrapping = [GETPID + (1 << shift) for shift in (9, 16, 20, 27, 28, 29, 30, 31)]
    numbers = [0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, LIMIT - 1, LIMIT, LIMIT + 1, *wrapping]
    with ring3(lab) as caller:
        pid = caller.renumber(random.Random(lab.seed))
        for number in numbers:
            found = caller.result(number)
            assert found == -ENOSYS, f"call {number:#x} returns {found}, not {-ENOSYS}"
        assert caller.result(GETPID) == pid


@pytest.mark.exercise("3.1", points=1)
def test_numbers_beyond_the_table(lab):
    """Numbers beyond the table: memory after its last word is not used as a call, and its last
    word is."""
    with ring3(lab) as caller, caller.in_kernel() as guest:
        (table,) = (
            each
            for each in read_symbols(guest.symbols.path)
            if (each.name, each.size) == ("calls", 4 * LIMIT)
        )
        assert guest.call("syscall_find", GETPID) != 0
        for number in (LIMIT - 1, LIMIT, LIMIT + 1, (1 << 32) - 1):
            place = table.address + 4 * number & 0xFFFFFFFF
            word = guest.read_word(place)
            guest.write(place, struct.pack("<I", DATA))
            found = guest.call("syscall_find", number)
            guest.write(place, struct.pack("<I", word))
            if number < LIMIT:
                assert found == DATA, f"syscall_find({number}) does not look into its table"
            else:
                assert found == 0, f"syscall_find({number}) takes a word outside its table"


@pytest.mark.exercise("3.1", points=2, gate=True)
def test_what_the_call_sees(lab):
    """The frame of a call: the user's registers, with the number as error code. C has its own flags
    and segments, and interrupts are enabled."""
    seeded = random.Random(lab.seed)
    values = [seeded.getrandbits(32) for _ in ARGUMENTS]
    number = seeded.randrange(400, 500)
    flags = INTERRUPTS | DIRECTION | NESTED | 2
    with ring3(lab) as caller:
        frame = caller.stop_in_call(number, *values, eflags=flags)
        inside = caller.guest.registers()
        caller.back()
    assert [frame[name] for name in ARGUMENTS] == values
    assert (frame["eax"], frame["error_code"], frame["vector"]) == (number, number, 0x80)
    assert (frame["eip"], frame["cs"] & 0xFFFF) == (AFTER_GATE, USER_CODE)
    assert (frame["user_esp"], frame["user_ss"] & 0xFFFF) == (STACK, USER_DATA)
    assert (inside["ds"], inside["es"]) == (KERNEL_DATA, KERNEL_DATA)
    assert not inside["eflags"] & DIRECTION, "the program's direction flag is set in C"
    assert not inside["eflags"] & NESTED
    assert inside["eflags"] & INTERRUPTS, "interrupts are disabled in the call"


@pytest.mark.exercise("3.1", points=1)
def test_stack_does_not_creep(lab):
    """The kernel stack of each call: it begins at the same place, aligned as the frame is."""
    with ring3(lab) as caller:
        places = set()
        for number in (GETPID, 500, UNAME, GETPID):
            frame = caller.stop_in_call(number, DATA)
            places.add(frame["address"])
            caller.back()
    assert len(places) == 1, f"frames were at {sorted(map(hex, places))}"


@pytest.mark.exercise("3.1", points=1)
def test_a_call_may_change_the_frame(lab):
    """A call that writes to its frame: the program gets the new values, as a signal handler needs.
    The result replaces EAX and nothing else, traced or not."""
    names = ("edi", "esi", "ebp", "ebx", "edx", "ecx")
    with ring3(lab) as caller:
        guest = caller.guest
        for number, traced in ((UNAME, False), (400, False), (UNAME, True), (400, True)):
            guest.write(guest.address("syscall_trace_on"), bytes([traced]))
            address = caller.stop_in_call(number, DATA)["address"]
            end = guest.read_word(guest.registers()["esp"])
            if number == UNAME:  # in the middle of the call
                guest.run_to("copy_to_user", goal="uname's copy_to_user")
            wanted = {name: 0x1000 + i for i, name in enumerate(names)} | {"user_esp": STACK - 64}
            for name, value in wanted.items():
                guest.write(address + 4 * FRAME.index(name), struct.pack("<I", value))
            before = guest.read_words(address, len(FRAME))
            guest.run_to(end, goal="the end of syscall_dispatch")
            found = guest.read_words(address, len(FRAME))
            changed = [name for name, a, b in zip(FRAME, before, found, strict=True) if a != b]
            assert changed in (["eax"], []), (
                f"syscall_dispatch has changed {', '.join(changed)} of the frame, besides what the "
                f"call itself has written (tracing is {'on' if traced else 'off'})"
            )
            after = caller.back()
            assert {name: after[name] for name in names} == {each: wanted[each] for each in names}
            assert after["esp"] == STACK - 64


def spoil_argument(guest) -> None:
    """At a function's beginning: lets it run, and changes its argument's word as it may itself."""
    guest.run_to(guest.read_word(guest.registers()["esp"]))
    guest.write(guest.registers()["esp"], b"\xff" * 4)


@pytest.mark.exercise("3.1", points=2)
def test_work_before_the_way_back(lab):
    """Work that waits, in any of 32 bits: trap_return is called with the frame until there is
    none."""
    with ring3(lab) as caller:
        guest = caller.guest
        frame = caller.stop_in_call(GETPID)
        spoil_argument(guest)
        work = guest.address("trap_return_work")
        for bit in (8, 16, 31):
            guest.write(work, struct.pack("<I", 1 << bit))
            reached = guest.run_to("trap_return", AFTER_GATE)
            assert reached == "trap_return", "back in ring 3, and the work was not done"
            assert caller.frame()["address"] == frame["address"]
            assert caller.frame()["eax"] == 1, "the result is not in the frame yet"
            spoil_argument(guest)
        guest.write(work, bytes(4))
        assert guest.run_to("trap_return", AFTER_GATE) == AFTER_GATE
        assert guest.registers()["eax"] == 1


@pytest.mark.exercise("3.1", points=1)
def test_interrupts_stay_disabled(lab):
    """From the last check for work to IRET: interrupts are disabled, even if the work has enabled
    them."""
    with ring3(lab) as caller:
        for work in (0, 1):
            caller.stop_in_call(GETPID)
            flag = caller.guest.address("trap_return_work")
            caller.write(flag, struct.pack("<I", work))
            if work:
                caller.guest.run_to("trap_return")
                caller.write(flag, bytes(4))
                registers = caller.guest.registers()
                caller.guest.run_to(caller.guest.read_word(registers["esp"]))
                caller.guest.set(eflags=registers["eflags"] | INTERRUPTS)
            path = steps_to(caller.guest, AFTER_GATE, 5000)
            last = [each["eflags"] & INTERRUPTS for each in path[-8:]]
            assert not any(last), "interrupts are enabled just before IRET"


@pytest.mark.exercise("3.1", points=2)
def test_cost(lab):
    """The cost of getpid: at most 80 instructions, counted from outside."""
    with ring3(lab) as caller:
        caller.call(GETPID)
        caller.prepare(GETPID, ())
        path = steps_to(caller.guest, AFTER_GATE, 4 * BUDGET)
    assert path[0]["eip"] == GATE
    assert len(path) <= BUDGET, f"getpid takes {len(path)} instructions, more than {BUDGET}"


@pytest.mark.exercise("3.1", points=2)
def test_tracing(lab):
    """Tracing of calls: while enabled, each call begins and ends a record. While disabled, the ring
    is not written, not even by the call that enables tracing; a call that disables it is ended."""
    with ring3(lab) as caller:
        guest = caller.guest
        ring = guest.symbols.find("syscall_trace")
        before = guest.read(ring.address, ring.size)
        for number in (GETPID, 400, UNAME):
            caller.call(number, DATA)
        assert guest.read(ring.address, ring.size) == before, "tracing is off, and writes"
        caller.stop_in_call(UNAME, DATA)
        guest.run_to("copy_to_user")
        guest.write(guest.address("syscall_trace_on"), b"\1")
        reached = guest.run_to("syscall_trace_end", AFTER_GATE)
        assert reached == AFTER_GATE, "a record is ended that was not begun"
        cases = [(GETPID, 1), (UNAME, -EFAULT & 0xFFFFFFFF)]
        cases += [(number, -ENOSYS & 0xFFFFFFFF) for number in (450, GETPID + LIMIT)]
        for number, expected in cases:
            frame = caller.stop_in_call(number, 4)  # no address for a result
            call = guest.call("syscall_find", number)
            reached = guest.run_to("syscall_trace_begin", AFTER_GATE)
            assert reached != AFTER_GATE, f"tracing is on, and call {number} has no record"
            assert caller.frame()["address"] == frame["address"]
            assert caller.frame()["eax"] == number, "the call has run before it is recorded"
            given = guest.read_word(guest.registers()["esp"] + 8)
            assert given == call, f"the record of call {number} is begun with another call"
            reached = guest.run_to("syscall_trace_end", AFTER_GATE)
            assert reached != AFTER_GATE, f"the record of call {number} is not ended"
            sequence, result = guest.read_words(guest.registers()["esp"] + 4, 2)
            assert (sequence, result) == (guest.read_word(ring.address) - 1, expected)
            caller.back()
            assert guest.registers()["eax"] == expected
        caller.stop_in_call(UNAME, DATA)
        guest.run_to("copy_to_user")
        guest.write(guest.address("syscall_trace_on"), b"\0")
        reached = guest.run_to("syscall_trace_end", "copy_to_user", AFTER_GATE)
        assert reached != "copy_to_user", "tracing is on, and the call runs twice"
        assert reached != AFTER_GATE, "a record that was begun is not ended"
        caller.back()
