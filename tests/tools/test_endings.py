"""Whatever ends a command, and whichever of its processes, nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pexpect
import pytest

from labs.tools.machine import keeper, work_folder
from labs.tools.machine.machine import Machine
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.result import Outcome
from tests.support.building import make
from tests.support.endings import (
    ROOT,
    end_all,
    marked_environment,
    nothing_is_left,
    one_of,
    processes,
    wait_until,
)

RUN = "make run LESSON=1"
SCRIPT = "make run LESSON=4 CMD='while :; do :; done'"
GDB = "make gdb LESSON=1"
PYTHON_OF = {RUN: "machine.run", SCRIPT: "machine.run", GDB: "debugging.debug"}
QEMU = "^[^ ]*qemu-system-i386 "

# A make that gets SIGHUP alone waits for its children: a terminal that goes sends it to them, too.
ENDINGS = [
    (who, ending)
    for who in ("make", "python", "qemu")
    for ending in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
    if (who, ending) != ("make", signal.SIGHUP)
]


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """All that make run needs: the tests wait for machines, not for a build."""
    make("LESSON=1", "everything")
    make("LESSON=4", "everything", "user-programs")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ends-", dir="/tmp") as name:
        yield Path(name)
        end_all(Path(name))


def in_a_terminal(command: str, folder: Path, says: str) -> pexpect.spawn:
    """A shell that runs a command in a terminal of its own."""
    line = ["-c", f"{command}; echo the shell goes on; sleep 1000"]
    child = pexpect.spawn(
        "/bin/sh", line, cwd=str(ROOT), env=marked_environment(folder), timeout=300
    )
    child.expect_exact(says)
    one_of(folder, QEMU)
    return child


def process_of(who: str, command: str, folder: Path, shell: int) -> int:
    """The number of one process of the chain."""
    if who == "shell":
        return shell
    words = {
        "make": "^make ",
        "python": f"-m labs.tools.{PYTHON_OF[command]}",
        "qemu": QEMU,
        "keeper": "keeper.py",
    }
    return one_of(folder, words[who])


@pytest.mark.parametrize("command", [RUN, GDB])
def test_terminal_is_closed(command: str, folder: Path) -> None:
    child = in_a_terminal(command, folder, "(gdb)" if command == GDB else "Type exit")
    child.close(force=False)
    nothing_is_left(folder)


@pytest.mark.slow
@pytest.mark.parametrize(("who", "ending"), [("shell", signal.SIGHUP), *ENDINGS])
@pytest.mark.parametrize("command", [RUN, GDB])
def test_one_of_the_chain_ends(
    command: str, who: str, ending: signal.Signals, folder: Path
) -> None:
    child = in_a_terminal(command, folder, "(gdb)" if command == GDB else "Type exit")
    os.kill(process_of(who, command, folder, child.pid), ending)
    if who != "shell":
        if who == "qemu" and command == GDB:
            child.sendline("quit")
        child.expect_exact("the shell goes on")
        os.kill(child.pid, signal.SIGKILL)
    child.close()
    nothing_is_left(folder)


@pytest.mark.slow
@pytest.mark.parametrize(("who", "ending"), ENDINGS)
def test_one_of_a_script_ends(who: str, ending: signal.Signals, folder: Path) -> None:
    with subprocess.Popen(
        SCRIPT,
        shell=True,
        cwd=ROOT,
        env=marked_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as shell:
        try:
            one_of(folder, QEMU)
            os.kill(process_of(who, SCRIPT, folder, shell.pid), ending)
        except BaseException:
            end_all(folder)  # else the script, which does not end, is waited for
            raise
    nothing_is_left(folder)


def watches(its_keeper: int, folder: Path) -> bool:
    """Whether a keeper knows its owner, and the process that sweeps for it has ended."""
    with suppress(FileNotFoundError):
        files = Path(f"/proc/{its_keeper}/fd").iterdir()
        return len(processes(folder)) == 2 and any("pidfd" in os.readlink(each) for each in files)
    return False


def test_a_lost_exception_does_not_keep_a_process_alive() -> None:
    """The end was asked for while a destructor ran, and Python drops what that raises."""
    code = (
        "import os, signal, time\n"
        "from labs.tools.machine import work_folder\n"
        "work_folder.ENDING_SECONDS = 1\n"
        "class Lost:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(0)\n"
        "with work_folder.endings_raise():\n"
        "    Lost()\n"
        "    time.sleep(1000)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGALRM and "SystemExit" in done.stderr


def test_what_runs_in_a_part_of_the_folder_ends_too(folder: Path) -> None:
    """A machine of the past has a part of the debugger's folder for its own: once it went on alone,
    with all of a processor."""
    code = (
        "import os, signal, subprocess\n"
        "from labs.tools.machine.work_folder import environment_in, work_folder\n"
        "with work_folder('test') as folder:\n"
        "    part = folder / 'past' / 'part'\n"
        "    part.mkdir(parents=True)\n"
        "    subprocess.Popen(['sleep', '1000'], env=environment_in(part))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**marked_environment(folder), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    nothing_is_left(folder)


def test_the_last_words_of_an_owner_are_heard(folder: Path) -> None:
    """The keeper learns at once that its owner made another folder, and that it has ended."""
    code = (
        "import os, signal, subprocess\n"
        "from labs.tools.machine.work_folder import environment_in, work_folder\n"
        "with work_folder('first'):\n"
        "    input()\n"
        "    with work_folder('second') as folder:\n"
        "        subprocess.Popen(['sleep', '1000'], env=environment_in(folder))\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**marked_environment(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as owner:
        its_keeper = one_of(folder, "keeper.py")
        wait_until(lambda: watches(its_keeper, folder), "the keeper at its work")
        os.kill(its_keeper, signal.SIGSTOP)
        owner.communicate(b"\n")
    os.kill(its_keeper, signal.SIGCONT)
    nothing_is_left(folder)


def test_what_a_killed_keeper_left_goes_at_the_next_start(folder: Path) -> None:
    """Owner and keeper are killed in one moment: nobody is left to clean up."""
    code = (
        "import os, signal, subprocess, time\n"
        "from labs.tools.machine.work_folder import environment_in, work_folder\n"
        "with work_folder('test') as folder:\n"
        "    (folder / 'file').touch(); (folder / 'sub').mkdir(); (folder / 'sub').chmod(0)\n"
        "    subprocess.Popen(['sleep', '1000'], env=environment_in(folder))\n"
        "    print('ready', flush=True); time.sleep(LONG)\n"
    )
    environment = {**marked_environment(folder), "PYTHONPATH": str(ROOT)}

    def owner(seconds: float) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", code.replace("LONG", str(seconds))]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        return process

    with owner(1000) as lost:
        its_keeper = one_of(folder, "keeper.py")
        os.kill(its_keeper, signal.SIGSTOP)
        lost.kill()
        lost.wait()
        os.kill(its_keeper, signal.SIGKILL)
    wait_until(lambda: len(processes(folder)) == 1, "sleep alone")
    with owner(1000) as living:
        one_of(folder, "keeper.py")
        wait_until(lambda: len(os.listdir(folder)) == 1, "the old folder's end")
        living.kill()
    nothing_is_left(folder)


def test_a_folder_that_a_person_made_stays(tmp_path: Path) -> None:
    """Such as a clone in /tmp, whatever its name: only what work_folder made is swept away."""
    clone, left = tmp_path / f"{keeper.PREFIX}kernel", tmp_path / f"{keeper.PREFIX}guest-x"
    clone.mkdir(mode=0o755)
    left.mkdir(mode=0o700)
    keeper.sweep([tmp_path])
    assert clone.exists() and not left.exists()


def test_a_folder_in_use_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this process and of another: one command sweeps while the next one works."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(work_folder, "short_directory", lambda: None)
    with work_folder.command_folder("one") as one, work_folder.work_folder("other") as other:
        keeper.sweep([one.parent, other.parent])
        assert one.is_dir() and other.parent == one and other.is_dir()
        assert os.environ["TMPDIR"] == str(one)
    assert os.environ.get("TMPDIR") != str(one)
    assert list(tmp_path.iterdir()) == []


def test_a_machine_that_a_signal_ends_has_not_ended_by_itself():
    """A grade must not depend on it."""
    make("LESSON=1", "image-direct")
    with Machine(Config(kernel=ROOT / "build/lesson1/kernel.elf", boot="direct")) as machine:
        machine.expect("> ")
        os.kill(machine.process_id, signal.SIGTERM)
        result = machine.wait()
    assert result.outcome is Outcome.QEMU_FAILED
    assert "signal 15" in result.explain()
