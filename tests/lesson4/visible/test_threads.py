"""Exercise 4.1: threads of the kernel, which take turns.

Not looked at here, but by the graders: each register with a value of its own, stacks and tasks that
are never freed, and what each switch counts and charges.
"""

from __future__ import annotations

import pytest

from tests.lesson4.support import threads
from tests.told import expect, told

TURNS = "tests/lesson4/threads/turns.c"
IN_GDB = "make LESSON=4 gdb, then: hbreak switch_to, continue, stepi 6, x/5xw $esp"


@pytest.mark.exercise("4.1", points=1, gate=True)
def test_two_threads_take_turns(lab):
    """Each of two threads says its argument, and yields to the other one."""
    usually = (
        "the forged frame has another order than switch_to pops: EDI is the lowest word, then ESI, "
        "EBX, EBP, and where to go on",
        "schedule sets current after switch_to in place of before, or does not enqueue the task",
    )
    with told(usually, IN_GDB), threads(lab, TURNS, "take_turns", 2, 3, 7, 8) as run:
        expect("threads 7 and 8 yield to each other, and ran as", run.answers(), [7, 8, 7, 8, 7, 8])


@pytest.mark.exercise("4.1", points=1, gate=True)
def test_threads_end(lab):
    """By returning and by kthread_exit; the others go on."""
    usually = (
        "thread_begin does not call what is in EDI (kthread_exit) after the function's return",
        "kthread_exit frees the stack that it runs on: task_bury leaves that to the next task",
    )
    with told(usually, IN_GDB), threads(lab, TURNS, "end_and_go_on") as run:
        ran = run.answers()[:3]
        expect("threads 1 and 3 return, 2 calls kthread_exit; they ran as", ran, [1, 2, 3])
