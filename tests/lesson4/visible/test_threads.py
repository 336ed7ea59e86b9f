"""Exercise 4.1: threads of the kernel, which take turns.

Not looked at here, but by the graders: each register with a value of its own, stacks and tasks that
are never freed, and what each switch counts and charges.
"""

from __future__ import annotations

import struct

import pytest

from tests.lesson4.played import Play, played
from tests.lesson4.turns import turn
from tests.support.told import Usual, expect, told

COMMON = (
    Usual(
        "(?s)panicked.*where: (?:switch_to|thread_begin).*its prompt",
        "what switch_to pushes, what it pops and the forged frame are not the same words: EDI is "
        "the lowest, then ESI, EBX, EBP, and where to go on",
    ),
    Usual(
        "freed|kernel_stack_destroy",
        "a stack is freed while it is in use: kthread_exit leaves that to task_bury, and schedule "
        "sets current before switch_to",
    ),
    Usual(
        "after it had ended",
        "schedule does not set current: the task that ends is taken for another one",
    ),
    Usual(
        "(?s)panicked.*where: the test was on the way to the threads",
        "thread_begin does not call what is in EDI (kthread_exit) after the function's return, and "
        "the processor runs on through whatever comes next",
    ),
    Usual(
        "although other tasks are ready",
        "schedule does not put the task that is still TASK_READY back into the queue",
    ),
)
IN_GDB = "make LESSON=4 gdb, then: hbreak switch_to, continue, stepi 6, x/5xw $esp"


@pytest.mark.exercise("4.1", points=1, gate=True)
def test_two_threads_take_turns(lab):
    """Each of two threads says its argument, and yields to the other one; and switch_to looks for
    its own arguments on the stack, whatever its caller's registers have."""
    usually = (
        *COMMON,
        Usual(
            "on the way to the stack|EDI after switch_to",
            "the arguments are looked for where they are before the pushes: [esp + 4], [esp + 8]",
        ),
        Usual(
            "reach its prompt: every task waits",
            "switch_to does not go on with the stack of *to: its ESP is the first word there",
        ),
        "a register is not kept over switch_to, or the forged frame has EBX and ESI exchanged",
    )
    found: list[int] = []
    with told(usually, IN_GDB), played(lab) as play:

        def main():
            play.quiet()
            for number in (7, 8):
                yield from play.begin(turn(found, 3), number)
            yield from play.await_ends()

        play.run(main())
        expect("threads 7 and 8 yield to each other, and ran as", found, [7, 8, 7, 8, 7, 8])
        switch_between_stacks(play)


def switch_between_stacks(play: Play) -> None:
    """Each of these stacks has its own number in the words that switch_to pops; the first is the
    one to switch to, and registers of the caller point to the others."""
    guest, resume = play.guest, play.function(play.spin)
    base = guest.registers()["esp"] - 0x800
    stacks = [base + 0x40 * number for number in range(5)]
    for number, place in enumerate(stacks):
        guest.write(place, struct.pack("<6I", place + 4, *[number] * 4, resume))
    guest.set(**dict(zip(("ebx", "esi", "edi", "ebp"), stacks[1:], strict=True)))
    goal = "the stack that is switch_to's second argument"
    guest.call("switch_to", base + 0x200, stacks[0], stop_at=(resume,), name=f"switch_to, {goal}")
    what = "EDI after switch_to, by which words it is from stack 0, the second argument's"
    expect(what, guest.registers()["edi"], 0)


@pytest.mark.exercise("4.1", points=1, gate=True)
def test_threads_end(lab):
    """By returning and by kthread_exit; the others go on."""
    usually = (
        *COMMON,
        "thread_begin does not call what is in EDI (kthread_exit) after the function's return",
    )
    ran: list[int] = []
    with told(usually, IN_GDB), played(lab) as play:

        def end(number: int):
            ran.append(number)
            if number == 2:
                yield "kthread_exit"

        def main():
            play.quiet()
            for number in (1, 2, 3):
                yield from play.begin(end, number)
            yield [("yield",)] * 10

        play.run(main())
        expect("threads 1 and 3 return, 2 calls kthread_exit; they ran as", ran[:3], [1, 2, 3])
