"""The kernel built by other compilers and under other names: it boots, and by the same compiler the
image is the same in any folder and at any time. WHOLE=yes builds the last lesson, too."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from labs.tools.guest.initramfs import archive
from labs.tools.guest.programs import guest_root
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config
from tests.support.building import ROOT, WHOLE

SOURCES = ("Makefile", "boot", "drivers", "fs", "kernel", "labs", "mm", "user")
NEEDED = {"clang": ("clang", "ld"), "clang-lld": ("clang", "ld.lld")}
ODD = "a b'$x-é中"
"""A folder's name."""


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


def made(place: Path, lesson: int, cross: str, *targets: str, **more: str) -> Path:
    """A lesson's folder, built in a tree by this set of tools; warnings are errors."""
    words = ["make", "-s", f"LESSON={lesson}", "CI=1", *(targets or ("image-disk",))]
    environment = {**os.environ, "CROSS": cross, **more}
    done = subprocess.run(
        words, cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return place / f"build/lesson{lesson}"


def need(cross: str) -> None:
    """Skips a test whose compiler is not there."""
    for command in NEEDED.get(cross, (f"{cross}gcc", f"{cross}ld")):
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


@pytest.mark.skipif(not WHOLE, reason="the last lesson by other compilers: WHOLE=yes")
@pytest.mark.parametrize("cross", ["clang", "clang-lld", "x86_64-linux-gnu-"])
def test_lesson_6_by_other_compilers(tmp_path: Path, cross: str) -> None:
    """The kernel and the course's programs: a shell, a pipe, a fork."""
    need(cross)
    place = tree(tmp_path / "tree")
    folder = made(place, 6, cross, "image-disk", "user-programs")
    files = tmp_path / "files"
    files.write_bytes(archive(guest_root(place / "build/user/bin", None)))
    kernel, image = folder / "kernel.elf", folder / "boot.img"
    command = (("cmd", "echo one two | cat; probe | tail -1; forkbench 2"),)
    config = Config(boot="disk", image=image, kernel=kernel, initramfs=files, settings=command)
    result = run(config)
    assert "one two" in result.serial and "PANIC" not in result.serial


@pytest.mark.skipif(not WHOLE, reason="images of other folders: WHOLE=yes")
def test_an_image_is_the_same_anywhere(tmp_path: Path) -> None:
    """By other names, in an odd folder, in another time zone and locale; under a strict umask."""
    names = tmp_path / "names"
    names.mkdir()
    for tool in ("gcc", "ld", "nm", "objcopy"):
        found = shutil.which(f"i686-linux-gnu-{tool}")
        assert found
        for prefix in ("i686-elf-", "x86_64-elf-"):
            (names / f"{prefix}{tool}").symlink_to(found)
    path = f"{names}:{os.environ['PATH']}"
    images = {
        cross: made(tree(tmp_path / place), 2, cross, PATH=path, TZ=zone, LC_ALL=locale)
        for cross, place, zone, locale in (
            ("i686-linux-gnu-", "plain", "UTC", "C"),
            ("i686-elf-", ODD, "Asia/Shanghai", "C.UTF-8"),
            ("x86_64-elf-", "x" * 100, "America/New_York", "tr_TR.UTF-8"),
        )
    }
    assert len({(folder / "boot.img").read_bytes() for folder in images.values()}) == 1
