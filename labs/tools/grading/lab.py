"""The fixture `lab`: the kernel under test of a lesson's exercise, at two clock rates.

@pytest.mark.exercise("1.3", points=2)
def test_numbers(lab):
    result = lab.run("memory").check()

A test with this fixture runs twice, with 8 and with 16 ns an instruction (QEMU's -icount shift=3
and shift=4): all that happens in time happens at other instructions then. It has passed when both
runs have. In both, guest time is counted in instructions, so a test comes out the same every time,
however busy the host is. Where guest time does not matter
(programs for the host, looks into files) the marker says host=True, or once=True where a machine is
needed, and it runs once. labs/tools/grading/lab_plan.py says in what order, and on which trees.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pytest

from labs.tools.course.exercises import name_of, word_of
from labs.tools.grading import host_program, sandbox
from labs.tools.grading.build_tool import BuildFailure, run_tool
from labs.tools.grading.elf_limits import kernel_problem
from labs.tools.grading.graded_tree import is_plain_file, output_directory
from labs.tools.machine.bounded import processor_times
from labs.tools.machine.machine import Machine
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.result import GuestFailure, Outcome, Result

ROOT = Path(__file__).resolve().parents[3]
IMAGES = {"disk": "boot.img", "grub": "grub.iso"}

# A kernel of lessons 1 and 2 needs a tenth of this many seconds of guest time. Real time decides
# nothing: it is a backstop for a QEMU that neither works nor ends.
LIMITS = {
    "icount": {"icount": 3, "guest_limit": 5, "wall_limit": 900},
    "slower": {"icount": 4, "guest_limit": 10, "wall_limit": 900},
}
# QEMU's own time, which a busy host does not stretch. A kernel that runs through its own data makes
# QEMU translate without end, while guest time hardly advances.
PROCESSOR_LIMIT = 8
OUTPUT_LIMIT = 256 << 10
PROGRAM_STOPPED = (124, 128 + signal.SIGKILL, 128 + signal.SIGXCPU)  # what limits leave as status
ANSWER_SECONDS = 3 * sandbox.PROGRAM.wall  # a backstop: the program has limits of its own
QUESTION = re.compile(rb"\x01([^\n]*)\n")  # of a program, in what it prints
STUCK = (Outcome.HANG, Outcome.WALL_LIMIT, Outcome.OUTPUT_LIMIT)

# A program of the student's ends in time, and does not fill the memory of who reads its output.
HOST_PROGRAM = """\
#!/bin/bash
set -o pipefail
export ASAN_OPTIONS=detect_leaks=0
{command} "$@" 2> >(head -c 61440 >&2){limit}
"""
PATIENCE = 6  # times the limit to a program's time, while it waits for answers
CONVERSED_MOST = 4 << 20  # bytes that are no questions
QUESTIONS_MOST = 200_000
OUTPUT_CUT = " | stdbuf -o0 head -c 4194304"


# A later lesson's kernel without its own checks: they take memory and time, which tests count.
PLAIN = (("kmalloc_debug", "0"),)

Answer = TypeVar("Answer")

# What this process has tried to build, by tree and target, and why it failed. Nobody changes a tree
# while it is tested.
BUILT: dict[tuple[Path, str], str] = {}


@dataclass(frozen=True)
class HostRun:
    """A run of a program of Lab.host: what it read. question: the number, from 0, of the question
    whose answer is judged; -1: the test does not say. asks: what it prints is for another process.
    """

    program: Path
    arguments: tuple[str, ...]
    read: bytes
    question: int = -1
    asks: bool = False


@dataclass(frozen=True)
class Lab:
    """The tree under test, as a test sees it.

    lesson: 1 or 2. root: the tree; where it is boxed, the sources that are not the student's are
    empty files in it. seed: what random questions are made from. mode: "icount" or "slower".
    scratch: a directory for this test's files. note: a file that keeps the last machine's Config,
    or the last HostRun. core: the kernel is built without the breadth. handed_in: the tree with the
    measurement and the answers, if that is another one. kernel: the lesson of the kernel, if that
    is a later one. host_runs: the last one, once there was one.
    """

    lesson: int
    root: Path
    seed: int
    mode: str
    scratch: Path
    boxed: bool = False
    note: Path | None = None
    core: bool = False
    handed_in: Path | None = None
    kernel: int = 0
    stuck: list[Outcome] = field(default_factory=list)
    host_runs: list[HostRun] = field(default_factory=list)

    def build(self, target: str) -> Path:
        """Builds a file of the Makefile ("build/lesson1/kernel.elf") and returns its path. Raises
        BuildFailure. Without the breadth it is that of build/lesson1-core."""
        target = target.replace(f"build/{name_of(self.lesson)}/", f"{self.directory}/")
        place = (self.root, target)
        if place not in BUILT:
            BUILT[place] = self._make(target)
        if BUILT[place]:
            raise BuildFailure(BUILT[place])
        return self._own(target)

    @property
    def directory(self) -> str:
        """Where the kernel is built, from the tree's root."""
        return output_directory(self.kernel or self.lesson, self.core)

    def _own(self, target: str) -> Path:
        """The path of a file of the tree. Raises BuildFailure for a link, which may lead to what is
        not the student's."""
        if not is_plain_file(self.root, target):
            raise BuildFailure(f"{target} is not a file")
        return self.root / target

    def _make(self, target: str) -> str:
        """Runs make, one process at a time. Returns why it failed."""
        (self.root / "build").mkdir(exist_ok=True)
        with (self.root / "build" / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                lesson = self.kernel or self.lesson
                words = [f"LESSON={word_of(lesson)}", f"BREADTH={'no' if self.core else 'yes'}"]
                run_tool(["make", "-s", *words, target], self.root, self.boxed)
                if problem := self._problem(target):
                    return f"it does not build: {problem}"
            except BuildFailure as failure:
                return str(failure)
        return ""

    def _problem(self, target: str) -> str:
        """Why a kernel that was linked is not run."""
        is_kernel = target.endswith("kernel.elf") and is_plain_file(self.root, target)
        return kernel_problem(self.root / target) if is_kernel else ""

    def config(self, script: str | None, **fields: object) -> Config:
        """The lesson's kernel as a machine; `fields` are those of Config. boot is "direct"
        unless given, and "disk" and "grub" take the tree's own image unless one is given."""
        boot = fields.setdefault("boot", "direct")
        if boot in IMAGES and "image" not in fields:
            fields["image"] = self.build(f"{self.directory}/{IMAGES[boot]}")
        if "kernel" not in fields:
            fields["kernel"] = self.build(f"{self.directory}/kernel.elf")
        defaults = {"output_limit": OUTPUT_LIMIT, **LIMITS[self.mode]}
        if self.kernel:
            defaults["settings"] = PLAIN
        config = Config(script=script, **(defaults | fields))
        if self.note:
            self.note.write_bytes(pickle.dumps(config))
        return config

    def run(self, script: str | None, **fields: object) -> Result:
        """Runs a script to its end: lab.run("memory", boot="disk").check(). Like run() without a
        screen."""
        fields.setdefault("screen", fields.get("boot", "direct") != "direct")
        try:
            with LabMachine(self, self.config(script, **fields), interactive=False) as machine:
                return machine.wait()
        except GuestFailure as failure:
            return failure.result

    def machine(self, script: str | None = None, **fields: object) -> Machine:
        """A machine to talk to and to look into, for a `with` statement."""
        return LabMachine(self, self.config(script, **fields))

    def host(self, sources: Sequence[str], extra: Sequence[Path], name: str) -> Path:
        """Compiles `sources` (C files of the tree) for the host, in 32 bits and with sanitizers,
        links them with the test's own C files `extra`, and returns the program (a script that
        starts it, boxed where the tree is; it passes arguments and standard input on, and cuts
        long output). Raises BuildFailure.

        What the program says is the student's word: let it answer questions (see ask; made from
        `seed`), and judge the answers in Python. It may end, or print, at any point. It stays until
        the session ends, so that several tests may ask it.
        """
        programs = self.scratch.parent / "programs"
        programs.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=programs))
        host_program.built(self.root, sources, extra, directory / name, self.boxed)
        return self._wrapped(directory / name)

    def ask(
        self, program: Path, questions: bytes, *arguments: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs a program of `host` with this as its standard input."""
        pipe = subprocess.PIPE
        process = subprocess.Popen([program, *arguments], stdin=pipe, stdout=pipe, stderr=pipe)
        self._note_run(HostRun(program_in(program), arguments, questions))
        with process, sandbox.watched(process.pid):
            output, errors = process.communicate(questions, timeout=ANSWER_SECONDS)
        return self._ended(process, output, errors)

    def judged(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        """The answers of a program that calls question_begins (tests/host/question.h) before each.
        What fails while one of them is looked at is about its question: make replay stops there."""
        for question, answer in enumerate(answers):
            self.judging(question)
            yield answer
        self.judging(-1)

    def judging(self, question: int) -> None:
        """The same for one of them, by its number, from 0."""
        if self.host_runs:
            self._note_run(replace(self.host_runs[0], question=question))

    def _note_run(self, run: HostRun) -> None:
        if self.note and not (self.host_runs and self.host_runs[0] == run):
            self.note.write_bytes(pickle.dumps(run))
        self.host_runs[:] = [run]

    def converse(
        self, program: Path, answer: Callable[[bytes], bytes], *arguments: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs a program of `host` that asks: each line from a byte 1 on is a question, and
        `answer` gives the line that it reads then. What it is to find out is not in its memory."""
        pipe = subprocess.PIPE
        line = [asking(program), *arguments]
        process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe)
        lines: list[bytes] = []
        with process, sandbox.watched(process.pid):
            output = conversed(process, lambda said: (lines.append(answer(said)), lines[-1])[1])
            _, errors = process.communicate(timeout=ANSWER_SECONDS)  # as much as a pipe holds
        self._note_run(HostRun(program_in(program), arguments, b"".join(lines), asks=True))
        return self._ended(process, output, errors)

    def connect(
        self, program: Path, partner: Path, *arguments: str
    ) -> tuple[subprocess.CompletedProcess[bytes], subprocess.CompletedProcess[bytes]]:
        """Runs two programs of `host`, each with what the other one prints as its input; only their
        errors are kept. The partner has nothing of the student's, and gets the arguments: where
        there are too many questions for `converse`, it answers them."""
        pipe = subprocess.PIPE
        (for_program, from_partner), (for_partner, from_program) = os.pipe(), os.pipe()
        between, read = os.pipe() if self.note else (from_partner, from_partner), bytearray()
        started = (
            ([direct(program)], {"stdin": for_program, "stdout": from_program}),
            ([direct(partner), *arguments], {"stdin": for_partner, "stdout": between[1]}),
        )
        first, second = (subprocess.Popen(line, stderr=pipe, **ends) for line, ends in started)
        for each in {for_program, for_partner, from_program, between[1]}:
            os.close(each)
        with first, second, sandbox.watched(first.pid):
            if self.note:
                read += passed_on(between[0], from_partner)
            _, said = second.communicate(timeout=ANSWER_SECONDS)  # as much as a pipe holds
            _, errors = first.communicate(timeout=ANSWER_SECONDS)
        self._note_run(HostRun(program_in(program), (), bytes(read), asks=True))
        return self._ended(first, b"", errors), self._ended(second, b"", said)

    def _ended(
        self, process: subprocess.Popen[bytes], output: bytes, errors: bytes
    ) -> subprocess.CompletedProcess[bytes]:
        """What came of a program that has ended."""
        if process.returncode in PROGRAM_STOPPED:
            self.stuck.append(Outcome.HANG)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def _wrapped(self, program: Path) -> Path:
        """The script that starts a program within its limits."""
        limits = sandbox.PROGRAM
        command = [*limits.prefix()]
        if self.boxed:
            settings = {"ASAN_OPTIONS": "detect_leaks=0"}
            command += sandbox.box(program.parent, False, tools=False, settings=settings)
            command += [f"{sandbox.inside(program.parent)}/{program.name}"]
        else:
            command += [str(program)]
        script = program.parent.with_suffix(".sh")
        starts = ((script, OUTPUT_CUT, 1), (direct(script), "", 1), (asking(script), "", PATIENCE))
        for place, limit, patience in starts:
            bound = ["timeout", "--foreground", "-k", "1", f"{patience * limits.wall:g}"]
            line = shlex.join([*bound, *command])
            place.write_text(HOST_PROGRAM.format(command=line, limit=limit))
            place.chmod(0o755)
        return script


def program_in(script: Path) -> Path:
    """The program that a script of Lab.host starts."""
    directory = script.with_suffix("")
    return directory / directory.name.rpartition("-")[0]


def direct(script: Path) -> Path:
    """The script that starts a program of `host` with no process between it and its reader."""
    return script.with_suffix(".direct")


def asking(script: Path) -> Path:
    """The same for one whose questions are answered here: on a busy host it waits for us, and not
    we for it."""
    return script.with_suffix(".asking")


def passed_on(source: int, target: int) -> bytes:
    """Passes on what comes from one pipe to another, to its end. Returns that."""
    passed = bytearray()
    while chunk := os.read(source, 1 << 16):
        passed += chunk
        try:
            for at in range(0, len(chunk), 4096):  # what a pipe takes as a whole
                os.write(target, chunk[at : at + 4096])
        except BrokenPipeError:
            break
    os.close(source)
    os.close(target)
    return bytes(passed)


def conversed(process: subprocess.Popen[bytes], answer: Callable[[bytes], bytes]) -> bytes:
    """Answers a program's questions until it ends. Returns what else it printed; where that is too
    long, or a question, or there are too many of them, nobody reads on."""
    said, text, asked = bytearray(), bytearray(), 0
    while len(text) + len(said) < CONVERSED_MOST and asked < QUESTIONS_MOST:
        chunk = os.read(process.stdout.fileno(), 1 << 16)
        if not chunk:
            break
        said += chunk
        while b"\n" in chunk and (question := QUESTION.search(said)):
            text += said[: question.start()]
            line = answer(bytes(question[1]))
            del said[: question.end()]
            asked += 1
            with suppress(BrokenPipeError):
                os.write(process.stdin.fileno(), line)
    process.stdout.close()
    return bytes(text + said)


class LabMachine(Machine):
    """A machine with a limit to QEMU's own time, that tells its lab when it came to no end."""

    def __init__(self, lab: Lab, config: Config, interactive: bool = True) -> None:
        super().__init__(config, interactive)
        self._lab = lab

    def _limit_reached(self) -> Outcome | None:
        if processor_times(self.process_id)[0] > PROCESSOR_LIMIT:
            return Outcome.WALL_LIMIT
        return super()._limit_reached()

    def __exit__(self, *error: object) -> None:
        if self.result and self.result.outcome in STUCK:
            self._lab.stuck.append(self.result.outcome)
        super().__exit__(*error)


@pytest.fixture
def lab(request, tmp_path) -> Lab:
    """The kernel under test."""
    return request.config.stash[LAB_OF](request, tmp_path)


# How labs/tools/grading/lab_plan.py makes the Lab of a test.
LAB_OF = pytest.StashKey()
