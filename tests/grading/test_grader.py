"""The grader: its sandbox, its plan and its scores on small lessons, and all of it on lesson 1."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from labs.tools.course.exercises import by_id, lessons, of_lesson
from labs.tools.grading import sandbox
from labs.tools.grading.grade import graded
from labs.tools.grading.grade import main as grade
from labs.tools.grading.grade_report import gradescope, junit, text_report, total
from labs.tools.grading.graded_tree import (
    ALWAYS_BUILT,
    ROOT,
    SubmissionError,
    first_error,
    graded_tree,
    handout_files,
    is_plain_file,
    submitted,
)
from labs.tools.grading.test_run import run_tests
from labs.tools.proving.prove_cheats import DIRECTORY as CHEATS
from labs.tools.proving.prove_cheats import cheats_of, lay_cheat
from labs.tools.proving.prove_mutants import (
    MutantError,
    changed_files,
    mutant_job,
    mutants_of,
    read_mutants,
    verdict,
)
from tests.support.building import make

pytestmark = pytest.mark.slow

FORMAT = by_id("1.3")
LIMITS = sandbox.Limits(processor=2, wall=5, memory=1 << 28, file=1 << 20, output=1000)

# ---- the sandbox --------------------------------------------------------------------------------


@pytest.fixture(params=["bubblewrap", "landlock"])
def either_box(request, monkeypatch):
    """Each of the two boxes; the second one is taken where namespaces cannot be made."""
    if request.param == "landlock":
        monkeypatch.setattr(sandbox, "why_no_bubblewrap", lambda: "no namespaces here")
    sandbox.why_unavailable.cache_clear()
    if cause := sandbox.why_unavailable():
        pytest.skip(cause)
    yield request.param
    sandbox.why_unavailable.cache_clear()


def boxed(tmp_path: Path, command: str, limits: sandbox.Limits = LIMITS) -> sandbox.Finished:
    return sandbox.run(["bash", "-c", command], tmp_path, limits)


@pytest.mark.usefixtures("either_box")
def test_box_has_its_directory_and_no_other(tmp_path):
    (tmp_path / "given").write_text("here")
    done = boxed(tmp_path, f"cat given; echo made >made; ls {ROOT} /home; cat /etc/passwd; env; id")
    assert (tmp_path / "made").read_text() == "made\n"
    assert done.output.startswith("here")
    assert re.search(f"cannot (access|open directory) '{ROOT}'", done.output)
    assert re.search("/etc/passwd: (No such file|Permission denied)", done.output)
    assert "PYTEST" not in done.output


def test_box_has_no_network_and_no_other_process(tmp_path):
    done = boxed(tmp_path, "cat /proc/net/dev; ls -d /proc/[0-9]*; echo $PPID")
    assert "lo:" in done.output
    assert done.output.count(":") <= 3
    assert done.output.count("/proc/") < 5


@pytest.mark.parametrize(
    "command",
    [
        "while :; do :; done",
        "head -c 400m /dev/zero | tail -c 400m | wc -c; exit 9",
        "head -c 2m /dev/zero >file",
    ],
)
def test_box_limits_time_memory_and_files(tmp_path, command):
    assert boxed(tmp_path, command).status != 0


@pytest.mark.usefixtures("either_box")
def test_box_limits_sleep_and_output(tmp_path):
    limits, naps = replace(LIMITS, wall=1), "setsid sleep 8765 & sleep 8765"
    assert boxed(tmp_path, naps, limits).limit.startswith("it did not end")
    assert boxed(tmp_path, "setsid sleep 8765 & sleep 0.1; exit 3").status == 3
    assert gone("sleep", "8765")
    assert len(boxed(tmp_path, "head -c 100000 /dev/zero | tr '\\0' x").output) == 1000


def gone(*words: str) -> bool:
    """No process has this command line any more, a moment later."""
    line = "\0".join(words).encode() + b"\0"
    for _ in range(100):
        if all(line != command_of(path) for path in Path("/proc").glob("[0-9]*")):
            return True
        time.sleep(0.05)
    return False


def command_of(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


REACHES_OUT = """
import os, signal, socket

def tried(what, *arguments):
    try:
        what(*arguments)
        print("done")
    except OSError:
        print("refused")

tried(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {udp})))
print("and")
tried(lambda: socket.create_connection(("127.0.0.1", {tcp})))
tried(os.kill, {process}, signal.SIGUSR2)
tried(lambda: open("/proc/{process}/environ").read())
"""


@pytest.mark.usefixtures("either_box")
def test_a_box_reaches_nobody_outside(tmp_path):
    """Neither a server of this machine, nor a process of whoever made the box."""
    udp = socket.socket(type=socket.SOCK_DGRAM)
    tcp = socket.create_server(("127.0.0.1", 0))
    with udp, tcp, subprocess.Popen(["sleep", "100"]) as process:
        udp.bind(("127.0.0.1", 0))
        ports = {"udp": udp.getsockname()[1], "tcp": tcp.getsockname()[1]}
        script = REACHES_OUT.format(process=process.pid, **ports)
        done = sandbox.run(["/usr/bin/python3", "-c", script], tmp_path, LIMITS)
        assert process.poll() is None
        process.kill()
        with pytest.raises(BlockingIOError):
            udp.recv(1, socket.MSG_DONTWAIT)
    assert done.output.partition("and\n")[2] == "refused\n" * 3, done.output


@pytest.mark.usefixtures("either_box")
def test_box_of_a_program_is_read_only(tmp_path):
    places = f"/ /dev /dev/shm /proc {sandbox.inside(tmp_path)} /usr"
    script = f"for each in {places}; do touch $each/made && echo wrote in $each; done; "
    script += "touch ${TMPDIR:-/tmp}/x"
    command = [*sandbox.box(tmp_path, writable=False), "bash", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.usefixtures("either_box")
@pytest.mark.parametrize(
    "bomb",
    [
        "for i in {1..60}; do sleep 30 & done; wait",
        "for i in {1..3}; do prlimit --as=$((1 << 30)) tail /dev/zero & done; wait",
    ],
)
def test_many_processes_and_much_memory_end_a_program(tmp_path, bomb):
    command = [*sandbox.box(tmp_path), "bash", "-c", bomb]
    with subprocess.Popen(["bash", "-c", f"{shlex.join(command)}; exit $?"]) as process:
        with sandbox.watched(process.pid):
            status = process.wait(300)
        assert sandbox.descendants(process.pid) == {}
    assert status == 128 + signal.SIGKILL


def test_a_link_is_no_file_of_a_tree(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/kernel").write_text("own")
    (tmp_path / "tree/link").symlink_to(ROOT / "Makefile")
    (tmp_path / "tree/build").symlink_to(ROOT)
    tree = tmp_path / "tree"
    files = ("kernel", "link", "build/Makefile", "../tree/kernel", "missing")
    assert [is_plain_file(tree, path) for path in files] == [True, False, False, False, False]


def test_no_bubblewrap_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    kept = (sandbox.why_unavailable, sandbox.why_no_bubblewrap)
    for each in kept:
        each.cache_clear()
    try:
        with pytest.raises(sandbox.SandboxUnavailable, match=r"bwrap is not installed(?s:.*)apt"):
            sandbox.run(["true"], tmp_path, LIMITS)
    finally:
        for each in kept:
            each.cache_clear()


# ---- what is submitted --------------------------------------------------------------------------


def test_submitted_file(tmp_path):
    (tmp_path / "good.c").write_text("int x;\n")
    assert submitted(tmp_path, "good.c") == b"int x;\n"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "missing"),
        (lambda path: path.symlink_to("/etc/passwd"), "symbolic link"),
        (lambda path: path.mkdir(), "not a file"),
        (os.mkfifo, "not a file"),
        (lambda path: path.write_bytes(b"a" * 300_000), "larger than 256 KiB"),
        (lambda path: path.write_bytes(b"\x7fELF\0"), "not a text"),
        (lambda path: path.write_bytes(b" \n"), "empty"),
    ],
)
def test_refused_files(tmp_path, make, words):
    make(tmp_path / "x.c")
    with pytest.raises(SubmissionError, match=words):
        submitted(tmp_path, "x.c")


def test_no_link_above_a_file_is_followed(tmp_path):
    (tmp_path / "kernel").symlink_to(ROOT / "kernel")
    with pytest.raises(SubmissionError, match="symbolic link"):
        submitted(tmp_path, "kernel/lib/format.c")


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("a.c: In function 'f':\na.c:1:2: error: no\nmake: *** Error 1", "a.c:1:2: error: no"),
        ("/tmp/ccAb12.s:3: Error: bad", "assembly:3: Error: bad"),
        ("x\nld: a.o: undefined reference to `f'", "ld: a.o: undefined reference to `f'"),
        ("ld: a.o: undefined reference to `__popcountsi2'", "the kernel is not linked with that"),
        ("cc1: out of memory allocating 65536 bytes", "too much time or memory"),
        ('a.c:1:2: error: #error "\x1b[2J100 of 100"', 'a.c:1:2: error: #error "?[2J100 of 100'),
        ("\tNASM  boot/entry.asm\nboot/entry.asm:1: fatal: no", "boot/entry.asm:1: fatal: no"),
        ("\tNASM  a.asm\npanic: a.asm:4: assertion failed", "panic: a.asm:4: assertion failed"),
        ("././" * 99 + "a.c:1:10: error: nested too deeply", "a.c:1:10: error: nested too deeply"),
        ("", "no reason was given"),
    ],
)
def test_first_error(output, words):
    assert words in first_error(output)


@pytest.mark.parametrize("arguments", [["--lesson", "9"], ["--lesson", "1", "--submission", "no"]])
def test_grade_says_what_is_wrong(arguments, capsys):
    assert grade(arguments) == 1
    assert "grade: " in capsys.readouterr().err


# ---- mutants and cheats as data -----------------------------------------------------------------

MUTANT = """\
[x]
file = "kernel/lib/format.c"
title = "t"
pitfall = "p"
caught_by = "tests/lesson1/hidden/test_format.py::test_x"
old = {old!r}
new = 'x'
"""


def mutant(old: str, **changes: object):
    (read,) = read_mutants("1.3", MUTANT.format(old=old))
    return replace(read, **changes)


@pytest.mark.parametrize(("old", "count"), [("no such text", 0), ("return", "[0-9]+")])
def test_mutant_must_apply_once(old, count):
    with pytest.raises(
        MutantError, match=f"the old text is there {count} times in kernel/lib/format.c"
    ):
        changed_files(mutant(old))


def test_mutant_changes_only_files_of_its_exercise():
    with pytest.raises(MutantError, match=r"no file of exercise 1\.3"):
        changed_files(mutant("x", edits=(("kernel/report/panic.c", "a", "b"),)))


def test_mutant_names_a_hidden_test(tmp_path):
    visible = mutant("x", caught_by="tests/lesson1/visible/test_format.py::test_numbers")
    with pytest.raises(MutantError, match="no hidden test"):
        mutant_job(visible, tmp_path)
    assert "there is no test" in verdict(visible, []).error


@pytest.mark.parametrize("lesson", lessons())
def test_every_mutant_applies(lesson):
    for each in mutants_of(lesson):
        assert changed_files(each), each.name


def test_sources_of_cheats_are_where_the_tree_has_them():
    """A source that a cheat lays where nothing is built from it cheats nobody."""
    laid = [
        (path, path.relative_to(each / "files"))
        for each in CHEATS.glob("*")
        for path in each.glob("files/**/*.[ch]")
    ]
    assert laid
    assert [str(path) for path, place in laid if not (ROOT / place).is_file()] == []


@pytest.mark.parametrize("lesson", lessons())
def test_every_cheat_fills_every_file(tmp_path, lesson):
    files = {path for exercise in of_lesson(lesson) for path in exercise.files}
    for cheat in cheats_of(lesson):
        lay_cheat(cheat, lesson, tmp_path / cheat.name)
        laid = {
            str(path.relative_to(tmp_path / cheat.name))
            for path in (tmp_path / cheat.name).rglob("*")
        }
        assert files <= laid


@pytest.mark.parametrize("lesson", lessons())
def test_payloads_of_cheats_are_in_every_c_file(tmp_path, lesson):
    """Else a cheat is no more than a file that does not compile."""
    (cheat,) = (each for each in cheats_of(lesson) if each.name == "does-nothing")
    lay_cheat(cheat, lesson, tmp_path)
    files = [path for each in of_lesson(lesson) for path in each.files if path.endswith(".c")]
    without = [path for path in files if "CHEAT" not in (tmp_path / path).read_text()]
    assert without == []


# ---- all of it, on lesson 1 ---------------------------------------------------------------------


def submission(tmp_path: Path, exercises, changes: dict[str, str]) -> Path:
    """The reference's files of some exercises, with some text in place of others."""
    for exercise in exercises:
        for path in exercise.files:
            place = tmp_path / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(changes.get(path) or (ROOT / path).read_text())
    return tmp_path


def stub(exercise_id: str, path: str, old: str, new: str) -> str:
    """The handout's file with something else in its blank."""
    text = handout_files(by_id(exercise_id))[path].decode()
    assert old in text
    return text.replace(old, new)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The objects of the reference are there, whoever builds them."""
    make("LESSON=1", "image-disk")


def test_files_that_do_not_compile(reference, tmp_path):
    """Each has its reason, the same each time, and stands in the tree as in the handout."""
    exercises = [by_id("1.4"), by_id("1.5")]
    changes = {
        "boot/load_elf.c": "this is no C\n",
        "mm/memory_map.c": '#include "mm/memory_map.c"\n',
        "kernel/report/boot_info.c": "char big[] = { [0 ... 0x7ffffff0] = 1 };\n",
    }
    made = submission(tmp_path / "submission", exercises, changes)
    (made / "boot/mbr.asm").unlink()
    trees = [graded_tree(each, made, tmp_path / "work") for each in exercises]
    found = {path: words for tree in trees for path, words in tree.problems.items()}
    assert found["boot/mbr.asm"] == "boot/mbr.asm is missing"
    assert "boot/load_elf.c:1:1: error:" in found["boot/load_elf.c"]
    assert "nested depth" in found["mm/memory_map.c"]  # gcc 16 has quotes around #include
    assert "too much time or memory" in found["kernel/report/boot_info.c"]
    for tree in trees:
        for path, data in handout_files(tree.exercise).items():
            assert (tree.tree / path).read_bytes() == data


def test_an_included_file_that_does_not_assemble(reference, tmp_path):
    """It is no object: who includes it does not assemble, and both are as in the handout."""
    make("LESSON=2", "image-disk")
    exercise = by_id("2.3")
    changes = {"kernel/cpu/trap_frame.inc": "%macro save_registers 0\n"}
    made = submission(tmp_path / "submission", [exercise], changes)
    tree = graded_tree(exercise, made, tmp_path / "work")
    assert set(tree.problems) == {"kernel/cpu/trap_entry.asm"}
    for path in ("kernel/cpu/trap_frame.inc", "kernel/cpu/trap_entry.asm"):
        assert (tree.tree / path).read_bytes() == handout_files(exercise)[path]


def test_tree_shows_no_solution(reference, tmp_path):
    """What a submission is built beside: no other source with a solution, no test, no kernel."""
    made = submission(tmp_path / "submission", [FORMAT], {})
    tree = graded_tree(FORMAT, made, tmp_path / "work").tree
    texts = [path for path in tree.rglob("*") if path.suffix in (".c", ".asm") and path.read_text()]
    assert {str(path.relative_to(tree)) for path in texts} == {*FORMAT.files, *ALWAYS_BUILT}
    assert not list(tree.rglob("*.elf"))
    assert not list(tree.rglob("test_*"))
    assert not (tree / "labs/exercises.toml").exists()


@pytest.mark.slow
def test_same_report_with_one_process_and_with_two(reference, one_rate, tmp_path):
    """What works scores, the rest has a reason. Beside others that work: test_repeat."""
    exercises = [by_id("1.1"), by_id("1.2")]
    loop = stub("1.2", "boot/entry.asm", 'exercise_missing "1.2"', "jmp $")
    made = submission(tmp_path / "submission", exercises, {"boot/entry.asm": loop})
    scores = graded(exercises, made, tmp_path / "first", "seed")
    assert [score.points for score in scores] == [8, 0]
    assert "loops for ever" in text_report(scores)
    assert "/tmp" not in text_report(scores)
    again = graded(exercises, made, tmp_path / "second", "seed", workers=1)
    assert gradescope(again, "seed") == gradescope(scores, "seed")
    assert junit(again) == junit(scores)


@pytest.mark.slow
def test_floods_and_crashes(reference, one_rate, tmp_path):
    """A flooded serial line and a triple fault have their words."""
    flood = stub(
        "1.3",
        "drivers/console/serial.c",
        'exercise_missing("1.3");',
        "for (;;) exercise_put_serial('A');",
    )
    fault = "\tlidt [0]\n\tint3\n"
    changes = {
        "drivers/console/serial.c": flood,
        "boot/entry.asm": stub("1.2", "boot/entry.asm", '\texercise_missing "1.2"\n', fault),
    }
    exercises = [by_id("1.2"), FORMAT]
    made = submission(tmp_path / "submission", exercises, changes)
    scores = graded(exercises, made, tmp_path / "work", "seed", workers=1)
    assert scores[0].points == 0
    assert 0 < scores[1].points < 12
    assert all(test.words for score in scores for test in score.failed)


def test_handout_reference_and_a_cheat(reference, one_rate, tmp_path):
    """Nothing for the handout and for one who includes the reference, all for the reference."""
    exercises = [by_id("1.1")]
    handout = {path: data.decode() for path, data in handout_files(exercises[0]).items()}
    nothing = submission(tmp_path / "handout", exercises, handout)
    assert total(graded(exercises, nothing, tmp_path / "1", "seed", workers=1)) == 0
    assert total(graded(exercises, ROOT, tmp_path / "2", "seed", workers=1)) == 8
    cheat = next(each for each in cheats_of(1) if each.name == "includes-reference")
    lay_cheat(cheat, 1, tmp_path / "cheat")
    assert total(graded(exercises, tmp_path / "cheat", tmp_path / "3", "seed", workers=1)) == 0


def test_one_mutant(reference, tmp_path):
    """A bug that the hidden test catches."""
    chosen = next(each for each in mutants_of(1) if each.exercise == "1.3")
    results = run_tests([mutant_job(chosen, tmp_path)], ["tests/lesson1"], workers=1)
    assert verdict(chosen, results).error == ""


def test_student_mode_needs_no_sandbox(tmp_path):
    """What a student's tree has of the grader imports nothing that only authors have."""
    code = textwrap.dedent("""
        import sys, labs.tools.debugging.replay
        import labs.tools.grading.grade, labs.tools.grading.lab_plan
        print([name for name in sys.modules if "prove" in name or "student_tree" in name])
    """)
    done = subprocess.run(
        [ROOT / ".venv/bin/python", "-c", code],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"
