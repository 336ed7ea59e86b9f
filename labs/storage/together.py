"""`make fsx TOGETHER=yes`: several tasks on one file, in our kernel, and what each knows.

    python -m labs.storage.together --tasks 4 --seed 2010 --count 100000 --kind ext4

The program is tests/programs/tasks. Each cell of a file has one writer, which knows exactly what
must be in it, although other tasks write next to it (with write, past the cache, or through mmap),
punch holes, drop caches, or take the last block. All tasks append to one log. After each phase all
files are compared, and again after a remount; at the end e2fsck finds nothing.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

from labs.storage.crash.building import run_tool
from labs.storage.crash.tasks_guest import KINDS, TasksError, machine, make_image
from labs.tools.machine.command import A_COUNT, A_SEED, Options, in_a_line
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Drive

PHASE = 500  # calls of each task between two remounts
ROUND = 100_000  # calls of all tasks on one file system
MEMORY = Path("/dev/shm")
SAID = re.compile(r"^(\d+) calls, (\d+) wrong", re.MULTILINE)


def exercise(
    kind: str, tasks: int, seed: int, count: int, place: Path, icount: int | None = None
) -> tuple[int, list[str]]:
    """So many calls; how many there were, and what was wrong, in lines. Raises TasksError."""
    what, image = KINDS[kind], place / "image"
    make_image(image, what)
    calls = min(PHASE, -(-count // tasks))
    phases = -(-count // (calls * tasks))
    words = (what.type, what.mount, tasks, seed, calls, phases, what.free)
    config = machine(place, words, (Drive(image, 1, writable=True),), icount=icount)
    result = run(config)
    found = SAID.search(result.serial)
    if not found:
        raise TasksError(f"{kind}: {result.explain()}\n{result.serial[-1500:]}")
    lines = [line for line in result.serial.splitlines() if line.startswith("WRONG")]
    try:
        run_tool("e2fsck", "-fn", str(image))
    except RuntimeError as error:
        lines.append(str(error))
    return int(found[1]), [f"{kind}, seed {seed}: {line}" for line in lines]


def main() -> int:
    """Returns 0 when nothing was wrong."""
    parser = Options("make fsx TOGETHER=yes")
    parser.add_argument("--tasks", type=int, choices=(2, 3, 4), default=4)
    parser.add_argument("--seed", type=A_SEED, default=2010)
    parser.add_argument("--count", type=A_COUNT, default=ROUND, help="calls, of all tasks")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    options = parser.parse_args()
    kinds = list(KINDS) if options.kind == "all" else [options.kind]
    calls, faults, number, started = 0, 0, 0, time.monotonic()
    each = min(ROUND, -(-options.count // len(kinds)))
    base = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="together-", dir=base) as folder:
        while calls < options.count and faults == 0:
            kind, seed = kinds[number % len(kinds)], options.seed + number
            try:
                done, lines = exercise(kind, options.tasks, seed, each, Path(folder))
            except TasksError as error:
                done, lines = 0, [str(error)]
            calls, faults, number = calls + done, faults + len(lines), number + 1
            for line in lines:
                print(line, flush=True)
            print(f"{kind}, seed {seed}: {done:,} calls, {len(lines)} wrong", flush=True)
    seconds = time.monotonic() - started
    print(f"{calls:,} calls in {seconds:.0f} s, {calls / seconds:,.0f} a second; {faults} wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(in_a_line("make fsx", main))
