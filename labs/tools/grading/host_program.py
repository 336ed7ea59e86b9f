"""Programs for the host, made of a student's C files and a test's own.

They have 32 bits, as the kernel has, so sums wrap in them as they do there. Whatever a student
brings is compiled and linked in the box, where nothing else is; of a student's file only the object
is taken, and no linker's plugin ever sees it.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from labs.tools.course.exercises import ROOT
from labs.tools.grading.build_tool import BuildFailure, run_tool
from labs.tools.grading.elf_limits import object_problem
from labs.tools.grading.graded_tree import is_plain_file

FLAGS = ("-std=gnu11", "-O1", "-g", "-fno-strict-aliasing", "-fno-omit-frame-pointer", "-fno-lto")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
TRAP = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-static")  # needs no library
# The kernel's functions get other names than the C library's, and so must not become builtins.
AS_KERNEL = ("-fno-builtin", "-include", "tests/host/rename.h")
NO_PLUGIN = ("-fno-use-linker-plugin",)

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
        compile_own(str(driver), directory / name)
    command, linking = compiler()
    link = [*command, *linking, *NO_PLUGIN, *objects, "-o", program.name]
    run_tool(link, directory, boxed)
    if not is_plain_file(directory, program.name):
        raise BuildFailure(f"{program.name} is not a file")


def object_of(root: Path, source: str, boxed: bool) -> bytes:
    """The object of one file. What a boxed tree does not have is the reference's."""
    if (root / source).stat().st_size == 0:
        with tempfile.TemporaryDirectory(prefix="object-") as name:
            target = Path(name) / "reference.o"
            compile_own(source, target, AS_KERNEL)
            return target.read_bytes()
    target = f"build/host-objects/{source}.o"
    (root / target).parent.mkdir(parents=True, exist_ok=True)
    command, _ = compiler()
    run_tool([*command, "-I.", *AS_KERNEL, "-c", source, "-o", target], root, boxed)
    if not is_plain_file(root, target):
        raise BuildFailure(f"{target} is not a file")
    data = (root / target).read_bytes()
    if problem := object_problem(data) if is_32_bits() else "":
        raise BuildFailure(f"it does not build: {source}: {problem}")
    return data


def is_32_bits() -> bool:
    """Whether the programs are."""
    command, _ = compiler()
    return command[0] != "gcc" or "-m32" in command


def compile_own(source: str, target: Path, options: Sequence[str] = ()) -> None:
    """Compiles a file that is no student's, with the reference's headers."""
    command, _ = compiler()
    run_tool([*command, "-I.", *options, "-c", source, "-o", str(target)], ROOT, False)
