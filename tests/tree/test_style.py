"""The house's rules for the source: form and sizes. Needs no build; who uses whom does, and is in
test_arrows.py."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import cache
from itertools import pairwise
from pathlib import Path, PurePosixPath

import pytest

from labs.tools.course import budget, room_readme, tables
from labs.tools.course.rooms import breadth, part_of, rooms

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {*(folder.split("/")[0] for folder in rooms()), "tests"}
TOOLS = Path(sys.executable).parent  # ruff and clang-format, as pinned
COLUMNS = 100
TAB = 8
FILE_LINES = 500

# What C11 (4, paragraph 6) promises without a C library, and the compiler's own headers.
FREESTANDING = {
    *("float.h", "iso646.h", "limits.h", "stdalign.h", "stdarg.h", "stdbool.h", "stddef.h"),
    *("stdint.h", "stdnoreturn.h", "cpuid.h"),
}

# How a file's first comment begins.
COMMENTS = {
    **dict.fromkeys((".c", ".h", ".ld"), "/*"),
    **dict.fromkeys((".awk", ".sh"), "#"),
    ".asm": ";",
    ".py": '"""',
}


def fail_with(problems: list[str]) -> None:
    """Fails with one line a problem: file, line, and what to do."""
    if problems:
        pytest.fail("\n" + "\n".join(problems), pytrace=False)


@cache
def listed() -> tuple[str, ...]:
    """Files that git knows or would add, by path from the root, and that are there."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(f"git cannot list the files: {done.stderr.strip()}", pytrace=False)
    return tuple(sorted({name for name in done.stdout.split("\0") if (ROOT / name).is_file()}))


@cache
def files(*patterns: str) -> Sequence[str]:
    """Every file of the project whose path fits one of the patterns (a * also crosses a /)."""
    return [name for name in listed() if any(fnmatch(name, pattern) for pattern in patterns)]


def c_files() -> list[str]:
    return [name for name in files("*.c", "*.h") if name.split("/")[0] in ROOMS]


def shell_files() -> list[str]:
    """Shell scripts, by name or by their first line."""
    named = [name for name in files("*") if PurePosixPath(name).suffix in ("", ".sh")]
    return [name for name in named if re.match(r"#!.*\b(ba)?sh\b", lines_of(name)[0])]


@cache
def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def lines_of(name: str) -> list[str]:
    return text_of(name).split("\n")


def numbered(names: list[str]) -> Iterator[tuple[str, int, str]]:
    """File, line number and line, of all the files."""
    for name in names:
        for number, line in enumerate(lines_of(name), 1):
            yield name, number, line


def run_checker(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"\n{done.stdout}{done.stderr}", pytrace=False)


# ---- form ---------------------------------------------------------------------------------------


def test_c_is_formatted() -> None:
    names = c_files()
    if names:
        done = subprocess.run(
            [TOOLS / "clang-format", "--dry-run", "-Werror", *names],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        places = re.findall(r"^(\S+?:\d+):\d+: (?:error|warning)", done.stderr, re.MULTILINE)
        fail_with([f"{place}: not in its form: run make format" for place in dict.fromkeys(places)])
        assert done.returncode == 0, done.stderr


def test_python_is_clean() -> None:
    run_checker(str(TOOLS / "ruff"), "check", "--quiet", "--output-format=concise", ".")


def test_python_is_formatted() -> None:
    run_checker(str(TOOLS / "ruff"), "format", "--check", "--quiet", ".")


def test_shell_is_clean() -> None:
    run_checker("shellcheck", "--format=gcc", *shell_files())


def test_lines_are_not_wide() -> None:
    names = files("*.c", "*.h", "*.asm", "*.ld", "*.py", "*.sh", "*.awk", "*.toml", "Makefile")
    fail_with(
        [
            f"{name}:{number}: {width} columns; break the line at {COLUMNS}"
            for name, number, line in numbered(names)
            if (width := len(line.expandtabs(TAB))) > COLUMNS
        ]
    )


def test_drawings_are_whole() -> None:
    """clang-format breaks a line that is too wide, and fills the next one with the rest."""
    broken = [
        f"{name}:{number}: the end of a drawing's line: make the line above shorter"
        for name in files("*.c", "*.h")
        for number, (above, line) in enumerate(pairwise(lines_of(name)), 2)
        if above.startswith(" *\t") and re.match(r" \* \S", line)
    ]
    fail_with(broken)


def test_first_line_says_what_the_file_is() -> None:
    problems = []
    for name in files(*(f"*{suffix}" for suffix in COMMENTS)):
        lines = [line for line in lines_of(name) if not line.startswith("#!")]
        if not lines[0].startswith(COMMENTS[PurePosixPath(name).suffix]):
            problems.append(f"{name}:1: begin with a comment that says what the file is")
    fail_with(problems)


# ---- sizes --------------------------------------------------------------------------------------


def test_files_are_short() -> None:
    fail_with(
        [
            f"{name}:{count}: {count} lines; split it, a file has fewer than {FILE_LINES}"
            for name in files("*.c", "*.h", "*.asm", "*.py", "*.sh", "*.awk", "Makefile")
            if (count := text_of(name).count("\n")) >= FILE_LINES
        ]
    )


def function_bodies(name: str) -> Iterator[tuple[int, int]]:
    """First line and length of each function's body. In the house's form only a function's braces
    stand in the first column, alone or with an attribute or a comment behind."""
    start = None
    for number, line in enumerate(lines_of(name), 1):
        if line == "{":
            start = number
        elif start is not None and line.startswith("}"):
            yield start, number - start - 1
            start = None


def test_functions_are_short() -> None:
    bodies = sorted(
        (length, name, line) for name in c_files() for line, length in function_bodies(name)
    )
    if len(bodies) < 2:
        return
    lengths = [length for length, _, _ in bodies]
    median, p90 = statistics.median(lengths), statistics.quantiles(lengths, n=10)[8]
    problems = [
        f"{name}:{line}: a function of {length} lines; split it, none has more than 50"
        for length, name, line in bodies
        if length > 50
    ]
    longest = ", ".join(f"{name}:{line} ({length})" for length, name, line in bodies[:-11:-1])
    if median > 10:
        problems.append(f"the median function has {median} lines; at most 10. Longest: {longest}")
    if p90 > 28:
        problems.append(f"one function in ten has {p90} lines; at most 28. Longest: {longest}")
    fail_with(problems)


def test_line_budgets() -> None:
    fail_with([f"{problem}; make budget shows the table" for problem in budget.overdrawn()])


def test_core_after_the_last_lesson() -> None:
    """It has the loader, headers and the last main.c, and nothing that a later lesson replaced."""
    files = budget.last_core()
    assert {"boot/loader.c", "boot/mbr.asm", "mm/area.h", "labs/lesson6/main.c"} <= files
    assert not {"mm/early.c", "mm/space_slot.h", "labs/lesson5/main.c"} & files
    assert not [path for path in files if part_of(path) != "core"]


def test_tables_are_todays() -> None:
    fail_with(
        [
            f"{path.relative_to(ROOT)}: its table is not today's: run make tables"
            for path, text in tables.texts()
            if path.read_text() != text
        ]
    )


def test_readmes_name_files_that_are_there() -> None:
    """What looks like a path, in the READMEs of the root and of the folders."""
    shape = re.compile(r"`([\w-]+(?:/[\w.-]+)+|[\w-]+\.(?:c|h|asm|inc|ld|toml))`|^\s{4}([\w-]+/) ")
    fail_with(
        [
            f"{name}:{number}: {match} is not there"
            for name, number, line in numbered(["README.md", *room_readme.readmes()])
            for found in shape.finditer(line)
            if (match := found[1] or found[2])
            and not (ROOT / match).exists()
            and not list((ROOT / name).parent.rglob(match))
            and not list(ROOT.glob(f"{match}.*"))
        ]
    )


def test_tools_import_no_test() -> None:
    fail_with(
        [
            f"{name}:{number}: a tool imports a test; move what both need into labs/tools"
            for name, number, line in numbered(files("labs/*.py"))
            if re.match(r"\s*(from|import) (tests|conftest|gdb_)\b", line)
        ]
    )


# ---- what may be included -----------------------------------------------------------------------


def includes(name: str) -> Iterator[tuple[int, str, str]]:
    """Line number, opening character (< or ") and path of each include."""
    for number, line in enumerate(lines_of(name), 1):
        if match := re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line):
            yield number, match[1], match[2]


def in_kernel(name: str) -> bool:
    """Is it in one of the kernel's rooms, or in a lesson's or lab's list of files to link?"""
    if name.split("/")[0] in ("boot", "kernel", "mm", "drivers", "fs"):
        return True
    return any(name in lines_of(sources) for sources in files("labs/*/sources"))


def test_kernel_includes_no_c_library() -> None:
    fail_with(
        [
            f"{name}:{number}: <{path}> needs a C library; the kernel has kernel/lib for that"
            for name in c_files()
            if in_kernel(name)
            for number, kind, path in includes(name)
            if kind == "<" and path not in FREESTANDING
        ]
    )


@cache
def brought_by(name: str) -> frozenset[str]:
    """What a file of ours includes, directly or not: paths of ours, and standard headers."""
    paths = {path for _, kind, path in includes(name) if kind == '"' and path in listed()}
    found = {path for _, kind, path in includes(name) if kind == "<"} | paths
    return frozenset(found.union(*map(brought_by, paths)))


def includes_twice(name: str) -> Iterator[str]:
    """The includes of a file, its own header excepted, that another one brings."""
    own = str(PurePosixPath(name).with_suffix(".h"))
    paths = {path for _, kind, path in includes(name) if kind == '"' and path in listed()}
    for number, _, path in includes(name):
        if path != own and any(path in brought_by(other) for other in paths - {path}):
            yield f"{name}:{number}: {path} is included by another header here: leave it out"


def test_kernel_includes_nothing_twice() -> None:
    names = [name for name in c_files() if in_kernel(name) or name in breadth()]
    fail_with([problem for name in names for problem in includes_twice(name)])


# ---- what must not be there ---------------------------------------------------------------------


def test_no_ifdef_of_a_lesson() -> None:
    fail_with(
        [
            f"{name}:{number}: a lesson is a list of files: put the difference behind a header"
            for name, number, line in numbered(files("*.c", "*.h", "*.asm", "*.ld"))
            if re.match(r"\s*[#%]\s*(el)?if.*LESSON", line)
        ]
    )


def test_no_path_of_somebodys_machine() -> None:
    places = re.compile(rf"(?<![\w.$}}*-])/({'|'.join(('home', 'root', 'work'))})/")
    fail_with(
        [
            f"{name}:{number}: {match.group()} is on one machine only; use a path from the root"
            for name, number, line in numbered(files("*"))
            if (match := places.search(line)) and "http" not in line
        ]
    )


def test_warnings_are_errors_only_in_ci() -> None:
    """A newer compiler's new warning must not stop a student."""
    flag = re.compile(r"-Werror\b")
    fail_with(
        [
            f"{name}:{number}: -Werror stops a student; write $(if $(CI),-Werror)"
            for name, number, line in numbered(files("Makefile", "*.mk", "*.sh", "*.c", "*.h"))
            if flag.search(line) and "$(CI)" not in line
        ]
    )


# What gcc refuses since version 14. Programs of tests are compiled without warnings: where gcc is
# older, what they forget would be seen by nobody.
REFUSED = ("implicit-function-declaration", "implicit-int", "int-conversion",
           "incompatible-pointer-types")  # fmt: skip


def test_programs_are_what_newer_compilers_take() -> None:
    """All in one call of the compiler; but for the one that a test writes a part of."""
    names = [name for name in files("tests/programs/*.c") if '"calls.inc"' not in text_of(name)]
    words = ["i686-linux-gnu-gcc", "-O1", "-fsyntax-only"]
    words += [*(f"-Werror={each}" for each in REFUSED), *names]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    fail_with([line for line in done.stderr.splitlines() if "error:" in line])
    assert done.returncode == 0, done.stderr


# ---- Python -------------------------------------------------------------------------------------


def python_functions(name: str) -> Iterator[tuple[int, int]]:
    """First line and length of each function of a Python file, its docstring not counted."""
    for node in ast.walk(ast.parse(text_of(name))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[1] if ast.get_docstring(node) and node.body[1:] else node.body[0]
            yield node.lineno, (node.end_lineno or first.lineno) - first.lineno + 1


def test_python_functions_are_short() -> None:
    fail_with(
        [
            f"{name}:{line}: a function of {length} lines; split it, none has more than 60"
            for name in files("*.py")
            for line, length in python_functions(name)
            if length > 60
        ]
    )
