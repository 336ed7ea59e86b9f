"""The walks of `make map`: in the running kernel each stop is reached, in the map's order."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from labs.tools.course.exercises import (
    STORAGE,
    ExerciseError,
    every_lesson,
    name_of,
    word_of,
)
from labs.tools.course.walk import report, walk_of
from labs.tools.machine.bounded import run_within
from tests.support.building import make
from tests.support.gdb_session import PRELUDE
from tests.tree.test_handouts import ROOT, SECONDS, WITH_PROGRAMS

pytestmark = pytest.mark.slow
LESSONS = tuple(every_lesson())

# All stops that are still to come are breakpoints, up to the next one with a condition, which is
# set alone. The one that is reached must be the next; then it is a breakpoint no more.
FOLLOW = """
stops = json.loads({stops!r})
breakpoints = {{}}
def put(number):
    stop = stops[number]
    place = f"*&{{stop['name']}}"
    if stop["address"]:
        place = "*" + stop["address"]
    elif stop["path"].endswith(".c"):
        place = f"{{stop['path']}}:{{stop['name']}}"
    breakpoints[number] = gdb.Breakpoint(place, type=gdb.BP_HARDWARE_BREAKPOINT)
    breakpoints[number].condition = stop["when"] or None
def arm(number):
    put(number)
    while not stops[number]["when"] and number + 1 < len(stops) and not stops[number + 1]["when"]:
        number += 1
        put(number)
arm(0)
said["reached"] = []
for expected, stop in enumerate(stops):
    run("continue")
    hit = [number for number, each in breakpoints.items() if each.hit_count]
    frame = gdb.newest_frame()
    function = frame.function()
    said["reached"].append([hit, frame.name(), function.symtab.filename if function else ""])
    if hit != [expected]:
        break
    breakpoints.pop(expected).delete()
    if not breakpoints and expected + 1 < len(stops):
        arm(expected + 1)
    if stop["key"]: # the controller's command 0xd2: as if the keyboard had sent the byte
        run("monitor o /b 0x64 0xd2")
        run("monitor o /b 0x60 " + stop["key"])
"""


def debugged(lesson: int, directory: Path) -> list[str]:
    """The command that debugs a lesson's kernel without the breadth, of which nothing is in the
    way; the storage lab's has it. `directory` is for a new disk."""
    programs = ["--user", "build/user/bin"]
    if lesson == STORAGE:
        make("LESSON=storage", "image-direct", "user-programs", "build/host/lab-file")
        disk = ["--root", str(directory / walk_of("storage").root)]
        return ["labs.storage.run", "--gdb", "--build", "build/storage", *programs, *disk]
    make(f"LESSON={lesson}", "BREADTH=no", "image-disk", "image-grub", "image-direct")
    options = [*programs, "--core"] if lesson >= WITH_PROGRAMS else []
    return ["labs.tools.debugging.debug", "--build", f"build/lesson{lesson}-core", *options]


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_kernel_walks_as_the_map_says(lesson: int, tmp_path: Path) -> None:
    walk = walk_of(word_of(lesson))
    answer, file = tmp_path / "said.json", tmp_path / "probe.py"
    stops = json.dumps([vars(stop) for stop in walk.stops])
    file.write_text(PRELUDE.format(path=str(answer)) + FOLLOW.format(stops=stops) + "saw()\n")
    command = [sys.executable, "-m", *debugged(lesson, tmp_path)]
    command += ["--boot", walk.boot, *(["--script", walk.script] if walk.script else [])]
    command += [*(["--command", walk.command] if walk.command else []), "--batch", str(file)]
    done = run_within(
        command, cwd=ROOT, capture_output=True, text=True, seconds=SECONDS, check=False
    )
    assert answer.exists(), done.stdout + done.stderr
    reached = json.loads(answer.read_text())["reached"]
    for number, (stop, (hit, name, path)) in enumerate(zip(walk.stops, reached, strict=False)):
        place = f"labs/{name_of(lesson)}/map.toml, stop {number + 1}, {stop.path}:{stop.name}"
        assert hit == [number], f"{place}: the kernel came to {path}:{name} instead, stop {hit}"
        if stop.path.endswith(".c"):
            assert (name, path.endswith(stop.path)) == (stop.name, True), f"{place}: {path}:{name}"
    assert len(reached) == len(walk.stops), done.stdout


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_map_goes_down(lesson: int) -> None:
    """Its names are in its files; and no file is left and come back to, but on the way back."""
    stops = walk_of(word_of(lesson)).stops
    for stop in stops:
        assert re.search(rf"\b{stop.name}\b", (ROOT / stop.path).read_text()), stop
        assert stop.sentence[-1] in ".?", stop


def test_make_map_prints_the_walk() -> None:
    text = report("3")
    assert "kernel/syscall/gate.asm:syscall_entry" in text
    assert "make LESSON=storage run BOOT=direct ROOT=new.img CMD=" in report("storage")
    with pytest.raises(ExerciseError, match="of lesson 9; there are 1, 2, 3, 4, 5, 6, storage"):
        report("9")
