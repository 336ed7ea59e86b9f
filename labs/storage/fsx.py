"""`make fsx`: the same seeded file operations on our kernel and on Debian's Linux, on copies of one
image: the same answers, the same files in the end, and e2fsck finds nothing.

    python -m labs.storage.fsx --seed 2010 --count 100000 --kind ext4-4k

The program is tests/programs/fsx. It prints a hash for each thousand operations; where two differ,
both kernels do it again and print these operations, and the first different answers are shown.
Differences that are meant to be are in fsx.toml, with the reason.

What Linux answered is kept in build/fsx: it is asked once for each exercise.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from labs.storage.linux_program import linux_program
from labs.tools.guest.initramfs import Entry, regular
from labs.tools.guest.package import PackageError
from labs.tools.guest.programs import COMMAND, busybox, guest_root
from labs.tools.machine.command import A_COUNT, A_SEED, Options, in_a_line
from labs.tools.machine.linux import linux_machine, linux_package, said_by
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config, Drive
from labs.tools.machine.run import write_archive

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
PROGRAM = BUILD / "fsx" / "fsx"
SOURCES = ROOT / "tests/programs/fsx"
KNOWN = Path(__file__).with_suffix(".toml")
KEPT = Path(__file__).with_name("fsx_linux.json")
"""What Linux answered to a short exercise of each kind."""

KEPT_SEED = 2010
KEPT_COUNTS = {"ext4-4k": 20_000, "ext2-4k": 3000, "ext3-4k": 3000, "ext4-1k": 3000}
KINDS = {
    "ext2-1k": "-t ext2 -b 1024",
    "ext2-4k": "-t ext2 -b 4096",
    "ext3-1k": "-t ext3 -b 1024",
    "ext3-4k": "-t ext3 -b 4096",
    "ext4-1k": "-t ext4 -b 1024",
    "ext4-4k": "-t ext4 -b 4096",
}
IMAGE_BYTES = 192 << 20
MEMORY_MIB = 96
UUID = "3c6f0a52-91d4-4be7-a1d0-6f2d8b7c5e10"
BLOCK = 1000  # operations with one hash: main.c
LINES = 20_000  # operations whose lines are printed at once
WALL_SECONDS = 6 * 3600
TOOL_SECONDS = 600
BLOCK_LINE = re.compile(r"^block (\d+) ([0-9a-f]{8})$", re.MULTILINE)
OPERATION = re.compile(r"^(\d+) p\d .*$", re.MULTILINE)


class ExerciseError(Exception):
    """A kernel did not come to its end; the text has its last words."""


@dataclass(frozen=True)
class Exercise:
    """What both kernels do: so many operations, by the seed, on this kind of file system; the lines
    of operations from `first` to `last` are printed."""

    kind: str
    seed: int
    count: int
    first: int = 0
    last: int = 0

    def script(self) -> str:
        """Commands for a shell, of either kernel."""
        mount = f"mount -t {self.kind[:4]} /dev/hdb /mnt"
        words = f"{self.seed} {self.count} {self.first} {self.last}"
        return (
            f"mkdir -p /mnt; umask 0; {mount} && fsx /mnt/work {words} && umount /mnt && {mount} "
            "&& echo walk: && fsx walk /mnt/work && umount /mnt && echo the end"
        )


@dataclass
class Answers:
    """What a kernel said: a hash for each block, the lines asked for, the files in the end as it
    sees them and as debugfs does, what e2fsck found."""

    blocks: dict[int, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    dump: list[str] = field(default_factory=list)
    check: str = ""
    seconds: float = 0


def tool(*words: str, check: bool = True) -> str:
    """What one of e2fsprogs says."""
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run(
        words, capture_output=True, text=True, env=environment, timeout=TOOL_SECONDS, check=False
    )
    if check and done.returncode != 0:
        raise ExerciseError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def make_image(image: Path, kind: str) -> None:
    """An empty file system, always the same."""
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    seeds = ("-U", UUID, "-E", f"hash_seed={UUID}")
    tool("mke2fs", "-q", "-F", *KINDS[kind].split(), *seeds, str(image))


def ours(directory: Path, script: str, drives: list[Drive], program: Entry) -> Config:
    """The storage lab's kernel, with the script in its shell."""
    own = BUILD / "user/bin"
    files = [*guest_root(own, busybox(), command=f"{script}; echo status: $?"), program]
    return Config(
        boot="direct",
        kernel=BUILD / "storage/kernel.elf",
        initramfs=write_archive(directory, files),
        settings=(("cmd", f"echo from the host; /bin/sh /{COMMAND}"),),
        drives=tuple(drives),
        **LIMITS,
    )


def linux_fingerprint(exercise: Exercise) -> str:
    """Changes with whatever changes Linux's answers."""
    digest = hashlib.sha256(f"{exercise} {exercise.script()} {KINDS[exercise.kind]}".encode())
    digest.update(linux_program(SOURCES, PROGRAM).read_bytes() + linux_package().sha256.encode())
    return digest.hexdigest()[:16]


def linux(directory: Path, script: str, drives: list[Drive], program: Entry) -> Config:
    """Debian's kernel, with the same script."""
    return linux_machine(directory, script, drives, [program], **LIMITS)


LIMITS = {
    "memory": MEMORY_MIB,
    "icount": None,
    "guest_limit": WALL_SECONDS,
    "wall_limit": WALL_SECONDS,
    "output_limit": 256 << 20,
}
KERNELS: dict[str, Callable[..., Config]] = {"here": ours, "Linux": linux}


def check_of(image: Path) -> str:
    """What e2fsck finds; nothing if all is right. That an extent tree could be shorter is no
    error."""
    said = tool("e2fsck", "-fn", str(image), check=False)
    said = re.sub(r"^Inode \d+ extent tree .* could be .*\n+", "", said, flags=re.MULTILINE)
    return said if re.search(r"\? no$|ERROR|WARNING|\?$", said, re.MULTILINE) else ""


def dump_of(image: Path) -> list[str]:
    """The files on an image as debugfs reads them."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        tool("debugfs", "-R", f"rdump /work {name}", str(image))
        for path in sorted(Path(name).rglob("*")):
            status = path.lstat()
            words = f"{path.relative_to(name)} {status.st_mode:o} {status.st_uid}.{status.st_gid}"
            if stat.S_ISLNK(status.st_mode):
                words += f" {path.readlink()}"
            elif stat.S_ISREG(status.st_mode):
                with path.open("rb") as file:
                    words += f" {status.st_size} {hashlib.file_digest(file, 'md5').hexdigest()}"
            found.append(words)
    return found


def answers_kept(kernel: str, exercise: Exercise, image: Path, directory: Path) -> Answers:
    """Linux's answers, if they are here already; else as answers_of."""
    if kernel != "Linux":
        return answers_of(kernel, exercise, image, directory)
    kept = PROGRAM.parent / f"linux-{linux_fingerprint(exercise)}.json"
    if kept.exists():
        found = json.loads(kept.read_text())
        found["blocks"] = {int(number): value for number, value in found["blocks"].items()}
        return Answers(**found)
    answers = answers_of(kernel, exercise, image, directory)
    kept.write_text(json.dumps(dataclasses.asdict(answers)))
    return answers


def answers_of(kernel: str, exercise: Exercise, image: Path, directory: Path) -> Answers:
    """Runs a kernel with a copy of the image. Raises ExerciseError."""
    copy = directory / f"{kernel}.img"
    shutil.copyfile(image, copy)
    program = regular("bin/fsx", linux_program(SOURCES, PROGRAM).read_bytes())
    started = time.monotonic()
    config = KERNELS[kernel](directory, exercise.script(), [Drive(copy, 1, writable=True)], program)
    result = run(config)
    said, _ = said_by(result.serial)
    found = Answers(seconds=time.monotonic() - started)
    found.blocks = {int(number): value for number, value in BLOCK_LINE.findall(said)}
    found.lines = [each[0] for each in re.finditer(OPERATION, said)]
    if not said.rstrip().endswith("the end"):
        last = "\n".join(result.serial.splitlines()[-25:])
        raise ExerciseError(
            f"{kernel}: {len(found.blocks)} blocks, and not the end "
            f"({result.outcome}); the last lines:\n{last}"
        )
    found.files = said.partition("walk:\n")[2].rstrip().splitlines()[:-1]
    found.dump = dump_of(copy)
    found.check = check_of(copy)
    return found


@cache
def known() -> list[dict[str, str]]:
    """The differences of fsx.toml."""
    return tomllib.loads(KNOWN.read_text()).get("difference", [])


def is_known(here: str, there: str) -> bool:
    """Whether fsx.toml says that two answers may differ."""
    return any(
        re.search(each["here"], here) and re.search(each["linux"], there) for each in known()
    )


def differing_lines(here: list[str], there: list[str]) -> list[str]:
    """Answers that differ and should not."""
    return [
        f"here:  {one}\nLinux: {two}"
        for one, two in zip(here, there, strict=True)
        if one != two and not is_known(one, two)
    ]


def differing_blocks(here: Answers, there: Answers) -> list[int]:
    """Thousands of operations with different answers."""
    return [number for number in there.blocks if there.blocks[number] != here.blocks.get(number)]


def compare(exercise: Exercise, directory: Path) -> list[str]:
    """Runs both kernels; returns what differs, in words."""
    image = directory / "image"
    make_image(image, exercise.kind)
    sides = {name: answers_kept(name, exercise, image, directory) for name in KERNELS}
    here, there = sides["here"], sides["Linux"]
    blocks = differing_blocks(here, there)
    print(
        f"{exercise.kind}, seed {exercise.seed}: {exercise.count:,} operations, {len(here.files)} "
        f"files in the end; {here.seconds:.0f} s here, {there.seconds:.0f} s on Linux; "
        f"{len(blocks)} of {len(there.blocks)} blocks differ",
        flush=True,
    )
    wrong = differing_operations(exercise, (here, there), image, directory)
    wrong += [
        f"e2fsck of {name}'s image:\n{side.check}" for name, side in sides.items() if side.check
    ]
    for what, one, two in (
        ("files, by the kernel", here.files, there.files),
        ("files, by debugfs", here.dump, there.dump),
    ):
        wrong += [f"{what}: only here: {line}" for line in one if line not in two]
        wrong += [f"{what}: only on Linux: {line}" for line in two if line not in one]
    return wrong


def differing_operations(
    exercise: Exercise, sides: Sequence[Answers], image: Path, directory: Path
) -> list[str]:
    """The first operations with different answers, found by further runs with their lines."""
    blocks = differing_blocks(*sides)
    if exercise.last > 0 or not blocks:
        return differing_lines(*(side.lines for side in sides))
    found: list[str] = []
    while blocks and not found:
        first = blocks[0] * BLOCK
        last = min((blocks[-1] + 1) * BLOCK, first + LINES, exercise.count)
        again = Exercise(exercise.kind, exercise.seed, last, first, last)
        found = differing_lines(
            *(answers_kept(name, again, image, directory).lines for name in KERNELS)
        )
        blocks = [number for number in blocks if number * BLOCK >= last]
    return found


def summary(answers: Answers) -> dict[str, object]:
    """What is kept of Linux's answers for tests: a digest for each thousand of operations, without
    those that may differ."""
    may_differ = re.compile("|".join(f"{each['here']}|{each['linux']}" for each in known()))
    lines = [line for line in answers.lines if not may_differ.search(line)]
    blocks = [
        digest(line for line in lines if int(line.split()[0]) // BLOCK == number)
        for number in answers.blocks
    ]
    return {"blocks": blocks, "files": digest([*answers.files, *answers.dump])}


def digest(lines: Iterable[str]) -> str:
    """Of some lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def fingerprint() -> str:
    """Changes with the program that kept answers are of."""
    return hashlib.sha256(
        b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))
    ).hexdigest()


def small(kind: str) -> Exercise:
    """The exercise whose answers are kept."""
    return Exercise(kind, KEPT_SEED, KEPT_COUNTS[kind], 0, KEPT_COUNTS[kind])


def keep() -> None:
    """Asks Linux for the answers that tests compare with, and writes them."""
    found = {}
    for kind in KEPT_COUNTS:
        with tempfile.TemporaryDirectory() as name:
            image = Path(name, "image")
            make_image(image, kind)
            found[kind] = summary(answers_kept("Linux", small(kind), image, Path(name)))
        text = json.dumps(
            {"program": fingerprint(), "kernel": linux_package().version, "kinds": found}
        )
        KEPT.write_text(text + "\n")


def main() -> int:
    """Returns 0 when both kernels agree."""
    parser = Options("make fsx")
    parser.add_argument("--seed", type=A_SEED, default=2010)
    parser.add_argument("--count", type=A_COUNT, default=20_000)
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--keep", action="store_true", help="write Linux's answers for the tests")
    options = parser.parse_args()
    if options.keep:
        keep()
        return 0
    wrong = []
    for kind in KINDS if options.kind == "all" else [options.kind]:
        with tempfile.TemporaryDirectory() as name:
            lines = options.count if options.count <= LINES else 0
            exercise = Exercise(kind, options.seed, options.count, 0, lines)
            try:
                wrong += compare(exercise, Path(name))
            except (ExerciseError, PackageError) as error:
                wrong.append(f"{kind}: {error}")
    for each in wrong[:20]:
        print(each)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(in_a_line("make fsx", main))
