"""`make gdb` on tasks that are broken or not there, and which files hold a program's symbols."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from labs.tools.debugging.gdb.guest_programs import LINK_ADDRESS, read_programs, write_programs
from labs.tools.guest.initramfs import archive, regular, symlink
from tests.support.gdb_guest import guest_probe, rows

COMMANDS = (
    *("tasks", "task", "runqueue", "sched-trace", "waiting", "locks", "space", "files", "signals"),
    *("syscalls", "in-task 1 backtrace"),
)


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """Runs a probe (tests/support/gdb_guest.py) in a folder of its own."""
    return lambda code, **fields: guest_probe(tmp_path_factory.mktemp("probe"), code, **fields)


@pytest.fixture(scope="module")
def broken(probe: Callable[..., dict[str, Any]]) -> Callable[[str], str]:
    """What a command says when something has been overwritten, after a panic. One session."""
    said = probe(
        """
        run("break machine_exit")
        run("continue")
        run("set $first = (struct task *)((char *)'kernel/task/task.c'::all_tasks.next"
            " - (long)&((struct task *)0)->in_all)")
        run("set $mutex = (struct mutex *)&sched_trace.ring[0]")
        def broken_by(name, commands, *places):
            old = [memory(int(gdb.parse_and_eval(f"(long)&{place}")) & 0xffffffff, 4)
                   for place, _ in places]
            for place, value in places:
                run(f"set var *(unsigned *)&{place} = {value}")
            said[name] = "".join(run(command) for command in commands)
            for (place, _), before in zip(places, old):
                value = int.from_bytes(bytes.fromhex(before), "little")
                run(f"set var *(unsigned *)&{place} = {value}")
        every = ("tasks", "task 1", "files 1", "space 1", "signals 1", "waiting", "locks",
                 "runqueue", "sched-trace", "syscalls")
        said["whole"] = run("tasks")
        broken_by("circle", every, ("$first->in_all.next", "&$first->in_all"))
        broken_by("wild", every, ("'kernel/task/task.c'::all_tasks.next", "0x12345678"))
        broken_by("unmapped", every, ("'kernel/task/task.c'::all_tasks.next", "0xfc000000"))
        broken_by("queue", ("runqueue",),
                  ("'kernel/task/sched_round_robin.c'::queue.next", "&$first->schedule.in_queue"),
                  ("$first->schedule.in_queue.next", "0xfffffff0"))
        broken_by("stack", every, ("$first->esp", "0xc0000000"), ("current", "0xc0000000"))
        broken_by("parent", ("tasks",), ("$first->process", "0xfc000000"))
        broken_by("deadlock", ("locks",),
                  ("$first->held", "$mutex"), ("$first->waiting", "$mutex + 1"),
                  ("$mutex->owner", "$first"), ("$mutex->next_held", 0),
                  ("($mutex + 1)->owner", "&'kernel/task/sched.c'::idle"),
                  ("'kernel/task/sched.c'::idle.waiting", "$mutex"))
        broken_by("held", ("locks",), ("$first->held", "$mutex"), ("$mutex->next_held", "$mutex"))
        said["again"] = run("tasks")
        """,
        script="crash null",
    )
    return cache(lambda name: said[name])


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("circle", "the list is damaged: it comes back to 0x"),
        ("wild", "the list is damaged: it goes on at 0x12345678"),
        ("unmapped", "the list is damaged: there is no memory at 0xfc000000"),
        ("queue", "the list is damaged: "),
        ("stack", "error: "),
        ("parent", "damaged, at 0x"),
        ("held", "held by task 1 (first): the list is damaged: it comes back to "),
    ],
)
def test_damage_is_said_and_ends(broken, what, words):
    assert words in broken(what)


def test_damage_is_undone(broken):
    """So the cases above are independent of each other."""
    assert broken("again") == broken("whole")
    assert "damaged" not in broken("whole")


def test_tasks_that_wait_for_each_other(broken):
    text = broken("deadlock")
    assert "Deadlock: task 1 (first) waits for task 0 (idle) waits for task 1 (first)." in text
    assert [row[1] for row in rows(text)[:2]] == ["task 1 (first)", "task 0 (idle)"]


def test_a_kernel_without_tasks(probe):
    """It is said what is missing; nothing else goes wrong."""
    code = f"""
        go_to("prompt")
        said["answers"] = [run(command) for command in {COMMANDS!r}]
        said["listed"] = run("apprentice")
    """
    said = probe(code, lesson=2)
    assert all(re.match(r"error: \S+: this kernel has no ", a) for a in said["answers"])
    listed = {line.split()[0] for line in said["listed"].splitlines()}
    assert {name.split()[0] for name in COMMANDS} <= listed


# ---- which files hold the symbols ---------------------------------------------------------------


def elf(kind: int, tail: bytes = b"") -> bytes:
    """The beginning of a program."""
    return b"\x7fELF" + bytes(12) + struct.pack("<H", kind) + tail


def test_programs_are_known_by_their_contents(tmp_path):
    """One that was stripped leads to the original; what is unknown is copied; texts are none."""
    unstripped, session = tmp_path / "user", tmp_path / "session"
    (unstripped / "bin").mkdir(parents=True)
    session.mkdir()
    (unstripped / "one").write_bytes(elf(2, b"symbols"))
    (unstripped / "bin" / "one").write_bytes(elf(2, b"stripped"))
    (unstripped / "bin" / "gone").write_bytes(elf(2, b"no original"))
    entries = [
        regular("bin/renamed", elf(2, b"stripped")),
        regular("bin/gone", elf(2, b"no original")),
        regular("own/moves", elf(3)),
        regular("etc/text", b"not a program"),
        symlink("bin/link", "renamed"),
    ]
    (tmp_path / "archive").write_bytes(archive(entries))
    write_programs(tmp_path / "archive", unstripped, session)
    found = read_programs(session)
    assert set(found) == {"/bin/renamed", "/bin/gone", "/own/moves"}
    assert Path(found["/bin/renamed"].file) == unstripped / "one"
    assert Path(found["/bin/gone"].file).read_bytes() == elf(2, b"no original")
    assert [found[path].bias for path in sorted(found)] == [0, 0, LINK_ADDRESS]


@pytest.mark.parametrize("cut", [0, 50, 150, 300])
def test_an_archive_that_is_cut(tmp_path, cut):
    whole = archive([regular("bin/one", elf(2, bytes(100)))])
    (tmp_path / "archive").write_bytes(whole[:cut])
    write_programs(tmp_path / "archive", tmp_path / "nowhere", tmp_path)
    assert set(read_programs(tmp_path)) <= {"/bin/one"}
