"""`make gdb` on a kernel that runs programs: its tasks, and what each of them has and waits for."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.gdb_guest import by_name, command, guest_probe, in_order, names_of, rows
from tests.support.gdb_session import ROOT

TOOLCHAIN = ROOT / "labs" / "tools" / "setup" / "toolchain.sh"


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """Runs a probe (tests/support/gdb_guest.py) in a folder of its own."""
    return lambda code, **fields: guest_probe(tmp_path_factory.mktemp("probe"), code, **fields)


# ---- one program reads, two compute ------------------------------------------------------------


@pytest.fixture(scope="module")
def shell(probe: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """`spin & spin & cat`: first where cat begins, then at a tick while it and the shell sleep."""
    return probe(
        """
        said["early"] = run("tasks")
        said["refused"] = [run(f"user-break {words}") for words in ("nothing", "cat nothing")]
        said["set"] = run("user-break cat")
        run("continue")
        said["begins"] = run("where-am-i"), run("backtrace"), run("info symbol $pc"), run("tasks")
        said["cat"] = pid = int(gdb.parse_and_eval("current->pid"))
        run("delete")
        run("set $cat = current")
        run("set $sh = current->process->parent->task")
        run("tbreak sched_turn_is_over")
        run("condition $bpnum $cat->life == TASK_SLEEPING && $sh->life == TASK_SLEEPING")
        run("continue")
        said["pids"] = pids = {
            "sh": int(gdb.parse_and_eval("current->process->parent->task->pid")),
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
    assert "process_wait (kernel/process/children.c) < program_run" in by_name(table, "first")[-1]
    assert "process_wait (kernel/process/children.c) < sys_wait4" in by_name(table, "sh")[-1]
    assert by_name(table, "cat")[:3] == [str(shell["cat"]), str(shell["pids"]["sh"]), "sleeping"]
    assert (
        "terminal_read (kernel/linux/terminal/terminal.c) < file_read" in by_name(table, "cat")[-1]
    )
    spins = [row for row in rows(table) if "spin" in row]
    assert sorted(row[-5] for row in spins) == ["ready", "running"]
    assert all(re.match(r"ring 3, 0x0804\w+", row[-1]) for row in spins)
    assert by_name(table, "idle")[0] == "0"


def test_calls_of_a_task_that_waits(shell):
    """From the switch down to the program's main: its stack is in its own address space."""
    text = shell["cat task"]
    assert re.match(r"task \d+ \(cat\), sleeping, parent \d+, runs /bin/cat\n", text)
    names = names_of(text)
    kernel = ["schedule", "sched_sleep", "terminal_read", "file_read", "sys_read"]
    assert in_order(
        [*kernel, "syscall_dispatch", "<trap or system call>", "read", "copy", "main"], names
    )
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
        "cat": "console.readers",
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
        run("set $main = (unsigned)$pc")
        run("delete")
        run("break pipe_write")
        run("ignore $bpnum 20")
        for _ in range(50):
            run("continue")
            if "of the pipe" in run("waiting"):
                break
        for name in ("waiting", "files", "syscalls 6", "syscalls"):
            said[name] = run(name)
        run("set var current->process->signals.actions[1].handler = $main")
        run("set var current->process->signals.actions[1].flags = 0x10000004")
        run("set var current->process->signals.actions[2].handler = 1")
        run("set var current->process->signals.pending = 1 << 14")
        run("set var current->process->signals.blocked = 0xfffffffffffffeff")
        said["signals"] = run("signals")
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


def test_files_by_their_paths(probe):
    """From where they were opened up to the root, in the memory file system; others have none."""
    said = probe(
        """
        run("user-break cat")
        for name in ("memory", "proc"):
            run("continue")
            said[name] = run("files").splitlines()
        """,
        **command("cd /tmp; echo text > file; cat < file; cd /proc; cat < version; :"),
    )
    assert said["memory"][0].endswith("in the directory /tmp")
    assert "/tmp/file" in said["memory"][2]
    assert said["proc"][0].endswith("in the directory ?")
    assert "of file system" in said["proc"][2]


def test_signals(pipes):
    """Of a task whose signals gdb has set: a handler, an ignored one, one that waits."""
    _, pending, blocked, _, *actions = pipes["signals"].splitlines()
    assert pending == "pending: SIGTERM"
    assert blocked == "blocked: all but SIGKILL"
    interrupt, quits = (re.split(r"  +", line) for line in actions)
    assert re.fullmatch(r"0x0804\w+ main", interrupt[1])
    assert (interrupt[0], interrupt[2]) == ("SIGINT", "information, restart")
    assert quits[:2] == ["SIGQUIT", "is ignored"]


# ---- programs of other kinds --------------------------------------------------------------------

MOVES = """\
static int calls;

static int __attribute__((noinline)) inner(int number)
{
	int result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
	return result + number + ++calls;
}

void _start(void)
{
	volatile int number = inner(3) + inner(4);

	__asm__ volatile("int $0x80" : : "a"(1), "b"(number));
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a position-independent program."""
    directory = tmp_path_factory.mktemp("programs")
    part, source = directory / "moves.o", directory / "moves.c"
    source.write_text(MOVES)
    cc, ld = (
        subprocess.run([TOOLCHAIN, name], capture_output=True, text=True, check=True)
        for name in ("cc", "ld")
    )
    options = ["-g", "-O1", "-fpie", "-ffreestanding", "-fno-stack-protector"]
    subprocess.run([*cc.stdout.split(), *options, "-c", source, "-o", part], check=True)
    link = ["-pie", "--no-dynamic-linker", "-static", "-e", "_start"]
    (directory / "bin").mkdir()
    target = directory / "bin" / "moves"
    subprocess.run([*ld.stdout.split(), *link, part, "-o", target], check=True)
    return directory


@pytest.fixture(scope="module")
def other(probe: Callable[..., dict[str, Any]], folder: Path) -> dict[str, Any]:
    """A program that is not where its file says, and one that calls by SYSENTER."""
    return probe(
        """
        run("user-break moves inner")
        for stop in ("first", "second"):
            run("continue")
            said[stop] = run("backtrace"), run("print calls")
        run("delete")
        run("break sys_getpid")
        run("condition $bpnum frame->eip >= 0xbffff000")
        run("continue")
        said["sysenter"] = run("backtrace")
        """,
        programs=folder,
        **command("moves; nullcall 1"),
    )


def test_symbols_of_a_program_that_is_moved(other):
    """Its variables are at their places, too: one call has been counted before the second."""
    for stop, number, calls in (("first", 3, 0), ("second", 4, 1)):
        backtrace, counted = other[stop]
        assert re.match(rf"#0 +inner \(number={number:#x}\) at .*moves\.c:\d+\n", backtrace)
        assert counted.split()[-1] == hex(calls)


def test_calls_through_sysenter(other):
    """From the kernel through the shared page into the program."""
    calls = ["sys_getpid", "syscall_dispatch", "<signal handler called>", "??"]
    assert in_order([*calls, "call_shared_entry", "main"], names_of(other["sysenter"]))
    assert re.search(r"#\d+ +0xbffff\w{3} in \?\?", other["sysenter"])


# ---- lesson 3 -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def single(probe: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """One task: stopped in a program, in a system call, and after a panic behind it."""
    return probe(
        """
        run("user-break cat")
        run("continue")
        run("break sys_open")
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
    assert "machine_exit (kernel/cpu/machine.c) < trap_panic < trap_" in single["after tasks"]
    assert "/dev/console" not in single["after files"]
    assert "null_pointer" in names_of(single["after task"])


def test_files_without_file_systems(tmp_path):
    """In the core there are no inodes: a file is known by what it can do."""
    code = """
        go_to("file_read if file->ops == &root_ops")
        said["root"] = run("files")
        go_to("pipe_read")
        said["pipe"] = run("files")
    """
    said = guest_probe(tmp_path, code, core=True, **command("cat /etc/passwd | cat"))
    assert by_name(said["root"], "/etc/passwd")[1:3] == ["r", "file"]
    (errors,) = (row for row in rows(said["root"]) if row[0] == "2")
    assert errors[-1] == "/dev/console"
    assert re.search(r"^ 0 +r +pipe +0 .* bytes in it, ", said["pipe"], re.MULTILINE), said["pipe"]


# ---- keys before there is a terminal ------------------------------------------------------------


def test_what_is_typed_before_there_is_a_terminal_is_no_fault(
    probe: Callable[..., dict[str, Any]],
) -> None:
    """The serial line has a byte as soon as the terminal's device listens to it."""
    said = probe(
        """
        run("tbreak serial_listen")
        run("continue")
        run("type x")
        run("tbreak panic")
        run("tbreak task_before_user")
        said["at"] = run("continue")
        """
    )
    assert "sched_work" in said["at"] and "panicked" not in said["at"]  # inlined in it
