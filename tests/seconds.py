"""How long tests take: which begin first in make test, and which make test-fast leaves out.

tests/seconds.txt has the processor time of each test that takes SHORT seconds or more, that of all
the programs that it starts included; a fixture that several tests share counts for the first of
them. `pytest --seconds` (make test RENEW=yes) writes the file. What is not in it is short.
"""

from __future__ import annotations

import os
import re
import resource
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path

import pytest

from labs.tools.grading.lab_plan import by_unit

FILE = Path(__file__).with_suffix(".txt")
ROOT = FILE.parents[1]
SHORT, UNKNOWN, LONG = 0.7, 0.2, 10.0
VISIBLE_ONCE = re.compile(r"/visible/.*\[(icount|host)\b")


def read(path: Path = FILE) -> dict[str, float]:
    """The seconds of each test in the file. A student's tree has none."""
    if not path.exists():
        return {}
    lines = (line.split(" ", 1) for line in path.read_text().splitlines())
    return {name: float(seconds) for seconds, name in lines}


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two commands."""
    group = parser.getgroup("seconds", "how long tests take")
    group.addoption("--seconds", action="store_true", help=f"write {FILE.name}")
    words = "short tests; of the graded ones the visible gates, at one clock rate"
    group.addoption("--fast", action="store_true", help=words)


def pytest_configure(config: pytest.Config) -> None:
    """Keeps what is known, and begins to measure."""
    config.stash[KNOWN] = read()
    if config.getoption("--seconds"):
        config.pluginmanager.register(Clock(config), "clock")


KNOWN = pytest.StashKey[dict[str, float]]()


def seconds_of(item: pytest.Item) -> float:
    """About how long a test takes; 0 where it is short."""
    return item.config.stash[KNOWN].get(item.nodeid, 0)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Chooses the fast ones; several processes begin with the longest tests."""
    if config.getoption("--fast"):
        gone = [item for item in items if not is_fast(item)]
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if is_fast(item)]
    if "PYTEST_XDIST_WORKER" in os.environ and not config.getoption("--plan"):
        items[:] = longest_first(items, config.stash[KNOWN])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """With --dist loadfile: gives a unit to the process that has next to nothing left."""
    if config.option.dist != "loadfile":
        return None
    return by_unit(config, log, partial(unit_of, known=config.stash[KNOWN]))


def longest_first(items: list[pytest.Item], known: Mapping[str, float]) -> list[pytest.Item]:
    """Unit by unit, so that none that is long begins last, where other processes have nothing left
    to do."""
    units = {item: unit_of(item.nodeid, known) for item in items}
    seconds: Counter[str] = Counter()
    for item, unit in units.items():
        seconds[unit] += known.get(item.nodeid, UNKNOWN)
    return sorted(items, key=lambda item: (-seconds[units[item]], units[item]))


def unit_of(test: str, known: Mapping[str, float]) -> str:
    """What one process runs: a file, whose tests share fixtures. Where they share none, a long test
    is a unit of its own."""
    file = test.partition("::")[0]
    alone = known.get(test, 0) >= LONG and not shares_fixtures(ROOT / file)
    return test if alone else file


@cache
def shares_fixtures(file: Path) -> bool:
    """Whether a file of tests has fixtures that are made once for several of them."""
    return bool(re.search(r'scope="(?:module|class)"', file.read_text()))


def is_fast(item: pytest.Item) -> bool:
    """Whether a test belongs to make test-fast: it is short, or marked as fast. Of the graded ones
    only those that a student sees and that show whether an exercise works at all, run once each."""
    graded = item.get_closest_marker("exercise")
    if graded and not (graded.kwargs.get("gate") and VISIBLE_ONCE.search(item.nodeid)):
        return False
    if item.get_closest_marker("fast"):
        return True
    return not seconds_of(item) and not item.get_closest_marker("slow")


class Clock:
    """Measures tests, in the process that runs them, and writes the file in the one that has all
    results."""

    def __init__(self, config: pytest.Config) -> None:
        self._known = config.stash[KNOWN]
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Notes the time in the test's last report."""
        self._began = processor_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
        """Adds it to the report of the end."""
        report = yield
        if call.when == "teardown":
            report.user_properties.append(("seconds", processor_seconds() - self._began))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collects them."""
        seconds = dict(report.user_properties).get("seconds")
        if seconds is not None:
            self._seconds[report.nodeid] = seconds

    def pytest_sessionfinish(self) -> None:
        """Writes the file: what it has of files that were not run stays."""
        if "PYTEST_XDIST_WORKER" not in os.environ:
            files = {name.partition("::")[0] for name in self._seconds}
            old = {k: v for k, v in self._known.items() if k.partition("::")[0] not in files}
            times = sorted((old | self._seconds).items())
            FILE.write_text("".join(f"{v:.1f} {name}\n" for name, v in times if v >= SHORT))


def processor_seconds() -> float:
    """Of this process, and of all that it has started and waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
