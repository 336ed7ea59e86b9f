"""Exercise 3.2, hidden: every argument in every kind of code, memory that the compiler cannot see,
and results that look like errors."""

from __future__ import annotations

import random
import struct

import pytest

from tests.lesson3.stubs import NUMBER, VARIANTS, stubs
from tests.lesson3.support import ARGUMENTS, ENOSYS, FRAME, signed

KEPT = ("ebx", "esi", "edi", "ebp")  # by a function, in C on the i386
LIVE = 10
RESULT = 4 * FRAME.index("eax")


def put_result(program, value: int) -> None:
    """What the call of the frame at hand will have returned: syscall_dispatch is left out."""
    guest = program.guest
    frame = program.frame()["address"]
    guest.write(frame + RESULT, struct.pack("<I", value & 0xFFFFFFFF))
    registers = guest.registers()
    guest.set(eip=guest.read_word(registers["esp"]), esp=registers["esp"] + 4)


@pytest.mark.exercise("3.2", points=2, gate=True)
@pytest.mark.parametrize("variant", VARIANTS)
def test_arguments(lab, variant):
    """Stubs with no to six arguments, with and without a frame pointer, optimized or not: the
    result is the kernel's, and C's callee-saved registers survive."""
    seeded = random.Random(lab.seed)
    with stubs(lab, variant) as program:
        for count in range(7):
            arguments = [seeded.getrandbits(32) for _ in range(count)]
            kept = {name: seeded.getrandbits(32) for name in KEPT}
            program.guest.set(**kept)
            frame = program.begin(f"call{count}", NUMBER, *arguments)
            assert frame["eax"] == NUMBER
            found = [frame[name] for name in ARGUMENTS[:count]]
            assert found == arguments, f"_syscall{count}: {found}, not {arguments}"
            result = seeded.getrandbits(32)
            put_result(program, result)
            assert program.end() == result, f"_syscall{count} changes the result"
            after = program.guest.registers()
            changed = [name for name in KEPT if after[name] != kept[name]]
            assert not changed, f"after _syscall{count} {', '.join(changed)} have changed"


@pytest.mark.exercise("3.2", points=2, gate=True)
@pytest.mark.parametrize("variant", VARIANTS)
def test_values_that_live(lab, variant):
    """Ten values needed after two calls with all arguments: unchanged."""
    seeded = random.Random(lab.seed)
    with stubs(lab, variant) as program:
        words = [seeded.getrandbits(32) for _ in range(LIVE)]
        program.guest.write(program.address("values"), struct.pack(f"<{LIVE}I", *words))
        arguments = [seeded.getrandbits(32) for _ in range(6)]
        frame = program.begin("between", NUMBER, *arguments)
        assert [frame[name] for name in ARGUMENTS] == arguments
        frame = program.again()
        assert [frame[name] for name in ARGUMENTS[:5]] == arguments[4::-1]
        assert signed(program.end()) == 0, "values are lost over a call"


@pytest.mark.exercise("3.2", points=1)
@pytest.mark.parametrize("variant", VARIANTS)
def test_calls_in_a_loop(lab, variant):
    """Calls in a loop: after _syscall6 each register but EAX is what the compiler expects, and the
    next call gets its arguments."""
    last = random.Random(lab.seed).getrandbits(32)
    with stubs(lab, variant) as program:
        for index in range(3):
            frame = program.again() if index else program.begin("in_a_loop", NUMBER, last)
            found = [frame[name] for name in ARGUMENTS]
            assert found == [index, 2, 3, 4, 5, last], f"call {index} of the loop has {found}"
        assert signed(program.end()) == -3 * ENOSYS


@pytest.mark.exercise("3.2", points=2, gate=True)
def test_memory_that_the_call_writes(lab):
    """A buffer that the call writes: the program sees the new contents, with every stub."""
    seeded = random.Random(lab.seed)
    places = {"receive": "ecx", "receive0": ""}
    places |= {f"receive{count}": "ebx" for count in range(1, 7)}
    with stubs(lab) as program:
        for function, place in places.items():
            frame = program.begin(function, NUMBER)
            words = [seeded.getrandbits(30) for _ in range(2)]
            address = frame[place] if place else program.address("received")
            program.guest.write(address, struct.pack("<2I", *words))
            assert program.end() == sum(words), (
                f"_syscall{function.removeprefix('receive') or 3}: the program does not see what "
                "the call has written"
            )


@pytest.mark.exercise("3.2", points=2)
@pytest.mark.parametrize("variant", ["plain", "no-frames"])
def test_memory_that_the_call_reads(lab, variant):
    """A buffer that the call reads: it has what the program has written before."""
    word = random.Random(lab.seed).getrandbits(32)
    with stubs(lab, variant) as program:
        frame = program.begin("send", NUMBER, word)
        found = program.guest.read_words(frame["ebx"], 2)
        assert found == (word, ~word & 0xFFFFFFFF), "the buffer is not in memory yet"
        assert signed(program.end()) == -ENOSYS


@pytest.mark.exercise("3.2", points=1)
def test_calls_without_a_use(lab):
    """A call whose result is not used: it is made, with every stub."""
    with stubs(lab) as program:
        assert program.begin("unused", NUMBER)["eax"] == NUMBER
        for count in range(1, 7):
            assert program.again()["ebx"] == count, f"the call of _syscall{count} was left out"
        program.end()


@pytest.mark.exercise("3.2", points=1)
@pytest.mark.parametrize("variant", ["plain", "pic"])
def test_results_that_are_arguments(lab, variant):
    """A result that is the next call's argument: it comes from EAX."""
    seeded = random.Random(lab.seed)
    with stubs(lab, variant) as program:
        for count in range(7):
            program.begin(f"hand_on{count}", NUMBER)
            result = seeded.getrandbits(32)
            put_result(program, result)
            found = program.again()["ebx"]
            assert found == result, (
                f"_syscall{count} returns {result:#x}; handed on as an argument it is {found:#x}"
            )
            program.end()


@pytest.mark.exercise("3.2", points=1)
def test_calls_in_the_middle_of_a_call(lab):
    """Static variables: a stub has none, because a signal's handler may make a call at any
    instruction of another one."""
    with stubs(lab) as program:
        start, end = program.address("__bss_start"), program.address("_end")
        before = program.guest.read(start, end - start)
        for count in range(7):
            program.begin(f"call{count}", NUMBER, *range(1, count + 1))
            after = program.guest.read(start, end - start)
            assert after == before, f"_syscall{count} has changed a static variable"
            program.end()


@pytest.mark.exercise("3.2", points=2, gate=True)
def test_errors_and_addresses(lab):
    """Results -4095 to -1 are errors; -4096 and addresses are not, and errno is unchanged."""
    with stubs(lab) as program:
        judge, errno = program.address("judge"), program.address("errno")
        for result in (-1, -2, -38, -512, -4094, -4095):
            assert signed(program.guest.call(judge, result)) == -1, f"{result} is an error"
            found = signed(program.guest.read_word(errno))
            assert found == -result, f"the result {result} makes errno {found}"
        program.guest.write(errno, struct.pack("<I", 99))
        for result in (0, 1, 4095, 0x7FFFFFFF, -4096, -4097, -0x80000000, -0x40001000):
            found = signed(program.guest.call(judge, result))
            assert found == result, f"{result} is no error, and comes back as {found}"
        assert program.guest.read_word(errno) == 99, "errno was changed without an error"
