"""labs/tools/guest/programs.py: which programs the guest gets, and under which names."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from labs.tools.guest import programs
from labs.tools.guest.initramfs import Entry, InitramfsError, merged
from labs.tools.guest.package import PackageError

BOX = b"\x7fELF...\0" + b"".join(b"%s\0" % name for name in (b"[", b"[[", b"cat", b"init", b"sh"))
BOX += b"\0\xff\xfe"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The course's programs, as if they were built."""
    directory = tmp_path / "own"
    directory.mkdir()
    for name in ("cat", "hello", "init"):
        (directory / name).write_bytes(name.encode())
    return directory


def files(entries: list[Entry]) -> dict[str, Entry]:
    return {each.path: each for each in merged(entries)}


def test_applets_end_where_the_names_do():
    assert programs.applets(BOX) == ["[", "[[", "cat", "init", "sh"]


@pytest.mark.parametrize("program", [b"", b"\x7fELF", b"[\0[x\0"])
def test_no_applets(program):
    assert programs.applets(program) == []
    with pytest.raises(ValueError, match="no table"):
        programs.busybox_entries(program, ())


def test_own_programs_alone(own):
    guest = files(programs.guest_root(own, None))
    assert [guest[f"bin/{name}"].content for name in ("cat", "hello")] == [b"cat", b"hello"]
    assert not any(path.startswith("course") for path in guest)
    assert guest["init"].content == b"bin/init"


def test_busybox_has_the_usual_names(own):
    guest = files(programs.guest_root(own, BOX))
    assert stat.S_ISLNK(guest["bin/cat"].mode)
    assert guest["bin/cat"].content == guest["bin/sh"].content == b"busybox"
    assert guest["bin/busybox"].content == BOX
    assert guest["course/bin/cat"].content == b"cat"
    assert guest["bin/hello"].content == b"hello"
    assert guest["bin/init"].content == b"init", "the machine's end is ours"


def test_a_folder_of_ones_own_comes_last(own, tmp_path):
    mine = tmp_path / "mine"
    (mine / "bin").mkdir(parents=True)
    (mine / "bin" / "hello").write_text("another")
    guest = files(programs.guest_root(own, BOX, [mine], "hello; echo 'a b'"))
    assert guest["bin/hello"].content == b"another"
    assert guest["etc/command"].content == b"hello; echo 'a b'\n"
    with pytest.raises(InitramfsError):
        programs.guest_root(own, None, [tmp_path / "none"])


def test_a_program_that_is_given_has_its_name(own, tmp_path):
    """busybox's shell would start its own command; bash looks for a file."""
    for path in ("usr/bin/cat", "bin/bash", "etc/cat"):
        (tmp_path / "root" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / path).write_text(path)
    guest = files(programs.guest_root(own, BOX, [tmp_path / "root"]))
    links = {name: guest[f"bin/{name}"].content for name in ("cat", "sh", "[")}
    assert links == {"cat": b"/usr/bin/cat", "sh": b"/bin/bash", "[": b"busybox"}
    assert guest["course/bin/cat"].content == b"cat"


def test_without_the_package_it_goes_on(monkeypatch, capsys):
    def refuse(name: str) -> None:
        raise PackageError(f"{name} cannot be fetched: no network")

    monkeypatch.setattr(programs, "fetch", refuse)
    assert programs.busybox() is None
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "busybox-static cannot be fetched: no network" in message


def test_the_table_is_what_busybox_says(tmp_path):
    box = programs.busybox()
    if box is None:
        pytest.skip("there is no busybox here")
    path = tmp_path / "busybox"
    path.write_bytes(box)
    path.chmod(0o755)
    try:
        listed = subprocess.run([path, "--list"], capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"i386 programs do not run here: {os.strerror(error.errno)}")
    assert programs.applets(box) == listed.stdout.split()
