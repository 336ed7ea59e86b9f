"""Exercise 4.5, hidden: what a child has of its parent, and what wait tells. Programs
are played from outside (tests/lesson4/processes.py)."""

from __future__ import annotations

import random
from itertools import groupby

import pytest

from tests.lesson4.layout import layout
from tests.lesson4.processes import (
    BYTE,
    CARRY,
    CHILD_CLEARTID,
    CHILD_SETTID,
    CLONE,
    CLONE_THREAD,
    CLONE_VFORK,
    CLONE_VM,
    CLOSE,
    DIRECTION,
    FLAGS,
    GETPID,
    GOES_ON,
    KEPT_FLAGS,
    KILL,
    NOHANG,
    OWN,
    PARENT_SETTID,
    READ,
    SEGMENTS,
    SETPGID,
    SIGCHLD,
    SIGCONT,
    SIGKILL,
    SIGSTOP,
    STACK,
    UNTRACED,
    YIELD,
    family_of,
)
from tests.support.remote import SCRATCH
from tests.support.told import expect

SLEEPS_IN = "wait_sleep_until"  # its first argument is the queue
ESRCH, ECHILD, EAGAIN, ENOMEM, EINVAL = 3, 10, 11, 12, 22
QUANTUM = ("-fw_cfg", "name=opt/org.apprentice/quantum,string=1")
KEPT = ("ebx", "ecx", "edx", "esi", "edi", "esp")


def codes(lab, count: int) -> list[int]:
    """Exit codes, each another one."""
    return random.Random(lab.seed).sample(range(1, 256), count)


@pytest.mark.exercise("4.5", points=3, gate=True)
def test_fork_returns_twice(lab):
    """fork: it returns 0 in the child and the pid in the parent, and wait returns the exit code."""
    born: list[int] = []
    with family_of(lab) as family:

        def main():
            for code in codes(lab, 3):

                def child(code: int = code):
                    born.append((yield (GETPID,)))
                    yield from family.leave(code)

                pid = yield from family.fork(child)
                assert pid > 1, f"fork returns {pid} in the parent"
                waited, status = yield from family.wait(pid)
                assert (waited, status) == (pid, code << 8), f"waitpid: {waited}, {status:#x}"
                assert born[-1] == pid, f"fork returns {pid}, and the child is {born[-1]}"

        family.play(main())
    assert len(born) == len(set(born)) == 3
    found = family.results_in_children
    assert found == [0] * 3, f"fork returns {found} in three children"


@pytest.mark.exercise("4.5", points=2, gate=True, once=True)
def test_registers(lab):
    """Registers after fork: all others, ESP and the flags are the parent's, in both."""
    seeded = random.Random(lab.seed)
    values = {name: seeded.getrandbits(32) for name in KEPT} | {"eax": 2}
    wanted = values | {"eflags": FLAGS | CARRY | DIRECTION}
    found: dict[str, dict[str, int]] = {}
    with family_of(lab) as family:
        segments = {name: family.guest.registers()[name] for name in SEGMENTS}

        def child():
            found["child"] = family.guest.registers()
            yield from family.leave()

        def main():
            pid = yield from family.fork(child, **wanted)
            found["parent"] = family.guest.registers()
            yield from family.wait(pid)

        family.play(main())
    for who in ("child", "parent"):
        for name in (*KEPT, *SEGMENTS):
            expected = (values | segments)[name]
            seen = found[who][name]
            assert seen == expected, f"{name.upper()} was {expected:#x}; in the {who} {seen:#x}"
        flags = found[who]["eflags"] & KEPT_FLAGS
        assert flags == wanted["eflags"] & KEPT_FLAGS, f"the flags of the {who}: {flags:#x}"


@pytest.mark.exercise("4.5", points=1, once=True)
def test_memory_is_copied(lab):
    """Memory after fork: data and stack are separate."""
    with family_of(lab) as family:
        before, after, own = ([family.number() for _ in range(2)] for _ in range(3))
        seen: list[list[int]] = []

        def write(values: list[int]) -> None:
            for place, value in zip((OWN, STACK), values, strict=True):
                family.set_words(place, value)

        def read() -> list[int]:
            return [family.word(place) for place in (OWN, STACK)]

        def child():
            yield from family.rest()
            seen.append(read())
            write(own)
            yield from family.leave()

        def main():
            write(before)
            pid = yield from family.fork(child)
            write(after)
            yield from family.wait(pid)
            seen.append(read())

        family.play(main())
    assert seen[0] == before, "the child sees what its parent has written since the fork"
    assert seen[1] == after, "the parent sees what its child has written"


@pytest.mark.exercise("4.5", points=1, once=True)
def test_stack_of_clone(lab):
    """clone with a stack: the child begins on it."""
    stack = STACK - 4 * random.Random(lab.seed).randrange(20, 60)
    begun: list[int] = []
    with family_of(lab) as family:

        def child():
            begun.append(family.guest.registers()["esp"])
            yield from family.leave()

        def main():
            pid = yield from family.fork(child, CLONE, SIGCHLD, stack, stack=stack)
            yield from family.wait(pid)

        family.play(main())
    assert begun == [stack]


@pytest.mark.exercise("4.5", points=2, once=True)
def test_floating_point_unit(lab):
    """x87 and SSE registers after fork: the child has the parent's values."""
    found: dict[str, tuple[int, ...]] = {}
    with family_of(lab) as family:
        old, inherited, later = (family.number() for _ in range(3))

        def child():
            yield from family.rest()
            found["child"] = yield from family.unit()
            yield from family.leave()

        def main():
            yield from family.set_unit(old)
            yield (YIELD,)
            yield from family.set_unit(inherited)
            pid = yield from family.fork(child)
            yield from family.set_unit(later)
            yield from family.wait(pid)
            found["parent"] = yield from family.unit()

        family.play(main())
    assert found["child"] == (inherited, inherited), "the child has other numbers in the unit"
    assert found["parent"] == (later, later), "the parent has other numbers in the unit"


@pytest.mark.exercise("4.5", points=1, once=True)
def test_flags_of_clone(lab):
    """Flags of clone: the pid is written to the words that were asked for, in the right memory, and
    flags that only threads need are refused. A bad address does no harm."""
    with family_of(lab) as family:
        parents, childs, untouched = OWN, OWN + 4, family.number()
        seen: list[int] = []

        def none():
            yield from family.leave()

        def child():
            seen.extend((family.word(parents), family.word(childs)))
            seen.append((yield (GETPID,)))
            yield from family.leave()

        def main():
            for flag in (CLONE_THREAD, CLONE_VM):
                error = yield from family.fork(none, CLONE, SIGCHLD | flag, 0)
                assert error == -EINVAL, f"clone with {flag:#x} returns {error}"
            family.set_words(parents, untouched, untouched)
            flags = SIGCHLD | PARENT_SETTID | CHILD_SETTID
            pid = yield from family.fork(child, CLONE, flags, 0, parents, 0, childs)
            own = family.word(parents), family.word(childs)
            yield from family.wait(pid)
            copied, *own_pid = seen
            assert own_pid == [pid, pid], f"the child's word is {seen[1]}, and its pid {seen[2]}"
            assert copied == untouched, "the child has the word that is its parent's to get"
            assert own == (pid, untouched), f"the parent's words are {own}, and the pid {pid}"
            family.set_words(parents, untouched)
            pid = yield from family.fork(none, CLONE, SIGCHLD, 0, parents, 0, 0)
            yield from family.wait(pid)
            assert family.word(parents) == untouched, "a word is written that nobody asked for"
            pid = yield from family.fork(none, CLONE, SIGCHLD | PARENT_SETTID, 0, 4, 0, 0)
            assert pid > 0, "a bad address for the parent's word is an error"
            waited, _ = yield from family.wait(pid)
            assert waited == pid

        family.play(main())


@pytest.mark.exercise("4.5", points=1, once=True)
def test_wait_of_a_thread(lab):
    """wait in a thread: children belong to the leader, and the thread sleeps in the leader's queue.
    Here the leader is a copy of the process, so that a thread has another one."""
    member = layout("process", "leader", "children", "parent")
    names: dict[int, str] = {}
    found: list[str | None] = []
    with family_of(lab) as family:
        guest, leader = family.guest, SCRATCH

        def child():
            yield from family.rest(2)
            yield from family.leave()

        def become_a_thread(pid: int) -> tuple[int, int]:
            own = family.word(guest.address("current"))
            own = family.word(own + layout("task", "process")["process"])
            its_child = family.in_kernel("process_find", pid)
            guest.write(leader, guest.read(own, member["size"]))
            guest.write(leader + member["children"], bytes(4))
            names[own + member["children"]] = "its own"
            names[leader + member["children"]] = "its leader's"
            set_leader(own, its_child, leader)
            return own, its_child

        def set_leader(own: int, its_child: int, process: int) -> None:
            guest.write(own + member["leader"], process.to_bytes(4, "little"))
            guest.write(its_child + member["parent"], process.to_bytes(4, "little"))

        def main():
            pid = yield from family.fork(child)
            own, its_child = become_a_thread(pid)

            def look(now):
                """It sleeps: where? Then it is as it was, and is woken."""
                found.append(names.get(family.word(now["esp"] + 4)))
                set_leader(own, its_child, own)
                guest.write(now["esp"] + 4, (own + member["children"]).to_bytes(4, "little"))
                family.unwatch(guest.address(SLEEPS_IN))

            family.watch(guest.address(SLEEPS_IN), look)
            yield from family.wait(pid)

        family.play(main())
    expect("a thread that waits for a child sleeps in the queue", *found, "its leader's")


@pytest.mark.exercise("4.5", points=3, gate=True)
def test_rules_of_wait(lab):
    """wait for one child, for any, for none, for another's: in any order, once each, and without
    sleeping if asked."""
    chosen = codes(lab, 4)
    found: list[int] = []
    with family_of(lab) as family:

        def child(number: int, gate: tuple[int, int]):
            yield CLOSE, gate[1]
            if number == 3:
                yield READ, gate[0], BYTE, 1
            yield from family.leave(chosen[number])

        def stranger(brother: int):
            found.append((yield from family.wait(brother))[0])
            yield from family.leave()

        def main():
            none, first = (yield from family.wait())[0], (yield from family.wait(1))[0]
            options = (yield from family.wait(-1, 0x100))[0]
            assert (none, first, options) == (-ECHILD, -ECHILD, -EINVAL)
            gate = yield from family.pipe()
            pids = []
            for number in range(4):
                pids.append((yield from family.fork(lambda n=number: child(n, gate))))
            group = (yield from family.wait(-pids[0], NOHANG))[0]
            assert group == -ECHILD, f"children that are in no group of their own: {group}"
            for number in (2, 1, 0):
                status = yield from family.wait_for(pids[number])
                assert status == chosen[number] << 8, f"the status of child {number}: {status:#x}"
            again = (yield from family.wait(pids[0]))[0]
            assert again == -ECHILD, "a child is waited for twice"
            for which in (-1, 0):
                busy = (yield from family.wait(which, NOHANG))[0]
                assert busy == 0, f"waitpid({which}) of a child that has not ended: {busy}"
            pid = yield from family.fork(lambda: stranger(pids[3]))
            yield from family.wait(pid)
            assert found == [-ECHILD], "somebody waits for a brother"
            yield CLOSE, gate[1]
            status = yield from family.wait_for(0)
            assert status == chosen[3] << 8, f"the status of the last child: {status:#x}"
            assert (yield from family.wait(-1, NOHANG))[0] == -ECHILD, "there are no more children"
            pids = []
            for _ in range(3):
                pids.append((yield from family.fork(family.leave)))
            yield from family.rest()
            for pid in pids:
                assert (yield from family.wait())[0] == pid, "a younger child is found first"

        family.play(main())


@pytest.mark.exercise("4.5", points=1, once=True)
def test_groups(lab):
    """waitpid(0): children in the caller's process group. waitpid(-n): children in group n."""
    with family_of(lab) as family:

        def one():
            yield from family.rest()
            yield from family.leave(1)

        def main():
            other = yield from family.fork(one)
            yield SETPGID, other, other
            own = yield from family.fork(lambda: family.leave(2))
            pid, status = yield from family.wait(0)
            assert (pid, status) == (own, 2 << 8), "waitpid(0) waits for another group"
            pid, status = yield from family.wait(-other)
            assert (pid, status) == (other, 1 << 8), "waitpid(-n) does not wait for group n"

        family.play(main())


@pytest.mark.exercise("4.5", points=2, gate=True)
def test_statuses(lab):
    """Statuses: exit codes have 8 bits; stopped, continued and killed are each reported once, if
    asked for."""
    code = random.Random(lab.seed).randrange(256, 1 << 20)
    with family_of(lab) as family:

        def work():
            while True:
                yield (YIELD,)

        def main():
            pid = yield from family.fork(lambda: family.leave(code))
            status = yield from family.wait_for(pid)
            assert status == (code & 0xFF) << 8, f"exit({code:#x}) gives the status {status:#x}"
            pid = yield from family.fork(work)
            assert (yield from family.wait(pid, NOHANG))[0] == 0, "it runs, and is waited for"
            yield KILL, pid, SIGSTOP
            yield from family.rest()
            assert (yield from family.wait(pid, NOHANG))[0] == 0, "nobody asked for its stop"
            status = yield from family.wait_for(pid, UNTRACED)
            assert status == 0x7F | SIGSTOP << 8, f"the status of a child that stops: {status:#x}"
            told = (yield from family.wait(pid, UNTRACED | NOHANG))[0]
            assert told == 0, "the same stop is told twice"
            yield KILL, pid, SIGCONT
            yield from family.rest()
            told = (yield from family.wait(pid, UNTRACED | NOHANG))[0]
            assert told == 0, "nobody asked whether it goes on"
            status = yield from family.wait_for(pid, GOES_ON)
            assert status == 0xFFFF, f"the status of a child that goes on: {status:#x}"
            yield KILL, pid, SIGKILL
            status = yield from family.wait_for(pid)
            assert status == SIGKILL, f"the status of a child that is killed: {status:#x}"

        family.play(main())


@pytest.mark.exercise("4.5", points=1, once=True)
def test_unwanted_children(lab):
    """A parent that ignores SIGCHLD: its children leave no zombies, and wait fails after the last
    one has ended."""
    ended: list[int] = []
    with family_of(lab) as family:

        def child(number: int):
            ended.append(number)
            yield from family.leave(number)

        def main():
            yield from family.ignore(SIGCHLD)
            for number in range(3):
                yield from family.fork(lambda n=number: child(n))
            assert (yield from family.wait())[0] == -ECHILD, "there is a zombie"
            assert len(ended) == 3, "wait ends before the children"

        family.play(main())


@pytest.mark.exercise("4.5", points=1)
def test_times(lab):
    """A child's time: it is added to the parent's when it is waited for."""
    ticks = 5
    with family_of(lab) as family:

        def child():
            yield from family.compute_ticks(ticks)
            yield from family.leave()

        def main():
            pid = yield from family.fork(child)
            yield from family.compute(20 * (ticks + 2))
            before = (yield from family.times())[2:]
            yield from family.wait(pid)
            after = sum((yield from family.times())[2:])
            assert sum(before) == 0, "a child's time counts before it was waited for"
            assert ticks <= after <= ticks + 3, f"a child of {ticks + 1} ticks counts as {after}"

        family.play(main())


@pytest.mark.exercise("4.5", points=2, once=True)
def test_borrowed_memory(lab):
    """vfork: the parent sleeps until that child ends, whatever others do, and sees what it has
    written. The word to clear at the end is unchanged, the one for the pid is written before the
    child runs, and the pid is right although the child is gone."""
    ended: list[str] = []
    seen: list[tuple[int, int]] = []
    with family_of(lab) as family:
        number, word = family.number(), family.number()

        def look_at_word():
            seen.append(((yield (GETPID,)), family.word(OWN)))
            yield from family.leave()

        def other():
            ended.append("other")
            yield from family.leave()

        def child():
            yield (YIELD,)
            family.set_words(OWN, number)
            yield (YIELD,)
            ended.append("child")
            yield from family.leave()

        def main():
            family.set_words(OWN, 0, word)
            stranger = yield from family.fork(other)
            flags = CLONE_VM | CLONE_VFORK | SIGCHLD | CHILD_CLEARTID
            pid = yield from family.fork(child, CLONE, flags, 0, 0, 0, OWN + 4)
            assert "child" in ended, "the parent goes on before its child has ended"
            assert family.word(OWN) == number, "the parent does not see what its child has written"
            assert family.word(OWN + 4) == word, "a word of the parent's memory is cleared"
            flags = CLONE_VM | CLONE_VFORK | SIGCHLD | PARENT_SETTID
            yield from family.ignore(SIGCHLD)  # so this child is freed at its end
            silent = yield from family.fork(look_at_word, CLONE, flags, 0, OWN, 0, 0)
            assert seen == [(silent, silent)], f"pid and word of the child {silent}: {seen}"
            yield from family.attend(SIGCHLD)
            assert (yield from family.wait(pid))[0] == pid
            assert (yield from family.wait(stranger))[0] == stranger

        family.play(main())


@pytest.mark.exercise("4.5", points=1)
def test_crowd(lab):
    """Six children at a time with turns of one tick: each keeps its registers and has its own
    status."""
    chosen = codes(lab, 6)
    order: list[int] = []
    with family_of(lab, *QUANTUM) as family:

        def child(number: int):
            for _ in range(3):
                yield from family.compute(8)
                order.append(number)
            yield from family.leave(chosen[number])

        def main():
            pids = []
            for number in range(6):
                pids.append((yield from family.fork(lambda n=number: child(n))))
            for number, pid in enumerate(pids):
                status = yield from family.wait_for(pid)
                assert status == chosen[number] << 8, f"the status of child {number}: {status:#x}"

        family.play(main())
    turns = [number for number, _ in groupby(order)]
    assert len(turns) > 6, f"the children do not take turns: {order}"
