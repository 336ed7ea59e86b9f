"""Exercise 4.5: fork, exit and wait.

Not looked at here, but by the graders: orphans, groups and their signals, vfork, flags of clone,
times, alarms and the floating-point unit.
"""

from __future__ import annotations

import pytest

from tests.lesson4.processes import GETPID, NOHANG, OWN, STACK, Family, Played, family_of
from tests.support.told import Usual, expect, fail, told

ECHILD = 10
MANY = 20
NO_PID = "fork does not return the child's pid in the parent, which waits for another"
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
        NO_PID,
    )
    born: list[int] = []
    with told(usually, IN_GDB), family_of(lab) as family:

        def child():
            born.append((yield (GETPID,)))
            yield from family.leave(7)

        def main():
            pid = yield from family.fork(child)
            waited, status = yield from family.wait(pid)
            if not born:
                fail(f"the child does not run after fork, which returned {pid} in the parent")
            expect("what fork returns in the child", family.results_in_children[0], 0)
            expect("what fork returns in the parent: the child's pid", pid, born[0])
            expect("what waitpid returns: the child's pid", waited, born[0])
            expect("the exit code of a child that called exit(7)", status >> 8, 7)

        family.play(main())


@pytest.mark.exercise("4.5", points=1, gate=True)
def test_own_memory(lab):
    """What parent and child write after the fork, the other one does not see."""
    usually = (
        *COMMON,
        Usual("seen 0", "process_exit does not keep its status for the parent"),
        Usual("seen 0", NO_PID),
        "the child has its parent's space in place of a copy (space_copy)",
    )
    seen: list[list[int]] = []
    with told(usually, "make hint EX=4.5"), family_of(lab) as family:

        def child():
            yield from family.rest()
            seen.append(read(family))
            write(family, 1)
            yield from family.leave(3)

        def main():
            write(family, 1000)
            pid = yield from family.fork(child)
            write(family, 2)
            _, status = yield from family.wait(pid)
            expect("the exit code of the child", status >> 8, 3)
            seen.append(read(family))

        family.play(main())
        what = "two variables to which the parent wrote 1000 before the fork, and 2 after it"
        expect(f"{what}, in the child", seen[0], [1000, 1000])
        expect("two variables to which the parent wrote 2, and then the child 1", seen[1], [2, 2])


def write(family: Family, value: int) -> None:
    """To memory of a program: where its data are, and its stack."""
    for place in (OWN, STACK):
        family.set_words(place, value)


def read(family: Family) -> list[int]:
    """What is there."""
    return [family.word(place) for place in (OWN, STACK)]


@pytest.mark.exercise("4.5", points=1)
def test_zombies_go(lab):
    """A child that was waited for, which is the one that was asked for, is gone: for the next wait,
    and from the kernel's tasks."""
    usually = (
        *COMMON,
        Usual("with the PID of", "wait does not ask process_is_meant: it takes any child"),
        Usual("while the first", "look goes on to the next child when one has no news"),
        "a zombie whose status was given to its parent is not reaped",
    )
    then = "make LESSON=4 run SCRIPT='run /bin/sh -c ls; threads'"
    with told(usually, then), family_of(lab) as family:

        def sleeper() -> Played:
            yield from family.rest()
            yield from family.leave()

        def main() -> Played:
            tasks = family.tasks()
            yield from family.fork(family.leave)
            yield from family.wait()
            again, _ = yield from family.wait()
            what = f"a second wait, without children (ECHILD is {ECHILD})"
            expect(what, again, -ECHILD)
            first = yield from family.fork(family.leave)
            second = yield from family.fork(family.leave)
            for name, child in (("second", second), ("first", first)):
                waited, _ = yield from family.wait(child)
                what = f"what waitpid with the PID of the {name} of two children returns"
                expect(what, waited, child)
            slow = yield from family.fork(sleeper)
            second = yield from family.fork(family.leave)
            waited, _ = yield from family.wait()
            what = "what waitpid of any child returns when the second ends while the first sleeps"
            expect(what, waited, second)
            yield from family.wait(slow)
            count = 0
            for _ in range(MANY):
                pid = yield from family.fork(family.leave)
                count += (yield from family.wait(pid))[0] == pid
            expect("children, one after the other, each waited for", count, MANY)
            left = family.tasks() - tasks
            expect("tasks more than before the first fork: no zombie", left, 0)

        family.play(main())


@pytest.mark.exercise("4.5", points=1)
def test_wait_that_does_not_sleep(lab):
    """With WNOHANG wait returns at once: 0 while the child has not ended, then its PID."""
    usually = (
        *COMMON,
        Usual("seen -10$", NO_PID),
        "process_wait sleeps for a child's end although the call has WNOHANG",
    )
    with told(usually, "make hint EX=4.5"), family_of(lab) as family:

        def child():
            yield from family.rest()
            yield from family.leave()

        def main() -> Played:
            pid = yield from family.fork(child)
            early, _ = yield from family.wait(pid, NOHANG)
            expect("what waitpid with WNOHANG returns while the child sleeps", early, 0)
            yield from family.rest(2)
            late, _ = yield from family.wait(pid, NOHANG)
            expect("what waitpid with WNOHANG returns after the child's end: its PID", late, pid)

        family.play(main())
