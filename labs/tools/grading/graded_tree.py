"""The trees that are graded: the reference, with one exercise's files from somewhere else.

A boxed tree is for what a student wrote. It has the headers, the Makefile, what the build needs of
labs/tools, the reference's objects and the student's files of one exercise; every other source is
an empty file, older than its object. An open tree is a copy of the reference, for mutants.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from labs.tools.course.exercises import ROOT, STORAGE, Exercise, blank, by_id, name_of, word_of
from labs.tools.course.handed_in import COURSE
from labs.tools.course.source_lists import LISTS, linked
from labs.tools.grading import sandbox
from labs.tools.grading.elf_limits import object_problem

ROOMS = ("boot", "kernel", "mm", "drivers", "fs", "labs", "user", "tests/kernel")
SOURCES = (".c", ".asm")
SHOWN = (".h", ".inc", ".ld")
LISTS_SHOWN = tuple(f"/{name}" for name in LISTS)
TOOLS = (
    "labs/storage/lab.mk",
    "labs/tools/setup/toolchain.sh",
    "labs/tools/setup/symbols.awk",
    "labs/tools/setup/constants.awk",
    "labs/tools/setup/debug_paths.py",
    "tests/host/rename.h",
)
SIZE_LIMIT = 256 << 10  # bytes of a submitted file
LINE_LENGTH = 240  # characters of what a compiler said

# The build orders files by age: sources, then the reference's objects, then the student's.
SOURCE_TIME, OBJECT_TIME, STUDENT_TIME = 1_000_000_000, 1_100_000_000, 1_200_000_000

# What the image of the boot disk is made from each time.
ALWAYS_BUILT = ("boot/loader.c", "boot/mbr.asm")
OUT_OF_BOUNDS = re.compile(
    r"out of memory|virtual memory exhausted|memory exhausted|Killed|time limit|File size limit"
    r"|File too large|panic: .*alloc",
    re.IGNORECASE,
)
TELLING = re.compile(
    r"error|fatal:|panic:|undefined reference|multiple definition|overlap|not fit", re.IGNORECASE
)
TEMPORARY_NAME = re.compile(r"/tmp/cc\w+\.s")
SAME_FOLDER = re.compile(r"^(?:\./)+", re.MULTILINE)  # 200 of them, of a file that includes itself
# What gcc calls for 64-bit division, __builtin_popcount and their like.
OF_LIBGCC = re.compile(r"undefined reference to .(__[a-z]+[sdt]i[1-4])\b")
NO_LIBGCC = " (gcc's own library has it, and the kernel is not linked with that: write it out)"
LIBC_OBJECTS = "build/user/objects/libc/*.o"
LOADER = {"boot/load_elf.c": "load_elf.o", "boot/stage2.asm": "stage2.o"}


class SubmissionError(ValueError):
    """A submitted file that cannot be taken; the text says why."""


@dataclass(frozen=True)
class Graded:
    """One exercise of a submission: its tree, and what was wrong with files of it, by path."""

    exercise: Exercise
    tree: Path
    problems: dict[str, str]


def submitted(directory: Path, path: str) -> bytes:
    """A file of a submission. Raises SubmissionError, which names it; follows no symbolic link."""
    try:
        return taken(directory, path)
    except OSError as error:
        raise SubmissionError(f"{path} cannot be read: {error.strerror}") from error


def taken(directory: Path, path: str) -> bytes:
    """The same, which raises OSError, too."""
    place = directory
    for part in Path(path).parts:
        place = place / part
        if place.is_symlink():
            raise SubmissionError(f"{path} is a symbolic link")
    try:
        kind = place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise SubmissionError(f"{path} is missing") from None
    if not stat.S_ISREG(kind):
        raise SubmissionError(f"{path} is not a file")
    if place.stat().st_size > SIZE_LIMIT:
        raise SubmissionError(f"{path} is larger than {SIZE_LIMIT >> 10} KiB")
    with place.open("rb") as stream:
        data = stream.read(SIZE_LIMIT + 1)
    if b"\0" in data or not data.strip():
        raise SubmissionError(f"{path} is {'not a text' if data.strip() else 'empty'}")
    return data


def handout(exercise: Exercise, path: str) -> bytes:
    """The file as a student gets it."""
    return blank((ROOT / path).read_text(), path, exercise).encode()


def handout_files(exercise: Exercise) -> dict[str, bytes]:
    """The exercise's files as a student gets them."""
    return {path: handout(exercise, path) for path in exercise.files}


def graded_tree(
    exercise: Exercise, submission: Path, work: Path, boxed: bool = True, core: bool = False
) -> Graded:
    """Makes the tree of one exercise of a submission in `work`. core: for a kernel without the
    breadth."""
    files, objects, problems = gathered(exercise, submission, boxed)
    tree = work / "trees" / exercise.id
    boxed_tree(exercise, files, objects, tree, core)
    return Graded(exercise, tree, problems)


def whole_tree(
    exercises: Sequence[Exercise], submission: Path, tree: Path, boxed: bool, core: bool
) -> None:
    """Makes a tree with all exercises of a submission, and nothing of the reference's instead."""
    files, objects = {}, {}
    for exercise in exercises:
        own_files, own_objects, _ = gathered(exercise, submission, boxed)
        files |= own_files
        objects |= own_objects
    boxed_tree(exercises[0], files, objects, tree, core)


def gathered(
    exercise: Exercise, submission: Path, boxed: bool
) -> tuple[dict[str, bytes], dict[str, bytes], dict[str, str]]:
    """An exercise's files of a submission, their objects, and what was wrong. A file that cannot be
    taken, or that does not compile, is as in the handout: the rest can still score."""
    files, problems = {}, {}
    for path in exercise.files:
        try:
            files[path] = submitted(submission, path)
        except SubmissionError as error:
            problems[path] = str(error)
            files[path] = handout(exercise, path)
    objects, wrong = compiled(exercise.id, tuple(files.items()), boxed)
    if wrong:
        suspects = {*wrong, *(path for path in files if path.endswith(".inc"))}  # it has no object
        files |= {path: handout(exercise, path) for path in suspects}
        again, _ = compiled(exercise.id, tuple(files.items()), boxed)
        objects |= {path: again[path] for path in wrong}
    return files, dict(objects), problems | wrong


@lru_cache(maxsize=64)
def compiled(
    number: str, files: tuple[tuple[str, bytes], ...], boxed: bool
) -> tuple[Mapping[str, bytes], Mapping[str, str]]:
    """Compiles the files of exercise `number` where there is nothing else: the objects, and what
    the compiler said where it made none."""
    lesson = by_id(number).lesson
    objects, problems = {}, {}
    with compile_tree(dict(files)) as tree:
        for path in (path for path, _ in files if is_compiled(path, lesson)):
            target = f"build/objects/{path}.o"
            command = ["make", "-s", f"LESSON={word_of(lesson)}", target]
            done = sandbox.run(command, tree, sandbox.BUILD, boxed)
            if done.status != 0 or not is_plain_file(tree, target):
                words = done.limit or first_error(done.output)
                problems[path] = f"{path} does not compile: {words}"
            elif words := object_problem((tree / target).read_bytes()):
                problems[path] = f"{path} is refused: {words}"
            else:
                objects[path] = (tree / target).read_bytes()
    return objects, problems


class CompileTree(threading.local):
    """A tree for each thread that compiles, which stays: only few of its files are ever others."""

    def __init__(self) -> None:
        self.folder: tempfile.TemporaryDirectory | None = None

    def path(self) -> Path:
        """The tree, with all sources empty."""
        if self.folder is None or not Path(self.folder.name, "Makefile").is_file():
            self.folder = tempfile.TemporaryDirectory(prefix="compile-", ignore_cleanup_errors=True)
            lay_out(Path(self.folder.name), {})
        return Path(self.folder.name)


COMPILE_TREE = CompileTree()


@contextmanager
def compile_tree(files: Mapping[str, bytes]) -> Iterator[Path]:
    """Within it there is a tree of headers, tools and these sources, in which nothing was built."""
    tree = COMPILE_TREE.path()
    before = {path: read_if_there(tree / path) for path in files}
    for path, data in files.items():
        write(tree / path, data, SOURCE_TIME)
    try:
        yield tree
    finally:
        for path, data in before.items():
            if data is None:
                (tree / path).unlink()
            else:
                write(tree / path, data, SOURCE_TIME)
        shutil.rmtree(tree / "build")
        lay_out_build(tree)


def read_if_there(path: Path) -> bytes | None:
    """A file's contents; None where there is none."""
    return path.read_bytes() if path.is_file() else None


def is_compiled(path: str, lesson: int) -> bool:
    """Whether a file becomes an object by itself; a linker script does not, nor a boot sector."""
    return path in linked_sources(lesson) or path in LOADER


def boxed_tree(
    exercise: Exercise,
    files: Mapping[str, bytes],
    objects: Mapping[str, bytes],
    tree: Path,
    core: bool = False,
) -> None:
    """The tree in which the kernel is linked: the reference's objects, but for the exercise's."""
    kept = {path: (ROOT / path).read_bytes() for path in ALWAYS_BUILT}
    lay_out(tree, kept | dict(files))
    for path in linked_sources(exercise.lesson, core):
        target = f"build/objects/{path}.o"
        if path in objects:
            write(tree / target, objects[path], STUDENT_TIME)
        elif path not in files:
            write(tree / target, (ROOT / target).read_bytes(), OBJECT_TIME)
    directory = output_directory(exercise.lesson, core)
    for path, name in LOADER.items():
        if path not in files:
            write(tree / directory / name, (ROOT / directory / name).read_bytes(), OBJECT_TIME)
    if exercise.lesson == STORAGE and any(path.startswith("user/") for path in files):
        for path in sorted(ROOT.glob(LIBC_OBJECTS)):  # a program of the student's is linked with it
            write(tree / path.relative_to(ROOT), path.read_bytes(), OBJECT_TIME)


def lay_out(tree: Path, files: Mapping[str, bytes]) -> None:
    """A tree of headers, tools, and these sources; every other source is there, and empty."""
    shutil.rmtree(tree, ignore_errors=True)
    for path in shown():
        write(tree / path, (ROOT / path).read_bytes(), SOURCE_TIME, mode_of(path))
    for path in sources():
        write(tree / path, b"", SOURCE_TIME)
    for path, data in files.items():
        write(tree / path, data, SOURCE_TIME)
    lay_out_build(tree)


def lay_out_build(tree: Path) -> None:
    """What a tree's build/ begins with."""
    for path in constants():
        write(tree / path, (ROOT / path).read_bytes(), OBJECT_TIME)
    with suppress(FileNotFoundError):
        write(tree / "build/toolchain", cached_toolchain(), OBJECT_TIME)


def cached_toolchain() -> bytes:
    """The toolchain's choice, which is good as long as PATH stays; the box has its own."""
    _, prefix = (ROOT / "build/toolchain").read_text().splitlines()
    return f"CROSS= PATH={sandbox.ENVIRONMENT['PATH']}\n{prefix}\n".encode()


def shown() -> Iterator[str]:
    """What a build sees besides sources."""
    yield from ("Makefile", "boot/grub.cfg", *TOOLS)
    yield from [COURSE] if (ROOT / COURSE).is_file() else []
    yield from (path for path in room_files() if path.endswith((*SHOWN, *LISTS_SHOWN)))


def constants() -> Iterator[str]:
    """What the build has made for NASM and the linker from headers, a process for each of them."""
    place = ROOT / "build/constants"
    for made in sorted(place.rglob("*.*")):
        if (ROOT / made.relative_to(place)).with_suffix(".h").is_file():
            yield str(made.relative_to(ROOT))


def sources() -> Iterator[str]:
    """The paths of all sources."""
    return (path for path in room_files() if path.endswith(SOURCES))


@cache
def room_files() -> tuple[str, ...]:
    """The files of the rooms that a kernel is built from; nobody adds one while a grade runs."""
    places = (place for room in ROOMS for place in sorted((ROOT / room).rglob("*")))
    return tuple(str(place.relative_to(ROOT)) for place in places if place.is_file())


def output_directory(lesson: int, core: bool = False) -> str:
    """Where a lesson's kernel is built, with the breadth or without it; from a tree's root."""
    return f"build/{name_of(lesson)}{'-core' if core else ''}"


def linked_sources(lesson: int, core: bool = False) -> list[str]:
    """The sources of a lesson's kernel."""
    main = f"labs/{name_of(lesson)}/main.c"
    return [*linked(lesson, ROOT, core), main, "boot/protected_mode.asm"]


def open_tree(lesson: int, files: Mapping[str, bytes], tree: Path) -> None:
    """A copy of the reference and of its objects, with `files` changed. What the objects include
    comes along, so that a changed file is compiled wherever it is included."""
    lay_out(tree, {path: (ROOT / path).read_bytes() for path in sources()})
    for path in linked_sources(lesson):
        for target in (f"build/objects/{path}.o", f"build/objects/{path}.d"):
            with suppress(FileNotFoundError):
                write(tree / target, (ROOT / target).read_bytes(), OBJECT_TIME)
    directory = output_directory(lesson)
    for name in LOADER.values():
        write(tree / directory / name, (ROOT / directory / name).read_bytes(), OBJECT_TIME)
    for path, data in files.items():
        write(tree / path, data, STUDENT_TIME)


def write(path: Path, data: bytes, time: int, mode: int = 0o644) -> None:
    """Writes a file that seems to be of `time`, in seconds since 1970."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with open(file, "wb", buffering=0) as stream:
        stream.write(data)
        os.fchmod(file, mode)
        os.utime(file, (time, time))


def mode_of(path: str) -> int:
    """A file's permissions in the reference."""
    return stat.S_IMODE((ROOT / path).stat().st_mode)


def is_plain_file(tree: Path, path: str) -> bool:
    """Whether a tree has this file, and no link on the way to it: a link that was made in the box
    would lead out of it here."""
    return (tree / path).is_file() and (tree / path).resolve() == tree.resolve() / path


def first_error(output: str) -> str:
    """What a compiler said first; the rest mostly follows from it."""
    if OUT_OF_BOUNDS.search(output):
        return "the compiler needs too much time or memory for it, or writes too much"
    output = SAME_FOLDER.sub("", TEMPORARY_NAME.sub("assembly", output))
    lines = output.strip().splitlines()
    lines = [line for line in lines if not line.startswith("make")]
    errors = [line for line in lines if TELLING.search(line)]
    line = (errors or lines or ["no reason was given"])[0].strip()
    line = line if len(line) <= LINE_LENGTH else line[:LINE_LENGTH] + "..."
    line += NO_LIBGCC if OF_LIBGCC.search(line) else ""
    return "".join(each if each.isprintable() else "?" for each in line)
