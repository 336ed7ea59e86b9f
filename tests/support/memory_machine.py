"""Lesson 6's kernel with programs of a test, in guest time: however busy the host is, the same
happens.

said_by(programs, "/eater memory; echo alive", memory=24)
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from labs.tools.guest.programs import COMMAND
from labs.tools.machine.machine import run
from labs.tools.machine.result import Outcome
from labs.tools.machine.run import machine_config, machine_options
from tests.support.building import make, mentioned

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests/programs/memory"
COMPILER = ("i686-linux-gnu-gcc", "-O1", "-static", "-no-pie")
GUEST_SECONDS = 120  # of the guest's clock, which counts instructions
WALL_SECONDS = 3600  # a backstop for a QEMU that neither works nor ends
NS_AN_INSTRUCTION = 8


def compiled(place: Path, *names: str) -> Path:
    """Programs of tests/programs/memory, in a folder for the guest's root; all, without names.
    Skips the test where there is no compiler."""
    for source in PROGRAMS.glob("*.c"):
        if names and source.stem not in names:
            continue
        command = [*COMPILER, str(source), "-o", str(place / source.stem)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip(f"there is no {COMPILER[0]} here")
    return place


def said_by(programs: Path, command: str, memory: int = 64) -> str:
    """All that a machine says whose shell runs a command. Fails unless it ends with status 0."""
    make("LESSON=6", "image-direct", "user-programs")
    words = ["--boot", "direct", "--user", "build/user/bin", "--build", "build/lesson6"]
    words += ["--programs", str(mentioned(programs, command)), "--command", command]
    words += ["--memory", str(memory)]
    config = machine_config(machine_options("test").parse_args(words))
    settings = (*config.settings, ("cmd", f"/bin/sh /{COMMAND}"))
    limits = {"guest_limit": GUEST_SECONDS, "wall_limit": WALL_SECONDS}
    result = run(replace(config, settings=settings, **limits))
    assert result.outcome is Outcome.ENDED and result.status == 0, result.explain()
    return result.serial
