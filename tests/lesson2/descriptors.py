"""kernel/cpu/descriptor.c as a program that answers questions, for the tests of exercise 2.1."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from labs.tools.grading.lab import PROGRAM_STOPPED, Lab

DRIVER = Path(__file__).resolve().parent / "host" / "descriptors.c"


_programs: dict[bytes, Path] = {}


def program(lab: Lab) -> Path:
    """kernel/cpu/descriptor.c of the tree under test, as a program that answers questions. Compiled
    once for all tests of a session."""
    source = (lab.root / "kernel/cpu/descriptor.c").read_bytes()
    if source not in _programs:
        _programs[source] = lab.host(["kernel/cpu/descriptor.c"], [DRIVER], "descriptors")
    return _programs[source]


def ask(lab: Lab, questions: Iterable[str]) -> list[str]:
    """The answers of tests/lesson2/host/descriptors.c, as many as there are questions."""
    asked = list(questions)
    done = lab.ask(program(lab), "".join(f"{each}\n" for each in asked).encode())
    said, complaints = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    answers = said.splitlines()
    if done.returncode in PROGRAM_STOPPED:
        pytest.fail("kernel/cpu/descriptor.c, on the host, loops or waits for ever", pytrace=False)
    if done.returncode != 0 or len(answers) != len(asked):
        words = (said[-400:] + complaints[-2000:]).strip()
        pytest.fail(f"kernel/cpu/descriptor.c, on the host, stopped early:\n{words}", pytrace=False)
    return answers
