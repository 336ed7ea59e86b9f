"""Exercise 3.2: C functions around INT 0x80.

Not looked at here, but by the graders: "memory" among the clobbers (what fails without it depends
on what the compiler does around the call), and other ways to compile the stubs.
"""

from __future__ import annotations

import pytest

from tests.lesson3.stubs import NUMBER, stubs
from tests.lesson3.support import ARGUMENTS, ENOSYS, GETPID, same, signed
from tests.support.told import Usual, expect, told

LEAST_ERROR = -4095  # Linux: results from -4095 to -1 are errors


@pytest.mark.exercise("3.2", points=1, gate=True)
def test_arguments_arrive(lab):
    """None to six of them, in their registers, and the result comes back, also where it is the
    argument of another call."""
    usually = (
        Usual("the result of another", 'the result is in EAX, and nowhere else: "=a"(result)'),
        Usual(
            "ebp expected",
            "the sixth argument is in EBP, which no constraint names: the stub loads it, and gives "
            "the program its own back",
        ),
        Usual("makes call", 'the number is not put into EAX: "a"(number) among the inputs'),
        'a constraint names another register: "b", "c", "d", "S", "D" are the first five arguments',
    )
    then = "objdump -d build/user/libc/*.o | less, and look for int $0x80"
    with told(usually, then), stubs(lab) as program:
        program.begin("call0", GETPID)
        expect("_syscall0(getpid) of process 1", program.end(), 1)
        for count in range(1, len(ARGUMENTS) + 1):
            arguments = [0x11 * number for number in range(1, count + 1)]
            frame = program.begin(f"call{count}", NUMBER, *arguments)
            expected = dict(zip(ARGUMENTS, arguments, strict=False))
            same(frame, expected, f"the registers that _syscall{count} calls with")
            what = f"_syscall{count} of an unknown call (-ENOSYS)"
            expect(what, signed(program.end()), -ENOSYS)
        program.begin("call_of_a_result", NUMBER, 0x11)
        what = "the argument of a call that is the result of another (-ENOSYS)"
        expect(what, signed(program.again()["ebx"]), -ENOSYS)
        program.end()


@pytest.mark.exercise("3.2", points=1, gate=True)
def test_errors(lab):
    """Results from -4095 to -1 are errors: -1, and the number in errno. All others are results:
    mmap returns addresses, which are negative numbers in the upper half of memory."""
    usually = (
        Usual("-4097", "every negative result is taken for an error: the last one is -4095"),
        Usual("errno.*seen -", "errno keeps its minus sign: it is the result times -1"),
        "read the contract of result_of above the blank",
    )
    cases = ((5, 5, 0), (-2, -1, 2), (LEAST_ERROR, -1, -LEAST_ERROR), (-4097, -4097, 0))
    with told(usually, "make hint EX=3.2"), stubs(lab) as program:
        judge, errno = program.address("judge"), program.address("errno")
        for result, returned, error in cases:
            program.guest.write(errno, bytes(4))
            found = signed(program.guest.call(judge, result, name="result_of"))
            expect(f"result_of({result}), in user/libc/syscall.h", found, returned)
            found = signed(program.guest.read_word(errno))
            expect(f"errno after result_of({result})", found, error)
