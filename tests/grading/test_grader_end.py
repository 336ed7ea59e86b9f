"""What ends the grader: whatever it is, no process and no folder stays. And what it cannot read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labs.tools.course.exercises import ROOT, by_id
from labs.tools.grading import graded_tree
from labs.tools.grading.grade import main as grade
from labs.tools.grading.graded_tree import SubmissionError, first_error, submitted
from labs.tools.machine.bounded import Patience

SECONDS = 300  # until all has ended; it takes a tenth of one
SLEEP = f"987654.{os.getpid()}"  # seconds: so long sleeps only what this run has begun
CONFTEST = 'pytest_plugins = ["labs.tools.grading.lab", "labs.tools.grading.lab_plan"]\n'

# A test as long as one likes, with all that a test of a submission may have begun: a box, and a
# machine.
ENDLESS = """
import pathlib, subprocess, tempfile, threading
import pytest
from labs.tools.grading import sandbox
from labs.tools.machine.work_folder import environment_in, work_folder

@pytest.mark.exercise("1.1")
def test_endless(lab):
    place = pathlib.Path(tempfile.mkdtemp())
    with work_folder("test") as folder:
        own = {"env": environment_in(folder), "start_new_session": True}
        machine = subprocess.Popen(["sleep", "@SLEEP@"], **own)
        other = subprocess.Popen(["sleep", "@SLEEP@"], start_new_session=True)
        pathlib.Path(__file__).with_name("begun").touch()
        sandbox.run(["sleep", "@SLEEP@"], place, sandbox.Limits(9, 9999, None, 1 << 20))
"""
GRADER = """
import sys
from labs.tools.grading.lab_plan import Job
from labs.tools.grading.test_run import run_tests
from labs.tools.machine.work_folder import command_folder

with command_folder("test"):
    run_tests([Job("", ".", modes=("icount",))], ["-cpyproject.toml", sys.argv[1]], 2)
"""


def begun_in(place: Path) -> list[str]:
    """The command lines of processes that name this folder, or sleep as only the test sleeps."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if int(each.parent.name) != os.getpid() and (str(place) in words or SLEEP in words):
            found.append(words)
    return found


@pytest.fixture
def running(tmp_path):
    """A grader in the middle of a test, and where its temporary files are."""
    tests, temporary = tmp_path / "tests", tmp_path / "t"
    tests.mkdir()
    temporary.mkdir()
    (tests / "conftest.py").write_text(CONFTEST)
    (tests / "test_endless.py").write_text(ENDLESS.replace("@SLEEP@", SLEEP))
    (tmp_path / "grader.py").write_text(GRADER)
    command = [sys.executable, str(tmp_path / "grader.py"), str(tests)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment |= {"TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    grader = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    wait_for(lambda: (tests / "begun").exists() and len(begun_in(tmp_path)) > 4)
    yield grader, temporary
    grader.kill()
    grader.wait()


def wait_for(done) -> None:
    patience = Patience(SECONDS)
    while not done():
        assert not patience.is_over(), "it takes too long"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_nothing_stays(running, number):
    """Neither worker, nor machine, nor box; nor a folder."""
    grader, temporary = running
    grader.send_signal(number)
    grader.wait(SECONDS)
    wait_for(lambda: begun_in(temporary.parent) == [] and not list(temporary.iterdir()))


# ---- what cannot be read, and what is too long ---------------------------------------------------


@pytest.mark.parametrize(
    ("error", "words"), [(PermissionError(13, "Permission denied"), "Permission denied")]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch, error, words):
    (tmp_path / "x.c").write_text("int x;\n")

    def fail(*_arguments, **_keywords):
        raise error

    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(SubmissionError, match=rf"^x\.c cannot be read: {words}"):
        submitted(tmp_path, "x.c")


def test_a_file_for_a_folder_is_missing(tmp_path):
    (tmp_path / "kernel").write_text("no folder\n")
    with pytest.raises(SubmissionError, match=r"kernel/x\.c is missing"):
        submitted(tmp_path, "kernel/x.c")


def test_a_submission_that_cannot_be_read_is_named(tmp_path, monkeypatch, capsys):
    def fail(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", fail)
    assert grade(["--lesson", "1", "--submission", str(tmp_path)]) == 1
    assert f"{tmp_path} cannot be read: Permission denied" in capsys.readouterr().err


def test_an_unreadable_file_has_its_report(tmp_path, monkeypatch):
    """The rest of the submission is graded, and the file is as in the handout."""
    exercise = by_id("1.3")
    for path in exercise.files:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text((ROOT / path).read_text())
    plain = graded_tree.taken

    def taken(directory, path):
        if path == exercise.files[0]:
            raise PermissionError(13, "Permission denied")
        return plain(directory, path)

    monkeypatch.setattr(graded_tree, "taken", taken)
    monkeypatch.setattr(graded_tree, "compiled", lambda *_: ({}, {}))
    monkeypatch.setattr(graded_tree, "boxed_tree", lambda *_: None)
    graded = graded_tree.graded_tree(exercise, tmp_path, tmp_path / "work")
    path = exercise.files[0]
    assert graded.problems == {path: f"{path} cannot be read: Permission denied"}


def test_a_long_line_is_cut():
    assert len(first_error("x.c:1: error: " + "y" * 62_976)) < 300
