"""The book's references, made from what they are about: `make help`, the docstrings of gdb's
commands, the kernel's tables of commands. A page has a directive for each:

    ```{reference} make
    ```

What Sphinx translates are the texts of the sources; a new one fails the build until it is
translated.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[3]
TARGET = re.compile(r"  (make \S+(?: \S+)*?) {2,}(\S.*)")
OPTION = re.compile(r" {20}(\S+(?: \S+)*?) {2,}(\S.*)")
SETTING = re.compile(r"\[?[A-Z]+=(?:'[^']*'|[^\s,:)\]]+)\]?")
ENTRY = re.compile(
    r'^\t\{ "([^"]+)", "([^"]*)",\s+((?:"(?:[^"\\]|\\.)*"\s*)+),\s*\d+,\s*\w+ \}', re.MULTILINE
)
TABLE = "COMMAND_TABLE = {"


class Command(NamedTuple):
    """A command, as it is typed, and what it does. A make command's options follow it."""

    usage: str
    does: str
    is_option: bool = False


def of_make(root: Path = ROOT) -> dict[str, list[Command]]:
    """What `make` lists, by its headings. Raises CalledProcessError (of subprocess)."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    told = subprocess.run(
        ["make", "-s", "help"],
        cwd=root,
        env={**kept, "LC_ALL": "C", "LANGUAGE": "en"},
        capture_output=True,
        text=True,
        check=True,
    )
    return read_help(told.stdout)


def read_help(told: str) -> dict[str, list[Command]]:
    """The same from its text. Raises ValueError for a line of another form."""
    found: dict[str, list[Command]] = {}
    here: list[Command] = []
    for line in filter(None, told.splitlines()):
        if not line.startswith(" "):
            found[line.rstrip(":")] = here = []
        elif target := TARGET.fullmatch(line):
            here.append(Command(target[1], target[2]))
        elif option := OPTION.fullmatch(line):
            here.append(Command(option[1], option[2], is_option=True))
        elif here and line.startswith(" " * 18):
            last = here.pop()
            here.append(last._replace(does=f"{last.does} {line.strip()}"))
        else:
            raise ValueError(f"make help: {line!r} is not a command, an option or the rest of one")
    return found


def of_gdb(root: Path = ROOT) -> list[Command]:
    """What `make gdb` adds to gdb: the functions that have a @command."""
    found = []
    for path in (root / "labs/tools/debugging/gdb").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for mark in getattr(node, "decorator_list", ()):
                if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "command":
                    usage = " ".join(ast.literal_eval(each) for each in mark.args)
                    found.append(Command(usage, " ".join(ast.get_docstring(node).split())))
    return sorted(found)


def of_kernel(root: Path = ROOT) -> list[tuple[str, list[Command]]]:
    """What the kernel's prompt knows, by the lesson whose kernel has it first. Raises ValueError
    for a table in which a line has another form."""
    files = [
        *(root / "kernel/report").glob("*.c"),
        *sorted((root / "labs").glob("lesson*/*.c")),
        *sorted((root / "labs/storage").glob("*.c")),
    ]
    found: dict[str, list[Command]] = {}
    for path in files:
        source = path.read_text(encoding="utf-8")
        if TABLE in source:
            table = source.partition(TABLE)[2].partition("\n};")[0]
            folder = path.parent.name if path.parent.parent.name == "labs" else "lesson1"
            entries = ENTRY.findall(table)
            if len(entries) != table.count("\n\t{ "):
                raise ValueError(f"{path.name}: a command that cannot be read")
            for name, arguments, text in entries:
                does = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace('\\"', '"')
                found.setdefault(folder, []).append(Command(f"{name} {arguments}".strip(), does))
    return [(folder, sorted(commands)) for folder, commands in found.items()]


def cell(text: str) -> str:
    """A text in a table of Markdown; settings such as LESSON=1 are code."""
    plain = re.sub(r"[*_<>\\]", r"\\\g<0>", text)
    for each in SETTING.findall(text):
        plain = plain.replace(re.sub(r"[*_<>\\]", r"\\\g<0>", each), f"`{each}`", 1)
    return plain.replace("|", "\\|")


def table(commands: list[Command]) -> Iterator[str]:
    """The commands as a table of Markdown."""
    yield "| command | what it does |"
    yield "|---|---|"
    for each in commands:
        usage = each.usage.replace("|", "\\|")
        mark = "+ " if each.is_option else ""
        yield f"| {mark}`{usage}` | {cell(each.does)} |"
    yield ""


def make_page() -> Iterator[str]:
    """The commands of make."""
    for heading, commands in of_make().items():
        yield f"## {heading.removesuffix('. The commands')}\n"
        yield from table(commands)


def gdb_page() -> Iterator[str]:
    """The commands of gdb."""
    yield from table(of_gdb())


def kernel_page() -> Iterator[str]:
    """The commands of the kernel's prompt."""
    for folder, commands in of_kernel():
        name = folder.removeprefix("lesson")
        yield f"## {f'Since lesson {name}' if name.isdigit() else 'In the storage lab'}\n"
        yield from table(commands)


PAGES = {"make": make_page, "gdb": gdb_page, "kernel": kernel_page}


class Reference(SphinxDirective):
    """Shows one of PAGES."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The page's nodes, as if its text were there."""
        text = "\n".join(PAGES[self.arguments[0]]())
        return self.parse_text_to_nodes(text, allow_section_headings=True)
