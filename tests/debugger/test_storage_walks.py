"""The walks of the storage lab's handout: what it tells to type under gdb shows what it says."""

from __future__ import annotations

import re
import shlex
import sys

import pytest

from tests.support.building import ROOT, make
from tests.support.dialogues import GDB_PROMPT, steps, walked

pytestmark = pytest.mark.slow

HANDOUT = (ROOT / "labs/storage/README.md").read_text()
WALK = re.compile(
    r"`(make gdb LESSON=storage [^`]*)`(?:(?!make gdb).)*?\n(```gdb\n.*?^```$)", re.M | re.S
)
WALKS = WALK.findall(HANDOUT)


def test_each_exercise_of_the_kernel_has_a_walk():
    assert len(WALKS) == HANDOUT.count("```gdb\n") == 6
    for exercise in ("S1", "S2", "S3", "S4", "S5"):
        part = HANDOUT.partition(f"### {exercise} ")[2].partition("### ")[0]
        assert "*Look:*" in part and "```gdb" in part


@pytest.mark.parametrize("number", range(len(WALKS)))
def test_a_walk_shows_what_is_printed(number, tmp_path):
    typed, dialogue = WALKS[number]
    settings = dict(word.split("=", 1) for word in shlex.split(typed) if "=" in word)
    make("LESSON=storage", "image-direct", "user-programs", "build/host/lab-file")
    command = [sys.executable, "-m", "labs.storage.run", "--build", "build/storage", "--gdb",
               "--user", "build/user/bin", "--reads", "1000", "--scale", "100",
               "--boot", settings["BOOT"], "--command", settings["CMD"]]  # fmt: skip
    if "ROOT" in settings:
        command += ["--root", str(tmp_path / settings["ROOT"])]
    walked(command, steps(dialogue, "gdb", GDB_PROMPT), tmp_path)
