"""Why a test failed, in a line for the student.

What it says must not depend on the time of day, on the load of the machine or on where the tree
is: the same submission gets the same report.
"""

from __future__ import annotations

import re
import tempfile
from itertools import takewhile

import pytest

from labs.tools.machine.explain import PANIC, panic_report
from labs.tools.machine.result import MISSING, GuestFailure, Outcome, Result

LENGTH = 240
WHOLE_LENGTH = 800  # for who can read on: a student, in their own tree
SLOWER = "with interrupts at other instructions (QEMU's -icount shift=4): "
RACE = "a race with the timer: is something done with interrupts enabled that must not be?"
DETAIL_LINES = 12
DOES_NOT_BUILD, NOT_LOADED = "it does not build", "QEMU does not load the kernel"
CALLER = re.compile(r"^backtrace: 0x[0-9a-f]{8} (\S+?)\+0x", re.MULTILINE)
CALLERS = 6
FIRST_FAULT = re.compile(r"^(?:First: .*|It was not a triple fault.*)$", re.MULTILINE)
TEMPORARY = re.compile(rf"(?:/tmp|{re.escape(tempfile.gettempdir())})/\S*/")
VARYING = re.compile(r",? after [0-9.]+ s of guest time|\(pid \d+\)")


def in_words(error: BaseException, mode: str, has_details: bool = False) -> str:
    """The failure in a line; with `has_details`, the lines below it as well. The second run of a
    test, with a slower processor, has its own word: what fails there alone depends on when
    an interrupt comes."""
    if isinstance(error, pytest.skip.Exception):
        return error.msg
    result = getattr(error, "result", None)
    text = guest_words(result) if isinstance(error, GuestFailure) else plain_words(error)
    text = SLOWER + text if mode == "slower" else text
    if not has_details or MISSING.search(text):
        return shortened(text)
    below = guest_details(result) if isinstance(error, GuestFailure) else details(error)
    below += [f"  usually: {RACE}"] if mode == "slower" else []
    return "\n".join(shortened(line, WHOLE_LENGTH) for line in [text, *below])


def details(error: BaseException) -> list[str]:
    """The lines below the first that begin with two blanks: where it happened, which mistake it
    usually is, what to type next."""
    below = str(error).splitlines()[1:]
    return list(takewhile(lambda line: line.startswith("  "), below))[:DETAIL_LINES]


def guest_words(result: Result) -> str:
    """What became of the machine."""
    if missing := MISSING.search(result.serial):
        return missing[0]
    if result.outcome is Outcome.PANIC:
        found = PANIC.search(result.serial)
        return f"the kernel panicked: {found[0].removeprefix('PANIC: ')}" if found else "a panic"
    if result.outcome is Outcome.TRIPLE_FAULT:
        first = FIRST_FAULT.search(result.explain())
        return f"triple fault. {first[0] if first else 'No exception was recorded.'}"
    if result.outcome is Outcome.ENDED:
        return f"{ending(result)}; {last_line(result.serial)}"
    return STANDSTILL.get(result.outcome, result.details or result.outcome.value)


def guest_details(result: Result) -> list[str]:
    """What is to be said below that: where it was, and what came before."""
    lines: list[str] = []
    if result.outcome is Outcome.PANIC:
        report = panic_report(result.serial)
        lines = [" < ".join(CALLER.findall(report)[:CALLERS])]
    elif result.outcome is Outcome.TRIPLE_FAULT:
        lines = [line for line in result.explain().splitlines() if line.startswith("Then, ")]
    elif result.outcome in STANDSTILL:
        lines = [line.strip() for line in result.details.partition("Registers:")[0].splitlines()]
        lines = [lines[0], " < ".join(lines[2 : 2 + CALLERS])] if lines else []
        lines.append(last_line(result.serial))
    elif result.outcome is Outcome.ENDED and result.status is None:
        lines = ["nobody has said how it went: neither the kernel nor our loader ended it in order"]
    return [f"  where: {line}" for line in lines if line]


# The real time is used up first where the host is busy: the same words for both.
ENDLESS = "the kernel did not come to an end: it waits or loops for ever"
STANDSTILL = {
    Outcome.HANG: ENDLESS,
    Outcome.WALL_LIMIT: ENDLESS,
    Outcome.OUTPUT_LIMIT: "the kernel floods the serial line and does not come to an end",
}


def ending(result: Result) -> str:
    """A run that ended, but not as it was to."""
    if result.status is None:
        return "the machine was switched off without an exit status"
    return f"the run ended with status {result.status}"


def last_line(serial: str) -> str:
    """The end of the output."""
    lines = [line for line in serial.splitlines() if line.strip()]
    return f"the last line was: {printable(lines[-1])}" if lines else "nothing was printed"


def plain_words(error: BaseException) -> str:
    """The first line of a message, or the name of an error that has none."""
    if missing := MISSING.search(str(error)):
        return missing[0]
    lines = str(error).strip().splitlines()
    message = lines[0] if lines else type(error).__name__
    if isinstance(error, AssertionError | pytest.fail.Exception):
        return message
    return f"{type(error).__name__}: {message}"


def shortened(text: str, length: int = LENGTH) -> str:
    """One line of bearable length, without what differs from run to run."""
    text = VARYING.sub("", TEMPORARY.sub("", printable(text)))
    return text if len(text) <= length else text[:length] + "..."


def printable(text: str) -> str:
    """The text without what would upset a terminal or an XML file."""
    return "".join(each if each.isprintable() else "?" for each in text)
