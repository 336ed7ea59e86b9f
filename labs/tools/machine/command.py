"""What all commands of the Makefile have in common: the environment of what they start, paths that
a person types, and what that person reads when something here goes wrong.

sys.exit(in_a_line("make grade", main))
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from labs.tools.machine.language import told

ROOT = Path(__file__).resolve().parents[3]
DETAILS = ROOT / "build/details.txt"
STREAMS = 3  # descriptors that each program finds open
INTERRUPTED = 130  # what a shell says after ^C

# What changes how a Python, a pytest or git works, and what the make around us hands down.
OUTSIDE = ("PYTHON", "PYTEST_", "GIT_", "MAKE")
# The Makefile sets them: one changes no result; a folder's name may be no text of the locale.
OURS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUTF8")

# Options that are not called as make's variable of them is.
VARIABLES = {"memory": "MEM", "command": "CMD", "exercise": "EX"}


class CommandError(RuntimeError):
    """What a command cannot do; the text is for a person."""


class Options(argparse.ArgumentParser):
    """A command line that says in one line what is wrong with it, and with which variable of make.
    Names of options are never shortened."""

    def __init__(self, prog: str, description: str | None = None) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Ends the program with status 2."""
        self.exit(2, f"{self.prog}: {re.sub(r'^argument (--)?([a-z-]+)', variable, message)}\n")


def variable(option: re.Match[str]) -> str:
    """The variable of make that becomes an option: MEM of --memory."""
    return VARIABLES.get(option[2], option[2].upper())


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """What argparse takes for a whole number within these limits."""

    def parse(text: str) -> int:
        if not re.fullmatch("-?[0-9]{1,20}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {least} to {most}"
            )
        return int(text)

    return parse


A_SEED = whole_number(0, (1 << 64) - 1)
A_COUNT = whole_number(1, 10_000_000)  # how often something is done


def own_environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for a Python, pytest, git or make of ours: they do the same whatever a person
    has set for their own (PYTHONOPTIMIZE would take the checks away, PYTEST_ADDOPTS add tests)."""
    return {k: v for k, v in base.items() if k in OURS or not k.startswith(OUTSIDE)}


def typed_path(text: str) -> Path:
    """A path that a person typed, for argparse. A shell leaves ~ alone in DIR='~/x'."""
    path = os.path.expanduser(text)
    if path.startswith("~"):
        raise argparse.ArgumentTypeError(f"{text}: there is no such user (./{text} is a file here)")
    return Path(path)


def open_streams() -> None:
    """What a shell has closed (make run <&-) becomes /dev/null: else Python has no such stream, and
    the next file that is opened becomes one."""
    while (opened := os.open(os.devnull, os.O_RDWR)) < STREAMS:
        os.set_inheritable(opened, True)
    os.close(opened)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (it stays open)


def in_a_line(
    program: str, command: Callable[[], int], known: tuple[type[BaseException], ...] = ()
) -> int:
    """Runs a command, and returns its exit status. Errors that are `known` say all themselves; of
    any other one a person reads the cause, and where the details are."""
    open_streams()
    try:
        status = command()
        sys.stdout.flush()
        return status
    except (CommandError, *known) as error:
        say(f"{program}: {error}")
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # as with | head
        end_output()
    except Exception as error:
        say(f"{program}: {cause(error)}{where_details_are()}")
        end_output()
    return 1


def end_output() -> None:
    """Drops what can no longer be written: Python would say so once more at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(words: str) -> None:
    """Tells a person who may have closed the terminal, in their language."""
    with suppress(OSError):
        print(told(words), file=sys.stderr, flush=True)


def cause(error: Exception) -> str:
    """An error in a line."""
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        if error.errno == errno.ENOSPC and not place:
            place = f"{os.environ.get('TMPDIR') or '/tmp'}, or where the output goes: "
        return f"{place}{error.strerror}"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def where_details_are() -> str:
    """Writes the trace back to a file; words that name it, or none where that cannot be done."""
    try:
        DETAILS.parent.mkdir(exist_ok=True)
        DETAILS.write_text(traceback.format_exc())
    except OSError:
        return ""
    return f"\n  details: {os.path.relpath(DETAILS)}"
