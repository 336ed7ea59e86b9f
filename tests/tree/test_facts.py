"""One fact in one place: constants that programs, assembly, the linker and Python share.

The build takes a header's constants to NASM and to the linker (labs/tools/setup/constants.awk), and
user/include takes Linux's from kernel/abi. What cannot be taken is compared here. Tests and hidden
tests have numbers of their own: a judge does not ask the judged.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from labs.tools.course.missing_calls import rows
from labs.tools.machine.explain import VECTOR_NAMES

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("boot", "kernel", "mm", "drivers", "fs", "user", "labs")
CONSTANT = re.compile(
    r"^[ \t]*(?:#define|%define|%assign)[ \t]+([A-Z][A-Za-z0-9_]+)[ \t]+\(?-?[0-9]"
    r"|^([A-Z][A-Z0-9_]+)[ \t]+equ\b[ \t]+\(?-?[0-9]"
    r"|^[ \t]*([A-Z][A-Z0-9_]+) = [0-9]",
    re.MULTILINE,
)

# Numbers that say where something is, and the one file that may say it.
PLACES = {
    0xC0000000: "kernel/cpu/memory_layout.h",
    0xBFFFF000: "mm/space.h",
    0x3F8: "kernel/cpu/pc.h",
    0xB8000: "kernel/cpu/pc.h",
    0xF4: "kernel/cpu/machine.h",
    0x604: "kernel/cpu/machine.h",
    0x32475453: "boot/second_stage.h",
}
# These are also compiled for Linux, without the kernel's headers.
OF_THE_HOST = {"labs/storage/labfile.c", "user/testing/places.h", "user/bench.c", "user/seekrw.c"}

# Constants of Python: they are compared with the header's. Python must do without the headers, in
# the tree of a lesson that has not yet got them.
PYTHON = {
    "labs/tools/debugging/gdb/processor.py": {"KERNEL_BASE": "kernel/cpu/memory_layout.h"},
    "labs/tools/debugging/gdb/unwinding.py": {"SHARED_PAGE": "mm/space.h SPACE_SHARED"},
    "labs/tools/debugging/gdb/process_commands.py": {
        "SPACE_START": "mm/space.h",
        "SIGNALS": "kernel/abi/signal.h",
        "FIRST_OF_REAL_TIME": "kernel/abi/signal_handler.h SIGNAL_QUEUED",
    },
    "labs/tools/machine/symbols.py": {"KERNEL_BASE": "kernel/cpu/memory_layout.h"},
    "labs/tools/debugging/gdb/kernel_commands.py": {"EXCEPTIONS": "kernel/cpu/trap.h"},
    "labs/tools/debugging/gdb/syscall_commands.py": {"LAST_ERROR": "kernel/abi/errno.h ERROR_LAST"},
    "labs/tools/debugging/gdb/spaces.py": {"SPACE_SHARED": "mm/space.h"},
    "labs/tools/debugging/gdb/memory_commands.py": {"RED_BYTES": "mm/kmalloc_debug.h GUARD_RED"},
    "labs/tools/debugging/gdb/tasks.py": {
        "USER_CODE": "kernel/cpu/selectors.h",
        "FRAME_EIP": "kernel/cpu/trap.h",
    },
    "labs/tools/machine/explain.py": {"PANIC_STATUS": "kernel/cpu/machine.h EXIT_PANIC"},
    "labs/tools/machine/machine.py": {"FIRST_STATUS": "kernel/cpu/machine.h EXIT_FIRST"},
    "labs/tools/machine/qemu_command.py": {"EXIT_PORT": "kernel/cpu/machine.h"},
}


def sources(*suffixes: str) -> Iterator[tuple[str, str]]:
    """Path and text, without its comments, of each source file with one of these suffixes."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                mark = r";.*" if path.suffix in (".asm", ".inc") else r"/\*.*?\*/"
                text = re.sub(mark, "", path.read_text(), flags=re.DOTALL * (mark != r";.*"))
                yield path.relative_to(ROOT).as_posix(), text


def constants(header: str) -> dict[str, int]:
    """The constants of a header, as the assembler gets them."""
    program = ["awk", "-v", "FORM=%s=%s", "-f", "labs/tools/setup/constants.awk", header]
    said = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pairs = (line.split("=") for line in said.splitlines())
    return {name: eval(value, {}) for name, value in pairs}


def calls_of_tables() -> dict[str, int]:
    """The system calls of the kernel's tables, by name."""
    tables = "".join(text for _, text in sources(".c"))
    return {name: number for number, name, _ in rows(tables)}


# ---- C, assembly, the linker --------------------------------------------------------------------


def test_places_are_said_once() -> None:
    problems = []
    for path, text in sources(".c", ".h", ".asm", ".inc", ".ld"):
        for number in re.findall(r"\b0x[0-9a-fA-F]+(?=u?\b)", text):
            home = PLACES.get(int(number, 16), path)
            if path not in (home, *OF_THE_HOST):
                problems.append(f"{path}: {number} has a name in {home}")
    assert not problems, "\n".join(problems)


def test_names_are_given_once() -> None:
    """What a header of the kernel defines has no second definition: not in C, not in assembly, not
    for the linker; and what kernel/abi defines has none in a program either."""
    homes = defaultdict(set)
    for path, text in sources(".c", ".h", ".asm", ".inc", ".ld"):
        for names in CONSTANT.findall(text):
            homes["".join(names)].add(path)
    problems = []
    for name, paths in sorted(homes.items()):
        is_linux = any(path.startswith("kernel/abi/") for path in paths)
        ours = {path for path in paths if is_linux or not path.startswith("user/")} - OF_THE_HOST
        if len(ours) > 1 and any(path.endswith(".h") for path in ours):
            problems.append(f"{name} is defined in {' and '.join(sorted(ours))}")
    assert not problems, "\n".join(problems)


def test_the_save_sequence_is_one_macro() -> None:
    pushing = {path for path, text in sources(".asm", ".inc") if re.search(r"\bpusha\b", text)}
    assert {path for path in pushing if path.startswith("kernel/")} == {"kernel/cpu/trap_frame.inc"}


def test_constants_for_assembly(tmp_path) -> None:
    """Numbers, sums and shifts are taken, with their u and their comments gone. Octal numbers,
    which NASM would take for decimal ones, and all else are not."""
    header = tmp_path / "some.h"
    header.write_text(
        "#define PLAIN 0x10u /* ten */\n#define SHIFT\t(896u << 20)\n#define ZERO 0\n"
        '#define OCTAL 0777\n#define CALL(x) 1\n#define TEXT "1"\n#define OTHER PLAIN\n'
    )
    assert constants(str(header)) == {"PLAIN": 16, "SHIFT": 896 << 20, "ZERO": 0}


# ---- Linux's numbers ----------------------------------------------------------------------------


def test_numbers_are_those_of_the_tables() -> None:
    numbers = constants("kernel/abi/numbers.h")
    named = {(name.removeprefix("SYS_"), value) for name, value in numbers.items()}
    assert named <= calls_of_tables().items()


def test_each_error_has_a_name() -> None:
    """In the kernel, for its messages, and each number is one error's."""
    errors = constants("kernel/abi/errno.h")
    del errors["ERROR_LAST"]
    named = re.findall(r"NAMED\((E\w+)\)", (ROOT / "kernel/lib/errno.c").read_text())
    assert sorted(named) == sorted(errors)
    assert len(set(errors.values())) == len(errors)


def test_programs_have_no_numbers_of_their_own() -> None:
    """What kernel/abi says, no header of programs says again."""
    linux = {name for path in (ROOT / "kernel/abi").glob("*.h") for name in constants(str(path))}
    for path in sorted((ROOT / "user/include").rglob("*.h")):
        again = linux & set(constants(str(path)))
        assert not again, f"{path.relative_to(ROOT)}: {again}"


# ---- Python -------------------------------------------------------------------------------------


def test_names_of_exceptions() -> None:
    """The tools' names are the kernel's."""
    text = (ROOT / "kernel/cpu/trap.c").read_text()
    table = text[text.index("exceptions[EXCEPTIONS]") :]
    names = re.findall(r'\[(\d+)\] = \{ "([^"]+)"', table[: table.index("};")])
    assert {int(vector): name for vector, name in names} == VECTOR_NAMES


def assigned(path: str) -> dict[str, int]:
    """The numbers that a Python file gives names at its outermost level."""
    found = {}
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            source = ast.unparse(node.value).replace("WORD", "4")
            if re.fullmatch(r"[0-9a-fx* ]+", source):
                found[node.targets[0].id] = eval(source, {})
    return found


@pytest.mark.parametrize("path", PYTHON)
def test_python_has_the_headers_numbers(path: str) -> None:
    for name, place in PYTHON[path].items():
        header, _, theirs = place.partition(" ")
        assert assigned(path)[name] == constants(header)[theirs or name], f"{name}: see {header}"


def test_python_repeats_no_place() -> None:
    for room in ("labs/tools", "labs/storage", "labs/bench"):
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            again = {value for value in assigned(name).values() if value in PLACES and value > 0xFF}
            assert not again or name in PYTHON, f"{name}: {again} is said elsewhere"


# ---- figures of texts ----------------------------------------------------------------------------

DEFINED = re.compile(r"^#define[ \t]+([A-Z][A-Z0-9_]+)[ \t]+([^/\n]+)", re.MULTILINE)
PLACE_IN_TEXT = re.compile(r"\b(0x[0-9a-f]{8})[ \t]+([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b")
PLACE_OF_CODE = re.compile(r"\b0x([0-9a-f]{8}) ([a-z_][\w.]*)\+?(?:0x([0-9a-f]+)|:)")


def value_of(name: str, defined: dict[str, str]) -> int:
    """A constant's value, by the definitions that it is made of."""
    text = re.sub(r"(?<=[0-9a-f])u\b", "", defined[name])
    text = re.sub(r"\b[A-Z][A-Z0-9_]+\b", lambda found: str(value_of(found[0], defined)), text)
    assert re.fullmatch(r"[0-9a-fx+\-*<>() \t]+", text), f"{name} is {text}"
    return eval(text)


def test_drawings_of_memory_have_the_headers_addresses() -> None:
    headers: dict[str, str] = {}
    for path in [*sorted((ROOT / "mm").glob("*.h")), ROOT / "kernel/cpu/memory_layout.h"]:
        headers |= dict(DEFINED.findall(path.read_text()))
    drawn = 0
    for path in sorted((ROOT / "mm").glob("*.c")):
        text = path.read_text()
        defined = headers | dict(DEFINED.findall(text))
        for address, name in PLACE_IN_TEXT.findall(text):
            drawn += 1
            value = value_of(name, defined)
            assert int(address, 16) == value, f"{path.name}: {name} is {value:#x}, not {address}"
    assert drawn > 8


@pytest.mark.parametrize("lesson", range(1, 7))
def test_a_handouts_addresses_agree(lesson: int) -> None:
    """A function is at one address in all that a handout prints: name+offset leads back to it."""
    starts: dict[str, int] = {}
    text = (ROOT / f"labs/lesson{lesson}/README.md").read_text(encoding="utf-8")
    for address, name, offset in PLACE_OF_CODE.findall(text):
        start = int(address, 16) - int(offset or "0", 16)
        assert starts.setdefault(name, start) == start, f"{name} is at {start:#x}, or not"


@pytest.mark.parametrize("path", ["labs/exercises.toml", "drivers/disk/ata_command.c"])
def test_the_example_of_lba48_is_right(path: str) -> None:
    """First the high halves of the count and of the address, then the low ones."""
    example = (ROOT / path).read_text().split("LBA 0x0123456789ab, ", 1)[1]
    written = [int(each, 16) for each in re.findall(r"\b0x[0-9a-f]{2}\b", example)][:6]
    lba, count = 0x0123456789AB, 600
    high = [count >> 8, *(lba >> shift & 0xFF for shift in (24, 32, 40))]
    assert written == [*high, count & 0xFF, lba & 0xFF]


def test_structures_are_where_the_readmes_say() -> None:
    """`struct x` (`folder/y.h`), or of `folder/y.h`: that file defines it."""
    named = re.compile(r"`struct (\w+)`(?: \(| of )`([a-z0-9_/]+\.h)`")
    found = 0
    for readme in sorted(ROOT.glob("*/README.md")):
        for name, header in named.findall(readme.read_text(encoding="utf-8")):
            found += 1
            assert f"\nstruct {name} {{" in (ROOT / header).read_text(), (
                f"{readme}: {name}, {header}"
            )
    assert found > 8
