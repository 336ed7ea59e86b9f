"""What takes long says so."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

from labs.tools.course.exercises import ROOT
from labs.tools.machine.bounded import Patience
from labs.tools.machine.patience import CLEAR, Silence, told


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def until(holds) -> None:
    patience = Patience(300)
    while not holds() and not patience.is_over():
        time.sleep(0.01)
    assert holds()


def test_nothing_is_said_of_what_is_quick():
    stream = io.StringIO()
    with told(lambda: "long", stream):
        pass
    assert stream.getvalue() == ""


def test_each_text_is_a_line_once():
    stream, texts = io.StringIO(), iter(["", "one", "one", "two"])
    with told(lambda: next(texts, "two"), stream, first=0):
        until(lambda: "two" in stream.getvalue())
    assert stream.getvalue() == "one\ntwo\n"


def test_a_terminal_has_one_line_that_goes_away():
    stream = Terminal()
    with told(lambda: "grading", stream, first=0):
        until(lambda: "grading (0 s)" in stream.getvalue())
    assert stream.getvalue().endswith(CLEAR)
    assert "\n" not in stream.getvalue()


def test_a_silent_kernel_is_told_of(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("labs.tools.machine.patience.time.monotonic", lambda: now[0])
    said = [b""]
    silence = Silence(lambda: said[0], "make gdb LESSON=1")
    assert silence() == ""
    now[0] += 6
    assert silence().startswith("make run: nothing comes from the kernel")
    assert silence().endswith("make gdb LESSON=1 shows where")
    said[0] = b"memory: 0\n"
    assert silence() == ""
    now[0] += 6
    assert "no more comes from the kernel" in silence()
    said[0] = b"memory: 0\napprentice> "
    now[0] += 6
    assert silence() == ""


def test_no_test_is_judged_by_the_clock():
    """A limit is counted (bounded.py): neither a stop of all processes nor a clock that jumps uses
    it up. Some files measure, or ask how long something takes at the least."""
    clock = re.compile(r"subprocess\.run\((?:[^()]|\([^()]*\))*\btimeout=|time\.\w+\(\) [-+<]")
    files = [each for each in (ROOT / "tests").rglob("*.py") if each != Path(__file__)]
    measure = {"images.py", "test_bounded.py", "test_bugs.py", "test_gdb_past.py"}
    assert {each.name for each in files if clock.search(each.read_text())} == measure
