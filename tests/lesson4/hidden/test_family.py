"""Exercise 4.5, hidden: what a child has, who learns of its end, and what is left of it."""

from __future__ import annotations

import random
import re

import pytest

from tests.lesson3.support import with_files
from tests.lesson4.search import search_calls
from tests.lesson4.support import (
    INTERRUPTS,
    WORK_SCHEDULE,
    interrupt,
    program,
    program_symbols,
    run_programs,
)
from tests.support.remote import stopped

SIMPLE = "tests/lesson4/programs/children.c"
CHILDREN = "tests/lesson4/hidden/children.c"
PARENTS = "tests/lesson4/hidden/parents.c"
ENDS = "tests/lesson4/hidden/ends.c"
SOURCES = {
    SIMPLE: ("simple", "memory"),
    CHILDREN: ("registers", "stack", "unit", "clone", "borrowed", "crowd"),
    PARENTS: (
        "rules",
        "heirs",
        "groups",
        "statuses",
        "unwanted",
        "times",
        "orphans",
        "zombies",
        "full",
        "alarm",
        "queued",
    ),
    ENDS: ("silent", "stopped", "members", "interrupted", "news", "grandchildren", "vfork"),
}
ESRCH, ECHILD, EAGAIN, ENOMEM, EINVAL = 3, 10, 11, 12, 22
SIGHUP, SIGKILL, SIGTERM = 1, 9, 15
FREE = re.compile(r"(\d+) of \d+ KiB free")


def numbers(lab, count: int, limit: int = 1 << 31) -> list[int]:
    """Numbers for the program's arguments."""
    return [random.Random(lab.seed).randrange(1, limit) + n for n in range(count)]


def said(lab, command: str, *values: int, **fields: object) -> list[str]:
    """The lines of one program."""
    source = next(source for source, commands in SOURCES.items() if command in commands)
    return run_programs(lab, source, " ".join([command, *map(str, values)]), **fields)


@pytest.mark.exercise("4.5", points=3, gate=True)
def test_fork_returns_twice(lab):
    """0 in the child, its pid in the parent; the exit code comes to the parent."""
    chosen = numbers(lab, 3)
    lines = run_programs(lab, SIMPLE, *(f"simple {each} {each % 256}" for each in chosen))
    assert lines == [
        word for each in chosen for word in (f"child {each}", "same 1", f"code {each % 256}")
    ]


@pytest.mark.exercise("4.5", points=2)
def test_registers(lab):
    """All other registers, ESP and the flags are what the parent had, in both."""
    assert said(lab, "registers", *numbers(lab, 6)) == ["child 0", "parent 0"]


@pytest.mark.exercise("4.5", points=1)
def test_memory_is_copied(lab):
    """Data and stack are two from the fork on."""
    assert said(lab, "memory", *numbers(lab, 2)) == ["child 3", "parent 4"]


@pytest.mark.exercise("4.5", points=1)
def test_stack_of_clone(lab):
    """clone with a stack: the child begins with it."""
    word = random.Random(lab.seed).randrange(20, 60)
    assert said(lab, "stack", word) == [f"stack {4 * word}"]


@pytest.mark.exercise("4.5", points=2)
def test_floating_point_unit(lab):
    """The child finds in x87 and SSE registers what its parent had there just before the fork."""
    assert said(lab, "unit", *numbers(lab, 1, 1 << 30)) == ["child 0", "parent 0"]


@pytest.mark.exercise("4.5", points=1)
def test_flags_of_clone(lab):
    """Words that are to get the pid, one of them at a bad address; and what only threads need is
    refused."""
    *refused, child, parent, unasked, nowhere = said(lab, "clone")
    assert refused == [f"threads {-EINVAL}", f"memory {-EINVAL}"]
    assert [child, parent, unasked] == ["child 1", "parent 1", "unasked 7"]
    assert nowhere == "nowhere 1", "a bad address for the parent's word is an error"


@pytest.mark.exercise("4.5", points=3, gate=True)
def test_rules_of_wait(lab):
    """Of one child, of all, of none, of somebody else's; in any order, once each, and without
    waiting."""
    codes = [number % 256 for number in numbers(lab, 4)]
    lines = said(lab, "rules", *codes)
    assert lines == [
        f"none {-ECHILD}",
        f"first {-ECHILD}",
        f"options {-EINVAL}",
        f"group {-ECHILD}",
        *(f"code {code}" for code in codes[2::-1]),
        f"again {-ECHILD}",
        "busy 0",
        "busy 0",
        "brother 1",
        f"last {codes[3]}",
        f"none {-ECHILD}",
    ]


@pytest.mark.exercise("4.5", points=1)
def test_groups(lab):
    """waitpid(0) is about the own process group, waitpid(-n) about group n."""
    assert said(lab, "groups") == ["own 2", "other 1"]


@pytest.mark.exercise("4.5", points=2)
def test_statuses(lab):
    """Exit codes are cut to 8 bits; stopped, going on, killed, each told once and if asked for."""
    code = random.Random(lab.seed).randrange(256, 1 << 20)
    stopped, killed = 0x7F | 19 << 8, 9
    assert said(lab, "statuses", code) == [
        f"code {(code & 0xFF) << 8}",
        "runs 0",
        "stopped 0",
        f"stopped {stopped}",
        "told 0",
        "goes on 0",
        f"goes on {0xFFFF}",
        f"killed {killed}",
    ]


@pytest.mark.exercise("4.5", points=1)
def test_unwanted_children(lab):
    """Who ignores SIGCHLD has no zombies: wait ends when all children have, and tells none."""
    assert said(lab, "unwanted") == [f"none {-ECHILD}"]


@pytest.mark.exercise("4.5", points=1)
def test_times(lab):
    """A child's time counts for its parent, but only once it was waited for."""
    assert said(lab, "times", 5) == ["before 0", "after 1"]


@pytest.mark.exercise("4.5", points=1)
def test_orphans(lab):
    """When their parent ends, children belong to task 1, zombies too; the last one to end closes
    the pipe."""
    lines = said(lab, "orphans")
    assert lines == ["child 1", f"none {-ECHILD}", f"zombie {-ESRCH}", "parent 1", "end 0"]


@pytest.mark.exercise("4.5", points=1)
def test_heir_of_a_zombie(lab):
    """A zombie whose parent ends wakes who gets it, and is waited for there."""
    assert said(lab, "heirs") == ["heir 1", "early 0", "child 1"]


@pytest.mark.exercise("4.5", points=2)
def test_zombies(lab):
    """Zombies count until they are waited for: then fork fails, and none is lost."""
    lines = said(lab, "zombies")
    assert lines == [f"error {-EAGAIN}", "many 1", "missing 0", "room 1"]


@pytest.mark.exercise("4.5", points=1)
def test_alarm_ends_with_its_task(lab):
    """A task that ends before its alarm rings takes it along: it lies in the task."""
    assert said(lab, "alarm") == ["next 0"]


@pytest.mark.exercise("4.5", points=1)
def test_queued_signals_end_with_their_process(lab):
    """The system keeps a thousand queued signals: those of processes that have ended make room."""
    assert said(lab, "queued") == ["refused 0"]


@pytest.mark.exercise("4.5", points=2)
def test_no_memory(lab):
    """fork fails when there is no memory, and leaves nothing behind: the second time there is room
    for as many."""
    lines = said(lab, "full", memory=32)
    assert lines == [f"error {-ENOMEM}", "some 1", "fewer 0"]


@pytest.mark.exercise("4.5", points=2)
def test_borrowed_memory(lab):
    """vfork: the parent sleeps until this child has ended, whichever other one ends before, and
    sees what it has written; the word to clear at the end is left alone."""
    number = numbers(lab, 1)[0]
    assert said(lab, "borrowed", number) == ["seen 0", "word 7", "child 1"]


@pytest.mark.exercise("4.5", points=1)
def test_silent_orphan(lab):
    """An orphan's end is told to its new parent, whatever its first one wanted: by SIGCHLD. Here
    that parent wants no zombies, and must not find one."""
    assert said(lab, "silent") == [f"none {-ECHILD}"]


@pytest.mark.exercise("4.5", points=1)
def test_stopped_orphan(lab):
    """A stopped child that nobody can continue any more gets SIGHUP, and goes on: it ends by it."""
    assert said(lab, "stopped") == [f"orphan {SIGHUP}"], "-1: the orphan is stopped for ever"


@pytest.mark.exercise("4.5", points=1)
def test_stopped_group(lab):
    """Two orphans of one group: neither can continue the other, so both get SIGHUP and SIGCONT."""
    expected = [f"member {SIGHUP}", f"member {SIGHUP}"]
    assert said(lab, "members") == expected, "-1: this one is stopped for ever"


@pytest.mark.exercise("4.5", points=1)
def test_interrupted_wait(lab):
    """A signal interrupts wait: here it stops the parent. When that goes on, wait begins again."""
    assert said(lab, "interrupted") == ["waited 1"]


@pytest.mark.exercise("4.5", points=1)
def test_vfork_is_deaf(lab):
    """A signal for a parent that waits for its memory waits as well, until the child has ended."""
    assert said(lab, "vfork") == ["done 1", "parent 1", f"ended by {SIGTERM}"]


@pytest.mark.exercise("4.5", points=1)
def test_news_of_the_dead(lab):
    """Who has ended has ended: that it had gone on before is no news any more."""
    assert said(lab, "news") == [f"killed {SIGKILL}"]


@pytest.mark.exercise("4.5", points=1)
def test_times_of_grandchildren(lab):
    """What a child's own children have used is handed on with its own time."""
    assert said(lab, "grandchildren", 3) == ["user 1", "system 1"]


@pytest.mark.exercise("4.5", points=1)
def test_last_steps(lab):
    """At its end a task closes its files with interrupts enabled, even if a signal has ended it,
    which is delivered with interrupts disabled. It zeroes its word while it has its memory, and
    from then on keeps the processor: half of what it was is gone."""
    files = with_files(lab, {"bin/ends": program(ENDS)})
    word = program_symbols(ENDS).find("own_word").address
    with stopped(lab, "process_exit", "run /bin/ends word", **files) as guest:
        before = guest.read_word(word)
        guest.set(eflags=guest.registers()["eflags"] & ~INTERRUPTS)
        guest.run_to("files_destroy")
        assert guest.registers()["eflags"] & INTERRUPTS, "files are closed with interrupts disabled"
        guest.run_to("process_leave_space")
        after = guest.read_word(word)
        guest.run_to("space_destroy")
        if guest.registers()["eflags"] & INTERRUPTS:
            guest.write(guest.address("trap_return_work"), bytes([WORK_SCHEDULE]))
            home = interrupt(guest)
            reached = guest.run_to(home, "schedule", goal="the end of the interrupt")
            assert reached == home, "the clock takes the processor from a task without its space"
    assert before == 7, "the first to end is not the child"
    assert after == 0, "the word at clear_on_exit is not zero when the space is left"


@pytest.mark.exercise("4.5", points=1)
def test_crowd(lab):
    """Six children at the same time, with turns of one tick."""
    quantum = ("-fw_cfg", "name=opt/org.apprentice/quantum,string=1")
    lines = said(lab, "crowd", *numbers(lab, 6), options=quantum)
    assert lines == ["wrong 0"], f"{lines} of six children came to another result"


@pytest.mark.exercise("4.5", points=3)
def test_nothing_is_lost(lab):
    """After families of all kinds there is as much free memory as before."""
    every = ["simple simple 1 2", "parents rules 1 2 3 4", "parents orphans", "parents unwanted",
             "parents zombies", "children borrowed 5", "parents statuses 3",
             "parents full"]  # fmt: skip
    programs = {
        "bin/simple": program(SIMPLE),
        "bin/children": program(CHILDREN),
        "bin/parents": program(PARENTS),
    }
    files = with_files(lab, programs)
    once = "; ".join(f"run /bin/{each}" for each in every)
    result = lab.run(f"{once}; memory; {once}; memory; threads", memory=32, **files).check()
    before, after = map(int, FREE.findall(result.serial)[-2:])
    assert after == before, f"{before - after} KiB are lost"
    tasks = result.serial.rpartition("> threads")[2].strip().splitlines()[1:]
    assert len(tasks) == 1, f"tasks are left over: {tasks}"


LIVES = {
    1: "a process does not come to its end",
    2: "a process is told that has not ended",
    3: "a process ends with another status",
}


@pytest.mark.exercise("4.5", points=3, once=True)
@pytest.mark.parametrize("scenario", ["life", "borrowed", "orphan", "alarm"])
def test_tick_in_a_life(lab, scenario):
    """Processes begin, end and wait for each other, while a tick comes before each instruction of
    fork, exit and wait in turn."""
    assert search_calls(lab, "4.5", scenario, LIVES), "interrupts are never enabled"
