"""kernel/descriptor.c as a program that answers questions, for the tests of exercise 2.1."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.lab import Lab

DRIVER = Path(__file__).resolve().parent / "host" / "descriptors.c"
SECONDS = 60


_programs: dict[bytes, Path] = {}


def program(lab: Lab) -> Path:
    """kernel/descriptor.c of the tree under test, as a program that answers questions. Compiled
    once for all tests of a session."""
    source = (lab.root / "kernel" / "descriptor.c").read_bytes()
    if source not in _programs:
        _programs[source] = lab.host(["kernel/descriptor.c"], [DRIVER], "descriptors")
    return _programs[source]


def ask(program: Path, questions: Iterable[str]) -> list[str]:
    """The answers of tests/lesson2/host/descriptors.c, as many as there are questions."""
    asked = list(questions)
    done = subprocess.run(
        [program],
        input="\n".join(asked) + "\n",
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS,
        check=False,
    )
    answers = done.stdout.splitlines()
    if done.returncode != 0 or len(answers) != len(asked):
        words = (done.stdout[-400:] + done.stderr[-2000:]).strip()
        pytest.fail(f"kernel/descriptor.c, on the host, stopped early:\n{words}", pytrace=False)
    return answers
