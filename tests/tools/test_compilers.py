"""The kernel built by other compilers, in other surroundings: it boots, and is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs.tools.machine.command import CommandError
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config
from labs.tools.proving import compilers
from labs.tools.proving.compilers import build, missing
from tests.support.building import ROOT, make


def need(cross: str) -> None:
    """Skips a test whose compiler is not there."""
    if gone := missing(cross):
        pytest.skip(f"{gone} is not here: labs/tools/setup/setup.sh suite")


@pytest.mark.parametrize("cross", ["clang", "clang-lld"])
def test_lesson_1_by_clang(tmp_path: Path, cross: str) -> None:
    """Its own loader loads it, and a backtrace has names. (make compilers tries lesson 6.)"""
    need(cross)
    folder = build(1, cross, 1, tmp_path).place / "build/lesson1"
    image, kernel = folder / "boot.img", folder / "kernel.elf"
    result = run(Config(boot="disk", image=image, kernel=kernel, script="memory; panic"))
    assert "boot: loaded by Apprentice boot" in result.serial
    assert "run_panic+0x" in result.serial and "kmain+0x" in result.serial


def test_an_image_depends_on_nothing_but_its_source(tmp_path: Path) -> None:
    """Lesson 1's has all that is for a debugger. Folder, rights, ages, locale, zone and the
    compiler's name are others than this tree's."""
    need("i686-linux-gnu-")
    need("x86_64-linux-gnu-")
    make("LESSON=1", "image-disk")
    there = build(1, "x86_64-linux-gnu-", 4, tmp_path).place
    for name in ("kernel.elf", "boot.img"):
        data = (there / "build/lesson1" / name).read_bytes()
        assert data == (ROOT / "build/lesson1" / name).read_bytes(), name
        assert bytes(there) not in data


def test_make_compilers_says_what_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A set that is not here is no failure; a warning, a kernel that does not boot, or another
    image is."""
    sets = {"a-": "1", "b-": "1", "c-": "2", "d-": "", "e-": "1"}

    def built(lesson: int, cross: str, number: int, work: Path) -> compilers.Built:
        if cross == "c-":
            raise CommandError("warning: x")
        return compilers.Built(cross, work, "x" if cross == "e-" else "y", "z", sets[cross])

    def boots(lesson: int, built: compilers.Built) -> None:
        assert lesson == 6

    monkeypatch.setattr(compilers, "missing", lambda cross: "d-gcc" if cross == "d-" else "")
    monkeypatch.setattr(compilers, "build", built)
    monkeypatch.setattr(compilers, "boots", boots)
    assert compilers.main(["--cross=a- b- c- d- e-"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(None, 1)[1] for line in lines] == [
        "builds without a warning, and boots",
        "builds without a warning, and boots; the same image as a-",
        "FAILS: warning: x",
        "not here: d-gcc",
        "builds without a warning, and boots; ANOTHER IMAGE than a-",
    ]
    assert compilers.main(["--cross=a- b- d-"]) == 0
