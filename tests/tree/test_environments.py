"""A command does the same in whatever environment a person starts it, and says in a line what it
cannot do: labs/tools/machine/command.py, the Makefile, labs/tools/proving/prove_environments.py."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from labs.storage.crash import tasks
from labs.tools.course.exercises import by_id
from labs.tools.course.start import place_of
from labs.tools.course.student_tree import listed, without_git
from labs.tools.grading.grade import GradeError, require_files, require_output
from labs.tools.grading.grade_report import Score, reasons
from labs.tools.grading.test_run import TestResult
from labs.tools.machine import command, work_folder
from labs.tools.machine.command import (
    CommandError,
    Options,
    in_a_line,
    own_environment,
    typed_path,
    whole_number,
)
from labs.tools.proving import mistakes, prove, prove_environments
from labs.tools.proving.prove_environments import ENVIRONMENTS
from tests.support import debian_programs

ROOT = Path(__file__).resolve().parents[2]
TRAP = {
    "PYTHONOPTIMIZE": "2",
    "PYTHONPATH": "/nowhere",
    "PYTEST_ADDOPTS": "-x",
    "PYTHONINSPECT": "1",
    "GIT_DIR": "/nowhere",
}
FORMAT = by_id("1.3")


# ---- variables ----------------------------------------------------------------------------------


def test_environment_of_a_python_is_ours() -> None:
    ours = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
    kept = {"PATH": "/bin", "CC": "gcc", **ours}
    assert own_environment(kept | TRAP | {"MAKEFLAGS": "-k", "MAKELEVEL": "3"}) == kept


def test_every_program_has_such_options() -> None:
    """No usage in the words of Python's argparse where a person types variables of make."""
    for path in sorted((ROOT / "labs").rglob("*.py")):
        if path.name not in ("linux.py", "programs.py", "nbd.py"):  # no command of make's
            assert "argparse.ArgumentParser(prog" not in path.read_text(), path


def test_make_hands_no_variable_of_pythons_down() -> None:
    """Asked is a Python that a recipe of the Makefile starts, with its own words for it."""
    words = 'import os; print(*sorted(k for k in os.environ if k[:6] in ("PYTHON", "PYTEST")))'
    rule = f"shown: ; @$(PYTHON) -c '{words}'"
    done = subprocess.run(
        ["make", "-s", "-f", "Makefile", "-f", "-", "shown"], cwd=ROOT, input=rule, text=True,
        env={**os.environ, **TRAP}, capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["PYTHONDONTWRITEBYTECODE", "PYTHONUTF8"]


def test_pytest_refuses_to_run_without_assertions() -> None:
    done = subprocess.run(
        [sys.executable, "-O", "-m", "pytest", "-q", "tests/tree/test_environments.py"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "Python runs without assertions: unset PYTHONOPTIMIZE" in done.stderr


def test_environments_are_twelve_of_their_own() -> None:
    assert len({each.name for each in ENVIRONMENTS}) == len(ENVIRONMENTS) == 12


@pytest.mark.parametrize("command", [prove.main, mistakes.main, prove_environments.main])
def test_what_tries_nothing_proves_nothing(capfd, command) -> None:
    words = ["--lesson", "1", "--only", "no-such-name"]
    status = in_a_line("make it", lambda: command(words))
    said = "".join(capfd.readouterr())
    assert status == 1 and "has such a name" in said and "proved" not in said


def test_a_state_that_is_none_is_a_line(capsys, tmp_path) -> None:
    for name in ("nonsense", "ext4:2:2010", "ext4:2:2010:x", "../a:1:2:3"):
        assert in_a_line("make crash", lambda name=name: tasks.show(name, tmp_path)) == 1
        assert capsys.readouterr().err.startswith(f"make crash: ONLY={name}: a state is KIND:")


def test_a_set_that_is_none_is_a_line(capsys, monkeypatch) -> None:
    for name in ("nonsense", "../x", "base/nonsense"):
        monkeypatch.setattr(sys, "argv", ["debian", name])
        assert in_a_line("make debian", debian_programs.main) == 1
        assert capsys.readouterr().err.startswith(f"make debian: SET={name}: there are ")


# ---- what a person reads ------------------------------------------------------------------------


def failing(error: BaseException):
    def fail() -> int:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("x"), "make it: KeyError: 'x'\n  details: {}\n"),
        (OSError(28, "No space left on device", "a/b"), "make it: a/b: No space left on device\n"),
        (CommandError("say more"), "make it: say more\n"),
        (OSError(28, "No space left on device"), "make it: {tmp}, or where the output goes: No sp"),
        (RuntimeError(""), "make it: RuntimeError\n"),
    ],
)
def test_any_error_is_a_line(tmp_path, monkeypatch, capsys, error, words) -> None:
    monkeypatch.setattr(command, "DETAILS", tmp_path / "build/details.txt")
    assert in_a_line("make it", failing(error)) == 1
    said, place = capsys.readouterr().err, os.environ.get("TMPDIR") or "/tmp"
    assert said.startswith(words.format(os.path.relpath(command.DETAILS), tmp=place))
    if not isinstance(error, CommandError):
        assert "Traceback" in command.DETAILS.read_text()


@pytest.mark.parametrize(
    ("place", "said"),
    [("/dev/full", r"make map: .*: No space left on device\n"), ("/dev/null", "")],
)
def test_output_that_cannot_be_written_is_a_line(place, said) -> None:
    words = [sys.executable, "-m", "labs.tools.course.walk", "1"]
    with open(place, "w") as output:
        done = subprocess.run(
            words, cwd=ROOT, stdout=output, stderr=subprocess.PIPE, text=True, check=False
        )
    assert re.fullmatch(rf"{said}(  details: .*\n)?", done.stderr) and done.returncode == bool(said)


ALONE = {"doctor.py", "keeper.py", "disk_model.py", "landlock_box.py", "debug_paths.py"}
"""They import nothing of ours."""


def test_every_command_says_its_errors_in_a_line() -> None:
    """Each program of the Makefile's ends through in_a_line, or through what does."""
    ends = re.compile(r'^if __name__ == "__main__":\n((?: .*\n)+)', re.MULTILINE)
    for path in sorted((ROOT / "labs").rglob("*.py")):
        last = ends.search(path.read_text())
        if last and path.name not in ALONE:
            assert re.search(r"\b(in_a_line|guarded)\(", last[1]), path


def test_closed_streams_are_opened() -> None:
    line = (
        "import labs.tools.machine.command as c, sys, os; c.open_streams(); "
        "print(sys.stdin.isatty(), os.readlink('/proc/self/fd/0'))"
    )
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-c", line],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "False /dev/null\n"


def test_a_typed_home_is_expanded(monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/srv/me")
    assert typed_path("~/x") == Path("/srv/me/x")
    assert typed_path("a~/~") == Path("a~/~")
    with pytest.raises(Exception, match="no such user"):
        typed_path("~nobody-of-this-name/x")


def made(recipe: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What make does for a rule that is added to ours."""
    return subprocess.run(
        ["make", "-s", "-f", "Makefile", "-f", "-", "shown", *words],
        cwd=ROOT, input=f"shown: ; {recipe}", text=True, capture_output=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text", ["a'b", "it's; echo $HOME", 'a "b" \\', "''", "-x", "$(HOME) $$ a,b", "#%", " a "]
)
def test_what_is_typed_reaches_the_program(text) -> None:
    assert made("@printf '%s' $(call given,DIR)", f"DIR={text}").stdout == text.lstrip()
    assert made("@printf '%s' $(call option,DIR,dir)", f"DIR={text}").stdout == (
        f"--dir={text.lstrip()}"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["DIR=a\nb"], "a line ends in a value that was given"),
        (["SUBMISSION="], "SUBMISSION= has no value: give one, or leave it out"),
        (["ROOT="], "ROOT= has no value"),
        (["BOOT=disk grub"], "BOOT=disk grub: disk, grub or direct"),
        (["BREADTH=yes no"], "BREADTH=yes no: yes or no"),
        (["LESSON=1 2"], "LESSON=1 2: the lessons are 1"),
        (["LESSON=%"], "LESSON=%: the lessons are 1"),
        (["LESSON=2; false"], "LESSON=2; false: the lessons are 1"),
    ],
)
def test_make_refuses_in_a_line(words, said) -> None:
    done = made("@: $(call given,DIR)", *words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--memory=abc"], "MEM: 'abc' is not a whole number from 16 to 1024"),
        (["--memory=15"], "MEM: '15' is not a whole number from 16 to 1024"),
        (["--memory="], "MEM: '' is not"),
        (["--memory=\u00b2"], "MEM: '\u00b2' is not"),
        (["--memory=" + "9" * 5000], "MEM: '999"),
        (["--command"], "CMD: expected one argument"),
        (["--nothing"], "unrecognized arguments: --nothing"),
    ],
)
def test_options_name_what_was_typed(capsys, words, said) -> None:
    options = Options("make it")
    options.add_argument("--memory", type=whole_number(16, 1024))
    options.add_argument("--command")
    with pytest.raises(SystemExit, match="2"):
        options.parse_args(words)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"make it: {said}")


def test_every_word_of_a_person_is_quoted() -> None:
    for name in ("Makefile", "labs/author.mk", "labs/storage/lab.mk"):
        recipes = (ROOT / name).read_text()
        assert not re.findall(r"'\$\((or )?(\$\()?[A-Z]+\b", recipes), name
        assert not re.findall(r"--[a-z]+[ =]\$\((MEM|SEED|READS|SCALE|EX|TEST)\)", recipes), name


def test_lines_end_as_they_were_committed() -> None:
    """A checkout with CRLF has no script that runs."""
    assert "* -text" in (ROOT / ".gitattributes").read_text()


# ---- two makes at once ---------------------------------------------------------------------------


def alone(folder: Path, *words: str, seconds: str = "60") -> subprocess.CompletedProcess[str]:
    """Runs a command by alone.sh in a folder."""
    return subprocess.run(
        [ROOT / "labs/tools/setup/alone.sh", *words], cwd=folder, text=True, capture_output=True,
        check=False, env={**os.environ, "LOCK_SECONDS": seconds},
    )  # fmt: skip


def test_who_builds_alone_is_told_to_who_waits(tmp_path) -> None:
    assert alone(tmp_path, "sh", "-c", "exit 3").returncode == 3
    with (tmp_path / "build/.lock").open("r+") as held:
        held.write("4711\n")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        done = alone(tmp_path, "touch", "built", seconds="0")
    first, second = done.stderr.splitlines()
    assert first == "make: waiting for process 4711, which builds in this tree"
    assert second.startswith("make: process 4711 has built for 0 seconds; nothing was done here.")
    assert done.returncode == 1 and not (tmp_path / "built").exists()


def test_a_build_that_cannot_be_written_is_a_line(tmp_path) -> None:
    (tmp_path / "build").write_text("")
    done = alone(tmp_path, "true")
    assert done.returncode == 1 and "/build cannot be written: is it root's" in done.stderr


# ---- a tree without a repository ----------------------------------------------------------------


def test_a_tree_without_git_has_the_same_files(tmp_path) -> None:
    laid_out(tmp_path, ".gitignore", "a.c", "b/c.h", "build/x", "b/d.pyc", ".venv/bin/y")
    (tmp_path / ".gitignore").write_text("/build/\n/.venv/\n*.pyc\n")
    assert listed(tmp_path) == {".gitignore", "a.c", "b/c.h"}
    assert {each for each in without_git(ROOT) if not each.startswith(".git/")} == listed(ROOT)


def test_the_files_are_this_trees_wherever_git_is_told_to_look(monkeypatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert "Makefile" in listed.__wrapped__(ROOT)


@pytest.mark.parametrize(
    ("folder", "words"), [("../a b", "'../a b'"), ("-x", "./-x"), ("~", "'./~'"), ("/a", "/a")]
)
def test_what_to_type_next_can_be_typed(folder, words) -> None:
    assert shlex.quote(place_of(Path(folder))) == words


# ---- where programs run -------------------------------------------------------------------------


def test_a_folder_that_runs_programs_is_looked_for(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(work_folder, "OTHER_PLACES", (Path("/nowhere"), tmp_path))
    monkeypatch.setattr(work_folder, "runs_programs", lambda place: True)
    assert work_folder.place_of_programs() is None
    monkeypatch.setattr(work_folder, "runs_programs", lambda place: place == tmp_path)
    assert work_folder.place_of_programs() == tmp_path
    monkeypatch.setattr(work_folder, "runs_programs", lambda place: False)
    with pytest.raises(CommandError, match="set TMPDIR to a folder where it can"):
        work_folder.place_of_programs()
    assert (
        not work_folder.runs_programs(Path("/proc"))
        or not os.statvfs("/proc").f_flag & os.ST_NOEXEC
    )


# ---- where a submission's files are -------------------------------------------------------------


def laid_out(folder: Path, *paths: str) -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("text")
    return folder


def test_a_submission_in_its_place_is_taken(tmp_path) -> None:
    require_files(laid_out(tmp_path, FORMAT.files[0]), FORMAT.files)
    require_files(tmp_path, ())


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"lesson1-anna/{FORMAT.files[0]}", r"the files are in .*/lesson1-anna: say SUBMISSION="),
        (Path(FORMAT.files[0]).name, r"/format.c is to be .*/kernel/lib/format.c"),
        ("essay.txt", r"has none of the files: .*kernel/lib/format.c"),
    ],
)
def test_a_submission_elsewhere_is_told(tmp_path, path, words) -> None:
    with pytest.raises(GradeError, match=words):
        require_files(laid_out(tmp_path, path), FORMAT.files)


def test_where_no_report_can_go_is_known_before(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    require_output(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    for place in (tmp_path / "file", tmp_path / "file" / "a", Path("/proc/a")):
        with pytest.raises(GradeError, match=r"OUTPUT=/\S+: no report goes there: [A-Z]"):
            require_output(place)


def test_a_missing_file_is_not_called_unwritten() -> None:
    test = TestResult(
        "1.3", "1.3", "t.py::test", "", 1, True, False,
        "exercise 1.3 is not written yet (Formatted printing)", "icount",
    )  # fmt: skip
    assert len(reasons(Score(FORMAT, (test,)))) == 1
    assert reasons(Score(FORMAT, (test,), ("x.c is missing",))) == ["x.c is missing"]
