"""All exercises of lesson 4 in one kernel: programs together, and threads."""

from __future__ import annotations

import random

import pytest

from tests.lesson1.picture import expect
from tests.lesson3.support import with_files
from tests.lesson4.pipes import require_pipe
from tests.lesson4.played import played
from tests.lesson4.support import program
from tests.support.building import ROOT, make

SEMAPHORE = 8  # bytes
SLEEP = "tests/lesson4/hidden/sleep.c"


@pytest.mark.exercise("4.0", points=2)
@pytest.mark.parametrize("scheduler", ["rr", "mlfq", "fair"])
def test_pipe_of_three(lab, scheduler):
    """Four programs and four pipes under each scheduler: the text comes through."""
    require_pipe(lab, f"sched {scheduler}; {{}}; threads", "> threads")


@pytest.mark.exercise("4.0", points=1)
def test_threads_sleep_and_wake(lab):
    """Kernel threads: each sleeps for its time, and they wake each other."""
    found: list[int] = []
    with played(lab) as play:
        done = play.zeroed(SEMAPHORE)

        def sleep_and_say(milliseconds: int):
            yield "msleep", milliseconds
            found.append(milliseconds)
            yield "semaphore_up", done

        def main():
            play.fine_clock()
            for milliseconds in (35, 5, 15):
                yield from play.begin(sleep_and_say, milliseconds)
            yield [("semaphore_down", done)] * 3

        play.run(main())
    assert found == [5, 15, 35], f"sleeps of 35, 5 and 15 ms ended in this order: {found}"


@pytest.mark.exercise("4.0", points=2)
def test_shell_sleeps(lab):
    """The course's shell: it runs a program that sleeps while another sleeps longer in the
    background, and then waits for that one."""
    seeded = random.Random(lab.seed)
    early, late = seeded.sample(range(1000, 10_000), 2)
    short = seeded.randrange(50, 150)
    script = [
        f"(/bin/sleep {short + 300}; /bin/echo late {late}) &",
        f"/bin/sleep {short}",
        f"/bin/echo early {early} $?",
        "wait",
        "/bin/echo end",
    ]
    make("LESSON=4", "user-programs")
    files = {
        f"bin/{each}": (ROOT / "build/user/bin" / each).read_bytes() for each in ("sh", "echo")
    }
    files |= {"bin/sleep": program(SLEEP), "etc/script": "\n".join([*script, ""]).encode()}
    said = lab.run("run /bin/sh /etc/script", **with_files(lab, files))
    expect(said, f"early {early} 0", f"late {late}", "end")
