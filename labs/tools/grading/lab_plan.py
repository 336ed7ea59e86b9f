"""What a grading run consists of: jobs (a tree, and the tests that are run on it), in an order that
saves time, and a report that is complete after every test.

A run without a plan is one job: all tests on the tree that --tree names. With --both-kernels it is
two: the whole kernel at one clock rate, and the kernel without the breadth at the other one, which
also has the tests that run once. So a fault of one kernel or of one clock rate is found with half
the runs; make prove tries the whole kernel at both rates, as graders do. With --either-kernel each
of these tests runs in one of the two jobs, which its name decides; gates run in both.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from zlib import crc32

import pytest

from labs.tools.course.exercises import STORAGE, lesson_of
from labs.tools.grading.lab import LAB_OF, ROOT, Lab
from labs.tools.grading.lab_course import Course, not_run, place
from labs.tools.grading.lab_words import in_words

MODES = ("icount", "slower")
HOST_MODES = ("host",)
VISIBLE_SEED = 2010
GROUP = re.compile(rf"@(.*)@(?:{'|'.join((*MODES, *HOST_MODES))})")
MARKER = (
    "exercise(id, points=1, gate=False, host=False, once=False): a graded test of exercise `id`. "
    "`points` is its weight; gate=True shows that something of the exercise works: without any of "
    "these it scores 0; host=True runs without a clock; once=True at one clock rate, for what no "
    "clock changes"
)


@dataclass(frozen=True)
class Job:
    """A tree, and the tests that are run on it.

    name: in the report. tree: the tree under test. boxed: what it holds is a student's, and is
    built and run in the sandbox. exercise: only the tests of this one. tests: only these (nodes
    without parameters, or directories with a slash at the end). modes: only these. seed: what tests
    make their questions from. thorough: tests are run that cannot change the score, since all gates
    of the exercise have failed. brief: none is run after the first that fails. note: a file that
    keeps the last machine's Config. core: the kernel is built without the breadth. handed_in: where
    the measurement and the answers are, if not in the tree. kernel: the lesson of the kernel, if
    not that of the tests. machines: only tests that need a machine. no_once: without the tests that
    run at one clock rate.
    """

    name: str
    tree: str
    boxed: bool = False
    exercise: str = ""
    tests: tuple[str, ...] = ()
    modes: tuple[str, ...] = MODES
    seed: str = ""
    thorough: bool = True
    note: str = ""
    core: bool = False
    handed_in: str = ""
    kernel: int = 0
    machines: bool = False
    no_once: bool = False
    brief: bool = False

    def wants(self, exercise: str, test: str) -> bool:
        """Whether a test is part of this job."""
        if self.exercise and self.exercise != exercise:
            return False
        named = any(
            test == each or (each[-1] == "/" and test.startswith(each)) for each in self.tests
        )
        return named or not self.tests


@dataclass(frozen=True)
class Item:
    """One run of a test: everything about it that is known before."""

    job: str
    exercise: str
    test: str
    mode: str
    points: float
    gate: bool
    title: str

    @property
    def group(self) -> str:
        """What is run by one process, in order."""
        return f"{self.job}:{self.exercise}"


def pytest_addoption(parser):
    """The options of a grading run."""
    group = parser.getgroup("lab", "the kernel under test")
    group.addoption("--tree", type=Path, default=ROOT, help="the tree under test")
    group.addoption("--mode", choices=MODES, help="only this mode of time")
    group.addoption("--core", action="store_true", help="the kernel without the breadth")
    group.addoption("--kernel", type=int, default=0, help="the kernel of this lesson")
    words = "the whole kernel at one clock rate, the one without the breadth at the other"
    group.addoption("--both-kernels", action="store_true", help=words)
    words = "the same, but each test on one of the two; only gates on both"
    group.addoption("--either-kernel", action="store_true", help=words)
    group.addoption("--seed", default="", help="what the hidden tests' questions are made from")
    group.addoption("--note", default="", help="a file that keeps the last machine's Config")
    group.addoption("--plan", type=Path, help="a file of jobs, one in JSON a line")
    group.addoption("--only", type=Path, help="run only these tests of the plan, in the same form")
    group.addoption("--records", type=Path, help="where the results go, one in JSON a line")


def pytest_configure(config):
    """Makes the marker known, and starts the plan. Raises UsageError where no test can fail."""
    if sys.flags.optimize:
        raise pytest.UsageError("Python runs without assertions: unset PYTHONOPTIMIZE, drop -O")
    config.addinivalue_line("markers", MARKER)
    plan = Plan(config)
    config.stash[LAB_OF] = plan.lab_of
    config.pluginmanager.register(plan, "lab-plan")


class Plan:
    """The jobs of this run, and what has come of them in this process."""

    def __init__(self, config: pytest.Config) -> None:
        self._jobs = jobs_of(config)
        self._is_planned = bool(config.getoption("--plan"))
        self._records: Path | None = config.getoption("--records")
        self._only = places_in(config.getoption("--only"))
        self._is_either = config.getoption("--either-kernel")
        self._courses: dict[str, Course] = {}
        self._worker = os.environ.get("PYTEST_XDIST_WORKER")

    # Before the tests

    def pytest_generate_tests(self, metafunc):
        """A test with the fixture runs for each job that wants it, in each of the job's modes."""
        if "lab" not in metafunc.fixturenames:
            return
        marker = marker_of(metafunc.definition)
        test = metafunc.definition.nodeid
        exercise = marker.args[0]
        host, once = marker.kwargs.get("host"), marker.kwargs.get("once")
        metafunc.parametrize(
            "lab",
            [
                pytest.param(
                    (job, mode),
                    id=f"@{job.name}:{exercise}@{mode}" if self._is_planned else mode,
                )
                for job in self._jobs
                if job.wants(exercise, test) and not (host and job.machines)
                if not (once and job.no_once)
                for mode in (HOST_MODES if host else job.modes[: 1 if once else None])
            ],
            indirect=True,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        """Brings each group together: its gate first, and each test at both clock rates."""
        names = [job.name for job in self._jobs]
        order = {function_of(item): index for index, item in reversed([*enumerate(items)])}

        def key(item: pytest.Item) -> tuple:
            known = item_of(item)
            if known is None:
                return (-1,)
            function = order[function_of(item)]
            job = names.index(known.job)
            return (job, known.exercise, not known.gate, function, known.test, known.mode)

        items[:] = [each for each in items if self._is_wanted(each)]
        if self._is_either:
            items[:] = on_either_kernel(items)
        items.sort(key=key)
        places = Counter(place(asdict(item)) for each in items if (item := item_of(each)))
        if twice := [where for where, times in places.items() if times > 1]:
            raise pytest.UsageError(f"two variants of a test have one name: {twice[0]}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config, log):
        """Gives each group to one process."""
        return by_unit(config, log, group_in) if self._is_planned else None

    def _is_wanted(self, item: pytest.Item) -> bool:
        """Whether a job wants this test (pytest makes a skipped item of one that none wants), and
        --only does."""
        known = item_of(item)
        if known is None:
            return "lab" not in getattr(item, "fixturenames", ())
        return not self._only or place(asdict(known)) in self._only

    def pytest_collection_finish(self, session):
        """Writes down what is planned: what never ran counts too."""
        if self._records and self._worker in (None, "gw0"):
            known = [asdict(item) for each in session.items if (item := item_of(each))]
            path = self._records.with_suffix(".planned")
            path.write_text("".join(json.dumps(each) + "\n" for each in known))

    # The tests

    def pytest_runtest_setup(self, item):
        """Skips what cannot change the score, or would only hang again."""
        known = item_of(item)
        item.user_clocks = clocks()
        if known and (words := self._course(known).why_not(known.test, known.gate)):
            item.user_not_run = True
            pytest.skip(words)

    def _course(self, item: Item) -> Course:
        """What has come of an item's group in this process."""
        job = next(job for job in self._jobs if job.name == item.job)
        return self._courses.setdefault(item.group, Course(job.thorough, job.brief))

    def lab_of(self, request, scratch: Path) -> Lab:
        """The lab of a test."""
        (job, mode), item = request.param, item_of(request.node)
        lesson = lesson_of(item.exercise)
        lab = Lab(
            lesson=lesson,
            root=Path(job.tree).resolve(),
            seed=seed_of(item, job),
            mode="icount" if mode in HOST_MODES else mode,
            scratch=scratch,
            boxed=job.boxed,
            note=Path(job.note) if job.note else None,
            core=job.core and lesson != STORAGE,  # it is always with the breadth
            kernel=job.kernel,
            handed_in=Path(job.handed_in) if job.handed_in else None,
        )
        request.node.user_lab = lab
        return lab

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Adds to the report of a test what the grader needs of it."""
        report = yield
        known = item_of(item)
        if known is None or not (
            report.when == "call" or (report.when == "setup" and call.excinfo)
        ):
            return report
        if report.failed:  # a half of a surrogate pair would end the process that reports it
            words = str(report.longrepr)
            report.longrepr = words.encode(errors="backslashreplace").decode()
        record = self._record(item, report.passed, call)
        report.user_properties.append(("lab", record))
        self._course(known).note(record)
        return report

    def _record(self, item: pytest.Item, passed: bool, call: pytest.CallInfo) -> dict:
        """What is to be known of a run. stuck: the machine did not come to an end. program: one ran
        on this computer. processor, real: seconds, the former of all that the test has started."""
        known = item_of(item)
        lab = getattr(item, "user_lab", None)
        is_own = lab is not None and not lab.boxed  # an instructor's report is the same in each run
        words = "" if passed else in_words(call.excinfo.value, known.mode, is_own)
        if getattr(item, "user_not_run", False):
            return not_run(asdict(known), words)
        stuck = not passed and bool(lab and lab.stuck)
        processor, real = (b - a for a, b in zip(item.user_clocks, clocks(), strict=True))
        times = {"processor": processor, "real": real}
        program = bool(lab and lab.host_runs)
        came = {"passed": passed, "ran": True, "stuck": stuck, "words": words, "program": program}
        return asdict(known) | came | times

    def pytest_runtest_logreport(self, report):
        """Writes a result down at once, in the process that has them all."""
        if not self._records or self._worker:
            return
        with self._records.open("a") as stream:
            for name, record in report.user_properties:
                if name == "lab" and report.when in ("setup", "call"):
                    stream.write(json.dumps(record) + "\n")

    def pytest_sessionfinish(self, session):
        """Keeps pytest from printing the failures, which the records have: for each of them it goes
        through all reports, which takes minutes for thousands."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if self._records and reporter:
            reporter.stats.pop("failed", None)


def clocks() -> tuple[float, float]:
    """Seconds: those that ended processes of ours have kept a processor, and real ones."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime, time.monotonic()


def jobs_of(config: pytest.Config) -> list[Job]:
    """The jobs of the plan, or the one that the options describe."""
    if plan := config.getoption("--plan"):
        return [job_from(json.loads(line)) for line in plan.read_text().splitlines()]
    mode, tree = config.getoption("--mode"), str(config.getoption("--tree"))
    modes = (mode,) if mode else MODES
    others = {name: config.getoption(f"--{name}") for name in ("seed", "note", "core", "kernel")}
    if not (config.getoption("--both-kernels") or config.getoption("--either-kernel")):
        return [Job("", tree, modes=modes, **others)]
    whole, core = (Job("", tree, modes=(each,), **others) for each in MODES)
    return [replace(whole, no_once=True), replace(core, core=True, machines=True)]


def job_from(fields: dict) -> Job:
    """A job as JSON keeps it, with lists for tuples."""
    return Job(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})


def by_unit(config: pytest.Config, log: object, unit_of: Callable[[str], str]) -> object:
    """A scheduler of pytest-xdist that gives the tests of a unit to one process. (Its own
    xdist_group does nothing: pytest-xdist 3.8 writes it into the names of the tests, where pytest
    9.2 does not let it.)"""
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

        def remove_node(self, node: object) -> str | None:
            """Leaves out what a process that died had still to run: others that have been told to
            end would never take it, and the run would not end."""
            units = self.assigned_work.pop(node).values()
            left = (test for unit in units for test, is_done in unit.items() if not is_done)
            return next(left, None)

    return ByUnit(config, log)


def on_either_kernel(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Of each test that is there in two modes, the one that its name (with its parameters) decides;
    of a gate both. The same in each process, and as long as the test has its name."""
    known = [item_of(each) for each in items]
    times = Counter(each.test for each in known if each)
    return [
        item
        for item, each in zip(items, known, strict=True)
        if not each or each.gate or times[each.test] == 1 or each.mode == mode_by_name(each.test)
    ]


def mode_by_name(test: str) -> str:
    """One of the modes, about as often as the other."""
    return MODES[crc32(test.encode()) % len(MODES)]


def marker_of(node: pytest.Item) -> pytest.Mark:
    """The marker of a test that uses the fixture. Raises UsageError without one."""
    marker = node.get_closest_marker("exercise")
    if marker is None or not marker.args:
        raise pytest.UsageError(f"{node.nodeid} uses `lab`: @pytest.mark.exercise names no id")
    return marker


def group_in(nodeid: str) -> str:
    """The group that is in a test's name; what has none is one by itself."""
    found = GROUP.search(nodeid)
    return found[1] if found else nodeid


def function_of(item: pytest.Item) -> str:
    """The test's name without parameters."""
    return item.nodeid.partition("[")[0]


def places_in(path: Path | None) -> set[tuple]:
    """The tests that a file lists; none without a file."""
    return {place(json.loads(line)) for line in path.read_text().splitlines()} if path else set()


def item_of(item: pytest.Item) -> Item | None:
    """What is known of a test that uses the fixture; None for all others."""
    chosen = getattr(item, "callspec", None) and item.callspec.params.get("lab")
    if not isinstance(chosen, tuple):
        return None
    job, mode = chosen
    marker = marker_of(item)
    others = [part for name, part in parameters(item) if name != "lab"]
    test = function_of(item) + (f"[{'-'.join(others)}]" if others else "")
    return Item(
        job=job.name,
        exercise=marker.args[0],
        test=test,
        mode=mode,
        points=marker.kwargs.get("points", 1),
        gate=marker.kwargs.get("gate", False),
        title=title_of(item.function.__doc__),
    )


def parameters(item: pytest.Item) -> list[tuple[str, str]]:
    """The test's own parameters, in words that are the same in every process."""
    return [
        (name, str(getattr(value, "__name__", value))[:40])  # str(function) has an address
        for name, value in sorted(item.callspec.params.items())
    ]


def title_of(docstring: str | None) -> str:
    """The first sentence of a docstring."""
    paragraph = " ".join((docstring or "").partition("\n\n")[0].split())
    return re.split(r"(?<=\w)\.(?: |$)", paragraph)[0]


def seed_of(item: Item, job: Job) -> int:
    """The seed of a test: made from the run's own. Without one, as in a student's tree, a visible
    test asks the same each time; but a graded one asks what nobody can have written down."""
    if "/hidden/" not in item.test and not job.seed:
        return VISIBLE_SEED
    digest = hashlib.sha256(f"{job.seed}:{item.test}".encode()).digest()
    return int.from_bytes(digest[:4], "little")
