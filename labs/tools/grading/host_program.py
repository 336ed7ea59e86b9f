"""Programs for the host, made of a student's C files and a test's own.

They have 32 bits, as the kernel has, so sums wrap in them as they do there. Whatever a student
brings is compiled and linked in the box, where nothing else is; of a student's file only the object
is taken, and no linker's plugin ever sees it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from filecmp import cmp
from functools import cache
from pathlib import Path

from labs.tools.course.exercises import ROOT
from labs.tools.grading.build_tool import BuildFailure, run_tool
from labs.tools.grading.elf_limits import names_of, object_problem
from labs.tools.grading.graded_tree import is_plain_file

FLAGS = (
    *("-std=gnu11", "-O1", "-g", "-fno-strict-aliasing", "-fno-omit-frame-pointer", "-fno-lto"),
    "-fno-inline-functions-called-once",  # make replay stops in them
)
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
TRAP = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-static")  # needs no library
# The kernel's functions get other names than the C library's, and so must not become builtins.
AS_KERNEL = ("-fno-builtin", "-include", "tests/host/rename.h")
NO_PLUGIN = ("-fno-use-linker-plugin",)
UNWATCHED = re.compile(
    rb"\w*no_(?:sanitize|address_safety_analysis)\w*|__(?:asan|ubsan|lsan|sanitizer)_\w+"
)
KERNEL = ("boot/", "kernel/", "mm/", "drivers/", "fs/")
# Names that a compiler uses by itself, and those of a blank that is not written yet (exercise.h).
ADDED = re.compile(rb"_\w+|mem(?:cpy|move|set|cmp)|printf|exit")
MOST_TEXT = 8 << 20  # bytes that the preprocessor may make of a file
KEPT = ROOT / "build/host-objects/own"

# Debian's compiler for the i386 brings a C library, which is where no program looks for it.
LIBRARIES = "/usr/i686-linux-gnu/lib"
AT_HOME = (
    f"-Wl,--dynamic-linker={LIBRARIES}/ld-linux.so.2",
    "-Wl,--disable-new-dtags",
    f"-Wl,-rpath,{LIBRARIES}",
)


@cache
def compiler() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The compiler's command, and what linking adds to it: the first that makes a program which
    runs here. Only where no program of 32 bits runs it makes one of the host's own."""
    candidates = (
        (("i686-linux-gnu-gcc", *FLAGS, *SANITIZE), AT_HOME),
        (("gcc", "-m32", *FLAGS, *SANITIZE), ()),
        (("i686-linux-gnu-gcc", *FLAGS, *TRAP), ()),
        (("gcc", "-m32", *FLAGS, *TRAP), ()),
        (("gcc", *FLAGS, *SANITIZE), ()),
    )
    return next((each for each in candidates if works(*each)), candidates[-1])


def works(command: Sequence[str], linking: Sequence[str]) -> bool:
    """Whether a small program of ours can be made so, and runs."""
    with tempfile.TemporaryDirectory(prefix="trial-") as name:
        source, program = Path(name, "trial.c"), Path(name, "trial")
        source.write_text("int main(void) { return 0; }\n")
        make = [*command, *linking, *NO_PLUGIN, str(source), "-o", str(program)]
        try:
            return all(
                subprocess.run(each, capture_output=True, check=False).returncode == 0
                for each in (make, [str(program)])
            )
        except OSError:
            return False


def built(
    root: Path, sources: Sequence[str], drivers: Sequence[Path], program: Path, boxed: bool
) -> None:
    """Makes `program`, in a directory that has nothing else, of `sources` (C files of the tree
    `root`) and of the test's own files `drivers`. Raises BuildFailure."""
    directory = program.parent
    objects = [f"{index}.o" for index in range(len(sources) + len(drivers))]
    for name, source in zip(objects, sources, strict=False):
        (directory / name).write_bytes(object_of(root, source, boxed))
    for name, driver in zip(objects[len(sources) :], drivers, strict=True):
        (directory / name).write_bytes(own_object(str(driver)))
    require_kernel_alone(sources, [(directory / name).read_bytes() for name in objects])
    command, linking = compiler()
    link = [*command, *linking, *NO_PLUGIN, *objects, "-o", program.name]
    run_tool(link, directory, boxed)
    if not is_plain_file(directory, program.name):
        raise BuildFailure(f"{program.name} is not a file")


def object_of(root: Path, source: str, boxed: bool) -> bytes:
    """The object of one file. What a boxed tree does not have is the reference's."""
    if (root / source).stat().st_size == 0:
        return own_object(source, AS_KERNEL)
    if not boxed and is_own(root, source):
        data = own_object(source, AS_KERNEL)
    else:
        target = own_target(source, ".o")
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        command, _ = compiler()
        run_tool([*command, "-I.", *AS_KERNEL, "-c", source, "-o", target], root, boxed)
        if not is_plain_file(root, target):
            raise BuildFailure(f"{target} is not a file")
        require_watched(root, source, boxed)
        data = (root / target).read_bytes()
        (root / target).unlink()
    if problem := object_problem(data) if is_32_bits() else "":
        raise BuildFailure(f"it does not build: {source}: {problem}")
    return data


def own_target(source: str, suffix: str) -> str:
    """Where this process has something made of a file: exercises of one tree that are tried at the
    same time may have files in common."""
    return f"build/host-objects/{source}.{os.getpid()}{suffix}"


def require_watched(root: Path, source: str, boxed: bool) -> None:
    """Raises BuildFailure for a file that turns the sanitizer off for some of its functions, or
    calls one of its functions, which say what is an object: reads and writes outside of objects
    would not be seen. Macros are expanded before."""
    target = own_target(source, ".i")
    command, _ = compiler()
    run_tool([*command, "-I.", *AS_KERNEL, "-E", source, "-o", target], root, boxed)
    if not is_plain_file(root, target):
        raise BuildFailure(f"{target} is not a file")
    with (root / target).open("rb") as stream:
        text = stream.read(MOST_TEXT + 1)
    (root / target).unlink()
    if len(text) > MOST_TEXT:
        most = MOST_TEXT >> 20
        raise BuildFailure(
            f"it does not build: {source} has more than {most} MiB with what it includes"
        )
    if found := UNWATCHED.search(text):
        word = found[0].decode()
        raise BuildFailure(f"it does not build: {source} turns the sanitizer off ({word})")


def require_kernel_alone(sources: Sequence[str], objects: Sequence[bytes]) -> None:
    """Raises BuildFailure for a file of the kernel that wants something of the C library, which no
    kernel has: that would do a student's work here. What the compiler adds is allowed, what a blank
    wants, and what our file wants."""
    if not is_32_bits():
        return
    names = [names_of(data) for data in objects]
    known = set().union(*(defined for defined, _ in names))
    for source, (_, wanted) in zip(sources, names, strict=False):
        if not source.startswith(KERNEL):
            continue
        there = (ROOT / source).is_file()
        more = names_of(own_object(source, AS_KERNEL))[1] if there else set()
        foreign = sorted(each for each in wanted - known - more if not ADDED.fullmatch(each))
        if foreign:
            word = foreign[0].decode(errors="replace")
            raise BuildFailure(f"it does not build: {source}: the kernel has no {word}")


def is_own(root: Path, source: str) -> bool:
    """Whether a file and all that it includes are in a tree as they are in this one."""
    return root == ROOT or all(is_same(root, path) for path in included(source, AS_KERNEL))


@cache
def is_same(root: Path, path: str) -> bool:
    """Whether two trees have the same file. Nobody changes a tree while it is tested."""
    return (root / path).is_file() and cmp(root / path, ROOT / path, shallow=False)


def is_32_bits() -> bool:
    """Whether the programs are."""
    command, _ = compiler()
    return command[0] != "gcc" or "-m32" in command


def included(source: str, options: Sequence[str] = ()) -> list[str]:
    """The files that an object of ours was made from."""
    own_object(source, options)
    return made_from(place_of(source, options))


@cache
def own_object(source: str, options: Sequence[str] = ()) -> bytes:
    """The object of a file that is no student's, with the headers of this tree."""
    return kept_object(own_command(source, options)).read_bytes()


def kept_object(command: Sequence[str], folder: Path = KEPT) -> Path:
    """The object that a compiler's command, given without a target, makes of a file of this tree.
    It is compiled once for all processes and runs, and again when one of the files that it is made
    from has changed. Raises BuildFailure."""
    target = kept_place(command, folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_current(target):
            new, began = target.with_suffix(".new"), time.time_ns()
            rules = ["-MMD", "-MF", str(target.with_suffix(".d"))]
            run_tool([*command, *rules, "-o", str(new)], ROOT, False)
            os.utime(new, ns=(began, began))  # what changes meanwhile is newer
            new.rename(target)
    return target


def own_command(source: str, options: Sequence[str]) -> list[str]:
    """The compiler's command for it, without the target."""
    command, _ = compiler()
    return [*command, "-I.", *options, "-c", source]


def place_of(source: str, options: Sequence[str]) -> Path:
    """Where it is kept."""
    return kept_place(own_command(source, options))


def kept_place(command: Sequence[str], folder: Path = KEPT) -> Path:
    """Where the object is kept that a command makes."""
    name = hashlib.sha256("\0".join(command).encode()).hexdigest()
    return folder / f"{name[:16]}.o"


def made_from(target: Path) -> list[str]:
    """The files that an object was made from, as the compiler listed them."""
    rule = target.with_suffix(".d").read_text().replace("\\\n", " ")
    return rule.partition(":")[2].split()


def is_current(target: Path) -> bool:
    """Whether an object is there and newer than all that it was made from."""
    if not target.exists():
        return False
    files, made = [ROOT / path for path in made_from(target)], target.stat().st_mtime_ns
    return all(path.is_file() and path.stat().st_mtime_ns < made for path in files)
