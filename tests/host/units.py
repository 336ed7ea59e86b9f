"""Unit tests in C of the kernel's own files, compiled for the host: built once, run by name.

They are compiled twice: for this machine with the address and undefined-behaviour sanitizers, and,
where a compiler can link a static i386 program, as the kernel is: 32 bits, with 64-bit division by
the DIV instruction.
"""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from labs.tools.grading.build_tool import BuildFailure, run_tool
from labs.tools.grading.host_program import KEPT, kept_object
from labs.tools.machine.bounded import run_within

ROOT = Path(__file__).resolve().parents[2]
SEED = 20100627
FLAGS = ("-std=gnu11", "-O1", "-g", "-fno-strict-aliasing", "-fno-omit-frame-pointer")
# The kernel's functions get other names than the C library's, and so must not become builtins.
AS_KERNEL = ("-fno-builtin", "-include", "tests/host/rename.h")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
TRAP = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")  # needs no library: a SIGILL
I386_COMPILERS = (("i686-linux-gnu-gcc", "-static"), ("gcc", "-m32", "-static"))


def links(compiler: tuple[str, ...]) -> bool:
    """Whether it makes a program of nothing of ours."""
    command = [*compiler, *TRAP, "-x", "c", "-", "-o", "/dev/null"]
    empty = "int main(void) { return 0; }"
    try:
        done = subprocess.run(command, input=empty, capture_output=True, text=True, check=False)
        return done.returncode == 0
    except OSError:
        return False


@dataclass(frozen=True)
class Units:
    """A program of unit tests: every C file of `directory` with these of the kernel's `sources`.
    Paths are from the repository's root; `flags` are for all of its files."""

    directory: str
    sources: tuple[str, ...]
    flags: tuple[str, ...]
    variant: str = ""  # tells programs of the same tests apart
    kept: bool = True  # the objects, for the next run

    def compiled(self, place: Path, compiler: tuple[str, ...]) -> str | None:
        """Compiles `place`/units. Returns None, or what the compiler said."""
        place.mkdir(parents=True, exist_ok=True)
        folder = KEPT if self.kept else place
        tests = sorted(str(each.relative_to(ROOT)) for each in (ROOT / self.directory).glob("*.c"))
        common = (*compiler, *FLAGS, *self.flags)
        try:
            objects = [
                *(
                    str(kept_object((*common, *AS_KERNEL, "-c", each), folder))
                    for each in self.sources
                ),
                *(str(kept_object((*common, "-c", each), folder)) for each in tests),
            ]
            run_tool([*common, *objects, "-o", str(place / "units")], ROOT, False)
        except BuildFailure as failure:
            return str(failure)
        except OSError as error:
            return f"{compiler[0]}: {error.strerror}"
        return None

    def built(
        self, factory: pytest.TempPathFactory, name: str, compilers: list[tuple[str, ...]]
    ) -> Path | str:
        """The program, compiled by the first compiler that can, by one process of pytest-xdist for
        all of them; or why none can."""
        base = factory.getbasetemp()
        shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
        place = shared / f"{self.directory.replace('/', '-')}{self.variant}-{name}"
        causes = []
        with place.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (place / "units").exists():
                return place / "units"
            for compiler in compilers:
                cause = self.compiled(place, compiler)
                if cause is None:
                    return place / "units"
                causes.append(f"{' '.join(compiler)}: {cause}")
        return "\n".join(causes)

    def for_host(self, factory: pytest.TempPathFactory) -> Path:
        """The program for this machine, with sanitizers; fails the test if it does not compile."""
        program = self.built(factory, "host", [("gcc", *SANITIZE)])
        if isinstance(program, str):
            pytest.fail(f"the unit tests do not compile:\n{program}", pytrace=False)
        return program

    def for_i386(self, factory: pytest.TempPathFactory) -> Path:
        """The program in 32 bits; skips the test where none can be made or run. Fails if a compiler
        makes others, but not this one."""
        if platform.machine() not in ("x86_64", "i686", "i586", "i386"):
            pytest.skip(f"a {platform.machine()} does not run 32-bit x86 programs")
        program = self.built(factory, "i386", [(*each, *TRAP) for each in I386_COMPILERS])
        if isinstance(program, str):
            if any(links(each) for each in I386_COMPILERS):
                pytest.fail(f"the unit tests do not compile:\n{program}", pytrace=False)
            pytest.skip(f"no compiler here links a static i386 program: {program.splitlines()[0]}")
        try:
            subprocess.run([program], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"this machine does not run i386 programs: {error}")
        return program


def run(program: Path, *arguments: object, directory: Path | None = None) -> str:
    """Runs a test, in a directory of its own if it makes files. Returns what it printed, and fails
    with that if the status is not 0."""
    command = [str(program), *map(str, arguments)]
    done = run_within(
        command,
        cwd=directory,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        seconds=60,
    )
    if done.returncode != 0:
        cause = "undefined behaviour (SIGILL)\n" if done.returncode == -4 else ""
        pytest.fail(
            f"{' '.join(command[1:])}: status {done.returncode}\n{cause}{done.stdout}{done.stderr}",
            pytrace=False,
        )
    return done.stdout
