"""The core without the breadth: every lesson's kernel links, boots, and runs the course's programs.
That it has all its points the graded tests show, half of whose runs are on it (make test)."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pexpect
import pytest

from labs.tools.course import exercises
from labs.tools.course.source_lists import BREADTH, changes, ever_linked, linked
from labs.tools.guest.initramfs import archive
from labs.tools.guest.programs import guest_root
from labs.tools.machine.machine import Machine, run
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.symbols import symbols_of
from tests.support.building import ROOT, make

LESSONS = tuple(exercises.lessons())


@cache
def core_kernel(lesson: int) -> Path:
    """A lesson's kernel without the breadth."""
    make(f"LESSON={lesson}", "BREADTH=no", "image-direct")
    return ROOT / f"build/lesson{lesson}-core/kernel.elf"


def address(kernel: Path, name: str) -> int:
    """The address of a symbol of the linker."""
    return symbols_of(kernel).find(name).address


@pytest.mark.parametrize("lesson", LESSONS)
def test_nothing_starts_by_itself(lesson) -> None:
    """The table of startup functions is empty, and the kernel boots to its prompt."""
    kernel = core_kernel(lesson)
    assert address(kernel, "startups_start") == address(kernel, "startups_end")
    run(Config(boot="direct", kernel=kernel, script="help", guest_limit=10)).check()


@pytest.mark.parametrize("lesson", LESSONS)
def test_lists_are_of_files_that_are_there(lesson) -> None:
    """No file is in two lists, or linked and taken away twice."""
    listed = [path for n in range(1, lesson + 1) for path in changes(ROOT / f"labs/lesson{n}")[0]]
    assert len(listed) == len(set(listed))
    assert all((ROOT / path).is_file() for path in listed)


def test_breadth_is_all_that_is_added() -> None:
    """Without the breadth no file of a breadth list is linked."""
    breadth = {path for n in LESSONS for path in changes(ROOT / f"labs/lesson{n}", BREADTH)[0]}
    assert breadth
    assert not breadth & set(linked(LESSONS[-1], ROOT, core=True))


def write_lists(root: Path, **lists: str) -> Path:
    """A tree with these lists: lesson1_sources="a.c", one line each."""
    for name, lines in lists.items():
        lesson, _, kind = name.partition("_")
        path = root / "labs" / lesson / kind
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines)
    for path in ("fs/b.c", "fs/a.asm", "fs/a.h", "fs/given.c.o", "fs/deep/c.c", "fs/README.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")
    return root


def test_a_folder_is_its_sources(tmp_path) -> None:
    """Sorted, those that are given as object code too; not what lies deeper, nor headers."""
    root = write_lists(tmp_path, lesson1_sources="mm/one.c\nfs/\n")
    assert linked(1, root) == ["mm/one.c", "fs/a.asm", "fs/b.c", "fs/given.c"]


def test_breadth_adds_and_takes_away(tmp_path) -> None:
    """A lesson has the breadth of those before; without it, what it took away is there."""
    lists = {"lesson1_sources": "one.c\nplain.c\n", "lesson1_breadth": "-plain.c\nrich.c\n"}
    root = write_lists(tmp_path, **lists, lesson2_sources="-one.c\ntwo.c\n")
    assert linked(1, root) == ["one.c", "rich.c"]
    assert linked(2, root) == ["rich.c", "two.c"]
    assert linked(2, root, core=True) == ["plain.c", "two.c"]
    assert ever_linked([1, 2], root) == {"one.c", "plain.c", "rich.c", "two.c"}


def test_make_links_what_the_lists_say() -> None:
    """The Makefile reads the lists by itself: both find the same files."""
    for lesson in LESSONS:
        for core in (False, True):
            words = ["make", "-pn", f"LESSON={lesson}", f"BREADTH={'no' if core else 'yes'}"]
            done = subprocess.run(
                [*words, "clean"], cwd=ROOT, capture_output=True, text=True, check=True
            )
            (line,) = (line for line in done.stdout.splitlines() if line.startswith("SOURCES :="))
            wanted = {*linked(lesson, ROOT, core), f"labs/lesson{lesson}/main.c"}
            assert sorted(line.split()[2:]) == sorted(wanted)


def test_breadth_is_yes_or_no() -> None:
    command = ["make", "BREADTH=some", "help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "BREADTH=some: yes or no" in done.stderr


# What the course's programs do without the breadth: a command, and what is printed.
COMMANDS = {
    "hello": "Hello from ring 3!\n",
    "echo one two | cat | cat": "one two\n",
    "cat < /etc/passwd | cat": None,
    "echo text > /tmp/file": "sh: /tmp/file: Read-only file system\n",
    "(exit 3); echo $?; true && echo yes; false || echo no": "3\nyes\nno\n",
    "cat missing": "cat: missing: No such file or directory\n",
    "cd /tmp": "sh: cd: /tmp: Function not implemented\n",
    "ps": "ps: /proc: No such file or directory\n",
    "tlscheck": "tlscheck: set_thread_area: Function not implemented\n",
    "fpucheck": "fpucheck: ok\n",
    "probe 3 | cat": None,
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """An archive with the course's programs, and no others."""
    make("LESSON=4", "user-programs")
    path = tmp_path_factory.mktemp("core") / "initramfs"
    path.write_bytes(archive(guest_root(ROOT / "build/user/bin", None)))
    return path


def test_programs_of_the_course(programs) -> None:
    """They run, or say what is missing."""
    script = "; ".join(f"echo begin; {command}" for command in COMMANDS)
    config = Config(boot="direct", kernel=core_kernel(4), initramfs=programs, guest_limit=20)
    said = run(replace(config, settings=(("cmd", script),))).check().serial
    for output, (command, expected) in zip(
        said.split("begin\n")[1:], COMMANDS.items(), strict=True
    ):
        if expected:
            assert output == expected, command
    assert "ok 40 " in output
    assert "not ok" not in output


def test_init_begins_with_a_shell(programs) -> None:
    """What is typed is run; exit ends the machine."""
    config = Config(boot="direct", kernel=core_kernel(4), initramfs=programs, guest_limit=20)
    with Machine(config) as machine:
        machine.expect(r"\$ ")
        machine.send("echo $$ | cat; hello\n")
        machine.expect("Hello from ring 3!")
        machine.send("exit\n")
        assert machine.wait().status == 0


def test_the_terminal_of_the_core() -> None:
    """Lines are edited; ^C ends the program in front and not its shell, ^D ends the input."""
    make("LESSON=4", "BREADTH=no", "image-disk", "user-programs")
    options = ["--build", "build/lesson4-core", "--user", "build/user/bin", "--core"]
    child = pexpect.spawn(
        sys.executable,
        ["-m", "labs.tools.machine.run", *options],
        cwd=str(ROOT),
        encoding="utf-8",
        timeout=300,
    )
    child.expect(r"\$ ")
    child.send("ecx\x7fho abc\x7fd\r")
    child.expect(r"\nabd\r")
    for key, status in (("c", 130), ("d", 0)):
        child.expect(r"\$ ")
        child.send("cat\r")
        child.send("heard\r")
        child.expect("heard\r(?s:.*)heard\r")
        child.sendcontrol(key)
        child.expect(r"\$ ")
        child.send("echo status $?.\r")
        child.expect(rf"\nstatus {status}\.")
    child.close(force=True)


def test_programs_of_lesson_3(programs) -> None:
    """One at a time, from the kernel's own prompt."""
    script = "run /bin/hello; strace /bin/echo a; run /bin/cat /etc/passwd; run /bin/probe 5"
    config = Config(boot="direct", kernel=core_kernel(3), initramfs=programs, guest_limit=20)
    said = run(replace(config, script=script)).check().serial
    assert "Hello from ring 3!" in said
    assert re.search(r"^1 write\(1, 0x\w+, 2\) = 2$", said, re.MULTILINE)
    assert "root:x:0:0" in said
    assert "ok 40" in said
    assert "not ok" not in said
