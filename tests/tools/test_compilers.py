"""The kernel built by other compilers, in other surroundings: it boots, and is the same."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from labs.tools.machine.command import CommandError, own_environment
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config
from labs.tools.proving import compilers
from labs.tools.proving.compilers import build, missing, said
from tests.support.building import ROOT, make


def need(cross: str) -> None:
    """Skips a test whose compiler is not there."""
    if gone := missing(cross):
        pytest.skip(f"{gone} is not here: labs/tools/setup/setup.sh suite")


@pytest.mark.parametrize("cross", ["clang", "clang-lld"])
def test_lesson_1_by_clang(tmp_path: Path, cross: str) -> None:
    """Its own loader loads it, and a backtrace has names. (make compilers tries lesson 6.)
    LLVM's linker has an option of its own for where a program begins."""
    need(cross)
    place = build(1, cross, 1, tmp_path).place
    folder = place / "build/lesson1"
    image, kernel = folder / "boot.img", folder / "kernel.elf"
    result = run(Config(boot="disk", image=image, kernel=kernel, script="memory; panic"))
    assert "boot: loaded by Apprentice boot" in result.serial
    assert "run_panic+0x" in result.serial and "kmain+0x" in result.serial
    if cross == "clang-lld":
        command = ["make", "-s", "LESSON=6", "CI=1", "build/user/true"]
        said(command, place, {**own_environment(), "CROSS": cross})
        with (place / "build/user/true").open("rb") as file:
            parts = list(ELFFile(file).iter_segments(type="PT_LOAD"))
        assert min(each["p_vaddr"] for each in parts) == 0x08048000


def moved(cross: str, folder: Path) -> None:
    """A copy of a gcc, named far-gcc, which finds its parts from where it is. The folder is in its
    own answers as bin/../lib, in what it compiles without that."""
    found = subprocess.run(
        [f"{cross}gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True
    )
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    parts = Path(found.stdout.strip()).parents[2]
    (folder / "lib" / parts.name).symlink_to(parts)
    shutil.copy(Path(shutil.which(f"{cross}gcc")).resolve(), folder / "bin/far-gcc")
    for name in ("ld", "nm", "objcopy"):
        (folder / "bin" / f"far-{name}").symlink_to(shutil.which(f"{cross}{name}"))


def test_an_image_depends_on_nothing_but_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lesson 1's has all that is for a debugger. Folder, rights, ages, locale, zone, the compiler's
    name and its place are others than this tree's."""
    need("i686-linux-gnu-")
    need("x86_64-linux-gnu-")
    make("LESSON=1", "image-disk")
    moved("x86_64-linux-gnu-", tmp_path / "far")
    monkeypatch.setenv("PATH", f"{tmp_path}/far/bin:{os.environ['PATH']}")
    there = build(1, "far-", 4, tmp_path).place
    for name in ("kernel.elf", "boot.img"):
        data = (there / "build/lesson1" / name).read_bytes()
        assert data == (ROOT / "build/lesson1" / name).read_bytes(), name
        assert bytes(there) not in data


def test_make_compilers_says_what_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A set that is not here is no failure; a warning, a kernel that does not boot, another image,
    or other object files with another linker are."""
    sets = {"a-": "1", "b-": "1", "c-": "2", "d-": "", "e-": "1", "f-": "3", "g-": "3", "h-": "3"}

    def built(lesson: int, cross: str, number: int, work: Path) -> compilers.Built:
        if cross == "c-":
            raise CommandError("warning: x")
        made = {"x.o": cross if cross == "h-" else "", "y.o": ""}
        kernel = {"kernel.elf": cross if cross == "e-" else ""}
        linker = cross if sets[cross] == "3" else ""
        return compilers.Built(cross, work, made, kernel, sets[cross], linker)

    def boots(lesson: int, built: compilers.Built) -> None:
        assert lesson == 6

    monkeypatch.setattr(compilers, "missing", lambda cross: "d-gcc" if cross == "d-" else "")
    monkeypatch.setattr(compilers, "build", built)
    monkeypatch.setattr(compilers, "boots", boots)
    assert compilers.main(["--cross=a- b- c- d- e- f- g- h-"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(None, 1)[1] for line in lines] == [
        "builds without a warning, and boots",
        "builds without a warning, and boots; the same image as a-",
        "FAILS: warning: x",
        "not here: d-gcc",
        "builds without a warning, and boots; NOT the same image as a-: 1 of 1, kernel.elf",
        "builds without a warning, and boots",
        "builds without a warning, and boots; the same object files as f-",
        "builds without a warning, and boots; NOT the same object files as f-: 1 of 2, x.o",
    ]
    assert compilers.main(["--cross=a- b- d- f- g-"]) == 0
    assert compilers.main(["--cross=f- h-"]) == 1


def test_make_compilers_takes_several_sets() -> None:
    """They are for it alone: the set-up before it does not try their names as one compiler."""
    command = ["make", "-s", "compilers", "LESSON=1", "CROSS=none- nobodys-"]
    command.append("SETUP=printenv CROSS >&2; true")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["none-", "not", "here:", "none-gcc,", "none-ld"],
        ["nobodys-", "not", "here:", "nobodys-gcc,", "nobodys-ld"],
    ]
