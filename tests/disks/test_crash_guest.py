"""Power cuts of our kernel, as QEMU's log of writes has them; and Linux as a judge of states."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from labs.storage.crash import linux, programs
from labs.storage.crash.building import build, variant_named
from labs.storage.crash.guest import Recording, in_shell, marked, record, split
from labs.storage.crash.laboratory import Laboratory
from labs.storage.crash.log import FLUSH, SECTOR, Entry, write_log
from labs.storage.crash.workloads import Workload, named
from labs.tools.guest.package import PackageError
from tests.support.building import make

WRITES = [Entry(at, bytes([at + 1]) * SECTOR, 0) for at in range(4)]
FLUSHES = Entry(0, b"", FLUSH)
MARK = Entry(4, bytes(SECTOR), 0)
SECONDS = 1200


@pytest.fixture
def kernel() -> None:
    """Our kernel is built."""
    make("LESSON=storage", "image-direct", "user-programs")


# ---- records ------------------------------------------------------------------------------------


def some_recording() -> Recording:
    log = [WRITES[0], WRITES[1], FLUSHES, MARK, WRITES[2], WRITES[3], MARK]
    return split(bytes(4 * SECTOR), log)


def test_marks_are_taken_out_of_a_log():
    found = some_recording()
    assert found.entries == [WRITES[0], WRITES[1], FLUSHES, WRITES[2], WRITES[3]]
    assert found.marks == [3, 5]
    assert [found.passed(position) for position in (2, 3, 4, 5)] == [0, 1, 1, 2]


def test_only_the_open_epoch_may_be_missing():
    found = some_recording()
    assert [found.epoch(position) for position in range(6)] == [0, 0, 0, 3, 3, 3]
    cuts = list(found.cuts(200, 1))
    assert all(found.epoch(position) <= min(lost) for position, lost in cuts if lost)
    assert all(max(lost) < position for position, lost in cuts if lost)
    assert (5, frozenset({3})) in cuts and (5, frozenset()) in cuts
    state = found.state(5, {3})
    assert [state[at * SECTOR] for at in range(4)] == [1, 2, 0, 4]


def test_what_the_guest_cannot_do_is_refused():
    with pytest.raises(KeyError, match="punch"):
        in_shell(named("punch.none"))
    script, files = in_shell(named("append.fsync"))
    assert "sync ./foo\nmark 1" in script and len(files[0].content) == 3000


def test_partitions_of_states(tmp_path):
    """As this machine's partition tools would read them: each is where the chain says."""
    images = [bytes([number]) * 8192 for number in (1, 2, 3)]
    linux.write_partitions(tmp_path / "disk", images)
    disk = (tmp_path / "disk").read_bytes()
    base = here = int.from_bytes(disk[454:458], "little")
    for image in images:
        table = disk[here * SECTOR + 446 : here * SECTOR + 510]
        begin = (here + int.from_bytes(table[8:12], "little")) * SECTOR
        assert disk[begin : begin + len(image)] == image
        here = base + int.from_bytes(table[24:28], "little")
    assert here == base, "the last one has no follower"


# ---- the guest ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_workload_in_the_guest_is_judged_as_in_the_library(tmp_path, kernel):
    """Create, write, rename, fsync by Debian's coreutils: each request cut, and parts of epochs."""
    workload = named("saving")
    laboratory = Laboratory(build(), tmp_path, seed=7)
    variant = variant_named("ext4")
    script, files = in_shell(workload)
    try:
        recording = record(laboratory.image(variant, "empty"), script, tmp_path, [], files)
    except PackageError as error:
        pytest.skip(f"no programs to run: {error}")
    assert len(recording.marks) == len(workload.lines)

    def judge(entries: list[Entry]) -> tuple[list[int], int]:
        log = tmp_path / "requests"
        write_log(log, entries)
        every: Workload = marked(workload, recording)
        program = laboratory.start(variant, every, log=log, weak="yes", second=0)
        counts, violations = program.run(every)
        program.close()
        return counts, len(violations)

    counts, wrong = judge(recording.entries)
    assert wrong == 0 and counts[2] > len(workload.lines) and counts[3] > 50
    lost = [each if each.sector < 300 else Entry(each.sector, bytes(len(each.data)), each.flags)
            for each in recording.entries]  # fmt: skip
    assert judge(lost)[1] > 0, "who loses what was written is found"


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("what", ["sqlite3", "git"])
def test_programs_keep_what_they_committed(tmp_path, kernel, what):
    """`python -m labs.storage.crash.programs` cuts 200 times. Lost flushes are found."""
    try:
        recording, content = programs.recorded(what, tmp_path, 4)
    except PackageError as error:
        pytest.skip(f"no programs to run: {error}")
    assert list(programs.wrong_states(recording, content, tmp_path, 8, 2010)) == []
    lazy = replace(recording, entries=[replace(each, flags=0) for each in recording.entries])
    assert any(programs.wrong_states(lazy, content, tmp_path, 20, 2010))


def test_judge_of_databases_notices(tmp_path):
    """A transaction less than was committed is wrong, and so is half of one."""
    with programs.closing(programs.sqlite3.connect(tmp_path / "delete.db")) as base:
        base.execute("create table t(i integer, j integer, x text)")
        for i, j in itertools.product(range(3), range(programs.ROWS)):
            base.execute("insert into t values (?, ?, 'x')", (i, j))
        base.commit()
        assert programs.judge_sqlite(tmp_path, 3, 9) == programs.judge_sqlite(tmp_path, 2, 9) == ""
        assert "3 transactions, and 4 were" in programs.judge_sqlite(tmp_path, 4, 9)
        assert "3 transactions, and 1 were" in programs.judge_sqlite(tmp_path, 1, 9)
        base.execute("delete from t where i = 1 and j = 1")
        base.commit()
        assert "other rows" in programs.judge_sqlite(tmp_path, 3, 9)


# ---- Linux --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_linux_agrees_about_states(tmp_path, kernel):
    """`python -m labs.storage.crash.linux` asks about more."""
    laboratory = Laboratory(build(), tmp_path, seed=3)
    chosen = list(linux.samples(laboratory, ["ext4", "ext3", "ext4-new"], 6))
    try:
        assert list(linux.compare(chosen, tmp_path)) == []
    except PackageError as error:
        pytest.skip(f"no Linux to ask: {error}")
