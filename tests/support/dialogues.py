"""Dialogues in texts, and whether they are what is shown today.

A fence `console` is a dialogue with the shell: `$ make ...`, and what comes out of it. A fence
`gdb` is a piece of a walk: `(gdb) ...`, and what gdb shows. In both, `...` stands for lines left
out. Addresses and sizes that follow the compiler are compared by their form only.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.tools.machine.bounded import run_within

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GDB_PROMPT, SHELL_PROMPT = "(gdb) ", "$ "
SECONDS = 600
UNKNOWN = "<optimized out>"
LEFT_OUT = "..."

# Numbers that the text explains; others of their length follow the compiler.
EXPLAINED = {
    *(0x7C00, 0x8000, 0x7DFE, 0xE05B, 0xFFFFFFF0, 0x100000, 0xC0000000, 0xF7FFFFFF, 0x3FFFFF, 0),
    *(0x2BADB002, 0x1BADB002, 0xE4524FFB, 3, 0x1234, 0xFFFFFFFF, 0x3F8, 0x08000003, 0x7C05),
}


@dataclass(frozen=True)
class Step:
    """A command, and the lines that it shows."""

    command: str
    shows: tuple[str, ...]


def steps(text: str, language: str, prompt: str) -> list[Step]:
    """The commands of all fences of a language. A folded answer either repeats the commands before
    it, with what they show (each is one step), or goes on with further ones."""
    found: list[Step] = []
    asked = 0  # how many of the last ones have no answer yet
    for match in FENCE.finditer(text):
        if match[1] != language:
            continue
        head, *parts = re.split(rf"^{re.escape(prompt)}", match[2], flags=re.MULTILINE)
        assert not head, f"a fence begins with {head!r}, not with {prompt}"
        new = [Step(command, tuple(lines)) for command, *lines in map(lines_of, parts)]
        commands = [step.command for step in new]
        known = [step.command for step in found[len(found) - asked :]]
        if not is_folded(text, match.start()):
            found, asked = found + new, len(new)
        elif commands == known:
            found[len(found) - asked :], asked = new, 0
        else:
            assert commands[0] not in known, f"asked: {known}, answered: {commands}"
            found, asked = found + new, 0
    return found


def lines_of(part: str) -> list[str]:
    return part.rstrip("\n").split("\n")


def is_folded(text: str, place: int) -> bool:
    """Is this place of a handout in an answer that the reader opens?"""
    before = text[:place]
    return before.count("<details>") > before.count("</details>")


def form(line: str) -> str:
    """The line without what follows the compiler or the host."""

    def number(match: re.Match[str]) -> str:
        return match[0] if int(match[1], 16) in EXPLAINED else "0x~"

    if not line.lstrip("| ").startswith(("memory:", "0x00", "0x0f", "probe")):
        line = re.sub(r"0x([0-9a-f]{4,})\b", number, line)
    line = re.sub(r"\b[0-9a-f]{8}\b", "~", line)
    line = re.sub(r"^(Breakpoint \d+)\.\d+,", r"\1,", line)  # inlined, too: two places
    line = re.sub(r"\+0x[0-9a-f]+|\+ \d+|ds:0x\w+", "+~", line)
    line = re.sub(r"^#\d+ +(0x~ in )?", "#~ ", line)  # compilers inline other functions
    line = re.sub(r"kernel of \d+ bytes|\b\d+ of \d+ KiB free|\d+ kHz", "~", line)
    line = re.sub(r"of /\S*/build/", "of build/", line)
    line = re.sub(r"^(\$\d+|  \w+)( = 0x)\w{3,}(,?)$", r"\1\2~\3", line)
    return line.rstrip()


def missing(shows: tuple[str, ...], output: str) -> str | None:
    """The first shown line that does not come in its order; there may be others between: gdb says
    more than a page should."""
    lines = iter([form(line) for line in output.splitlines()])
    wanted = [form(line) for line in shows if line != LEFT_OUT and line.strip()]
    return next((line for line in wanted if not any(fits(line, each) for each in lines)), None)


def fits(shown: str, line: str) -> bool:
    """Is this the shown line? One that ends in ... says only how it begins. A value that one
    compiler keeps track of, another does not."""
    pattern = re.escape(shown.removesuffix(LEFT_OUT).rstrip())
    pattern = pattern.replace(re.escape(UNKNOWN), "[^,)]+")
    return bool(re.fullmatch(pattern + (".*" if shown.endswith(LEFT_OUT) else ""), line))


def walked(command: Sequence[str], walk: Sequence[Step], folder: Path) -> None:
    """Types all the walk's commands in one session of gdb that `command` begins, with a script as
    its last argument; the first line that is not shown fails."""
    mark = "@@ step {} @@"
    script = folder / "walk.gdb"
    typed = (f"echo {mark.format(index)}\\n\n{step.command}\n" for index, step in enumerate(walk))
    script.write_text("".join(typed) + f"echo {mark.format(len(walk))}\\n\n")
    shown, errors = shown_in_time([*command, "--batch", str(script)])
    for index, step in enumerate(walk):
        _, found, rest = shown.partition(mark.format(index) + "\n")
        assert found, f"the walk ends before {step.command}:\n{shown}{errors}"
        output = rest.partition(mark.format(index + 1))[0]
        line = missing(step.shows, output)
        assert line is None, f"(gdb) {step.command} does not show {line!r}:\n{output}"


def shown_in_time(command: list[str]) -> tuple[str, str]:
    """What a command prints on its two streams, or has printed when its time is over: the step
    at which it waits for ever is behind the last that it shows."""
    try:
        done = run_within(command, cwd=ROOT, capture_output=True, seconds=SECONDS, check=False)
        output = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b"", (late.stderr or b"") + b"(no end within the test's time)"
    shown, errors = (text.decode(errors="replace") for text in output)
    return shown, errors
