"""The family of experiments: the shape of each holds, in a small run, and its page is whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from labs.storage import fsx
from labs.storage.disk_model import Request
from labs.storage.experiments.account import account_of
from labs.storage.experiments.base import Where, page_of
from labs.storage.experiments.family import ALL, experiment
from labs.storage.experiments.guest import phases_of
from tests.building import ROOT, make

NUMBERS = [
    pytest.param(number, marks=[pytest.mark.slow] if experiment(number).ABOUT.guest else [])
    for number in ALL
]
PARTS = ("Question", "Expected", "Prediction", "Method", "What it says", "What would change")


@pytest.fixture(scope="session")
def kernel() -> Path:
    """The storage lab's kernel with programs."""
    make("LESSON=storage", "image-direct", "user-programs", "build/host/lab-file")
    return ROOT / "build/storage"


@pytest.mark.parametrize("number", NUMBERS)
def test_the_shape_holds(number, request, tmp_path):
    chosen = experiment(number)
    assert chosen.ABOUT.number == number
    build = request.getfixturevalue("kernel") if chosen.ABOUT.guest else ROOT / "build/storage"
    data = chosen.measure(Where(build, small=True))
    failed = [said for said, holds in chosen.checks(data).items() if not holds]
    assert not failed, json.dumps(data)[:4000]
    page = page_of(chosen, data, predicted=1).write(tmp_path, data)
    text = page.read_text()
    assert all(f"<h2>{part}" in text for part in PARTS)
    assert text.count("<svg") >= 1 and "你的预测" in text
    assert len(chosen.sentences(data)) == 3
    assert json.loads((tmp_path / f"x{number}.json").read_text())
    assert (tmp_path / f"x{number}-1.csv").read_text().count("\n") > 1


def test_the_marks_cut_a_run():
    asked = [("hdb", 8), ("hda", 0), ("hda", 256), ("hda", 257), ("hdb", 16), ("hdc", 24)]
    phases = phases_of([(name, Request("read", lba, 1)) for name, lba in asked])
    assert [len(phase.requests) for phase in phases.values()] == [1, 2]
    assert phases[2].count("hdb") == 1 and phases[2].sectors("hdc", "r") == 1


@pytest.mark.parametrize("options", ["ext4 -b 1024", "ext2 -b 4096 -m 0 -r 0", "ext3 -b 2048"])
def test_the_account_of_any_image_closes(options, tmp_path):
    top, image = tmp_path / "top", tmp_path / "image"
    (top / "folder").mkdir(parents=True)
    (top / "folder/file").write_bytes(bytes(range(1, 256)) * 5000)
    (top / "link").symlink_to("folder/file")
    with image.open("wb") as file:
        file.truncate(48 << 20)
    fsx.tool("mke2fs", "-q", "-F", "-t", *options.split(), "-d", str(top), str(image))
    account = account_of(image)
    assert account.missing == 0
    assert account.held["other files and directories"] * account.block_bytes > 1_270_000
    assert account.free == int(
        fsx.tool("dumpe2fs", "-h", str(image)).partition("Free blocks:")[2].split()[0]
    )


def test_the_account_of_no_image(tmp_path):
    image = tmp_path / "image"
    image.write_bytes(bytes(4096))
    words = [sys.executable, "-m", "labs.storage.experiments.account", str(image)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.endswith("image is no ext2, ext3 or ext4\n")
