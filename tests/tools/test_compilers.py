"""The kernel built by other compilers: it boots."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config
from tests.support.building import ROOT

SOURCES = ("Makefile", "boot", "drivers", "fs", "kernel", "labs", "mm", "user")
NEEDED = {"clang": ("clang", "ld"), "clang-lld": ("clang", "ld.lld")}


def tree(place: Path) -> Path:
    """A copy of what is built."""
    place.mkdir(parents=True)
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "node_modules")
            shutil.copytree(source, place / name, ignore=ignored)
        else:
            shutil.copy(source, place / name)
    return place


def made(place: Path, lesson: int, cross: str) -> Path:
    """A lesson's folder, built in a tree by this set of tools; warnings are errors."""
    words = ["make", "-s", f"LESSON={lesson}", "CI=1", "image-disk"]
    environment = {**os.environ, "CROSS": cross}
    done = subprocess.run(
        words, cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return place / f"build/lesson{lesson}"


def need(cross: str) -> None:
    """Skips a test whose compiler is not there."""
    for command in NEEDED[cross]:
        if not shutil.which(command):
            pytest.skip(f"{command} is not here: labs/tools/setup/setup.sh suite")


@pytest.mark.parametrize("cross", ["clang", "clang-lld"])
def test_lesson_1_by_clang(tmp_path: Path, cross: str) -> None:
    """Its own loader loads it, and a backtrace has names."""
    need(cross)
    folder = made(tree(tmp_path / "tree"), 1, cross)
    image, kernel = folder / "boot.img", folder / "kernel.elf"
    result = run(Config(boot="disk", image=image, kernel=kernel, script="memory; panic"))
    assert "boot: loaded by Apprentice boot" in result.serial
    assert "run_panic+0x" in result.serial and "kmain+0x" in result.serial
