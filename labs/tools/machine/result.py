"""What a run of the machine came to, and the explanation of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from labs.tools.machine.disk_trace import Request
from labs.tools.machine.explain import fault_report, last_lines, panic_report
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.symbols import symbols_of

KTAP_START = "KTAP version 1"
# What the kernel says where a blank is: kernel/report/exercise.h.
MISSING = re.compile(r"exercise (?:\d\.\d|S\d+) is not written yet \([^)]*\)")


class Outcome(Enum):
    """Why a run was over."""

    ENDED = "the machine was switched off"
    PANIC = "the kernel panicked"
    TRIPLE_FAULT = "the processor was reset (triple fault)"
    HANG = "the guest did not come to an end"
    WALL_LIMIT = "the real time was used up"
    OUTPUT_LIMIT = "the serial line was flooded"
    QEMU_FAILED = "QEMU failed"


@dataclass(frozen=True)
class BlockStatistics:
    """What QEMU counted for one drive. One programmed READ MULTIPLE is a read per block of it;
    `failed` are reads, writes and flushes with an error, `invalid` those beyond the end."""

    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    flushes: int
    failed: int
    invalid: int


@dataclass(frozen=True)
class TestLine:
    """One result inside the guest; the diagnostic is what it printed before the verdict."""

    __test__ = False  # pytest, this is no test class

    name: str
    ok: bool
    diagnostic: str


class GuestFailure(AssertionError):
    """A run that was to go another way; `result` is all of it."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class Result:
    """A finished run.

    status: 0 to 63, or None when the guest named none. serial: the output up to the limit.
    guest_seconds: guest time since power-on, None where QEMU was gone before it could be asked; it
    includes what the processor still does between power-off and QEMU's stop, which varies.
    variables: the contents of those that Config.variables asks for.
    all_requests: with Config.trace, the disk requests of all drives in order. details: what was
    found out while the machine still existed. limit: which one was reached, if not one of config's.
    """

    config: Config
    outcome: Outcome
    status: int | None
    serial: str
    wall_seconds: float
    guest_seconds: float | None = None
    block_statistics: dict[str, BlockStatistics] = field(default_factory=dict)
    variables: dict[str, bytes] = field(default_factory=dict, repr=False)
    all_requests: tuple[Request, ...] = ()
    details: str = ""
    limit: str = ""
    interrupt_log: Callable[[], str] | None = field(default=None, repr=False, compare=False)

    @property
    def requests(self) -> dict[str, list[Request]]:
        """The disk requests by drive; each drive of the machine has a list. Needs Config.trace."""
        if not self.config.trace:
            raise ValueError("the disk requests were not collected: use Config(trace=True)")
        drives = [drive.name for drive in self.config.all_drives()]
        return {name: [each for each in self.all_requests if each.drive == name] for name in drives}

    def explain(self, with_output: bool = True) -> str:
        """The outcome in words. After a triple fault the machine runs once more to find why.
        `with_output` is False where the reader has seen what the guest printed."""
        parts = [f"{self._headline()}.", self._fault(), self.details]
        if with_output:
            parts = [parts[0], panic_report(self.serial), *parts[1:], last_lines(self.serial)]
        return "\n".join(part for part in parts if part)

    def _headline(self) -> str:
        text = self.outcome.value
        if self.outcome is Outcome.HANG:
            text += f" ({self.limit or f'limit {self.config.guest_limit:g} s'})"
        if self.outcome is Outcome.WALL_LIMIT:
            text += f" (limit {self.config.wall_limit:g} s)"
        if self.outcome is Outcome.ENDED:
            text += " without a status" if self.status is None else f" with status {self.status}"
        missing = MISSING.search(self.serial)
        if missing and (self.outcome is Outcome.PANIC or text.endswith("without a status")):
            text = missing[0]  # a stub ends the machine as a panic does; in the loader, as it can
        if self.guest_seconds is not None:
            text += f", after {self.guest_seconds:.3f} s of guest time"
        return text

    def _fault(self) -> str:
        if self.interrupt_log is None:
            return ""
        return fault_report(self.interrupt_log(), symbols_of(self.config.kernel))

    def check(self, status: int = 0) -> Result:
        """Returns this result, if the run ended with `status`; else raises GuestFailure."""
        if (self.outcome, self.status) != (Outcome.ENDED, status):
            raise GuestFailure(f"expected status {status}, but {self.explain()}", self)
        return self


def ktap(result: Result) -> list[TestLine]:
    """The results of the tests inside the guest, in order. Raises GuestFailure when the report is
    missing, or when the plan does not name as many results as there are."""
    from tap.line import Diagnostic, Plan  # few machines report so, and it is slow to load
    from tap.line import Result as TapResult
    from tap.parser import Parser

    _, start, report = result.serial.partition(KTAP_START)
    if not start:
        raise GuestFailure(f"no {KTAP_START} on the serial line; {result.explain()}", result)
    planned, tests, diagnostics = None, [], []
    for line in Parser().parse_text(report):
        if isinstance(line, Diagnostic):
            diagnostics.append(line.text.removeprefix("#").strip())
        elif isinstance(line, Plan):
            planned = line.expected_tests
        elif isinstance(line, TapResult):
            name = line.description.removeprefix("- ")
            tests.append(TestLine(name, bool(line.ok), "\n".join(diagnostics)))
            diagnostics = []
    if planned != len(tests):
        counts = f"{planned} tests planned, {len(tests)} seen"
        raise GuestFailure(f"{counts}; {result.explain()}", result)
    return tests
