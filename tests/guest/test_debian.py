"""Debian's dynamically linked programs on lesson 6's kernel: what the scripts of tests/debian/base
say, and how they end, is as on this machine's Linux, which runs the same files. `make debian` tries
the other folders, too; that takes many minutes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from labs.tools.guest.package import PackageError, apt
from tests.support import debian_programs
from tests.support.building import make
from tests.support.debian_programs import difference, on_kernel, on_linux, script_names

SETS = debian_programs.sets()


@pytest.mark.slow
def test_as_on_linux():
    """Bash, coreutils, grep, sed, gawk, findutils, diffutils."""
    scripts = script_names("base")
    try:
        linux = on_linux("base", scripts)
    except (PackageError, OSError) as error:
        pytest.skip(f"no comparison with Linux: {error}")
    if not linux:
        pytest.skip("this machine's Linux does not run programs for the i386 in a box")
    make("LESSON=6", "image-direct", "user-programs")
    ours = on_kernel("base", debian_programs.KERNEL, scripts)
    told = [f"{each}:\n{difference(linux.get(each), ours.get(each))}" for each in scripts]
    assert [each for each in told if not each.endswith(":\n")] == []


@pytest.mark.parametrize("name", SETS)
def test_scripts_are_bash(name):
    """An error of a script's own would be equal on both."""
    for each in script_names(name):
        path = debian_programs.PLACE / name / f"{each}.bash"
        subprocess.run(["bash", "-O", "extglob", "-n", path], check=True)


def test_apt_locks_nothing_of_the_machine(tmp_path):
    """It locks the folder of its status file: once that was /dev, where only root may."""
    words = apt(tmp_path, "apt-get", "download", "dash")
    [place] = [word for word in words if "Dir::State::status=" in word]
    assert Path(place.partition("=")[2]).parent == tmp_path
