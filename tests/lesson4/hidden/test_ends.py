"""Exercise 4.5, hidden: how processes end, who learns of it, and what is left of them. Programs
are played from outside (tests/lesson4/processes.py)."""

from __future__ import annotations

import random
import struct

import pytest

from tests.lesson3.support import with_files
from tests.lesson4.lives import LIVES, search_lives
from tests.lesson4.processes import (
    ALARM,
    ALL,
    BYTE,
    CHILD_CLEARTID,
    CLONE,
    CLONE_THREAD,
    CLOSE,
    DATA,
    GETPID,
    GETPPID,
    GOES_ON,
    KILL,
    NOHANG,
    OWN,
    PRCTL,
    READ,
    SET_SUBREAPER,
    SETPGID,
    SETSID,
    SIGCHLD,
    SIGCONT,
    SIGHUP,
    SIGKILL,
    SIGSTOP,
    SIGTERM,
    VFORK,
    YIELD,
    Family,
    Played,
    family_of,
)
from tests.lesson4.support import INTERRUPTS, WORK_SCHEDULE, interrupt, program

ESRCH, ECHILD, EAGAIN, ENOMEM, EINVAL = 3, 10, 11, 12, 22
QUANTUM = ("-fw_cfg", "name=opt/org.apprentice/quantum,string=1")
INIT = "tests/lesson4/hidden/init.c"
INIT_STATUS = struct.pack("<I", 0x5EC4E75A)


def codes(lab, count: int) -> list[int]:
    """Exit codes, each another one."""
    return random.Random(lab.seed).sample(range(1, 256), count)


@pytest.mark.exercise("4.5", points=4)
def test_orphans(lab):
    """Orphans, zombies included: they become children of task 1, and the last one to end closes the
    pipe."""
    with family_of(lab) as family:
        parents: list[int] = []
        zombies: list[int] = []

        def alive():
            yield from family.rest(5)
            parents.append((yield (GETPPID,)))
            yield from family.leave()

        def child():
            zombies.append((yield from family.fork(family.leave)))
            yield from family.fork(alive)
            yield from family.rest()
            yield from family.leave()

        def main():
            gate = yield from family.pipe()
            pid = yield from family.fork(child)
            yield CLOSE, gate[1]
            waited, _ = yield from family.wait(pid)
            none = (yield from family.wait())[0]
            assert (waited, none) == (pid, -ECHILD)
            yield from family.rest()
            gone = yield KILL, zombies[0], 0
            assert gone == -ESRCH, "a zombie whose parent has ended is still there"
            end = yield READ, gate[0], BYTE, 1
            assert end == 0, "a pipe does not end although all have ended that could write to it"
            assert parents == [1], f"an orphan's parent is {parents}"

        family.play(main())


@pytest.mark.exercise("4.5", points=2, once=True)
def test_new_parent_of_a_zombie(lab):
    """A zombie whose parent ends: its new parent is woken, and waits for it successfully."""
    with family_of(lab) as family:

        def middle():
            pid = yield from family.fork(family.leave)
            assert pid > 0
            yield from family.rest()
            yield from family.leave()

        def child():
            yield from family.fork(middle)
            yield from family.rest(5)
            yield from family.leave()

        def main():
            yield PRCTL, SET_SUBREAPER, 1, 0
            pid = yield from family.fork(child)
            heir = (yield from family.wait())[0]
            assert heir > 0, f"wait of who adopts zombies returns {heir}"
            assert heir != pid, "who gets a zombie is not woken"
            assert (yield from family.wait(pid, NOHANG))[0] == 0, "the child has ended early"
            assert (yield from family.wait(pid))[0] == pid

        family.play(main())


@pytest.mark.exercise("4.5", points=2, once=True)
def test_zombies(lab):
    """Zombies: they count until they are waited for. Then fork fails, and none is lost."""
    code = codes(lab, 1)[0]
    with family_of(lab) as family:

        def main():
            error, count = yield from family.crowd(code)
            assert error == -EAGAIN, f"the last vfork returns {error}"
            assert 200 < count < 256, f"there is room for {count} zombies"
            error, waited = yield from family.reap(code << 8)
            assert (error, waited) == (-ECHILD, count), f"of {count} zombies {waited} are found"
            pid = yield from family.fork(lambda: family.leave(code), VFORK)
            assert pid > 0, "there is no room when all were waited for"
            assert (yield from family.wait_for()) == code << 8

        family.play(main())


@pytest.mark.exercise("4.5", points=2, once=True)
def test_alarm_ends_with_its_task(lab):
    """A task that ends before its alarm: the alarm's timer, which is part of the task, is
    cancelled."""
    with family_of(lab) as family:

        def early():
            yield ALARM, 1
            yield from family.leave()

        def late():
            yield from family.rest(40)
            yield from family.leave()

        def main():
            yield from family.fork(early)
            yield from family.wait()
            pid = yield from family.fork(late)
            status = yield from family.wait_for(pid)
            assert status == 0, f"the next child ends with status {status}"

        family.play(main())


@pytest.mark.exercise("4.5", points=1, once=True)
def test_queued_signals_end_with_their_process(lab):
    """Queued signals of processes that have ended: they are freed, and others can be queued.
    Without the breadth there are no such calls, and nothing to lose."""
    queued, many = 40, 200
    refused: list[int] = []
    with family_of(lab) as family:

        def child():
            blocked = family.set_words(OWN, 0, 1 << (queued - 33))
            error = yield 175, 0, blocked, 0, 8  # rt_sigprocmask
            own = yield (GETPID,)
            family.set_words(DATA + 0x800, queued, 0, -1)
            if not error:  # rt_sigqueueinfo
                error = yield from family.repeat(many, 178, own, queued, DATA + 0x800)
                refused.append(error)
            yield from family.leave()

        def main():
            for _ in range(6):
                pid = yield from family.fork(child)
                assert (yield from family.wait(pid))[0] == pid

        family.play(main())
    assert not any(refused), "there is no room for signals, of which those that waited have ended"


@pytest.mark.exercise("4.5", points=2, once=True)
def test_no_memory(lab):
    """fork without memory: it fails and leaks nothing, so that as many processes fit the next
    time."""
    counts: list[int] = []
    with family_of(lab, memory=32) as family:

        def child(gate: tuple[int, int]):
            yield CLOSE, gate[1]
            yield READ, gate[0], BYTE, 1
            yield from family.leave()

        def main():
            for _ in range(2):
                gate, count = (yield from family.pipe()), 0
                while (error := (yield from family.fork(lambda g=gate: child(g)))) > 0:
                    count += 1
                assert error == -ENOMEM, f"without memory fork returns {error}"
                for each in gate:
                    yield CLOSE, each
                while (yield from family.wait())[0] > 0:
                    pass
                counts.append(count)

        family.play(main())
    assert counts[0] > 2
    assert counts[1] == counts[0], f"first there is room for {counts[0]}, then for {counts[1]}"


@pytest.mark.exercise("4.5", points=2, once=True)
def test_silent_orphan(lab):
    """An orphan that ends: its new parent gets SIGCHLD, whatever signal the first parent asked for.
    This new parent wants no zombies, and must not find one. Three that have ended before are freed,
    too, one of which was to send another signal."""
    with family_of(lab) as family:

        def orphan():
            yield from family.rest()
            yield from family.leave()

        def child():
            yield from family.attend(SIGCHLD)
            yield from family.fork(family.leave)
            yield from family.fork(family.leave)
            yield from family.fork(family.leave, CLONE, 0, 0)
            yield from family.rest()
            yield from family.fork(orphan, CLONE, 0, 0)
            yield from family.leave()

        def main():
            yield PRCTL, SET_SUBREAPER, 1, 0
            yield from family.ignore(SIGCHLD)
            yield from family.fork(child)
            assert (yield from family.wait(-1, ALL))[0] == -ECHILD, "there is a zombie"

        family.play(main())


def adopting(family: Family, child) -> Played:
    """A child in a session of its own, whose children come to this program at its end."""
    yield PRCTL, SET_SUBREAPER, 1, 0

    def leader():
        yield (SETSID,)
        yield from child()

    pid = yield from family.fork(leader)
    yield from family.wait(pid)


@pytest.mark.exercise("4.5", points=2, once=True)
def test_stopped_orphan(lab):
    """A stopped child that nobody can continue any more: it gets SIGHUP and SIGCONT, and ends."""
    with family_of(lab) as family:

        def child():
            orphan = yield from family.fork(family.rest_for_ever)
            yield KILL, orphan, SIGSTOP
            yield from family.rest()
            yield from family.leave()

        def main():
            yield from adopting(family, child)
            yield from family.rest(2)
            status = yield from family.wait_for(-1, NOHANG)
            assert status == SIGHUP, f"status {status} (-1: the orphan is stopped for ever)"

        family.play(main())


@pytest.mark.exercise("4.5", points=1, once=True)
def test_stopped_group(lab):
    """Two stopped orphans of one group: neither can continue the other, so both get SIGHUP and
    SIGCONT."""
    with family_of(lab) as family:

        def child():
            members = []
            for _ in range(2):
                members.append((yield from family.fork(family.rest_for_ever)))
                yield SETPGID, members[-1], members[0]
            yield KILL, members[0], SIGSTOP
            yield from family.rest()
            yield from family.leave()

        def main():
            yield from adopting(family, child)
            yield from family.rest(3)
            for _ in range(2):
                status = yield from family.wait_for(-1, NOHANG)
                assert status == SIGHUP, f"status {status} (-1: this one is stopped for ever)"

        family.play(main())


@pytest.mark.exercise("4.5", points=1, once=True)
def test_interrupted_wait(lab):
    """A signal that interrupts wait and stops the parent: when it is continued, wait begins
    again."""
    with family_of(lab) as family:

        def child(parent: int):
            for signal in (SIGSTOP, SIGCONT):
                yield from family.rest()
                yield KILL, parent, signal
            yield from family.rest()
            yield from family.leave()

        def main():
            own = yield (GETPID,)
            pid = yield from family.fork(lambda: child(own))
            waited = (yield from family.wait())[0]
            assert waited == pid, f"wait returns {waited}"

        family.play(main())


@pytest.mark.exercise("4.5", points=1, once=True)
def test_signal_during_vfork(lab):
    """A signal for a parent in vfork: it is delivered after the child has ended."""
    done: list[int] = []
    with family_of(lab) as family:

        def child(parent: int):
            yield KILL, parent, SIGTERM
            yield (YIELD,)
            done.append(1)
            yield from family.leave()

        def parent():
            own = yield (GETPID,)
            yield from family.fork(lambda: child(own), VFORK)
            yield from family.leave()

        def main():
            pid = yield from family.fork(parent)
            status = yield from family.wait_for(pid)
            assert done, "the parent ends before its child, which uses its memory"
            assert status == SIGTERM, f"the parent's status: {status:#x}"

        family.play(main())


@pytest.mark.exercise("4.5", points=1, once=True)
def test_status_after_the_end(lab):
    """A child that was continued and then ended: wait reports only its end."""
    with family_of(lab) as family:

        def main():
            pid = yield from family.fork(family.rest_for_ever)
            for signal in (SIGSTOP, SIGCONT, SIGKILL):
                yield KILL, pid, signal
                yield from family.rest()
            status = yield from family.wait_for(pid, GOES_ON)
            assert status == SIGKILL, f"the status of a child that was killed: {status:#x}"

        family.play(main())


@pytest.mark.exercise("4.5", points=1)
def test_times_of_grandchildren(lab):
    """Times of grandchildren: a child's time includes that of its own children."""
    ticks = 3
    with family_of(lab) as family:

        def grandchild():
            yield from family.compute_ticks(ticks)
            yield from family.leave()

        def child():
            yield from family.fork(grandchild)
            yield from family.wait()
            yield from family.leave()

        def main():
            yield from family.fork(child)
            yield from family.wait()
            used = (yield from family.times())[2]
            assert used >= ticks, f"of a grandchild's {ticks + 1} ticks {used} are handed on"

        family.play(main())


@pytest.mark.exercise("4.5", points=1, once=True)
def test_order_at_the_end(lab):
    """The end of a task: it closes its files with interrupts enabled, also when a signal ends it,
    zeroes its word while it has its memory, and is not switched away after that."""
    with family_of(lab) as family:
        guest, word = family.guest, family.number()

        def main():
            family.set_words(OWN, word)
            yield from family.fork(family.leave, CLONE, SIGCHLD | CHILD_CLEARTID, 0, 0, 0, OWN)
            yield from family.wait()

        assert family.goes_to("process_exit", lambda: family.play(main()))
        before = guest.read_word(OWN)
        guest.set(eflags=guest.registers()["eflags"] & ~INTERRUPTS)
        guest.run_to("files_destroy")
        assert guest.registers()["eflags"] & INTERRUPTS, "files are closed with interrupts disabled"
        guest.run_to("process_leave_space")
        after = guest.read_word(OWN)
        guest.run_to("space_destroy")
        if guest.registers()["eflags"] & INTERRUPTS:
            guest.write(guest.address("trap_return_work"), bytes([WORK_SCHEDULE]))
            home = interrupt(guest)
            reached = guest.run_to(home, "schedule", goal="the end of the interrupt")
            assert reached == home, "the clock takes the processor from a task without its space"
    assert before == word, "the first to end is not the child"
    assert after == 0, "the word at clear_on_exit is not zero when the space is left"


@pytest.mark.exercise("4.5", points=2)
def test_end_of_init(lab):
    """A child of init ends: the machine goes on. Init ends: the machine ends with its status."""
    status = random.Random(lab.seed).randrange(1, 60)
    file = program(INIT)
    assert file.count(INIT_STATUS) == 1
    files = with_files(lab, {"init": file.replace(INIT_STATUS, struct.pack("<I", status))})
    lab.run(None, **files).check(status)


@pytest.mark.exercise("4.5", points=3)
def test_nothing_is_lost(lab):
    """Families of all kinds: afterwards as much memory is free, and as many tasks exist, as
    before."""
    with family_of(lab, memory=32) as family:

        def sleeper():
            yield from family.rest()
            yield from family.leave()

        def child():
            yield from family.fork(family.leave)
            yield from family.fork(sleeper)
            yield from family.leave()

        def fill():
            gate = yield from family.pipe()

            def waits():
                yield CLOSE, gate[1]
                yield READ, gate[0], BYTE, 1
                yield from family.leave()

            while (yield from family.fork(waits)) > 0:
                pass
            for each in gate:
                yield CLOSE, each

        def every_kind():
            yield from family.fork(child)
            yield from family.fork(lambda: family.leave(3), VFORK)
            yield from family.fork(family.leave, CLONE, SIGCHLD | CLONE_THREAD, 0)
            killed = yield from family.fork(family.rest_for_ever)
            yield KILL, killed, SIGSTOP
            yield KILL, killed, SIGKILL
            yield from fill()
            while (yield from family.wait())[0] > 0:
                pass
            yield from family.ignore(SIGCHLD)
            yield from family.fork(family.leave)
            yield from family.wait()
            yield from family.rest(2)
            return family.free_pages(), family.tasks()

        def main():
            yield from every_kind()
            before = yield from every_kind()
            after = yield from every_kind()
            assert after[0] == before[0], f"{4 * (before[0] - after[0])} KiB are lost"
            assert after[1] == before[1], f"{after[1] - before[1]} tasks are left over"

        family.play(main())


@pytest.mark.exercise("4.5", points=3, once=True)
@pytest.mark.parametrize("scenario", LIVES)
def test_tick_anywhere_in_a_process(lab, scenario):
    """A tick before each instruction of fork, exit and wait in turn: processes begin, end and wait
    as without it."""
    assert search_lives(lab, LIVES[scenario]), "interrupts are never enabled"
