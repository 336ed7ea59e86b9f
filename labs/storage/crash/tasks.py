"""`make crash TASKS=4`: power cuts while several tasks make system calls, on the same files and on
their own, in our kernel.

    python -m labs.storage.crash.tasks --tasks 4 --seed 2010 --count 10 --kind ext4
    python -m labs.storage.crash.tasks --only ext4:4:2010:317-315,316
    python -m labs.storage.crash.tasks --mutant all

A promise is what a call returned (tasks_model.py). Each recording is cut at many places: after a
request, and often just before the one that a sync should have waited for; in half of the cuts some
of the requests since the last flush are missing. e2fsck replays the journal and finds nothing else,
debugfs reads the files, and they are compared with the promises. A recording with a state that is
wrong is kept in build/crash/tasks, and --only judges one of its cuts again.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from labs.storage.crash import tasks_mutants
from labs.storage.crash.building import ROOT, run_tool
from labs.storage.crash.log import FUA, Layout
from labs.storage.crash.tasks_guest import KERNEL, KINDS, Record, Run, TasksError, read, record
from labs.storage.crash.tasks_model import State, finished
from labs.tools.machine.command import A_COUNT, A_SEED, CommandError, Options, in_a_line

KEPT = ROOT / "build/crash/tasks"
STATE = re.compile(r"([a-z0-9-]+):(\d+):(\d+):(\d+(?:-[\d,]*)?)")  # as a wrong one is told
MEMORY = Path("/dev/shm")
CALLS = 60  # of each task
CUTS = 40  # of each recording
LISTED = re.compile(r"^ *(\d+) +(\d+) \(\d+\) +\d+ +\d+ +\d+ +\S+ +\S+ (.*?) *$")
FOLDERS = ("/", "/d0", "/d1")
Cut = tuple[int, frozenset[int]]


@dataclass(frozen=True)
class Wrong:
    """A state that is wrong."""

    run: Run
    cut: Cut
    reason: str

    @property
    def name(self) -> str:
        """As --only takes it."""
        position, missing = self.cut
        lost = ",".join(map(str, sorted(missing)))
        return f"{self.run.name}:{position}{lost and f'-{lost}'}"


def unsafe(what: Record, position: int) -> list[int]:
    """The writes since the last flush before a position: each may be missing."""
    first = max(what.drive.epoch(position), what.first)
    entries = what.drive.entries
    return [at for at in range(first, position) if entries[at].data and not entries[at].flags & FUA]


def doubtful(what: Record) -> set[int]:
    """Where something was promised, and the drive had finished no flush since it was begun."""
    ends = zip(what.drive.entries, what.ends, strict=True)
    flushes = [end for entry, end in ends if entry.flushes]
    return {
        finished(what.ends, safe)
        for begun, safe in what.model.claims()
        if finished(flushes, begun) == finished(flushes, safe)
    }


def cuts(what: Record, count: int) -> Iterator[Cut]:
    """First where a promise is in doubt, at most half of them; then others, of which half are where
    a promise has just been made, and half have missing requests."""
    chance = random.Random(what.run.seed)
    promised = [finished(what.ends, each) for each in what.model.promises()]
    doubts = sorted(doubtful(what))
    for position in chance.sample(doubts, min(len(doubts), count // 2)):
        yield position, frozenset(unsafe(what, position))
        count -= 1
    for number in range(count):
        position = chance.randint(what.first, len(what.ends))
        if number % 4 < 2 and promised:
            position = chance.choice(promised)
        open_ones = unsafe(what, position)
        some = chance.sample(open_ones, chance.randint(0, len(open_ones)))
        yield position, frozenset(some if number % 2 else ())


def read_state(image: Path, folder: Path, weak: bool) -> State:
    """The files on an image, as e2fsck recovers them. Raises RuntimeError when it finds more than
    a journal to replay. weak: it has no journal, and may be repaired."""
    if weak:
        run_tool("e2fsck", "-fy", str(image), allowed=(0, 1))
    else:
        run_tool("e2fsck", "-y", "-E", "journal_only", str(image), allowed=(0, 1))
    run_tool("e2fsck", "-fn", str(image))
    commands = folder / "commands"
    files = folder / "files"
    files.mkdir()
    lines = [*(f"ls -l {each}" for each in FOLDERS), f"rdump / {files}"]
    commands.write_text("\n".join(lines) + "\n")
    said = run_tool("debugfs", "-f", str(commands), str(image))
    names: dict[str, dict[str, tuple[int, bool]]] = {}
    for part in said.split("debugfs: ls -l ")[1:]:
        where, *listed = part.splitlines()
        found = [match for match in map(LISTED.match, listed) if match]
        names[where.strip()] = {each[3]: (int(each[1]), each[2][0] == "4") for each in found}
    contents = {
        f"/{path.relative_to(files)}": path.read_bytes()
        for path in files.rglob("*")
        if path.is_file() and path.name != "fill"
    }
    return State(names, contents)


def judge(what: Record, cut: Cut, place: Path) -> str:
    """What is wrong with the state that a cut leaves; "" if nothing is."""
    position, missing = cut
    weak = KINDS[what.run.kind].weak
    with tempfile.TemporaryDirectory(dir=place) as name:
        image = Path(name, "image")
        image.write_bytes(what.drive.state(position, missing))
        try:
            state = read_state(image, Path(name), weak)
        except RuntimeError as error:
            return str(error)
    return what.model.wrong(state, *what.times(position), weak)


def judge_all(what: Record, count: int, place: Path, limit: int = 3) -> tuple[int, list[Wrong]]:
    """How many cuts were judged, and which were wrong; `limit` of these are enough."""
    found: list[Wrong] = []

    def one(cut: Cut) -> int:
        if len(found) >= limit:
            return 0
        reason = judge(what, cut, place)
        if reason:
            found.append(Wrong(what.run, cut, reason))
        return 1

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(one, cuts(what, count))), found


@dataclass
class Figures:
    """What came out."""

    recordings: int = 0
    calls: int = 0
    promises: int = 0
    requests: int = 0
    cuts: int = 0
    wrong: int = 0


def hunt(
    what: Run, count: int, place: Path, kernel: Path = KERNEL, figures: Figures | None = None
) -> list[str]:
    """Records a run and judges so many cuts; what is wrong, in lines. Raises TasksError."""
    figures = figures or Figures()
    folder = place / what.name.replace(":", "-")
    recorded = record(what, folder, kernel)
    judged, found = judge_all(recorded, count, place)
    figures.recordings += 1
    figures.calls += len(recorded.model.calls)
    figures.promises += len(recorded.model.promises())
    figures.requests += len(recorded.ends)
    figures.cuts += judged
    lines = [f"{what.name}: {line}" for line in recorded.said]
    lines += [f"{what.name}: {call}: nothing may refuse it" for call in recorded.model.refused()]
    for each in found:
        lines += [f"{each.name}: {each.reason}", f"  {command(each.name)}"]
    figures.wrong += len(lines) > 0
    if lines:
        KEPT.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(KEPT / folder.name, ignore_errors=True)
        shutil.move(folder, KEPT / folder.name)
    else:
        shutil.rmtree(folder)
    return lines


def command(name: str) -> str:
    """What judges one cut again."""
    return f".venv/bin/python -m labs.storage.crash.tasks --only {shlex.quote(name)}"


def show(name: str, place: Path) -> int:
    """A cut of a recording that was kept, in words. Returns 0 when the state is right."""
    if not (parts := STATE.fullmatch(name)):
        raise CommandError(f"ONLY={name}: a state is KIND:TASKS:SEED:CUT, such as ext4:2:2010:7")
    kind, tasks, seed, cut = parts.groups()
    folder = KEPT / f"{kind}-{tasks}-{seed}"
    if not folder.is_dir():
        print(f"{folder} is not there: only recordings with a wrong state are kept")
        return 2
    what = read(folder)
    first, _, lost = cut.partition("-")
    position, missing = int(first), frozenset(int(each) for each in lost.split(",") if each)
    layout, (last, following) = Layout(folder / "image"), what.times(position)
    print(f"the power is cut after {position} of {len(what.ends)} requests, at {last / 1e6:.3f} ms")
    for call in sorted(what.model.calls, key=lambda call: call.begun):
        if call.begun < following and call.returned >= last - 30e6:
            state = "" if call.returned < following else " (has not returned)"
            print(f"  {call}{state}")
    for number in range(what.drive.epoch(position), position):
        there = "missing" if number in missing else "there"
        print(f"  request {number}: {layout.name(what.drive.entries[number])}: {there}")
    reason = judge(what, (position, missing), place)
    print(f"WRONG: {reason}" if reason else "this state is right")
    return 1 if reason else 0


def hunt_mutants(names: list[str], seed: int, place: Path) -> int:
    """Each mutant of the kernel must be noticed. Returns 0 if each was."""
    missed = 0
    for name in names:
        mutant = tasks_mutants.MUTANTS[name]
        kernel = tasks_mutants.build_mutant(name, place / name)
        for number in range(tasks_mutants.TRIES):
            what = Run(mutant.kind, mutant.tasks, seed + number, CALLS)
            found = hunt(what, CUTS, place, kernel)
            if found:
                print(
                    f"caught: {name} ({mutant.what}), in recording {number + 1}", *found, sep="\n  "
                )
                break
        else:
            print(f"NOT CAUGHT: {name}, in {tasks_mutants.TRIES} recordings")
            missed += 1
    return min(missed, 1)


def main() -> int:
    """Returns 0 when no state is wrong (with mutants: when each is caught)."""
    parser = Options("make crash")
    parser.add_argument("--tasks", type=int, choices=(2, 3, 4), default=4)
    parser.add_argument("--seed", type=A_SEED, default=2010)
    parser.add_argument("--count", type=A_COUNT, default=7, help="recordings, of the kinds in turn")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--calls", type=int, default=CALLS, help="of each task")
    parser.add_argument("--cuts", type=int, default=CUTS, help="of each recording")
    parser.add_argument("--only", metavar="KIND:TASKS:SEED:CUT", help="one state, in words")
    parser.add_argument("--mutant", choices=[*tasks_mutants.MUTANTS, "all"], help="of the kernel")
    options = parser.parse_args()
    base = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="crash-tasks-", dir=base) as folder:
        place = Path(folder)
        if options.only:
            return show(options.only, place)
        if options.mutant:
            every = options.mutant == "all"
            names = list(tasks_mutants.MUTANTS) if every else [options.mutant]
            return hunt_mutants(names, options.seed, place)
        return hunt_all(options, place)


def hunt_all(options: argparse.Namespace, place: Path) -> int:
    """So many recordings, and a table. Returns 0 when nothing was wrong."""
    kinds = list(KINDS) if options.kind == "all" else [options.kind]
    figures, started = Figures(), time.monotonic()
    for number in range(options.count):
        kind = kinds[number % len(kinds)]
        what = Run(kind, options.tasks, options.seed + number, options.calls)
        try:
            lines = hunt(what, options.cuts, place, figures=figures)
        except (TasksError, RuntimeError) as error:
            lines = [str(error)]
            figures.wrong += 1
        for line in lines:
            print(f"WRONG {line}", flush=True)
    for name, value in vars(figures).items():
        print(f"{name:12} {value:>9,}")
    print(f"{'seconds':12} {time.monotonic() - started:>9,.0f}")
    return 1 if figures.wrong else 0


if __name__ == "__main__":
    sys.exit(in_a_line("make crash", main))
