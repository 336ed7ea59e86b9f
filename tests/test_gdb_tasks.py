"""`make gdb` on a kernel that runs programs: its tasks, and what each of them has and waits for."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gdb_session import PRELUDE, ROOT
from labs.tools.gdb.guest_programs import LINK_ADDRESS, read_programs, write_programs
from labs.tools.initramfs import archive, regular, symlink
from labs.tools.programs import guest_root
from labs.tools.qemu_command import Config

USER = ROOT / "build" / "user"
SECONDS = 120
LAUNCH = """\
import pickle, sys
from pathlib import Path
from labs.tools.debug import debug
config = pickle.loads(Path(sys.argv[1]).read_bytes())
sys.exit(debug(config, Path(sys.argv[2]), user=Path(sys.argv[3])))
"""
COMMANDS = (
    *("tasks", "task", "runqueue", "sched-trace", "waiting", "locks", "space", "files", "signals"),
    *("syscalls", "in-task 1 backtrace"),
)


def make(*words: str) -> None:
    """Builds something, one process at a time."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "-s", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def guest_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An initramfs with the course's programs; the kernels of lessons 3 and 4 are built, too."""
    make("LESSON=3", "image-direct")
    make("LESSON=4", "image-direct", "user-programs")
    path = tmp_path_factory.mktemp("files") / "initramfs"
    path.write_bytes(archive(guest_root(USER / "bin", None)))
    return path


@pytest.fixture(scope="module")
def probe(
    guest_files: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., dict[str, Any]]:
    """Runs a probe (tests/gdb_session.py) on a lesson's kernel with the course's programs."""

    def run(code: str, lesson: int = 4, **fields: object) -> dict[str, Any]:
        directory = tmp_path_factory.mktemp("probe")
        answer, file = directory / "said.json", directory / "probe.py"
        kernel = ROOT / f"build/lesson{lesson}/kernel.elf"
        config = Config(boot="direct", kernel=kernel, initramfs=guest_files, **fields)
        (directory / "config").write_bytes(pickle.dumps(config))
        file.write_text(PRELUDE.format(path=str(answer)) + textwrap.dedent(code) + "\nsaw()\n")
        done = subprocess.run(
            [sys.executable, "-c", LAUNCH, str(directory / "config"), str(file), str(USER)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert answer.exists(), done.stdout + done.stderr
        return json.loads(answer.read_text()) | {"screen": done.stdout}

    return run


def command(text: str, **settings: str) -> dict[str, object]:
    """Fields of a machine that runs a command in the guest's shell."""
    return {"settings": (("cmd", text), *settings.items())}


def rows(table: str) -> list[list[str]]:
    """The cells of a table, without its heads; an empty cell is left out."""
    return [re.split(r"  +", line.strip()) for line in table.splitlines()[1:]]


def by_name(table: str, name: str) -> list[str]:
    """The one row of a table that has this cell."""
    found = [row for row in rows(table) if name in row]
    assert len(found) == 1, table
    return found[0]


def names_of(backtrace: str) -> list[str]:
    """The functions of a backtrace; what gdb says between < > is one, too."""
    calls = re.findall(r"^#\d+ +(?:0x\w+ in )?(<.*?>|[\w?]+)", backtrace, re.MULTILINE)
    return [name.strip() for name in calls]


def in_order(wanted: list[str], found: list[str]) -> bool:
    """Whether all of these names are among the others, in this order."""
    rest = iter(found)
    return all(name in rest for name in wanted)


# ---- one program reads, two compute ------------------------------------------------------------


@pytest.fixture(scope="module")
def shell(probe: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """`spin & spin & cat`: first where cat begins, then when it has slept for ten ticks."""
    return probe(
        """
        said["early"] = run("tasks")
        said["refused"] = [run(f"user-break {words}") for words in ("nothing", "cat nothing")]
        said["set"] = run("user-break cat")
        run("continue")
        said["begins"] = run("where-am-i"), run("backtrace"), run("info symbol $pc"), run("tasks")
        said["cat"] = pid = int(gdb.parse_and_eval("current->pid"))
        run("delete")
        run("tbreak sched_turn_is_over")
        run("ignore $bpnum 10")
        run("continue")
        said["pids"] = pids = {
            "sh": int(gdb.parse_and_eval("current->parent->pid")),
            "current": int(gdb.parse_and_eval("current->pid")),
        }
        registers = run("monitor info registers"), run("info registers"), run("frame")
        for name in ("tasks", "runqueue", "waiting", "sched-trace 5", "locks", "task", "backtrace"):
            said[name] = run(name)
        for name in ("task", "files", "space", "signals"):
            said["cat " + name] = run(f"{name} {pid}")
        said["sh task"] = run(f"task {pids['sh']}")
        others = [row.split() for row in said["runqueue"].splitlines() if " spin " in row]
        said["other spin"] = run(f"task {others[0][1]}")
        said["locals"] = run(f"in-task {pid} backtrace full 30")
        said["stack"] = run(f"in-task {pid} print $esp"), run(f"in-task {pid} x/2wx $esp")
        said["no"] = [run(f"in-task {pid} {words}") for words in ("continue", "print task_find(1)")]
        said["nobody"] = run("task 999"), run("files 999")
        after = run("monitor info registers"), run("info registers"), run("frame")
        said["unchanged"] = registers == after
        run("tbreak sys_write")
        run("type hello")
        run("continue")
        said["goes on"] = run("tasks")
        """,
        **command("spin & spin & cat", sched="fair"),
    )


def test_before_the_kernel_runs(shell):
    assert "the kernel does not run yet" in shell["early"]


def test_user_break_stops_in_the_program_that_is_meant(shell):
    """The other programs have code at the same address, and run before."""
    place, backtrace, symbol, tasks = shell["begins"]
    assert re.search(r"^It stops in /bin/cat at main \(0x0804\w+\)", shell["set"], re.MULTILINE)
    assert re.match(r"\[32-bit .* ring 3\]  0x0804\w+ main:", place)
    assert re.match(r"#0 +main \(count=0x1, arguments=0x\w+\) at user/cat\.c:", backtrace)
    assert symbol.startswith("main in section .text")
    assert by_name(tasks, "cat")[:4] == ["*", str(shell["cat"]), "2", "running"]


def test_user_break_says_what_is_not_there(shell):
    program, function = shell["refused"]
    assert re.search(r"the guest has no program nothing; it has .*\bcat\b.*\bhello\b", program)
    assert "/bin/cat has no symbol nothing" in function


def test_tasks(shell):
    """Who there is, in which state, and what each of them waits for."""
    table = shell["tasks"]
    assert "fair: ms of virtual time ahead" in table.splitlines()[0]
    assert by_name(table, "first")[:3] == ["1", "0", "sleeping"]
    assert "task_wait (kernel/task_family.c) < program_run" in by_name(table, "first")[-1]
    assert "task_wait (kernel/task_family.c) < run_wait4" in by_name(table, "sh")[-1]
    assert by_name(table, "cat")[:3] == [str(shell["cat"]), str(shell["pids"]["sh"]), "sleeping"]
    assert "read (fs/tty.c) < file_read < sys_read" in by_name(table, "cat")[-1]
    spins = [row for row in rows(table) if "spin" in row]
    assert sorted(row[-5] for row in spins) == ["ready", "running"]
    assert all(re.match(r"ring 3, 0x0804\w+", row[-1]) for row in spins)
    assert by_name(table, "idle")[0] == "0"


def test_calls_of_a_task_that_waits(shell):
    """From the switch down to the program's main: its stack is in its own address space."""
    text = shell["cat task"]
    assert re.match(r"task \d+ \(cat\), sleeping, parent \d+, runs /bin/cat\n", text)
    names = names_of(text)
    kernel = ["schedule", "sched_sleep", "read", "file_read", "sys_read", "syscall_dispatch"]
    assert in_order([*kernel, "<trap or system call>", "read", "copy", "main"], names)
    assert re.search(r"main \(count=0x1, arguments=0x\w+\) at user/cat.c", text)


def test_registers_of_ring_3(shell):
    """Those with which cat has called read(0, buffer, 16384)."""
    values = dict(re.findall(r"\b(e\w\w|cs) +(\w{8})", shell["cat task"]))
    assert values["ebx"] == "00000000"
    assert values["edx"] == "00004000"
    assert values["cs"] == "0000001b"
    assert values["esp"].startswith("083f")


def test_calls_through_an_interrupt(shell):
    """A tick interrupts a program: the processor's own calls, and those of one that waits."""
    interrupted = [*("trap_dispatch", "<trap or system call>", "main")]
    assert in_order(["sched_turn_is_over", *interrupted], names_of(shell["task"]))
    assert in_order(["schedule", "task_before_user", *interrupted], names_of(shell["other spin"]))
    own = ["sched_turn_is_over", "trap_dispatch", "<signal handler called>", "main"]
    assert in_order(own, names_of(shell["backtrace"]))


def test_symbols_are_those_of_the_program_in_question(shell):
    """All programs have the same addresses."""
    assert "user/sh/" in shell["sh task"] and "user/spin.c" not in shell["sh task"]
    assert "user/spin.c" in shell["other spin"] and "user/sh/" not in shell["other spin"]


def test_another_command_with_the_registers_of_a_task(shell):
    assert re.search(r"\bdescriptor = 0x0\b|descriptor=0x0", shell["locals"])
    esp, words = shell["stack"]
    address = re.search(r"0xf8\w{6}", esp)
    assert address and words.startswith(address[0])


def test_the_machine_does_not_run_as_somebody_else(shell):
    running, calling = shell["no"]
    assert "may follow" in running
    assert "error" in calling
    assert shell["unchanged"]


def test_looking_leaves_the_machine_as_it_is(shell):
    """A line is typed, and cat is the one that writes it."""
    assert by_name(shell["goes on"], "cat")[0] == "*"
    assert "sys_write" in by_name(shell["goes on"], "cat")[-1]


def test_a_task_that_is_not_there(shell):
    assert all("there is no task 999" in text for text in shell["nobody"])


def test_runqueue(shell):
    first, second, *others = shell["runqueue"].splitlines()
    assert re.fullmatch(r"task \d+ \(spin\) runs; turns of 2 ticks", first)
    assert second == "fair (in use): 1 waiting"
    assert re.search(r"^ +0 +\d+  spin  -?\d+\.\d{3} ", others[1])
    assert others[2:] == ["rr (not in use): nobody waits", "mlfq (not in use): nobody waits"]


def test_wait_queues(shell):
    queues = {row[2]: row[0] for row in rows(shell["waiting"])}
    assert queues == {
        "first": "children of task 1 (first)",
        "sh": f"children of task {shell['pids']['sh']} (sh)",
        "cat": "readers",
    }


def test_sched_trace(shell):
    *changes, last = rows(shell["sched-trace 5"])
    assert len(changes) == 5
    assert re.fullmatch(r"\d+ changes since the boot", last[0])
    assert int(changes[-1][0]) + 1 == int(last[0].split()[0])
    assert changes[-1][-2] == str(shell["pids"]["current"])
    for before, after in pairwise(changes):
        assert before[-2] == after[2]  # who got the processor gives it away


def test_files(shell):
    first, _, *files = shell["cat files"].splitlines()
    assert first == f"task {shell['cat']} (cat), in the directory /"
    assert [line.split()[0] for line in files] == ["0", "1", "2"]
    assert all("character device" in line and "/dev/console (5, 1)" in line for line in files)


def test_space(shell):
    text = shell["cat space"]
    assert re.search(r"^0x08048000 - 0x080\w{5} +\d+  program$", text, re.MULTILINE)
    assert re.search(r"^0x083c0000 - 0x083fffff +256  stack$", text, re.MULTILINE)
    assert re.search(r"^0x08000000 - 0x083fffff .* 1 x 4096 KiB +user, writable$", text, re.M)
    assert re.search(r"^0xbffff000 - 0xbfffffff .* user, read-only$", text, re.MULTILINE)
    assert "0xc" not in text.partition("below the kernel")[2]


# ---- a pipe, system calls, signals --------------------------------------------------------------


@pytest.fixture(scope="module")
def pipes(probe: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """Two processes and two pipes: where one of them writes, the other one sleeps."""
    return probe(
        """
        go_to("first_task")
        run("set var syscall_trace_on = 1")
        run("user-break pingpong")
        run("continue")
        run("delete")
        run("break 'fs/pipe.c':write")
        run("ignore $bpnum 20")
        run("continue")
        for name in ("tasks", "waiting", "files", "syscalls 6", "syscalls", "backtrace"):
            said[name] = run(name)
        said["buffer"] = run("in-task 2 signals"), run("signals 2")
        run("delete")
        run("break 'kernel/task_family.c':task_exit")
        run("condition $bpnum current->pid == 2")
        """,
        **command("exec pingpong 100000"),
    )


def test_the_last_system_calls(pipes):
    *calls, last = pipes["syscalls 6"].splitlines()
    assert len(calls) == 6
    assert re.fullmatch(r" +\d+ write\(\d, 0x83f\w+, 1\) = \?", calls[-1])
    assert re.fullmatch(r"\d+ calls recorded since the boot", last)
    assert any(re.fullmatch(r" +\d+ read\(\d, 0x83f\w+, 1\) = 1 <\d+ us>", call) for call in calls)
    assert len(pipes["syscalls"].splitlines()) == 21


def test_a_task_that_waits_for_a_pipe(pipes):
    """The queue is named after the pipe, which is one of those that are open."""
    (queue,) = [row[0] for row in rows(pipes["waiting"]) if "pingpong" in row]
    pipe = re.fullmatch(r"data of the pipe (0x\w+)", queue)
    assert pipe
    ends = [line for line in pipes["files"].splitlines() if pipe[1] in line]
    assert len(ends) in (1, 2)
    assert all("0 bytes in it, 1 readers, 1 writers" in line for line in ends)


def test_files_with_pipes(pipes):
    kinds = [re.split(r"  +", line.strip())[:3] for line in pipes["files"].splitlines()[2:]]
    assert [kind[1:] for kind in kinds[3:]].count(["r", "pipe"]) in (1, 2)
    assert all(kind[2] == "character device" for kind in kinds[:3])


# ---- lesson 3 -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def single(probe: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """One task: stopped in a program, in a system call, and after a panic behind it."""
    return probe(
        """
        run("user-break cat")
        run("continue")
        run("break 'kernel/syscall_path.c':sys_open")
        run("continue")
        for name in ("tasks", "task", "files", "space", "signals", "waiting", "runqueue", "locks"):
            said[name] = run(name)
        run("delete")
        said["stop"] = run("continue")
        for name in ("tasks", "task", "files", "syscalls", "console 100", "waiting"):
            said["after " + name] = run(name)
        """,
        lesson=3,
        script="strace /bin/cat /etc/passwd /nothing; crash null",
    )


def test_one_task_in_a_system_call(single):
    (row,) = rows(single["tasks"])
    assert row[:5] == ["*", "1", "0", "running", "cat"]
    assert in_order(["<trap or system call>", "open", "main"], names_of(single["task"]))
    assert "runs /bin/cat" in single["task"]
    assert single["files"].count("/dev/console (5, 1)") == 3
    assert "program" in single["space"]
    assert single["signals"].endswith("All do what they do by default.\n")
    assert single["waiting"] == "Nobody waits.\n"


def test_what_comes_in_lesson_4_is_said(single):
    assert "this kernel has no scheduler: it comes in lesson 4" in single["runqueue"]
    assert "this kernel has no struct mutex: it comes in a later lesson" in single["locks"]


def test_system_calls_are_as_the_kernel_shows_them(single):
    """After a panic, too; only the durations are gdb's own."""
    printed = re.findall(r"^(1 \w+\(.*\) = .*)$", single["after console 100"], re.MULTILINE)
    told = [
        re.sub(r" <\d+ us>$", "", line.strip())
        for line in single["after syscalls"].splitlines()[:-1]
    ]
    assert told == printed
    assert any('open("/nothing", ' in line and "= -2 ENOENT" in line for line in told)
    assert "recording is off: set var syscall_trace_on = 1" in single["after syscalls"]


def test_after_a_panic(single):
    """The program's files are gone by then, and nobody may take what is there for some."""
    assert "the kernel has panicked" in single["stop"]
    assert "machine_exit (kernel/machine.c) < panic_in_trap < page_fault" in single["after tasks"]
    assert "is none (any more)" in single["after files"]
    assert "page_fault" in names_of(single["after task"])


# ---- when things are broken ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def broken(probe: Callable[..., dict[str, Any]]) -> Callable[[str], str]:
    """What a command says when something has been overwritten, after a panic. One session."""
    said = probe(
        """
        run("break machine_exit")
        run("continue")
        run("set $first = (struct task *)((char *)'kernel/task.c'::all.next"
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
        broken_by("wild", every, ("'kernel/task.c'::all.next", "0x12345678"))
        broken_by("unmapped", every, ("'kernel/task.c'::all.next", "0xfc000000"))
        broken_by("queue", ("runqueue",),
                  ("'kernel/sched_round_robin.c'::queue.next", "&$first->schedule.in_queue"),
                  ("$first->schedule.in_queue.next", "0xfffffff0"))
        broken_by("stack", every, ("$first->esp", "0xc0000000"), ("current", "0xc0000000"))
        broken_by("parent", ("tasks",), ("$first->parent", "0xfc000000"))
        broken_by("deadlock", ("locks",),
                  ("$first->held", "$mutex"), ("$first->waiting", "$mutex + 1"),
                  ("$mutex->owner", "$first"), ("$mutex->next_held", 0),
                  ("($mutex + 1)->owner", "&'kernel/sched.c'::idle"),
                  ("'kernel/sched.c'::idle.waiting", "$mutex"))
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
    make("LESSON=2", "image-direct")
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
