"""The blob store: power cuts at every write, and its program on Linux."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from labs.storage.experiments.blobs import LIBRARY
from labs.tools.machine.bounded import run_within
from tests.support.building import ROOT, shared_folder

CUTS = 1000
COMPILER = ("gcc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter",
            "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover",
            f"-I{ROOT}")  # fmt: skip


@pytest.fixture(scope="session")
def programs(tmp_path_factory) -> Path:
    """`cut` and `blob`, for this machine."""

    def build(folder: Path) -> None:
        for name, sources in (
            ("cut", [ROOT / "tests/host/blob/cut.c"]),
            ("blob", [ROOT / "labs/storage/blob/main.c", ROOT / "labs/storage/blob/device.c"]),
        ):
            words = [*COMPILER, *map(str, [*LIBRARY, *sources]), "-o", str(folder / name)]
            subprocess.run(words, check=True)

    return shared_folder(tmp_path_factory, "blob", build)


def test_a_power_cut_at_every_write_loses_nothing_and_brings_nothing_back(programs):
    """Two seeds give more than 1,000 cuts, in sessions of which each begins with what the cut
    before has left."""
    cuts = 0
    for seed in ("1", "3"):
        done = run_within(
            [programs / "cut", seed, "200"],
            capture_output=True,
            text=True,
            seconds=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        cuts += int(done.stdout.split()[0])
    assert cuts >= CUTS


def blob(programs: Path, *words: object) -> str:
    done = run_within(
        [programs / "blob", *map(str, words)],
        capture_output=True,
        text=True,
        seconds=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(said: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"(\w+) (\d+)", said)}


def test_a_store_keeps_what_is_put_and_compaction_gives_space_back(programs, tmp_path):
    store, index = tmp_path / "store", tmp_path / "index"
    for path, size in ((store, 8 << 20), (index, 1 << 20)):
        with path.open("wb") as file:
            file.truncate(size)
    blob(programs, "fill", store, 500)
    blob(programs, "get", store, 500, 1000, 1)
    full = figures(blob(programs, "open", store))
    assert (full["objects"], full["walked"]) == (500, 500)
    blob(programs, "save", store, index)
    assert figures(blob(programs, "open", store, index))["walked"] == 0
    blob(programs, "delete", store, 500, 50, 1)
    half = figures(blob(programs, "open", store, index))
    assert half["walked"] == 500 - half["objects"] and 200 < half["objects"] < 300
    blob(programs, "compact", store)
    packed = figures(blob(programs, "open", store, index))
    assert packed["objects"] == half["objects"] == packed["walked"]
    assert packed["log"] == packed["live"] < full["log"]
    blob(programs, "get", store, 500, 1000, 1)


def test_what_is_no_store_is_refused(programs, tmp_path):
    path = tmp_path / "store"
    path.write_bytes(bytes(1 << 20))
    done = subprocess.run(
        [programs / "blob", "open", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and done.stderr.endswith("Invalid argument\n")
