"""Runs programs that a student wrote, and compilers that read what a student wrote, in a box.

The box (bubblewrap) has the system's libraries and, for what builds, its programs, one directory at
/tree, an empty /tmp, and no network, no other process, no environment. Of a tree that has a
directory build/ only that can be written to. prlimit bounds time, memory and files.

Where bubblewrap cannot make it (a container without user namespaces), Landlock and seccomp make
another one (landlock_box.py): the directory has its own path, and names of processes are seen.

run(["make", "-s", "build/kernel.elf"], Path("tree"), BUILD)
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

INSIDE = "/tree"
# What the programs that were made need of the system, and what compilers and the build's tools need
# besides. Nothing else is there: somebody's files may be below /usr, too.
LIBRARIES = tuple(f"/usr/{name}" for name in ("lib", "lib32", "lib64", "libx32"))
TOOLS = (
    *("/usr/bin", "/usr/sbin", "/usr/libexec"),
    *("/usr/include", "/usr/share/grub", "/etc/alternatives"),
)
CROSS = "/usr/*-linux-gnu*"  # each has the C library of another machine
LINKS = {"/lib": "usr/lib", "/lib64": "usr/lib64"}
LINKS_OF_TOOLS = {"/bin": "usr/bin", "/sbin": "usr/sbin"}
TEMPORARY_BYTES = 256 << 20
ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", "HOME": "/tmp"}
REMEDY = (
    "It needs bubblewrap and user namespaces: apt-get install bubblewrap; in a container, allow "
    "user namespaces (docker: --security-opt seccomp=unconfined --security-opt "
    "apparmor=unconfined); elsewhere, sysctl kernel.unprivileged_userns_clone=1 and "
    "kernel.apparmor_restrict_unprivileged_userns=0. Without them, Linux 6.2 or later and: "
    ".venv/bin/python -m pip install -r labs/tools/setup/requirements-box.txt"
)
# Another user than root, who may still read what is root's. Landlock says what that is.
NOBODY = 65534
AS_NOBODY = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    "--inh-caps=-all,+dac_override",
    "--ambient-caps=-all,+dac_override",
    "--bounding-set=-all,+dac_override",
)


class SandboxUnavailable(RuntimeError):
    """This machine cannot make the box; the text says why, and what helps."""


@dataclass(frozen=True)
class Limits:
    """processor: seconds of a process; wall: seconds of all of it; memory: bytes of address space
    of a process, None without a limit; file: bytes of any file; output: bytes that are kept."""

    processor: int
    wall: float
    memory: int | None
    file: int
    output: int = 64 << 10

    def prefix(self) -> list[str]:
        """The command that sets the limits of what follows."""
        memory = [f"--as={self.memory}"] if self.memory else []
        return ["prlimit", f"--cpu={self.processor}", f"--fsize={self.file}", "--core=0", *memory]


BUILD = Limits(processor=5, wall=300, memory=512 << 20, file=32 << 20)
PROGRAM = Limits(processor=5, wall=100, memory=None, file=1 << 20)

# Of a program and all that it starts (prlimit knows single processes only, and not root's number of
# them; an address space with a sanitizer's shadow has no limit that helps).
MOST_PROCESSES = 32
MOST_MEMORY = 2 << 30  # bytes
LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Finished:
    """What came of it: the exit status (negative: the signal), the output, and, when a limit ended
    it, which one in words."""

    status: int
    output: str
    limit: str = ""


def box(
    directory: Path,
    writable: bool = True,
    tools: bool = True,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """The command that starts the rest of the line in the box, in `directory`. Where that is not
    writable, nothing is but /tmp; of a tree only build/ is. tools: the system's programs are there;
    one that knows file systems, for instance, would do a student's work. settings: more of the
    environment."""
    build = directory / "build"
    is_tree = build.is_dir() and not build.is_symlink()
    environment = ENVIRONMENT | settings
    if not why_no_bubblewrap():
        return bubblewrap(directory, writable, is_tree, tools, environment)
    places = [build if is_tree else directory] if writable else []
    return landlock(directory, places, tools, environment)


def inside(directory: Path) -> str:
    """What a directory is called in its box."""
    return INSIDE if not why_no_bubblewrap() else str(directory)


def systems(tools: bool) -> list[str]:
    """What is in each box."""
    return [*LIBRARIES, *(TOOLS if tools else ()), *sorted(map(str, Path("/").glob(CROSS[1:])))]


def links(tools: bool) -> dict[str, str]:
    """The links to it, of machines that have moved all to /usr."""
    return LINKS | LINKS_OF_TOOLS if tools else LINKS


def bubblewrap(
    directory: Path,
    writable: bool,
    is_tree: bool,
    tools: bool = True,
    environment: Mapping[str, str] = ENVIRONMENT,
) -> list[str]:
    """The box of namespaces."""
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    for name, value in environment.items():
        command += ["--setenv", name, value]
    for system in systems(tools):
        command += ["--ro-bind-try", system, system]
    for link, target in links(tools).items():
        command += ["--symlink", target, link] if Path(link).is_symlink() else bound(link)
    command += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    command += ["--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp"]
    command += ["--bind" if writable and not is_tree else "--ro-bind", str(directory), INSIDE]
    if writable and is_tree:
        command += ["--bind", str(directory / "build"), f"{INSIDE}/build"]
    return [*command, "--remount-ro", "/", "--chdir", INSIDE]


def landlock(
    directory: Path,
    writable: Sequence[Path],
    tools: bool = True,
    environment: Mapping[str, str] = ENVIRONMENT,
) -> list[str]:
    """The box of refusals."""
    there = [path for path in (*systems(tools), *links(tools)) if os.path.exists(path)]
    words = [f"--read={path}" for path in (*there, directory.absolute())]
    words += [f"--write={path.absolute()}" for path in writable]
    variables = [f"{name}={value}" for name, value in environment.items()]
    where = ["env", "-i", f"--chdir={directory.absolute()}", *variables]
    who = AS_NOBODY if os.geteuid() == 0 else ()
    python = [sys.executable, "-I", str(Path(__file__).with_name("landlock_box.py"))]
    return [*where, *who, *python, *words, "--"]


def bound(path: str) -> list[str]:
    """A system directory of a machine that has not moved it to /usr."""
    return ["--ro-bind-try", path, path]


@cache
def why_no_bubblewrap() -> str:
    """Empty when its box works here; else the cause."""
    for program in ("bwrap", "prlimit"):
        if not shutil.which(program):
            return f"{program} is not installed"
    return cause(lambda empty: bubblewrap(empty, True, False))


@cache
def why_unavailable() -> str:
    """Empty when one of the boxes works here; else why none does."""
    if not why_no_bubblewrap() or not (other := cause(lambda empty: landlock(empty, [empty]))):
        return ""
    return f"{why_no_bubblewrap()}; without namespaces: {other}"


def cause(box_of: Callable[[Path], list[str]]) -> str:
    """Why a box does not work here; empty when it does."""
    with tempfile.TemporaryDirectory() as empty:
        trial = [*BUILD.prefix(), *box_of(Path(empty)), "true"]
        try:
            done = subprocess.run(trial, capture_output=True, text=True, check=False)
        except OSError as error:
            return str(error)
    words = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (words or [f"status {done.returncode}"])[-1]


def require() -> None:
    """Raises SandboxUnavailable where the box does not work."""
    if cause := why_unavailable():
        raise SandboxUnavailable(f"the sandbox does not work on this machine: {cause}\n{REMEDY}")


def unboxed_environment() -> dict[str, str]:
    """Ours without CI, which makes errors of a compiler's warnings: a student's tree is built the
    same way everywhere."""
    return {name: value for name, value in os.environ.items() if name != "CI"}


def run(command: Sequence[str], directory: Path, limits: Limits, boxed: bool = True) -> Finished:
    """Runs a command in `directory`, which it may write to; `boxed=False` leaves only the limits.

    The output is that of both streams together, cut at limits.output. Raises SandboxUnavailable.
    """
    if boxed:
        require()
    command = [*limits.prefix(), *(box(directory) if boxed else ()), *command]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **ENVIRONMENT} if boxed else unboxed_environment(),
            start_new_session=True,
        )
        limit = ""
        if not ended_within(process, limits.wall):
            limit = f"it did not end within {limits.wall:g} seconds"
            kill_all(process)
        status = process.wait()
        output.seek(0)
        words = output.read(limits.output).decode(errors="replace")
    return Finished(status, words, limit)


def ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Waits for the end of a process, at most so long. (Popen.wait with a timeout looks only every
    50 ms, a tenth of what a build takes.)"""
    descriptor = os.pidfd_open(process.pid)
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


@contextmanager
def watched(process: int) -> Iterator[None]:
    """Ends all that a process has started as soon as that is too many processes, or too much
    memory."""
    over = threading.Event()
    watch = threading.Thread(target=watch_until, args=(over, process))
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()


def watch_until(over: threading.Event, process: int) -> None:
    """Looks again and again at what a process has started."""
    while not over.wait(LOOK_SECONDS):
        family = descendants(process)
        if len(family) > MOST_PROCESSES or sum(family.values()) > MOST_MEMORY:
            for each in family:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)


def descendants(process: int) -> dict[int, int]:
    """What a process has started, and what that has: process ids, and resident bytes of each."""
    parents, sizes = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
            number = int(entry.parent.name)
            parents[number], sizes[number] = int(fields[1]), int(fields[21])
    known, before = {process}, set()
    while known != before:
        before, known = known, known | {each for each in parents if parents[each] in known}
    return {each: sizes[each] * os.sysconf("SC_PAGE_SIZE") for each in known - {process}}


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """Ends the box, and with it all that runs in it; without a box, the process group."""
    os.killpg(process.pid, signal.SIGKILL)
