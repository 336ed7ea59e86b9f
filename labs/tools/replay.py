"""`make replay`: the machine of a test once more, recorded, and the record under gdb.

    python -m labs.tools.replay --test test_numbers [--batch FILE]

Runs the test, takes the last machine that it started, lets that run once more while QEMU records
it, and opens gdb on the record: it is the same run each time, to the instruction. What a test does
to its machine from outside (typing, changing registers) is not in the record.

--batch runs a file of gdb commands instead, and ends. The exit status is gdb's.
"""

from __future__ import annotations

import argparse
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from labs.tools.debug import DebugError, debug
from labs.tools.machine import run
from labs.tools.qemu_command import Config, ConfigError
from labs.tools.result import Outcome, Result

ROOT = Path(__file__).resolve().parents[2]
DIRECTORY = ROOT / "build/replay"
TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)
WORDS_SHOWN = 12

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
    parser = argparse.ArgumentParser(prog="replay", description=__doc__.partition("\n")[0])
    parser.add_argument("--test", default="", help="test_name, or file.py::test_name")
    parser.add_argument("--batch", type=Path, help="a file of gdb commands to run instead")
    options = parser.parse_args(arguments)
    try:
        return replay(options.test, options.batch and options.batch.resolve())
    except (ReplayError, ConfigError, DebugError) as error:
        print(f"replay: {error}", file=sys.stderr)
        return 1


def replay(test: str, batch: Path | None = None) -> int:
    """Runs the test, records its machine, and opens gdb on the record; returns gdb's status.
    Raises ReplayError, ConfigError, DebugError."""
    node = find_test(test)
    config = machine_of(node)
    record = DIRECTORY / "record"
    record.unlink(missing_ok=True)
    result = recorded(config, record)
    print(f"replay: recorded: {first_lines(result)}\n", flush=True)
    return debug(replace(config, replay=record), batch)


def find_test(words: str) -> str:
    """The one test that is meant: "test_x", "test_x[a]" or "file.py::test_x". Raises
    ReplayError."""
    file, _, name = words.rpartition("::")
    function, bracket, parameters = name.partition("[")
    found = [
        f"{path.relative_to(ROOT)}::{function}"
        for path in sorted(ROOT.glob("tests/lesson*/*/test_*.py"))
        if function in TEST.findall(path.read_text()) and path.as_posix().endswith(file)
    ]
    if not found:
        raise ReplayError(f"there is no test {words or '(say TEST=test_...)'}")
    if len(found) > 1:
        raise ReplayError(f"which one? TEST={' or TEST='.join(found)}")
    return found[0] + bracket + parameters


def machine_of(node: str) -> Config:
    """Runs a test with -icount, and returns its last machine. Raises ReplayError."""
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    DIRECTORY.mkdir(parents=True)
    note = DIRECTORY / "machine"
    file, _, name = node.partition("::")
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
    command += ["--mode=icount", f"--note={note}", f"--basetemp={DIRECTORY / 'tests'}"]
    command += [f"{file}::{name.partition('[')[0]}", *selection(name)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise ReplayError(f"pytest could not run {node}:\n{done.stdout}{done.stderr}")
    print(f"replay: {node} {'fails' if done.returncode else 'passes'}")
    if not note.exists():
        raise ReplayError(f"{node} starts no machine:\n{done.stdout}")
    config: Config = pickle.loads(note.read_bytes())
    return replace(config, extra=())


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
    sys.exit(main())
