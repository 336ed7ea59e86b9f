"""`make run`: a lesson's kernel at its prompt in this terminal; without one, a script, to its end.

The exit status is the guest's, or 1 when something here went wrong, which is said.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from labs.tools.machine import exit_status, run
from labs.tools.qemu_command import Config, ConfigError, qemu_command
from labs.tools.result import GuestFailure, Outcome

SHORT_SCRIPT = "help; memory"
"""What a kernel does where nobody can type."""

# Multiboot 0.6.96, section 3.1.
HEADER_MAGIC, HEADER_BYTES = 0x1BADB002, 8192


def machine_options(program: str) -> argparse.ArgumentParser:
    """The options that say which kernel boots how."""
    parser = argparse.ArgumentParser(prog=program, allow_abbrev=False)
    parser.add_argument("--build", type=Path, required=True, help="where the kernel was built")
    parser.add_argument("--boot", choices=("disk", "grub", "direct"), default="disk")
    parser.add_argument("--memory", type=int, default=64, metavar="MIB")
    parser.add_argument("--seed", type=int, default=2010)
    parser.add_argument("--script", help="commands for the kernel, parted by semicolons")
    return parser


def machine_config(options: argparse.Namespace) -> Config:
    """The machine that the options describe, without further drives."""
    images = {"disk": options.build / "boot.img", "grub": options.build / "grub.iso"}
    return Config(
        boot=options.boot,
        kernel=options.build / "kernel.elf",
        image=images.get(options.boot),
        memory=options.memory,
        seed=options.seed,
        script=options.script,
    )


def is_terminal() -> bool:
    """Whether a person can type and read here."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def converse(config: Config) -> int:
    """Gives the terminal to the guest. Returns its exit status; 0 when QEMU was ended from here."""
    print("Type exit to leave; Ctrl-A X ends the machine at any time.", flush=True)
    config = replace(config, icount=None, debug_exit=True)
    with tempfile.TemporaryDirectory() as directory:
        command = qemu_command(config, Path(directory), ["-serial", "mon:stdio"])
        code = subprocess.run(command, check=False).returncode
    return exit_status(code) or 0


def follow_script(config: Config) -> int:
    """Runs the script, and shows what the guest said. Returns its exit status."""
    result = run(config)
    print(result.serial, end="")
    if result.outcome is not Outcome.ENDED or result.status is None:
        sys.stdout.flush()
        print(f"\nmake run: {result.explain(with_output=False)}", file=sys.stderr)
    return 1 if result.status is None else result.status


def check_header(kernel: Path) -> None:
    """QEMU's own words for a kernel without a Multiboot header do not help. Raises ConfigError."""
    begin = kernel.read_bytes()[:HEADER_BYTES]
    words = [word for (word,) in struct.iter_unpack("<I", begin[: len(begin) // 4 * 4])]
    for magic, flags, checksum in zip(words, words[1:], words[2:], strict=False):
        if magic == HEADER_MAGIC and (magic + flags + checksum) % (1 << 32) == 0:
            return
    raise ConfigError(
        f"{kernel} has no Multiboot header in its first 8 KiB, so QEMU does not load it: that is "
        "exercise 1.1. BOOT=disk needs none"
    )


def main() -> int:
    """Runs the command line; returns the exit status."""
    config = machine_config(machine_options("make run").parse_args())
    if config.boot == "direct":
        check_header(config.kernel)
    if config.script is None and is_terminal():
        return converse(config)
    return follow_script(replace(config, script=config.script or SHORT_SCRIPT))


def guarded(program: str, command: Callable[[], int]) -> int:
    """Runs a command; what it cannot do becomes one line that names the cause, and status 1."""
    try:
        return command()
    except (ConfigError, GuestFailure) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(guarded("make run", main))
