"""`make run`: a lesson's kernel at its prompt in this terminal; without one, a script, to its end.

A kernel that runs programs gets them in an initramfs, and begins with a shell; with --command it
runs that command instead, whose output is printed, and nothing else. The exit status is the
guest's, or the command's, or 1 when something here went wrong, which is said.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from labs.tools.guest.initramfs import Entry, InitramfsError, archive
from labs.tools.guest.package import PackageError
from labs.tools.guest.programs import COMMAND, busybox, guest_root
from labs.tools.machine.command import (
    A_SEED,
    Options,
    in_a_line,
    say,
    typed_path,
    whole_number,
)
from labs.tools.machine.explain import header_problem
from labs.tools.machine.machine import Machine, exit_status, run
from labs.tools.machine.patience import Silence, told
from labs.tools.machine.qemu_command import MEMORY_RANGE, Config, ConfigError, qemu_command
from labs.tools.machine.qemu_process import run_in_terminal
from labs.tools.machine.result import GuestFailure, Outcome
from labs.tools.machine.symbols import symbols_of
from labs.tools.machine.work_folder import end_with_caller, work_folder

SHORT_SCRIPT = "help; memory"
"""What a kernel does where nobody can type."""

DEMONSTRATION = """\
echo "The shell's process is $$; the files are"
ls /
echo one two three | cat | cat
hello from the demonstration
ps
"""
"""The same of a kernel with processes: commands for its shell."""

PROCESSES_SYMBOL = "process_fork"
"""What a kernel has that runs a shell."""

ARCHIVE_SECONDS = 3600
"""An archive that is older is no longer needed: QEMU reads it when it starts."""

COMMAND_SECONDS, GUEST_FACTOR, COMMAND_OUTPUT = 900, 4, 64 << 20
"""The limits of a command: seconds here, guest seconds to each of these, bytes of output."""


MEMORY = whole_number(MEMORY_RANGE[0], MEMORY_RANGE[-1])
LIMITS = whole_number(1, 7 * 24 * 3600)

OF_TIME = (Outcome.WALL_LIMIT, Outcome.HANG)


def machine_options(program: str) -> argparse.ArgumentParser:
    """The options that say which kernel boots how."""
    parser = Options(program)
    parser.add_argument("--build", type=Path, required=True, help="where the kernel was built")
    parser.add_argument("--boot", choices=("disk", "grub", "direct"), default="disk")
    parser.add_argument("--memory", type=MEMORY, default=64, metavar="MIB")
    parser.add_argument("--seed", type=A_SEED, default=2010)
    parser.add_argument("--script", help="commands for the kernel, separated by semicolons")
    parser.add_argument("--user", type=Path, help="the folder of the course's programs")
    parser.add_argument("--core", action="store_true", help="without Debian's programs")
    parser.add_argument(
        "--programs", type=typed_path, metavar="DIR", help="its files are the guest's"
    )
    parser.add_argument("--debian", metavar="NAMES", help="Debian's packages in the guest's root")
    parser.add_argument("--command", help="a command for the guest's shell")
    parser.add_argument(
        "--limit", type=LIMITS, default=COMMAND_SECONDS, help="seconds of a command"
    )
    return parser


def machine_config(options: argparse.Namespace) -> Config:
    """The machine that the options describe, without further drives. Its initramfs is written to
    the folder of the build. Raises ConfigError and InitramfsError."""
    images = {"disk": options.build / "boot.img", "grub": options.build / "grub.iso"}
    return Config(
        boot=options.boot,
        kernel=options.build / "kernel.elf",
        image=images.get(options.boot),
        memory=options.memory,
        seed=options.seed,
        script=options.script,
        initramfs=write_initramfs(options),
    )


def write_initramfs(options: argparse.Namespace) -> Path | None:
    """The guest's files as an archive; None for a kernel that runs no programs."""
    if not options.user:
        if options.programs or options.debian or options.command is not None:
            raise ConfigError("this kernel runs no programs; say LESSON=4 or a later one")
        return None
    return write_archive(options.build, guest_files(options, options.command))


def guest_files(options: argparse.Namespace, command: str | None) -> list[Entry]:
    """What the options put into the guest."""
    box, folders = None if options.core else busybox(), []
    if options.debian:
        from labs.tools.guest.debian import ESSENTIAL, debian_root  # slow to load

        folders.append(debian_root([*options.debian.split(), *ESSENTIAL]))
    folders += [options.programs] if options.programs else []
    return guest_root(options.user, box, folders, command)


def write_archive(build: Path, entries: Iterable[Entry]) -> Path:
    """The archive's place: one file for the same entries; old ones are removed."""
    data = archive(entries)
    path = build / f"initramfs-{hashlib.sha256(data).hexdigest()[:12]}.cpio"
    for old in build.glob("initramfs-*.cpio"):
        with suppress(FileNotFoundError):  # somebody else has removed it
            if time.time() - old.stat().st_mtime > ARCHIVE_SECONDS:
                old.unlink()
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(data)
    return unfinished.replace(path)


def is_terminal() -> bool:
    """Whether a person can type and read here."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def converse(config: Config) -> int:
    """Gives the terminal to the guest. Returns its exit status; 0 when QEMU was ended from here.
    The keys go to the guest, ^C too: QEMU's mon:stdio sees to that."""
    print("Type exit to leave; Ctrl-A X ends the machine at any time.", flush=True)
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    size = (("rows", str(rows)), ("columns", str(columns)))
    config = replace(config, icount=None, debug_exit=True, settings=(*config.settings, *size))
    with work_folder("run") as directory:
        log = directory / "said"
        line = f"stdio,id=line,mux=on,signal=off,logfile={log}"
        channels = ["-chardev", line, "-serial", "chardev:line", "-monitor", "chardev:line"]
        command = qemu_command(config, directory, channels)
        silence = Silence(lambda: log.read_bytes() if log.exists() else b"", gdb_command(config))
        with told(silence, in_place=False):
            code = run_in_terminal(command, directory)
    return exit_status(code) or 0


def gdb_command(config: Config) -> str:
    """What shows a person where this machine is."""
    lesson = config.kernel.parent.name.removeprefix("lesson").removesuffix("-core")
    boot = "" if config.boot == "disk" else f" BOOT={config.boot}"
    return f"make gdb LESSON={lesson}{boot}"


def follow_script(config: Config) -> int:
    """Runs the script, and shows what the guest said. Returns its exit status."""
    try:
        with (
            Machine(config, interactive=False) as machine,
            told(Silence(machine.said_so_far, gdb_command(config)), in_place=False),
        ):
            result = machine.wait()
    except GuestFailure as failure:
        result = failure.result
    print(result.serial, end="")
    if result.outcome is not Outcome.ENDED or result.status is None:
        sys.stdout.flush()
        say(f"\nmake run: {result.explain(with_output=False)}")
    return 1 if result.status is None else result.status


def run_command(config: Config, seconds: int = COMMAND_SECONDS, script: str = COMMAND) -> int:
    """Runs a script of the guest in its shell, for so many seconds at most. Prints its output, as
    far as it has come, and returns its status. Nobody sees a screen.

    Two lines with a word that nobody knows before part its output from the kernel's words, and the
    second has the status: the machine itself can end with 62 of them only.
    """
    word = secrets.token_hex(8)
    command = f"echo {word}; /bin/sh /{script}; echo {word} $?"
    result = run(
        replace(
            config,
            settings=(*config.settings, ("cmd", command)),
            guest_limit=GUEST_FACTOR * seconds,
            wall_limit=seconds,
            output_limit=COMMAND_OUTPUT,
            screen=False,
        )
    )
    before, begun, rest = result.serial.partition(f"{word}\n")
    rest = rest if begun else before
    output, end, status = rest.rpartition(f"{word} ")  # ps shows it, too
    print(output if end else rest, end="")
    if end and result.outcome is Outcome.ENDED and status.split()[:1]:
        return int(status.split()[0])
    words = result.explain(with_output=False)
    more = f" (LIMIT={4 * seconds} gives it more)" if result.outcome in OF_TIME else ""
    say(f"\nThe command did not come to its end: {words}{more}")
    return 1


def has_processes(options: argparse.Namespace) -> bool:
    """Whether the kernel can run a shell and what that starts."""
    try:
        symbols_of(options.build / "kernel.elf").find(PROCESSES_SYMBOL)
    except LookupError:
        return False
    return True


def check_header(kernel: Path) -> None:
    """QEMU's own words for a kernel without a Multiboot header do not help. Raises ConfigError."""
    if problem := header_problem(kernel.read_bytes()):
        raise ConfigError(f"QEMU does not load {kernel}: {problem}. BOOT=disk needs no header")


def main() -> int:
    """Runs the command line; returns the exit status."""
    options = machine_options("make run").parse_args()
    if options.command is None and options.script is None and not is_terminal() and options.user:
        options.command = DEMONSTRATION if has_processes(options) else None
    config = machine_config(options)
    if config.boot == "direct":
        check_header(config.kernel)
    if options.command is not None:
        return run_command(config, options.limit)
    if config.script is None and is_terminal():
        return converse(config)
    return follow_script(replace(config, script=config.script or SHORT_SCRIPT))


def guarded(program: str, command: Callable[[], int]) -> int:
    """Runs a command; what it cannot do becomes one line that names the cause, and status 1. The
    command does not outlive the make that runs it, nor the terminal where it talks to a person."""

    def with_caller() -> int:
        end_with_caller(of_a_person=is_terminal())
        return command()

    return in_a_line(
        program, with_caller, (ConfigError, GuestFailure, InitramfsError, PackageError)
    )


if __name__ == "__main__":
    sys.exit(guarded("make run", main))
