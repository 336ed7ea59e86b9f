"""`make bench STORAGE=1`: what drives and files cost, by one program on Debian's Linux and on our
kernel, with the same drives: instructions, requests, and how long the processor was idle.

    python -m labs.bench.storage

QEMU counts the instructions (count.c), so that waiting for a drive costs nothing. The table goes to
STORAGE.md in this folder; where Linux cannot be had, ours is printed, and the table stays.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from labs.bench.bench import emulator_version
from labs.bench.counting import compile_plugin
from labs.bench.table import (
    DESCRIPTOR,
    GATE,
    LETTER,
    PAGE,
    QUEUE,
    SWITCH,
    age_of,
    replace_table,
)
from labs.storage import fsx
from labs.storage.linux_program import COMPILER
from labs.tools.guest.initramfs import regular
from labs.tools.guest.package import PackageError
from labs.tools.machine.command import in_a_line
from labs.tools.machine.linux import linux_package, said_by
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive

README = Path(__file__).with_name("STORAGE.md")
SOURCE = fsx.ROOT / "tests/programs/storage_bench.c"
BIG = 32 << 20
BEFORE_THE_GUEST = "20250101"
"""The guest's clock may be slow, and reading a file from the future notes the time each time, on
both kernels."""

HALF = 0.5
ROW = re.compile(r"^row (\w+) (\d+) requests (\d+) idle (-?\d+) of (\d+)$", re.MULTILINE)
ROWS = {
    "raw_512": "512 B read, direct, raw drive",
    "pointers_512": "512 B read, direct, file by pointers",
    "extents_512": "512 B read, direct, file by extents",
    "raw_4096": "4 KiB read, direct, raw drive",
    "pointers_4096": "4 KiB read, direct, file by pointers",
    "extents_4096": "4 KiB read, direct, file by extents",
    "cached": "4 KiB read, in the page cache",
    "read": "sequential read, a page",
    "write": "sequential write and fsync, a page",
    "write_sync": "4 KiB write + fsync",
    "create": "create, of 10,000 files",
    "unlink": "unlink, of 10,000 files",
    "create_unlink": "create + unlink, of 10,000 files",
    "stat": "stat, of 10,000 files",
}
# What the processor itself needs, in instructions: see table.py.
CALL = 5 + GATE + DESCRIPTOR
REQUEST = 12 + 5 + GATE + 6 + SWITCH + QUEUE  # 12 ports and 5 words to begin; 6 ports when it ends
FIND = 12  # a page or block in a tree of three levels
PATH = 2 * 26 * LETTER + 2 * 10  # copied and hashed; two names found by their hashes
SUM = PAGE  # a block's CRC, if an instruction takes four bytes
NAMES = 150 / 2 * 4  # half of a block's names: their lengths and last letters compared
CHANGE = 24 * 8 + NAMES + 2 * 64 + 4 * FIND  # a name's hash; an inode written and summed; 4 blocks
LEAST = {
    "raw_512": CALL + REQUEST,
    "pointers_512": CALL + REQUEST + 3 * FIND,
    "extents_512": CALL + REQUEST + FIND,
    "raw_4096": CALL + REQUEST,
    "pointers_4096": CALL + REQUEST + 3 * FIND,
    "extents_4096": CALL + REQUEST + FIND,
    "cached": CALL + FIND + PAGE,
    "read": (CALL + REQUEST) / 16 + 2 * FIND + PAGE,
    "write": (CALL + REQUEST) / 16 + 2 * FIND + PAGE,
    "write_sync": 2 * CALL + 3 * REQUEST + FIND + PAGE + 8 * SUM,
    "create": 2 * CALL + PATH + CHANGE,
    "unlink": CALL + PATH + CHANGE,
    "create_unlink": 3 * CALL + 2 * (PATH + CHANGE),
    "stat": CALL + PATH + 64,
}
MODES = ("pio-polled", "pio-interrupt", "dma-polled", "dma-interrupt")
MODE_ROWS = ("raw_512", "raw_4096", "read")


@dataclass(frozen=True)
class Figure:
    """A row's cost for each operation: instructions, those of them that are repetitions of a string
    instruction, requests of the drives, and the part of the time in which the processor was
    idle."""

    instructions: float
    repetitions: float
    requests: float
    idle: float


Side = dict[str, Figure]


def compile_all(directory: Path) -> tuple[Path, Path]:
    """The program, and the plugin."""
    program = directory / "storage_bench"
    subprocess.run([*COMPILER, str(SOURCE), "-o", str(program)], check=True)
    return program, compile_plugin(directory)


def make_images(directory: Path) -> list[Drive]:
    """A raw drive, an ext4 and an ext3, each with 32 MiB to read."""
    top = directory / "top"
    top.mkdir()
    (top / "big").write_bytes(bytes(range(1, 256)) * (BIG // 255))
    drives = []
    for unit, options in enumerate(("", "-t ext4 -b 4096", "-t ext3 -b 4096"), start=1):
        image = directory / f"{unit}.img"
        with image.open("wb") as file:
            file.truncate(256 << 20)
        if options:
            fsx.tool("mke2fs", "-q", "-F", *options.split(), "-d", str(top), str(image))
            for field in ("ctime", "mtime"):
                set_time = f"set_inode_field /big {field} {BEFORE_THE_GUEST}"
                fsx.tool("debugfs", "-w", "-R", set_time, str(image))
        else:
            image.write_bytes((top / "big").read_bytes())
        drives.append(Drive(image, unit, writable=True))
    return drives


def measure(machine: Callable[..., Config], mode: str = "", word: str = "") -> Side:
    """Runs a kernel; `word` "reads" leaves out what writes. Raises ExerciseError when it does not
    come to its end."""
    script = (
        "mkdir -p /r /p; mount -t ext4 /dev/hdc /r && mount -t ext3 /dev/hdd /p && mkdir /r/work "
        f"&& storage_bench /dev/hdb /r/big /p/big /r/work {word} && umount /r && umount /p "
        "&& echo the end"
    )
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        program, plugin = compile_all(directory)
        counts = directory / "counts"
        entry = regular("bin/storage_bench", program.read_bytes())
        drives = make_images(directory)
        config = machine(directory, script, drives, entry)
        extra = (*config.extra, "-plugin", f"{plugin},into={counts}")
        settings = (*config.settings, *((("disk", mode),) if mode else ()))
        result = run(replace(config, extra=extra, settings=settings))
        said, _ = said_by(result.serial)
        if not said.rstrip().endswith("the end"):
            raise fsx.ExerciseError(f"{mode}: {result.explain()[:2000]}")
        checks = [fsx.check_of(Path(each.path)) for each in drives[1:]]
        if any(checks):
            raise fsx.ExerciseError("\n".join(checks))
        return figures(said, [int(word) for word in counts.read_text().split()])


def figures(said: str, counts: list[int]) -> Side:
    """The program's rows and the plugin's counts, two pairs for each row."""
    found = {}
    rows = ROW.findall(said)
    if len(counts) != 4 * len(rows):
        raise fsx.ExerciseError(f"{len(rows)} rows, and {len(counts) // 2} marks")
    for (name, *numbers), *marks in zip(rows, *(counts[i::4] for i in range(4)), strict=True):
        done, requests, idle, all_time = map(int, numbers)
        part = max(idle, 0) / all_time if all_time else 0
        all_of, repeated = marks[2] - marks[0], marks[3] - marks[1]
        found[name] = Figure(all_of / done, repeated / done, requests / done, part)
    if "create" not in found:
        return found
    one, two = found["create"], found["unlink"]
    both = map(sum, zip(astuple(one), astuple(two), strict=True))
    return found | {"create_unlink": Figure(*both)}


def once(figure: Figure) -> float:
    """Instructions, without repetitions of string instructions."""
    return figure.instructions - figure.repetitions


def table(here: Side, linux: Side) -> str:
    """Both kernels in Markdown."""
    lines = [
        "| operation | Linux | here | here / Linux | a repeated instruction counted once "
        "| requests on Linux | here | the processor |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
    ]
    for row, title in ROWS.items():
        ours, other = here[row], linux.get(row)
        cells = [f"{other.instructions:,.0f}" if other else "-", f"{ours.instructions:,.0f}"]
        cells += [f"{ours.instructions / other.instructions:.2f}" if other else ""]
        cells += [f"{once(ours) / once(other):.2f}" if other else ""]
        cells += [f"{other.requests:.2f}" if other else "-", f"{ours.requests:.2f}"]
        cells.append(f"{LEAST[row]:,.0f}")
        lines.append(f"| {title} | {' | '.join(cells)} |\n")
    return "".join(lines)


def mode_table(sides: dict[str, Side]) -> str:
    """Our four ways to move data, in Markdown."""
    lines = [f"| way | {' | '.join(ROWS[row] for row in MODE_ROWS)} |\n"]
    lines.append(f"|---|{'--:|' * len(MODE_ROWS)}\n")
    for mode, side in sides.items():
        cells = [
            f"{side[row].instructions:,.0f} instructions, idle {100 * side[row].idle:.0f} %"
            for row in MODE_ROWS
        ]
        lines.append(f"| {mode} | {' | '.join(cells)} |\n")
    return "".join(lines)


def comparison(side: Side) -> str:
    """A file by extents against the raw drive, in words."""
    lines = []
    for size in ("512", "4096"):
        file, raw = side[f"extents_{size}"], side[f"raw_{size}"]
        requests = 100 * (file.requests / raw.requests - 1)
        instructions = 100 * (file.instructions / raw.instructions - 1)
        lines.append(
            f"A direct read of {size} bytes of a file by extents takes {requests:+.1f} % requests "
            f"and {instructions:+.1f} %\ninstructions, compared with the raw drive.\n"
        )
    return "\n".join(lines)


def main() -> int:
    """Measures, prints the tables, and keeps them where there is Linux's, too."""
    try:
        modes = {mode: measure(fsx.ours, mode, "reads") for mode in MODES[:-1]}
        here = modes[MODES[-1]] = measure(fsx.ours, MODES[-1])
        print(table(here, {}), mode_table(modes), comparison(here), sep="\n", flush=True)
        package = linux_package()
        new = "\n".join(
            [
                table(here, measure(fsx.linux)),
                mode_table(modes),
                comparison(here),
                f"Linux: Debian's {package.name}, version {package.version}.\n",
                f"The machine: QEMU {emulator_version()}, {fsx.MEMORY_MIB} MiB.\n",
            ]
        )
    except PackageError as error:
        print(f"Linux was not measured, and the table is as it was: {error}", file=sys.stderr)
        print(age_of(README))
        return 0
    except fsx.ExerciseError as error:
        print(f"make bench: {error}", file=sys.stderr)
        return 1
    README.write_text(replace_table(README.read_text(), new))
    print(f"{new}\nThe tables are in {README}.")
    return 0


if __name__ == "__main__":
    sys.exit(in_a_line("make bench", main))
