"""`make gdb` goes back in time: each command, on a run with typed input and a panic at its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from labs.tools.debugging.debug import wait_for
from labs.tools.debugging.past.history import History, Past
from labs.tools.debugging.past.preload import when_recording, when_repeating
from labs.tools.debugging.past.stub import Stub
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.qemu_process import start_qemu
from labs.tools.machine.symbols import symbols_of
from labs.tools.machine.work_folder import work_folder
from tests.support.dialogues import GDB_PROMPT, steps, walked
from tests.support.gdb_guest import command, guest_probe
from tests.support.gdb_session import BUILD, LAUNCHER, ROOT, probe

PAGE = ROOT / "labs/debugging.md"


@pytest.fixture(scope="module")
def session(
    build: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """To a panic that somebody has typed, and back."""
    for name in ("boot.img", "kernel.elf"):
        build(f"build/storage/{name}")
    return probe(
        tmp_path_factory.mktemp("past"),
        """
        def where():
            place = run('monitor past {"do": "where"}')
            return json.loads(place)["now"], run("where-am-i")
        go_to("prompt")
        run("type read hda 64 3")
        run("type panic")
        said["panic"] = run("continue")
        said["present"] = where()
        commands = ["backtrace", "where-am-i", "klog", "tasks", "in-task 1 backtrace",
                    "page-directory", "descriptors", "memory-map", "print ticks"]
        said["core"] = commands, [run(each) for each in commands]
        said["file"] = os.path.join(os.path.dirname(saw.__defaults__[0]), "core")
        said["written"] = run("core " + said["file"])
        said["ticks"] = int(gdb.parse_and_eval("ticks"))
        said["back to"] = run("back-to run_panic"), run("backtrace 2")
        said["when"] = run("when")
        said["told"] = run("console 1"), run("last-fault"), run("klog 1")
        said["change"] = run("last-change ticks"), where()
        said["step"] = [int(gdb.parse_and_eval("ticks")), run("stepi"),
                        int(gdb.parse_and_eval("ticks"))]
        said["back"] = [run("back") for _ in range(4)], where(), run("back 1"), where()
        said["further"] = run("back-to pit_tick"), where()
        said["first"] = run("first-time ticks == 2"), int(gdb.parse_and_eval("ticks"))
        said["before first"] = run("back 1"), int(gdb.parse_and_eval("ticks"))
        said["refused"] = [run(each) for each in (
            "type help", "set var ticks = 7", "last-change $eax", "last-change ticks + 1",
            "first-time 1 == 2", "back-to panic")]
        said["now"] = run("now"), where()
        said["off"] = run("continue")
        said["again"] = run("again"), where(), run("back")
        """,
        "--boot",
        "direct",
    )


@contextmanager
def recorded_to(
    folder: Path, place: str
) -> Iterator[tuple[subprocess.Popen[bytes], Stub, History]]:
    """A machine that is recorded, and has come to a function; the session has built it."""
    with work_folder("recorded") as directory:
        config = Config(
            boot="direct",
            kernel=BUILD / "kernel.elf",
            skip_idle=False,
            record=directory / "record",
        )
        channels = ["-S", "-gdb", f"unix:{directory / 'front'},server=on,wait=off"]
        channels += ["-chardev", f"file,id=serial,path={folder / 'serial'}"]
        channels += ["-serial", "chardev:serial"]
        made = when_recording(config.record)
        process = start_qemu(config, directory, channels, environment=made)
        try:
            wait_for(directory / "front", process)
            stub = Stub(directory / "front", process)
            stop = f"1,{symbols_of(config.kernel).find(place).address:x},1"
            stub.ask(f"Z{stop}")
            stub.send("c")
            stub.receive()
            stub.ask(f"z{stop}")
            yield process, stub, History(config, directory / "past", is_growing=True)
        finally:
            process.kill()
            process.wait()


def count_of(place: list[Any]) -> int:
    """The instruction count."""
    return place[0]


def test_back_to_the_last_call(session):
    assert "the kernel has panicked" in session["panic"]
    stop, backtrace = session["back to"]
    assert "run_panic" in stop
    assert "#1  " in backtrace and "monitor_execute" in backtrace


def test_back_to_the_same_place_goes_further(session):
    stop, place = session["further"]
    assert "pit_tick" in stop
    assert count_of(place) < count_of(session["change"][1]) < count_of(session["present"])


def test_last_change_stops_at_the_store(session):
    words, place = session["change"]
    before, _, after = session["step"]
    assert re.search(r"ticks: 0x\w+ -> 0x\w+, by the next instruction\.", words)
    assert "pit_tick+" in place[1] and "inc DWORD PTR" in place[1]
    assert after == before + 1


def test_back_by_lines_and_instructions(session):
    lines, place, step, before = session["back"]
    assert "inc DWORD PTR" in lines[0] and "pit_tick" in lines[2] and "pic_dispatch" in lines[3]
    assert count_of(before) == count_of(place) - 1
    assert "pic_dispatch" in step


def test_first_time_is_exact(session):
    words, ticks = session["first"]
    assert "ticks == 2 is true from here on" in words
    assert ticks == 2
    assert session["before first"][1] == 1


def test_when_tells_the_place_in_the_run(session):
    place = r"instruction ([\d,]+) \([\d,]+ is now\), (0\.\d{6}) s of guest time; "
    found = re.match(place + "this one has run 0 times before", session["when"])
    instructions = int(found[1].replace(",", ""))
    assert float(found[2]) >= instructions * 8e-9  # and the time in which the processor waits


def test_what_was_written_so_far(session):
    """The machine has not panicked there yet: it has just read the command."""
    console, fault, log = session["told"]
    assert console.strip() == log.strip() == "apprentice> panic"
    assert "No exception so far" in fault


def test_what_cannot_be_is_refused(session):
    typed, changed, register, computed, constant, later = session["refused"]
    assert "the past has its input already" in typed
    assert "error" in changed
    assert "is not in memory" in register and "is not in memory" in computed
    assert "it reads no memory" in constant
    assert "was not reached before" in later


def test_out_of_the_past(session):
    assert session["now"][1] == session["present"]
    assert "The machine is off" in session["off"]


def test_from_the_start_once_more(session):
    _, start, refused = session["again"]
    assert count_of(start) == 0 and "f000:fff0" in start[1]
    assert "the run begins here" in refused


def test_back_in_16_bit_code(build, tmp_path):
    """From the second stage of the boot loader to the first, with gdb's own commands, too."""
    build("build/storage/boot.img")
    said = probe(
        tmp_path,
        """
        said["stage 2"] = go_to("stage2_start")
        said["sector"] = run("back-to start")
        run("tbreak stage2_start")
        said["again"] = run("continue")
        said["step"] = run("reverse-stepi"), run("stepi")
        """,
    )
    assert "0000:8000" in said["stage 2"] and "0000:8000" in said["again"]
    assert "0000:7c00 = 0x00007c00 start:" in said["sector"]
    back, forth = said["step"]
    assert "0000:7c" in back and "0000:8000" in forth


def test_the_page_s_example(session, tmp_path):
    """What labs/debugging.md shows; `session` has built what it needs."""
    walk = steps(PAGE.read_text(), "gdb", GDB_PROMPT)
    assert len(walk) >= 12
    walked([*LAUNCHER, "--boot", "direct"], walk, tmp_path)


def test_the_page_has_every_command(session):
    """Those of past_commands.py, and no other one."""
    source = (ROOT / "labs/tools/debugging/gdb/past_commands.py").read_text()
    named = re.findall(r"^\| `([a-z-]+)", PAGE.read_text(), re.MULTILINE)
    assert sorted(named) == sorted(re.findall(r'^@command\("([a-z-]+)"', source, re.MULTILINE))


def test_back_into_a_program(tmp_path):
    """The kernel is at its end; the last time at a function of a program, which has run before."""
    said = guest_probe(
        tmp_path,
        """
        run("continue")
        said["main"] = run("back-to hello:main"), run("backtrace 1")
        said["pid"] = run("last-change current->pid")
        """,
        **command("hello a b"),
    )
    stop, backtrace = said["main"]
    assert "ring 3]" in stop and "main:" in stop
    assert "main (count=0x3" in backtrace and "user/hello.c" in backtrace
    assert "task_create+" in said["pid"] and "by the next instruction" in said["pid"]


def test_a_core_tells_the_same(session, tmp_path):
    """What the machine was at its end, without the machine: all but running, and the past."""
    commands, live = session["core"]
    code = f"said['core'] = [run(each) for each in {commands!r}]"
    code += "\nsaid['runs'] = [run(each) for each in ('continue', 'stepi', 'back', 'again')]"
    said = probe(tmp_path, code, "--boot", "direct", "--dump", session["file"])
    shown = alone(session["file"])
    Path(session["file"]).unlink()  # it has all of the guest's memory
    assert said["core"] == live
    assert all(words.startswith(("error: ", "warning: Remote failure")) for words in said["runs"])
    assert "<machine_exit+" in shown and f"$1 = {session['ticks']}" in shown


def alone(file: str) -> str:
    """What gdb without our commands shows of a core, as the page says."""
    asked = re.search(r"`(print \*.*?)`", PAGE.read_text())[1]
    words = ("-ex", f"core-file {file}", "-ex", "info registers eip", "-ex", asked)
    command = ["gdb", "-nx", "-batch", *words, str(BUILD / "kernel.elf")]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_a_stop_while_the_guest_is_idle(session, tmp_path):
    """Ctrl-C comes at the moment at which the timer of idle time expires: QEMU wakes up for both.
    The run goes on, and must be repeated beyond that place."""
    with recorded_to(tmp_path, "prompt") as (process, stub, history):
        for _ in range(2):
            stub.send("c")
            time.sleep(0.1)
            process.send_signal(signal.SIGSTOP)
            stub.interrupt()
            time.sleep(0.05)
            process.send_signal(signal.SIGCONT)
            stub.receive()
        stub.send("c")
        time.sleep(0.1)
        stub.interrupt()
        stub.receive()
        history.present = stub.count()
        past = history.at(history.present)
        assert past.count == history.present
        past.end()


@pytest.mark.parametrize(
    ("status", "is_at_work"), [("0x50", False), ("0xd0", True), ("0x58", True)]
)
def test_no_snapshot_while_a_drive_is_at_work(status, is_at_work, tmp_path):
    """It would not have the request, for whose end the machine would wait for ever: the drive is
    busy, or has data."""

    class Monitor(Stub):
        def __init__(self):
            self.made = []

        def monitor(self, command):
            if command.startswith("savevm"):
                self.made.append(command)
                return "no room"
            return f"portb[0x0376] = {status if '0x376' in command else '0x00'}"

    past = Past.__new__(Past)
    past.stub = Monitor()
    assert not past.save(tmp_path / "snapshot")
    assert bool(past.stub.made) != is_at_work


WAITS = """
import ctypes, time
timeout = (ctypes.c_long * 2)({seconds}, 0)
start = time.monotonic()
ctypes.CDLL(None).ppoll(None, 0, timeout, None)
print(time.monotonic() - start)
"""


@pytest.mark.parametrize(("environment", "seconds", "least"), [("repeat", 600, 0), ("", 1, 1)])
def test_a_run_that_is_repeated_does_not_wait(environment, seconds, least):
    """QEMU sleeps by ppoll; where the guest was idle for minutes, its repetition must not be."""
    added = when_repeating() if environment else {}
    done = subprocess.run(
        [sys.executable, "-c", WAITS.format(seconds=seconds)],
        env={**os.environ, **added},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert least <= float(done.stdout) < 300
