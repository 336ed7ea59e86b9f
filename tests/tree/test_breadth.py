"""The breadth only adds: a name means the same with it and without it. Ways to change what a
name means are refused here; what is still allowed is listed with a reason."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import pytest

from labs.tools.course.exercises import lessons
from labs.tools.course.missing_calls import rows
from labs.tools.course.rooms import part_of
from labs.tools.course.source_lists import BREADTH, changes, kernels, linked
from tests.support.building import ROOT
from tests.tree.test_arrows import homes

POINTER = re.compile(r"^extern (?:const )?[\w ]+[ *]\(\*(\w+)\)\(", re.MULTILINE)

# Files that a list of breadth takes away. They belong to a part of the core that the same lesson
# replaces (kernel/README.md), or to its measurement.
TAKEN = {
    "labs/lesson2/round_trip.asm": "lesson 2's measurement enters user mode without a program",
    "labs/lesson2/tick_tax.c": "the same",
    "labs/lesson3/trace_command.c": "lesson 3's measurement",
    "kernel/linux/process/one_task.c": "goes with one program at a time: kernel/process/single.c",
    "kernel/linux/memory/map_slot.c": "goes with the space of one slot",
    "mm/space_slot_map.c": "the same",
}


# Pointers to functions that breadth or storage sets while the kernel runs.
SET = {
    "page_reclaim": "the storage lab's kernel puts its cache of blocks before the core's pages",
    "page_fault_watch": "the command `faults` begins and ends a measurement",
}


def fail_with(problems: Iterable[str]) -> None:
    """Fails with one line a problem."""
    if text := "\n".join(problems):
        pytest.fail("\n" + text, pytrace=False)


def sources(*parts: str) -> dict[str, str]:
    """The files of these parts that some kernel is linked from: name and text."""
    names = sorted({name for kernel in kernels().values() for name in kernel})
    return {name: (ROOT / name).read_text() for name in names if part_of(name) in parts}


def test_lists_take_nothing_away() -> None:
    """Lists of breadth name files to add."""
    taken = {path for n in lessons() for path in changes(ROOT / f"labs/lesson{n}", BREADTH)[1]}
    fail_with(f"-{path} in a list of breadth: let the core be general" for path in taken - {*TAKEN})
    assert set(TAKEN) == taken, "TAKEN names what no list takes"


def test_a_call_has_one_definition() -> None:
    """In every kernel, with the breadth, a number is in one table; and a function's name too."""
    for lesson in lessons():
        found: dict[int, list[str]] = defaultdict(list)
        for name in linked(lesson, ROOT):
            if name.endswith(".c"):
                for number, _, _ in rows((ROOT / name).read_text()):
                    found[number].append(name)
        assert len(found) > 3 or lesson < 3
        fail_with(
            f"lesson {lesson}: call {number} is in {' and '.join(names)}"
            for number, names in found.items()
            if len(names) > 1
        )


def test_no_name_has_two_meanings() -> None:
    """No kernel has two definitions of a global name: a weak one would give way silently."""
    for lesson, kernel in kernels().items():
        fail_with(
            f"{lesson}: {symbol}() is in {' and '.join(here)}"
            for symbol, names in homes().items()
            if len(here := [name for name in names if name in kernel]) > 1
        )


FUNCTION = re.compile(r"^(?!static inline)\w[\w ]*?[ *]+(\w+)\([^;{]*\)\n\{", re.MULTILINE)

# What two files of a kernel still have. From here the list only shrinks.
SHARED = {"continues", "put", "split", "tell"}


def test_a_debugger_can_tell_functions_apart() -> None:
    """In each kernel a function's name stands in one file: `break` has one place to stop at, and a
    backtrace says which code ran."""
    shared = defaultdict(set)
    for kernel in kernels().values():
        files = defaultdict(set)
        for name in kernel:
            if name.endswith(".c") and not name.startswith("tests/"):
                text = re.sub(r"__attribute__\(\(.*?\)\) ", "", (ROOT / name).read_text())
                for function in FUNCTION.findall(text):
                    files[function].add(name)
        for function, names in files.items():
            if len(names) > 1:
                shared[function] |= names
    fail_with(
        f"{function}() is in {' and '.join(sorted(names))}: give it a name of its own"
        for function, names in sorted(shared.items())
        if function not in SHARED
    )
    assert set(shared) >= SHARED, "SHARED names what no two files have"


def test_no_pointer_is_set_to_what_the_breadth_has() -> None:
    """A function that the breadth adds is OPTIONAL; a pointer to one is set while the kernel runs,
    and neither grep nor a debugger finds where it leads."""
    headers = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for folder in ("kernel", "mm", "fs", "drivers", "labs")
        for path in (ROOT / folder).rglob("*.h")
    }
    pointers = {name for text in headers.values() for name in POINTER.findall(text)}
    found = {
        pointer: name
        for name, text in sources("breadth", "storage").items()
        for pointer in pointers
        if re.search(rf"^\t+{pointer} = ", text, re.MULTILINE)
    }
    fail_with(
        f"{name} sets {pointer}: make it OPTIONAL (kernel/lib/optional.h)"
        for pointer, name in found.items()
        if pointer not in SET
    )
    assert set(SET) <= set(found), "SET names what nothing sets"


# What functions at start-up set, other than variables of their own file.
AT_STARTUP = {
    "page_reclaim": "see SET",
    "trace_pause_port": "a number: a setting of the run",
}


def test_startup_registers_no_function() -> None:
    """What a file adds to another one is OPTIONAL: no start-up function writes to a table or a
    pointer of another file. (Devices, inode types and interrupts have lists to register with.)"""
    found = set()
    for name, text in sources("core", "breadth", "storage").items():
        for function in re.findall(r"^STARTUP\((\w+)\)", text, re.MULTILINE):
            pattern = rf"^static void {function}\(void\)\n{{\n(.*?)^}}"
            (body,) = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
            for changed in re.findall(r"^\t+(\w+)[\w.>\[\]-]* = ", body, re.MULTILINE):
                kind = r"^(\t*static [^;{=]*|\t+(for \()?(struct |const )*\w+ )"
                if not re.search(rf"{kind}\W?\**{changed}(;|\[|\)| =)", text, re.MULTILINE):
                    found.add((name, changed))
    fail_with(
        f"{name} sets {changed} at start-up: make it OPTIONAL (kernel/lib/optional.h)"
        for name, changed in found
        if changed not in AT_STARTUP
    )
    assert {changed for _, changed in found} == set(AT_STARTUP), "AT_STARTUP names too much"


def test_the_linker_changes_no_name() -> None:
    """A call goes to the function that it names: no --wrap, nor --defsym with another address."""
    texts = {path: path.read_text() for path in (ROOT / "Makefile", *(ROOT / "labs").rglob("*.mk"))}
    fail_with(
        f"{path.relative_to(ROOT)}: {option} changes what a name means"
        for path, text in texts.items()
        for option in ("--wrap", "--defsym", "__wrap_", "__real_")
        if option in text
    )
    fail_with(
        f"{name} has {prefix}: the linker's --wrap; make it OPTIONAL (kernel/lib/optional.h)"
        for name, text in sources("core", "breadth", "storage").items()
        for prefix in ("__wrap_", "__real_")
        if prefix in text
    )
