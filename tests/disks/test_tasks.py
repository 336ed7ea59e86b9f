"""Several tasks on the same files: the judge of power cuts (`make crash TASKS=4`), and a sample of
what it and `make fsx TOGETHER=yes` do for long."""

from __future__ import annotations

import math
import re
import shutil
import struct

import pytest

from labs.storage import together
from labs.storage.crash import tasks, tasks_model
from labs.storage.crash.tasks_guest import SOURCES, Run
from labs.storage.crash.tasks_model import CELL, CELLS, Call, Change, Kind, Model, State, span
from labs.storage.crash.tasks_mutants import MUTANTS
from labs.storage.linux_program import COMPILER
from tests.support.building import ROOT, make

SEED = 2010


@pytest.fixture(scope="session")
def kernel():
    """Our kernel is built."""
    if not shutil.which(COMPILER[0]):
        pytest.skip(f"there is no {COMPILER[0]} here")
    make("LESSON=storage", "image-direct", "user-programs")


def call(at: int, kind: Kind, file: int, first: int = 0, count: int = 1, **more: int) -> Call:
    """A call of task 0 from `at` to at + 5; its value is the time."""
    usual = {"task": 0, "flags": 0, "result": count * CELL if kind is Kind.WRITE else 0}
    usual |= {"value": at, "inode": at, "returned": at + 5}
    return Call(begun=at, kind=kind, file=file, first=first, count=count, **(usual | more))


def state(cells: dict[int, int] | None = None, names: dict[str, int] | None = None) -> State:
    """File 0 with these values in its cells, file 1 with holes, 2 and 3 without a size; files with
    these names and inodes."""
    values = [tasks_model.word_of(0, cell, (cells or {}).get(cell, 0)) for cell in range(CELLS)]
    contents = {
        "/s0": b"".join(word * (CELL // 8) for word in values),
        "/s1": bytes(CELLS * CELL),
        "/p0": b"",
        "/p1": b"",
    }
    folder = {name: (inode, False) for name, inode in (names or {}).items()}
    return State({"/d0": folder}, contents | {f"/d0/{name}": b"" for name in folder})


def judged(calls: list[Call], there: State, time: float, weak: bool = False) -> str:
    return Model(calls, 2).wrong(there, time, time, weak)


# ---- the judge ----------------------------------------------------------------------------------


def test_what_a_sync_promised_must_be_there_or_what_came_later():
    calls = [call(10, Kind.WRITE, 0), call(20, Kind.FSYNC, 0), call(30, Kind.WRITE, 0)]
    old, safe, new = state(), state({0: 10}), state({0: 30})
    assert not judged(calls, old, 24) and not judged(calls, safe, 24)
    assert "expected 0.10" in judged(calls, old, 28)
    assert "expected zeros or 0.10" in judged(calls, new, 24), "it was not begun"
    assert not judged(calls, safe, 40) and not judged(calls, new, 40)


@pytest.mark.parametrize("kind", [Kind.FSYNC, Kind.FDATASYNC, Kind.MSYNC, Kind.SYNC])
def test_a_sync_of_another_task_promises_it_too(kind):
    calls = [call(10, Kind.WRITE, 0), call(20, kind, 0, task=1)]
    assert judged(calls, state(), 28)
    assert not judged([calls[0], call(14, kind, 0, task=1)], state(), 28), "it began before"
    assert not judged([calls[0], call(20, kind, 1, task=1)], state(), 28) or kind is Kind.SYNC
    failed = Model([calls[0], call(20, kind, 0, result=-28)], 2)
    assert not failed.wrong(state(), 28, 28, False) and list(failed.refused())


def test_a_synchronous_write_is_its_own_promise():
    assert judged([call(10, Kind.WRITE, 0, flags=tasks_model.SYNCHRONOUS)], state(), 28)


def test_nobody_elses_contents_and_no_lost_size():
    there = state()
    there.contents["/s1"] = tasks_model.word_of(0, 5, 77) * (CELLS * CELL // 8)
    assert "cell 5 of file 0" in judged([call(10, Kind.WRITE, 0)], there, 28)
    calls = [call(10, Kind.WRITE, 2, 0, 3), call(20, Kind.FSYNC, 2)]
    assert "/p0 has 0 bytes, expected 3 to 3 cells" in judged(calls, state(), 28)


def test_a_rename_has_happened_or_not():
    calls = [
        call(10, Kind.CREATE, 6, 1, 100),
        call(20, Kind.FSYNC, 6),
        call(30, Kind.RENAME, 6, 1, 2),
    ]
    assert not judged(calls, state(names={"0n1": 10}), 40)
    assert not judged(calls, state(names={"0n2": 10}), 40)
    assert judged(calls, state(), 40) and judged(calls, state(names={"0n1": 10, "0n2": 10}), 40)
    assert judged(calls, state(names={"0n2": 10}), 26), "it was not begun"


def test_without_a_journal_only_what_is_quiet_is_judged():
    calls = [call(10, Kind.WRITE, 0), call(20, Kind.FSYNC, 0), call(30, Kind.WRITE, 0, 9)]
    assert judged(calls, state(), 28, weak=True)
    assert not judged(calls, state(), 33, weak=True)


def test_the_span_ends_with_what_was_begun():
    changes = [Change(0, -math.inf, -math.inf), Change(1, 10, 20), Change(2, 30, math.inf)]
    spans = [[each.value for each in span(changes, at, at)] for at in (5, 15, 25, 35)]
    assert spans == [[0], [0, 1], [1], [1, 2]]


def test_calls_are_read_as_the_program_writes_them():
    header = (SOURCES / "tasks.h").read_text()
    kinds = re.search(r"enum kind \{(.*?)\}", header, re.S)[1]
    names = re.findall(r"(\w+)(?: = 1)?,", kinds)
    assert [Kind(number).name for number in range(1, len(names) + 1)] == names
    report = b"tasks 2 calls 1\n".ljust(CELL, b"\0")
    report += struct.pack("<QQBBBBiIIII", 1, 2, 1, Kind.FSYNC, 3, 0, -28, 0, 0, 7, 0)
    assert str(tasks_model.read_calls(report)[0]).endswith("call 7: fsync file 3 = -28")


def test_mutants_are_mutants_of_this_kernel():
    for name, mutant in MUTANTS.items():
        for file, old, _ in mutant.changes:
            assert (ROOT / file).read_text().count(old) == 1, f"{name}: {file}"


# ---- the guest ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ext4", "ext4-full"])
def test_promises_to_several_tasks_are_kept(kernel, tmp_path, kind):
    """`make crash TASKS=4` cuts thousands of times."""
    figures = tasks.Figures()
    assert tasks.hunt(Run(kind, 4, SEED, 40), 12, tmp_path, figures=figures) == []
    assert figures.calls > 100 and figures.promises > 20 and figures.cuts == 12


@pytest.mark.slow
def test_tasks_on_one_file_read_what_they_wrote(kernel, tmp_path):
    """`make fsx TOGETHER=yes` does so for long."""
    done, wrong = together.exercise("ext4-1k", 3, SEED, 1500, tmp_path, icount=3)
    assert wrong == [] and done > 1000
