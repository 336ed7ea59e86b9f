"""Runs the graded tests of a lesson on a plan of trees, in one pytest, and returns what came of it.

run_tests([Job("reference", ".")], ["tests/lesson1"]) -> [TestResult, ...]

The results are the same with one process and with several: the tests of one tree and one exercise
are run by one process, in order (labs/tools/grading/lab_plan.py), and are judged in that order
(labs/tools/grading/lab_course.py).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labs.tools.grading.lab_course import settled
from labs.tools.machine.command import own_environment
from labs.tools.machine.patience import told

ROOT = Path(__file__).resolve().parents[3]
WORKERS = 2
TEST_SECONDS = 1800  # no test takes a hundredth of it; a backstop for what the other limits miss
LOG_LINES = 30
NOT_RUN = "not run: the grader was stopped before it"


class TestRunError(RuntimeError):
    """pytest could not run the tests; the text is what it said."""

    __test__ = False  # pytest, this is no test class


@dataclass(frozen=True)
class TestResult:
    """A test of a job, in all its modes. weight: its part of the points of its exercise, in any
    unit. words: why it did not pass. mode: the one in which it did not. program: it ran one on this
    computer."""

    __test__ = False

    job: str
    exercise: str
    test: str
    title: str
    weight: float
    gate: bool
    passed: bool
    words: str
    mode: str
    program: bool = False

    @property
    def name(self) -> str:
        """The test in the words of make replay: its function, with parameters."""
        return self.test.rpartition("::")[2]

    @property
    def is_hidden(self) -> bool:
        """Whether a student has this test."""
        return "/hidden/" in self.test


def run_tests(
    jobs: Sequence[Any], paths: Sequence[str], workers: int = WORKERS, is_told: bool = False
) -> list[TestResult]:
    """Runs the tests in `paths` (files, directories, nodes) for each job of lab_plan.py.
    Raises TestRunError when they cannot be collected, or when the run was broken off.

    What should have run and did not (a process died, and took its results along) is run once more,
    by one process. is_told: says on stderr how far it is, if it takes long."""
    thorough = {job.name for job in jobs if job.thorough}
    brief = {job.name for job in jobs if job.brief}
    with tempfile.TemporaryDirectory(prefix="grade-") as name:
        run = Run(Path(name), paths, is_told)
        write_lines(run.plan, map(asdict, jobs))
        records = run.pytest("first", spread(workers))
        planned = read_lines(planned_file(run.directory / "first"))
        known, missing = settled(planned, records, thorough, brief)
        if missing:
            write_lines(run.directory / "only", missing)
            records += run.pytest("second", ["-n1", f"--only={run.directory / 'only'}"])
            known, missing = settled(planned, records, thorough, brief)
    return results_of(planned, known)


@dataclass(frozen=True)
class Run:
    """A directory for the files of a run, and the tests in question."""

    directory: Path
    paths: Sequence[str]
    is_told: bool = False

    @property
    def plan(self) -> Path:
        """The jobs."""
        return self.directory / "plan"

    def pytest(self, name: str, options: Sequence[str]) -> list[dict]:
        """Runs pytest, and returns the records. Raises TestRunError."""
        records, log = self.directory / name, self.directory / f"{name}.log"
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
        command += [f"--plan={self.plan}", f"--records={records}", f"--timeout={TEST_SECONDS}"]
        command += [f"--basetemp={self.directory / 'tests'}", *options, *self.paths]
        own = self.directory / "tmp"
        own.mkdir(exist_ok=True)
        with told(lambda: progress(records)) if self.is_told else nullcontext():
            status = run_pytest(command, log, own)
        if status not in (0, 1) or not planned_file(records).exists():
            raise TestRunError(f"pytest ended with {status}:\n{tail(log)}")
        return read_lines(records)


def progress(records: Path) -> str:
    """How far a run is, in words; empty until it is known what is to be run."""
    planned = Counter(each["exercise"] for each in read_lines(planned_file(records)))
    done = Counter(each["exercise"] for each in whole_lines(records))
    if not planned:
        return ""
    if sys.stderr.isatty():
        return f"grading: {done.total()} of {planned.total()} runs of tests"
    finished = [number for number in planned if done[number] >= planned[number]]
    return f"grading: done with {', '.join(finished)}" if finished else "grading ..."


def whole_lines(path: Path) -> list[dict]:
    """The records that are written already: another process is at it."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]


def spread(workers: int) -> list[str]:
    """The options of pytest-xdist. One process needs none."""
    return [f"-n{workers}"] if workers > 1 else ["-pno:xdist"]


def run_pytest(command: list[str], log: Path, temporary: Path) -> int:
    """Runs pytest and all it starts in a group of processes, and lets none of them survive. Its
    temporary files go to `temporary`."""
    environment = own_environment() | {"TMPDIR": str(temporary)}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=stream, stderr=stream, env=environment, process_group=0
        )
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def planned_file(records: Path) -> Path:
    """Where the tests are listed that were to run."""
    return records.with_suffix(".planned")


def read_lines(path: Path) -> list[dict]:
    """The JSON objects of a file, one a line; none without a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_lines(path: Path, objects: Iterable[Mapping]) -> None:
    """Writes what read_lines reads."""
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))


def tail(path: Path) -> str:
    """The end of a log."""
    return "\n".join(path.read_text(errors="replace").splitlines()[-LOG_LINES:])


def results_of(planned: list[dict], records: list[dict]) -> list[TestResult]:
    """One result a test: it has passed if all its modes have. What never ran has not."""
    ran = {(each["job"], each["test"], each["mode"]): each for each in records}
    modes: dict[tuple[str, str], list[dict]] = {}
    for item in planned:
        modes.setdefault((item["job"], item["test"]), []).append(item)
    variants = Counter((job, function_of(test)) for job, test in modes)
    return [
        result_of(items, ran, variants[job, function_of(test)])
        for (job, test), items in modes.items()
    ]


def function_of(test: str) -> str:
    """A test without its parameters: its points are shared among them."""
    return test.partition("[")[0]


def result_of(items: list[dict], ran: dict, variants: int) -> TestResult:
    """The result of a test from its runs; the first that failed gives the words."""
    item = items[0]
    runs = [ran.get((each["job"], each["test"], each["mode"])) for each in items]
    failed = next((i for i, each in enumerate(runs) if not each or not each["passed"]), None)
    words, mode, program = "", "", False
    if failed is not None:
        mode = items[failed]["mode"]
        words = runs[failed]["words"] if runs[failed] else NOT_RUN
        program = bool(runs[failed] and runs[failed].get("program"))
    return TestResult(
        job=item["job"],
        exercise=item["exercise"],
        test=item["test"],
        title=item["title"],
        weight=item["points"] / variants,
        gate=item["gate"],
        passed=failed is None,
        words=words,
        mode=mode,
        program=program,
    )
