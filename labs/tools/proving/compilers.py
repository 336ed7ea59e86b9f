"""`make compilers`: a lesson's kernel from each set of tools here: no warning, and it boots.

    python -m labs.tools.proving.compilers --lesson=6 [--cross='clang i686-elf-']

Each set builds in a folder of its own, whose name, rights, locale, time zone and files' ages
differ. Sets of one compiler and linker, gcc under two names, must make the same image; clang with
one linker and with the other, the same object files of C. They depend on the source and the
compiler's version. (Programs keep the revision of the compiler's package.) Exit status 0: each has
built, and booted.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.tools.course.exercises import ROOT, name_of, number_of, word_of
from labs.tools.machine.command import CommandError, Options, in_a_line, own_environment
from labs.tools.machine.work_folder import command_folder

PROGRAM = "make compilers"
SOURCES = ("Makefile", "boot", "drivers", "fs", "kernel", "labs", "mm", "tests/kernel", "user")
SETS = ("i686-linux-gnu-", "x86_64-linux-gnu-", "i686-elf-", "x86_64-elf-", "clang", "clang-lld")
PLACES = ("plain", "with blanks", "mit-Ümläuten", "中文", "it's $x; done", "a/deeper/one")
LOCALES = ("C.UTF-8", "de_DE.UTF-8", "zh_CN.UTF-8", "C", "tr_TR.UTF-8", "POSIX")
ZONES = ("UTC", "Asia/Shanghai", "America/Los_Angeles")
SHELL_FROM = 4  # the first lesson with programs
TYPED, ANSWER = "echo one two three | cat", "one two three"
SCRIPT, SAID = "memory; panic", "boot: loaded by Apprentice boot"


@dataclass(frozen=True)
class Built:
    """What a set of tools has made. objects, linked: the sum of each object file of C, and those of
    image and kernel; compiler, linker: their kind and version, the same under several names."""

    cross: str
    place: Path
    objects: dict[str, str]
    linked: dict[str, str]
    compiler: str
    linker: str


def tree(place: Path, age: int) -> Path:
    """A copy of what is built, whose files are so old."""
    place.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__", "node_modules")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=ignored, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(source, place / name)
    for path in place.rglob("*"):
        if path.suffix == ".sh":
            path.chmod(0o755)
        if path.is_file():
            os.utime(path, (age, age))
    return place


def surroundings(number: int) -> dict[str, str]:
    """What of the environment is another one for each set."""
    locale, zone = LOCALES[number % len(LOCALES)], ZONES[number % len(ZONES)]
    return {"LC_ALL": locale, "LANG": locale, "TZ": zone}


def said(command: Sequence[str], place: Path, environment: Mapping[str, str]) -> str:
    """A command's output. Raises CommandError with the end of what it said."""
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, check=False,
        umask=0o077, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        raise CommandError(f"{' '.join(command)}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def missing(cross: str) -> str:
    """What of a set is not here; empty if it is whole."""
    needed = {"clang": ("clang", "ld"), "clang-lld": ("clang", "ld.lld")}
    names = needed.get(cross, (f"{cross}gcc", f"{cross}ld"))
    return ", ".join(name for name in names if not shutil.which(name))


def build(lesson: int, cross: str, number: int, work: Path) -> Built:
    """Builds a lesson with a set of tools, warnings being errors. Raises CommandError."""
    place = tree(work / cross / PLACES[number % len(PLACES)], 10**9 + number * 10**8)
    environment = {**own_environment(), "CROSS": cross, **surroundings(number)}
    targets = ["image-disk", *(["user-programs"] if lesson >= SHELL_FROM else [])]
    said(["make", "-s", f"LESSON={word_of(lesson)}", "CI=1", *targets], place, environment)
    compiler, *_ = said(["labs/tools/setup/toolchain.sh", "cc"], place, environment).split()
    version = said([compiler, "-dumpversion"], place, environment).strip()
    linker = said([*linker_of(place, environment), "--version"], place, environment)
    kind = "clang" if cross.startswith("clang") else "gcc"
    output = place / "build"
    linked = [output / name_of(lesson) / name for name in ("boot.img", "kernel.elf")]
    objects = [*output.glob("objects/**/*.c.o"), *output.glob("user/objects/**/*.c.o")]
    return Built(
        cross, place, sums_of(output, objects), sums_of(output, linked),
        f"{kind} {version}", linker.partition("\n")[0],
    )  # fmt: skip


def linker_of(place: Path, environment: Mapping[str, str]) -> list[str]:
    """The command of the set's linker."""
    return said(["labs/tools/setup/toolchain.sh", "ld"], place, environment).split()


def sums_of(folder: Path, paths: Iterable[Path]) -> dict[str, str]:
    """A sum of each file, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(paths)
    }


def boots(lesson: int, built: Built) -> None:
    """The image boots, and answers what is typed. Raises CommandError."""
    output = built.place / "build"
    command = [sys.executable, "-m", "labs.tools.machine.run", "--boot=disk", "--seed=1"]
    command += ["--memory=64", f"--build={output / name_of(lesson)}"]
    if lesson >= SHELL_FROM:
        command += [f"--user={output / 'user/bin'}", "--core", f"--command={TYPED}"]
    else:
        command += [f"--script={SCRIPT}"]
    done = subprocess.run(
        command, cwd=ROOT, env=own_environment(), capture_output=True, text=True, check=False
    )
    wanted = ANSWER if lesson >= SHELL_FROM else SAID
    if wanted not in done.stdout:
        raise CommandError(f"{built.cross}: no {wanted!r}:\n{(done.stdout + done.stderr)[-2000:]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    made = Options(PROGRAM)
    made.add_argument("--lesson", type=number_of, default=6)
    made.add_argument("--cross", type=str.split, default=list(SETS), help="sets of tools")
    options = made.parse_args(arguments)
    done: list[Built] = []
    wrong = 0
    with command_folder("compilers") as work:
        for number, cross in enumerate(options.cross):
            if gone := missing(cross):
                print(f"{cross:18} not here: {gone}", flush=True)
                continue
            try:
                done.append(build(options.lesson, cross, number, work))
                boots(options.lesson, done[-1])
            except CommandError as error:
                wrong += 1
                print(f"{cross:18} FAILS: {error}", flush=True)
                continue
            like = alike(done[-1], done[:-1])
            wrong += like.startswith("NOT ")
            print(
                f"{cross:18} builds without a warning, and boots{like and f'; {like}'}", flush=True
            )
    return 1 if wrong else 0


def alike(built: Built, others: Sequence[Built]) -> str:
    """Whether it is what the same compiler has made under another name, or with another linker;
    empty if there is none."""
    compiled = [each for each in others if each.compiler == built.compiler]
    for each in compiled:
        if each.linker == built.linker:
            return compared("the same image as", built.linked, each.linked, each.cross)
    for each in compiled[:1]:
        return compared("the same object files as", built.objects, each.objects, each.cross)
    return ""


def compared(same: str, ours: Mapping[str, str], theirs: Mapping[str, str], cross: str) -> str:
    """That they are the same as a set's, or up to five that are not."""
    other = sorted(name for name in ours | theirs if ours.get(name) != theirs.get(name))
    if not other:
        return f"{same} {cross}"
    return f"NOT {same} {cross}: {len(other)} of {len(ours)}, {', '.join(other[:5])}"


if __name__ == "__main__":
    sys.exit(in_a_line(PROGRAM, main))
