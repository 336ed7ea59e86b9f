"""The choice of the toolchain, and the doctor, on a machine whose every tool is a fake."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labs.tools.setup.doctor import NEWEST, OLDEST, numbers
from tests.support.fake_machine import GCC, PYTHON, TOOLS, FakeMachine

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


# ---- toolchain.sh -------------------------------------------------------------------------------

BROKEN = """
echo "In file included from trial.c:1:"
echo "trial.c:1:10: fatal error: $0: no such thing"
exit 1
"""

PREFIXES = ("i686-linux-gnu-", "i686-elf-", "i386-elf-", "x86_64-elf-", "")


def add_toolchain(machine: FakeMachine, prefix: str, text: str = GCC) -> None:
    machine.fake(f"{prefix}gcc", text)
    machine.fake(f"{prefix}ld", "exit 0")


def answer(machine: FakeMachine, *arguments: str, **more: str) -> str:
    done = machine.run("toolchain.sh", *arguments, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.removesuffix("\n")


@pytest.mark.parametrize("first", range(len(PREFIXES)))
def test_first_prefix_that_is_there(machine: FakeMachine, first: int) -> None:
    for prefix in PREFIXES[first:]:
        add_toolchain(machine, prefix)
    prefix = PREFIXES[first]
    assert answer(machine) == prefix
    assert answer(machine, "cc") == f"{prefix}gcc -m32"
    assert answer(machine, "ld") == f"{prefix}ld -m elf_i386"
    assert answer(machine, "objcopy") == f"{prefix}objcopy"


def test_broken_compiler_is_skipped(machine: FakeMachine) -> None:
    add_toolchain(machine, "i686-linux-gnu-", BROKEN)
    machine.fake("i686-elf-gcc", GCC)  # and no linker
    add_toolchain(machine, "i386-elf-")
    assert answer(machine) == "i386-elf-"
    explained = dict(line.split("\t") for line in answer(machine, "explain").splitlines())
    assert "fatal error" in explained["i686-linux-gnu-"]
    assert explained["i686-elf-"] == "i686-elf-ld is not in PATH"
    assert explained["i386-elf-"] == "ok"


def test_cross_is_the_only_candidate(machine: FakeMachine) -> None:
    add_toolchain(machine, "i686-linux-gnu-")
    add_toolchain(machine, "my-")
    assert answer(machine, "cc", CROSS="my-") == "my-gcc -m32"
    assert answer(machine, CROSS="") == "i686-linux-gnu-"
    done = machine.run("toolchain.sh", CROSS="your-")
    assert done.returncode == 1
    assert "CROSS=your- does not work" in done.stderr
    assert "your-gcc is not in PATH" in done.stderr


def test_nothing_works(machine: FakeMachine) -> None:
    done = machine.run("toolchain.sh", "cc")
    assert (done.returncode, done.stdout) == (1, "")
    assert all(f"{prefix}gcc is not in PATH" in done.stderr for prefix in PREFIXES)
    assert "fix: labs/tools/setup/setup.sh run" in done.stderr


def test_answer_is_kept_while_it_holds(machine: FakeMachine) -> None:
    add_toolchain(machine, "i386-elf-")
    compiled = machine.home / "compiled"
    assert answer(machine) == "i386-elf-"
    compiled.unlink()
    assert answer(machine) == "i386-elf-"
    assert not compiled.exists(), "compiled again, though nothing has changed"

    more = machine.home / "more"
    machine.fake("../more/i686-elf-gcc", GCC)
    machine.fake("../more/i686-elf-ld", "exit 0")
    assert answer(machine, PATH=f"{more}:{machine.bin}") == "i686-elf-"
    add_toolchain(machine, "")
    machine.remove("i386-elf-gcc")
    assert answer(machine, "cc") == "gcc -m32"


# ---- doctor.py ----------------------------------------------------------------------------------

QEMU = """
case "$*" in
"-machine help") echo "pc    Standard PC" ;;
"-device help") echo 'name "ide-hd", bus IDE' ;;
"-accel help") echo tcg ;;
*) echo "QEMU emulator version ${FAKE_QEMU:-9.1.0}" ;;
esac
"""

GDB = """
asked=${!#}
[ "$asked" = --version ] || { echo "The target architecture is set to \\"${asked##* }\\"."; exit; }
echo "GNU gdb 15.1"
"""


def doctor(machine: FakeMachine, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, machine.tree / "labs/tools/setup/doctor.py"],
        env={**machine.environment, **more},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def healthy(machine: FakeMachine) -> FakeMachine:
    """A machine on which the doctor finds nothing to fix."""
    machine.install()
    assert machine.run("setup.sh", "test").returncode == 0
    pins = [
        line
        for name in ("requirements-run.txt", "requirements.txt")
        for line in (TOOLS / name).read_text().splitlines()
        if "==" in line
    ]
    format_pin = next(pin for pin in pins if pin.startswith("clang-format=="))
    (machine.home / "freeze").write_text("\n".join(pins))
    machine.fake("python3", PYTHON.replace("esac", '*freeze*) cat "$FAKES/freeze" ;;\nesac'))
    machine.fake("../tree/.venv/bin/clang-format", f"echo {format_pin.split('==')[1]}")
    machine.fake("qemu-system-i386", QEMU)
    machine.fake("gdb", GDB)
    return machine


def test_doctor_finds_nothing(healthy: FakeMachine) -> None:
    done = doctor(healthy)
    assert done.returncode == 0, done.stdout
    assert "fix" not in done.stdout
    assert re.search(r"^ok +qemu-system-i386 +9\.1\.0 +run ", done.stdout, re.MULTILINE)
    assert re.search(r"^ok +i686-linux-gnu- +chosen", done.stdout, re.MULTILINE)
    assert re.search(r"^unused +i686-elf- +i686-elf-gcc is not in PATH$", done.stdout, re.MULTILINE)


def test_doctor_finds_what_is_missing(healthy: FakeMachine) -> None:
    healthy.remove("nasm", "gdb")
    done = doctor(healthy)
    sudo = "" if os.geteuid() == 0 else "sudo "
    assert done.returncode == 1
    assert re.search(
        rf"^missing +nasm .*\n +fix: {sudo}apt-get install nasm$", done.stdout, re.MULTILINE
    )
    assert re.search(r"^missing +gdb for i386 ", done.stdout, re.MULTILINE)
    assert "3 to fix" in done.stdout


def test_doctor_finds_what_is_too_old(healthy: FakeMachine) -> None:
    done = doctor(healthy, FAKE_QEMU="2.0.1")
    assert done.returncode == 1
    assert re.search(r"^too old +qemu-system-i386 +2\.0\.1 ", done.stdout, re.MULTILINE)
    assert "fix: needs 7.2 or later" in done.stdout


def test_doctor_names_what_is_otherwise(healthy: FakeMachine) -> None:
    """A version that was not tried, or with known differences, is no failure, and is named."""
    assert "note:" not in doctor(healthy).stdout
    done = doctor(healthy, FAKE_QEMU="99.1.0")
    assert done.returncode == 0
    assert re.search(
        r"^ok +qemu-system-i386 +99\.1\.0 .*\n +note: 10\.0 is the newest that was tried",
        done.stdout,
        re.MULTILINE,
    )
    healthy.fake("i686-linux-gnu-gcc", f'[ "$1" != --version ] || echo gcc 14.2.0\n{GCC}')
    done = doctor(healthy)
    assert done.returncode == 0
    assert re.search(r"^ok +i386-compiler +14\.2\.0 .*\n +note: inlines", done.stdout, re.MULTILINE)
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_tried_versions_are_those_of_the_readme() -> None:
    """The table of what was tried has each program, from the oldest version to the newest."""
    table = (ROOT / "tests/README.md").read_text().partition("## What was tried")[2]
    names = {"i386-compiler": "gcc", "qemu-system-i386": "QEMU", "mkfs.ext4": "e2fsprogs"}
    names |= {"python-with-venv": "Python", "nasm": "NASM"}
    for name, newest in NEWEST.items():
        row = re.search(rf"^\| {names.get(name, name)} \| (.+) \|$", table, re.MULTILINE)
        assert row, name
        first, *_, last = (numbers(cell) for cell in row[1].split(" | "))
        assert first[: len(numbers(OLDEST[name]))] == numbers(OLDEST[name]), name
        assert last[: len(numbers(newest))] == numbers(newest), name


def test_doctor_finds_wrong_packages(healthy: FakeMachine) -> None:
    freeze = healthy.home / "freeze"
    freeze.write_text(re.sub(r"pexpect==\S+", "pexpect==0.1", freeze.read_text()))
    healthy.fake("../tree/.venv/bin/clang-format", "echo 1.2.3")
    done = doctor(healthy)
    assert done.returncode == 1
    assert re.search(r"^missing +packages in .venv .*not pexpect$", done.stdout, re.MULTILINE)
    assert re.search(r"^missing +clang-format +1\.2\.3 ", done.stdout, re.MULTILINE)


def test_doctor_in_a_fresh_tree(healthy: FakeMachine) -> None:
    shutil.rmtree(healthy.tree / ".venv")
    done = doctor(healthy)
    assert done.returncode == 0, done.stdout
    assert "fix" not in done.stdout
    later = re.findall(r"^later +(.*?)  ", done.stdout, re.MULTILINE)
    assert set(later) == {".venv", "packages in .venv", "clang-format"}
    assert "The first command installs Python packages into .venv" in done.stdout


def test_doctor_after_make_run(healthy: FakeMachine) -> None:
    """What make test needs besides, the next command puts into .venv: nobody has to do anything."""
    shutil.rmtree(healthy.tree / ".venv")
    assert healthy.run("setup.sh", "run").returncode == 0
    done = doctor(healthy)
    assert done.returncode == 0, done.stdout
    assert "fix" not in done.stdout
    later = re.findall(r"^later +(.*?)  ", done.stdout, re.MULTILINE)
    assert set(later) == {".venv", "clang-format"}  # the fake pip lists all packages
    assert "The first command" not in done.stdout


def test_doctor_says_what_only_tests_miss(healthy: FakeMachine) -> None:
    healthy.remove("gdb")
    done = doctor(healthy)
    assert done.returncode == 1
    assert "Ready for make run. 2 to fix for the others" in done.stdout


def test_doctor_finds_dos_lines(healthy: FakeMachine) -> None:
    script = healthy.tree / "labs/tools/setup/setup.sh"
    script.write_bytes(script.read_bytes().replace(b"\n", b"\r\n"))
    done = doctor(healthy)
    assert done.returncode == 1
    assert "CRLF" in done.stdout
    assert "git config core.autocrlf false" in done.stdout
    assert done.stderr == ""


def test_doctor_in_a_fresh_tree_without_python(healthy: FakeMachine) -> None:
    shutil.rmtree(healthy.tree / ".venv")
    healthy.remove("python3")
    done = doctor(healthy)
    assert done.returncode == 1
    assert re.search(r"^missing +\.venv ", done.stdout, re.MULTILINE)


def test_doctor_on_a_bare_machine(machine: FakeMachine) -> None:
    done = doctor(machine)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stdout.isascii()
    assert max(map(len, done.stdout.splitlines())) <= 100
    missing = re.findall(r"^missing +(\S+)", done.stdout, re.MULTILINE)
    assert {"make", "nasm", "i386-compiler", "qemu-system-i386", ".venv", "gdb"} <= set(missing)
