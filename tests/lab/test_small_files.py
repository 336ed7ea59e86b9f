"""What the experiments X28, X31, X32 and X34 compute themselves: the models, and the lengths of the
blob program."""

from __future__ import annotations

import subprocess

import pytest

from labs.storage.disk_model import Request
from labs.storage.experiments import x28_raw, x31_stat, x32_packing, x34_changed
from labs.storage.experiments.blobs import build, call


def test_the_cache_of_stats_forgets_what_was_used_longest_ago():
    cache = x31_stat.Cache(2)
    assert [cache.misses(block) for block in (1, 2, 1, 3, 1, 2)] == [
        True, True, False, True, False, True
    ]  # fmt: skip


def test_stats_on_paper():
    """160 files are in 10 blocks of inodes: each is read once if there is room, or many times."""
    for order in x31_stat.ORDERS:
        cold, warm = x31_stat.model(160, order, 1 << 20)
        assert (cold["requests"], warm["requests"]) == (10 / 160, 0)
    crowded = x31_stat.model(1600, "name", 4 * x31_stat.BLOCK)[0]["requests"]
    assert crowded > 0.9
    assert x31_stat.block_of(16 * 8192) - x31_stat.block_of(16 * 8192 - 1) > 16 * 8192


@pytest.mark.parametrize(("size", "together"), [
    (100, 21), (1300, 2), (1944, 2), (1945, 0), (4096, 0), (6000, 2), (8192, 0),
])  # fmt: skip
def test_tails_that_share_a_leaf(size, together):
    assert x32_packing.per_leaf(size) == together
    whole = size // 4096 if together or size % 4096 == 0 else size // 4096 + 1
    assert x32_packing.packed_room(size) > whole * 4096 + (size % 4096 if together else 0)


def test_objects_of_a_length(tmp_path):
    """Of the length that was asked for, in files and in a store; what cannot be is refused."""
    program = build(tmp_path)
    call(program, "-l", 300, "files", tmp_path, 3)
    assert [path.stat().st_size for path in sorted((tmp_path / "0000").iterdir())] == [300] * 3
    with (store := tmp_path / "store").open("wb") as file:
        file.truncate(1 << 20)
    call(program, "-l", 65_536, "fill", store, 3)
    assert call(program, "open", store)["live"] >= 3 * 65_536
    call(program, "-l", 65_536, "get", store, 3, 9, 1)
    for wrong in ("0", "65537", "x"):
        done = subprocess.run([program, "-l", wrong, "files", tmp_path, "1"], capture_output=True,
                              text=True, check=False)  # fmt: skip
        assert (done.returncode, done.stderr) == (
            2, f"blob: -l wants 1 to 65536 bytes, not {wrong}\n"
        )  # fmt: skip


def test_reads_of_changed_chunks():
    """Neighbours are one request, of at most 1 MiB; short gaps are read, if that is wanted."""

    def read(first, sectors):
        return Request("read", first, sectors)

    chosen = [0, 1, 5, 100]
    assert x34_changed.runs_of(chosen, 16, 0) == [read(0, 32), read(80, 16), read(1600, 16)]
    assert x34_changed.runs_of(chosen, 16, 48) == [read(0, 96), read(1600, 16)]
    assert x34_changed.runs_of(range(129), 16, 0) == [read(0, 2048), read(2048, 16)]


def test_random_writes_touch_as_many_chunks_as_the_formula_says():
    assert x34_changed.expected(0, 100) == 0
    assert x34_changed.expected(100, 100) == pytest.approx(0.632, abs=0.001)


def test_every_task_is_done_in_two_ways():
    """With all places filled in, and no two tasks of one name."""
    script = x28_raw.script_of(x28_raw.UNITS)
    assert "{" not in script and script.count("mark ") == 4 * len(x28_raw.TASKS)
    assert len({task.name for task in x28_raw.TASKS}) == len(x28_raw.TASKS)
    assert {task.penalty for task in x28_raw.TASKS} == {"backup", "management", "access"}
