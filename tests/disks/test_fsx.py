"""The same file operations here and on Linux: a short exercise, against Linux's kept answers, and
the comparison itself. `make fsx` is the long one."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from labs.storage import fsx
from labs.storage.fsx import Answers, Exercise, differing_lines, summary
from labs.storage.linux_program import COMPILER
from labs.tools.guest.package import Package, PackageError
from labs.tools.machine import linux
from tests.support.building import make

KEPT = json.loads(fsx.KEPT.read_text()) if fsx.KEPT.exists() else {"kinds": {}}


@pytest.fixture(scope="session")
def storage_kernel():
    if not shutil.which(COMPILER[0]):
        pytest.skip(f"there is no {COMPILER[0]} here")
    make("LESSON=storage", "image-direct", "user-programs")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KEPT["kinds"])
def test_answers_are_those_of_linux(storage_kernel, tmp_path, kind):
    if os.geteuid() != 0:
        pytest.skip("debugfs gives the files that it copies their owners only as root")
    image = tmp_path / "image"
    fsx.make_image(image, kind)
    found = fsx.answers_of("here", fsx.small(kind), image, tmp_path)
    assert found.check == ""
    assert len(found.files) > 20
    assert summary(found) == KEPT["kinds"][kind], f"make fsx KIND={kind} shows the operation"


def test_the_same_seed_asks_the_same():
    assert Exercise("ext4-4k", 1, 10).script() == Exercise("ext4-1k", 1, 10).script()


def test_a_difference_is_shown_unless_it_is_known():
    same, known = "1 p0 mkdir a 777 = 0", "3 p1 rename L256 a = "
    here = [same, "2 p0 write 1 5 = 5", f"{known}ENAMETOOLONG"]
    there = [same, "2 p0 write 1 5 = EBADF", f"{known}ENOENT"]
    shown = differing_lines(here, there)
    assert shown == ["here:  2 p0 write 1 5 = 5\nLinux: 2 p0 write 1 5 = EBADF"]
    assert fsx.differing_blocks(Answers({0: "a", 1: "b"}), Answers({0: "a", 1: "c"})) == [1]


def test_modules_come_after_those_they_need(tmp_path):
    package = Package("linux-image", "1", "", tmp_path)
    needs = dict.fromkeys(linux.WANTED, "")
    needs |= {"ext4": "jbd2,mbcache", "jbd2": "", "mbcache": "", "ata_piix": "libata", "libata": ""}
    for name, text in needs.items():
        (tmp_path / f"{name}.ko").write_bytes(f"\0depends={text}\0".encode())
    files = {name: tmp_path / f"{name}.ko" for name in needs}
    order = [path.stem for path in linux.in_order(package, files)]
    assert sorted(order) == sorted(needs)
    assert order.index("jbd2") < order.index("ext4") > order.index("mbcache")
    assert order.index("libata") < order.index("ata_piix")
    del files["jbd2"]
    with pytest.raises(PackageError, match="no module jbd2"):
        linux.in_order(package, files)


def test_what_a_script_said():
    assert linux.said_by("noise\nfrom the host\r\none\r\nstatus: 3\r\n") == ("one\n", 3)
    assert linux.said_by("from the host\nonly the beginning") == ("only the beginning", None)
