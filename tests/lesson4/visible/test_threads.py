"""Exercise 4.1: threads of the kernel, which take turns.

Not looked at here, but by the graders: each register with a value of its own, stacks and tasks that
are never freed, and what each switch counts and charges.
"""

from __future__ import annotations

import pytest

from tests.lesson4.support import threads
from tests.support.told import Usual, expect, told

TURNS = "tests/lesson4/threads/turns.c"
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
    """Each of two threads says its argument, and yields to the other one."""
    usually = (
        *COMMON,
        "a register is not kept over switch_to, or the forged frame has EBX and ESI exchanged",
    )
    with told(usually, IN_GDB), threads(lab, TURNS, "take_turns", 2, 3, 7, 8) as run:
        expect("threads 7 and 8 yield to each other, and ran as", run.answers(), [7, 8, 7, 8, 7, 8])


@pytest.mark.exercise("4.1", points=1, gate=True)
def test_threads_end(lab):
    """By returning and by kthread_exit; the others go on."""
    usually = (
        *COMMON,
        "thread_begin does not call what is in EDI (kthread_exit) after the function's return",
    )
    with told(usually, IN_GDB), threads(lab, TURNS, "end_and_go_on") as run:
        ran = run.answers()[:3]
        expect("threads 1 and 3 return, 2 calls kthread_exit; they ran as", ran, [1, 2, 3])
