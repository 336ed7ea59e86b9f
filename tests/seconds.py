"""How long tests take: which begin first in make test, and which make test-fast leaves out.

tests/seconds.txt has the processor time of each test that takes SHORT seconds or more, that of all
the programs that it starts included; a fixture that several tests share counts for the first of
them. `pytest --seconds` (make test RENEW=yes) writes the file. What is not in it is short.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

FILE = Path(__file__).with_suffix(".txt")
SHORT, LONG = 0.7, 10.0
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
    items[:] = longest_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def longest_first(items: list[pytest.Item], processes: int) -> list[pytest.Item]:
    """An order in which no long test begins last, where others have nothing left to do: of the
    equal parts that pytest-xdist gives to its processes, each begins with long tests. The others
    stay with those of their file, which share fixtures."""
    long = [item for item in items if seconds_of(item) >= LONG]
    if processes == 1 or not long:
        return items
    short = iter([item for item in items if seconds_of(item) < LONG])
    long.sort(key=seconds_of, reverse=True)
    order: list[pytest.Item] = []
    for number in range(processes):
        own = long[number::processes]
        size = (len(items) - len(order)) // (processes - number)
        order += [*own, *islice(short, max(0, size - len(own)))]
    return order


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
