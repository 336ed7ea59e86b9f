"""Exercise 4.5: fork, exit and wait.

Not looked at here, but by the graders: orphans, groups and their signals, vfork, flags of clone,
times, alarms and the floating-point unit.
"""

from __future__ import annotations

import pytest

from tests.lesson4.support import said_by_programs
from tests.support.told import Usual, expect, fail, told

CHILDREN = "tests/lesson4/programs/children.c"
ECHILD = 10
MANY = 20
COMMON = (
    Usual(
        "has ended, and nobody",
        "the parent is not told of the end (tell_end wakes its queue `children`)",
    ),
    Usual(
        "although other tasks are ready|is ready, and does not get",
        "the child is never made ready: sched_begin is the last step of process_fork",
    ),
    Usual(
        "every task waits",
        "wait sleeps although there is no such child: look returns -ECHILD then, and 0 only if "
        "there is one without news",
    ),
    Usual(
        "triple fault",
        "the child has its parent's space, which the end of the child destroys: space_copy",
    ),
    Usual(
        "general protection fault",
        "the child's trap frame is not a copy of its parent's: IRET finds no selectors in it",
    ),
)
IN_GDB = (
    "make LESSON=4 gdb, then: tbreak sched_begin if task->pid > 2, continue, print *task->frame"
)


@pytest.mark.exercise("4.5", points=1, gate=True)
def test_fork_and_wait(lab):
    """fork returns in both: 0 in the child, its pid in the parent; wait gives the exit code."""
    usually = (
        *COMMON,
        Usual("fork returns in the child", "the child's frame has its parent's EAX: it must be 0"),
        Usual("exit code", "process_exit does not keep its status for the parent"),
        "the child's registers are not a copy of its parent's",
    )
    with told(usually, IN_GDB):
        said = said_by_programs(lab, CHILDREN, "family 41 7")
        if "child" not in said:
            fail(f"no word of the child after fork; the parent said {said}")
        expect("what fork returns in the child", said["fork-in-child"], 0)
        expect("whether fork returns the child's pid in the parent", said.get("fork-in-parent"), 1)
        expect("whether waitpid returns the child's pid", said.get("waited"), 1)
        expect("the exit code of a child that called exit(7)", said.get("code"), 7)


@pytest.mark.exercise("4.5", points=1, gate=True)
def test_own_memory(lab):
    """What parent and child write after the fork, the other one does not see."""
    usually = (
        *COMMON,
        Usual("exit code is 0", "process_exit does not keep its status for the parent"),
        "the child has its parent's space in place of a copy (space_copy)",
    )
    with told(usually, "make hint EX=4.5"):
        said = said_by_programs(lab, CHILDREN, "memory 1000 2000")
        sees = {3: "its own memory", 4: "what its parent wrote after the fork"}
        child = sees.get(said.get("child"), f"nothing: its exit code is {said.get('child')}")
        expect("what the child sees", child, sees[3])
        expect("two variables to which the parent wrote 2, added up", said.get("parent"), 4)


@pytest.mark.exercise("4.5", points=1)
def test_zombies_go(lab):
    """A child that was waited for is gone: for the next wait, and from the kernel's tasks."""
    usually = (*COMMON, "a zombie whose status was given to its parent is not reaped")
    then = "make LESSON=4 run SCRIPT='run /bin/sh -c ls; threads'"
    with told(usually, then):
        said = said_by_programs(lab, CHILDREN, "family 41 7", f"many {MANY}")
        what = f"a second wait, without children (ECHILD is {ECHILD})"
        expect(what, said.get("again"), -ECHILD)
        expect("children, one after the other, each waited for", said.get("children"), MANY)
        expect("tasks at the end: the prompt's thread alone, and no zombie", said["tasks"], 1)
