"""A plugin of pytest for `make replay`: notes how a test ends, and how it drives its machine.

    pytest -p labs.tools.debugging.replay_plugin --story FILE ...

A test may drive its machine from outside, through QEMU's gdb stub: run to a place, change
registers, call a function. The story holds the packets that it sent to its last machine, for
labs/tools/debugging/steps.py to understand them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Story:
    """words: why the test failed, as the grader says it. exercise: the test's. packets: of gdb's
    remote protocol, to the machine that was started last; none when that ran by itself."""

    words: str = ""
    exercise: str = ""
    packets: list[str] = field(default_factory=list)


def read_story(path: Path) -> Story:
    """What was noted; nothing when pytest came to no test."""
    return Story(**json.loads(path.read_text())) if path.exists() else Story()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the story goes."""
    parser.addoption("--story", type=Path, required=True, help="a file, in JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Begins the story."""
    config.pluginmanager.register(Teller(config.getoption("--story")), "story")


class Teller:
    """Writes the story of the tests of one run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._story = Story()
        self._stub: Any = None

    def pytest_collection_finish(self) -> None:
        """From now on the stub is noted, which keeps what it was sent: the tests are loaded."""
        if remote := sys.modules.get("tests.support.gdb_stub"):
            remote.GdbStub.send = self._noting(remote.GdbStub.send)
        if laboratory := sys.modules.get("labs.tools.grading.lab"):
            laboratory.Lab.config = self._beginning(laboratory.Lab.config)

    def _noting(self, send: Callable[..., None]) -> Callable[..., None]:
        def noting(stub: Any, *packets: str) -> None:
            self._stub = stub
            send(stub, *packets)

        return noting

    def _beginning(self, configure: Callable[..., Any]) -> Callable[..., Any]:
        def beginning(*arguments: object, **fields: object) -> Any:
            self._stub = None
            return configure(*arguments, **fields)

        return beginning

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes the first failure, in the grader's words."""
        for name, record in report.user_properties:
            if name == "lab" and not self._story.words:
                self._story.words, self._story.exercise = record["words"], record["exercise"]

    def pytest_sessionfinish(self) -> None:
        """Writes it down: also what was put into memory without a packet."""
        if self._stub:
            self._story.packets = [
                each if isinstance(each, str) else f"M{each[0]:x},{len(each[1]):x}:{each[1].hex()}"
                for each in self._stub.sent
            ]
        self._path.write_text(json.dumps(asdict(self._story)))
