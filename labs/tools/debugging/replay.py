"""`make replay`: the machine of a test once more, recorded, and the record under gdb.

    python -m labs.tools.debugging.replay --test test_numbers [--mode slower] [--batch FILE]

Runs the test, and opens gdb on the last machine that it started. A machine that ran by itself runs
once more while QEMU records it, and gdb gets the record: it is the same run each time, to the
instruction. A machine that the test drove through QEMU's gdb server is driven again (by
labs/tools/debugging/steps.py), up to the last time that the test let it run; there gdb takes over.
A program that calls the exercise's functions on this computer runs once more under gdb, up to the
call that the test has found wrong (labs/tools/debugging/host_replay.py).

--batch runs a file of gdb commands instead, and ends; --dump writes down what the machine is at its
end, for make gdb FILE=... The exit status is gdb's.
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from labs.tools.course.exercises import every_lesson, name_of
from labs.tools.debugging.debug import DebugError, debug
from labs.tools.debugging.host_replay import replay_on_host
from labs.tools.debugging.replay_plugin import Story, read_story
from labs.tools.debugging.steps import Narrator, last_run, shortened, steps_of
from labs.tools.grading.lab import HostRun
from labs.tools.grading.lab_plan import MODES
from labs.tools.machine.command import Options, in_a_line, own_environment, say
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, ConfigError
from labs.tools.machine.result import Outcome, Result
from labs.tools.machine.run import check_header
from labs.tools.machine.symbols import symbols_of
from labs.tools.machine.work_folder import end_with_caller, environment_in, work_folder

NO_MACHINE = """\
this test starts no machine and no program, so there is nothing to replay. It does not
replay: build, or it looks into a file. What it says is above."""
ROOT = Path(__file__).resolve().parents[3]
TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)
WORDS_SHOWN = 12
LOGGING = ("-d", "-D", "-trace")

# QEMU 7.2 writes the end of a run into its record before the last instructions that led to it, and
# a replay would end there too early. Its format: a version, then events of a byte and their data.
# Without the early ends the replay runs on to the kernel's own.
VERSION = bytes.fromhex("00e0200c")
ENDINGS = {Outcome.ENDED: b"\x10\x0c", Outcome.PANIC: b"\x10\x0c"}
QUIT = b"\x0c"
LAST_INSTRUCTIONS = rb"(?=\x00.{4}[\x0a-\x12]\x27$)"


class ReplayError(ValueError):
    """There is nothing to replay; the text says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    parser = Options("make replay")
    parser.add_argument("--test", default="", help="test_name, or file.py::test_name")
    parser.add_argument("--mode", choices=MODES, default=MODES[0], help="the clock rate")
    parser.add_argument("--batch", type=Path, help="a file of gdb commands to run instead")
    parser.add_argument("--dump", type=Path, help="write a core of its end to this file, and end")
    options = parser.parse_args(arguments)
    end_with_caller()
    try:
        with work_folder("batch") as folder:
            batch = options.batch and options.batch.resolve()
            if options.dump:
                batch = folder / "commands"
                batch.write_text(f"continue\ncore {options.dump.resolve()}\n")
            return replay(options.test, batch, options.mode)
    except (ReplayError, ConfigError, DebugError) as error:
        say(f"replay: {error}")
        return 1


def replay(test: str, batch: Path | None = None, mode: str = MODES[0]) -> int:
    """Runs the test in a mode of lab_plan.py, and opens gdb on its machine once more; returns gdb's
    status. Raises ReplayError, ConfigError, DebugError."""
    node = find_test(test)
    with work_folder("replay") as directory:
        config, story = told(node, directory, mode)
        if isinstance(config, HostRun):
            return replay_on_host(config, story.exercise, directory, batch)
        if config.boot == "direct":
            check_header(config.kernel)
        if story.packets:
            return driven(config, story.packets, batch)
        record = directory / "record"
        result = recorded(config, record)
        print(f"replay: recorded: {first_lines(result)}\n", flush=True)
        return debug(replace(config, replay=record), batch)


def driven(config: Config, packets: Sequence[str], batch: Path | None) -> int:
    """Says what the test did to its machine, and opens gdb before its last run."""
    steps = steps_of(packets)
    narrator = Narrator(symbols_of(config.kernel))
    done, last = list(narrator.lines(steps)), last_run(packets)
    print("replay: the test drives its machine from outside. Already done again:")
    print("".join(f"  {line}\n" for line in shortened(done) or ["nothing"]), end="")
    print(f"What the test does next: {narrator.running(last)}\n", flush=True)
    return debug(config, batch, steps)


def find_test(words: str) -> str:
    """The one test that is meant: "test_x", "test_x[a]" or "file.py::test_x". Raises
    ReplayError."""
    file, _, name = words.rpartition("::")
    function, bracket, parameters = name.partition("[")
    found = [
        f"{path.relative_to(ROOT)}::{function}"
        for folder in map(name_of, every_lesson())
        for path in sorted(ROOT.glob(f"tests/{folder}/*/test_*.py"))
        if function in TEST.findall(path.read_text()) and path.as_posix().endswith(file)
    ]
    if not words:
        raise ReplayError("say which test: make replay TEST=test_name; make grade names them")
    if not found:
        raise ReplayError(f"there is no test {words}; make grade names them")
    if len(found) > 1:
        raise ReplayError(f"which one? TEST={' or TEST='.join(found)}")
    return found[0] + bracket + parameters


def told(node: str, directory: Path, mode: str) -> tuple[Config | HostRun, Story]:
    """Runs a test in a mode; returns its last machine or program, and what was done to it. What the
    test makes stays in `directory`. Raises ReplayError."""
    note, story_file = directory / "machine", directory / "story"
    file, _, name = node.partition("::")
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
    command += ["-o", "tmp_path_retention_policy=all"]  # its machine's files are needed again
    command += ["-p", "labs.tools.debugging.replay_plugin", f"--story={story_file}"]
    command += [f"--mode={mode}", f"--note={note}", f"--basetemp={directory / 'tests'}"]
    command += [f"{file}::{name.partition('[')[0]}", *selection(name)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment_in(directory, own_environment()),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise ReplayError(f"pytest could not run {node}:\n{done.stdout}{done.stderr}")
    story = read_story(story_file)
    verdict = f"fails: {story.words}" if done.returncode else "passes"
    print(f"replay: {node} {verdict}", flush=True)
    if not note.exists():
        raise ReplayError(NO_MACHINE)
    last: Config | HostRun = pickle.loads(note.read_bytes())
    if isinstance(last, HostRun):
        return last, story
    return replace(last, extra=devices(last.extra)), story


def devices(extra: Sequence[str]) -> tuple[str, ...]:
    """QEMU's options, in pairs, without those for a log: this session has its own."""
    pairs = zip(extra[::2], extra[1::2], strict=True)
    return tuple(each for pair in pairs if pair[0] not in LOGGING for each in pair)


def selection(name: str) -> list[str]:
    """Options that choose among a test's parameters."""
    parameters = name.partition("[")[2].rstrip("]")
    return ["-k", " and ".join(re.findall(r"\w+", parameters))] if parameters else []


def recorded(config: Config, record: Path) -> Result:
    """Runs a machine and records it. Raises ReplayError when QEMU left no record."""
    result = run(replace(config, record=record))
    if not record.exists():
        raise ReplayError(f"QEMU made no record: {result.explain()}")
    record.write_bytes(without_early_end(record.read_bytes(), result.outcome))
    return result


def without_early_end(record: bytes, outcome: Outcome) -> bytes:
    """A record of QEMU 7.2 whose run goes on to the last instruction; others as they are."""
    if not record.startswith(VERSION):
        return record
    early = re.escape(ENDINGS.get(outcome, QUIT)) + LAST_INSTRUCTIONS
    return re.sub(early, b"", record, flags=re.DOTALL)


def first_lines(result: Result) -> str:
    """The beginning of what a run came to."""
    return "\n".join(result.explain().splitlines()[:WORDS_SHOWN])


if __name__ == "__main__":
    sys.exit(in_a_line("make replay", main))
