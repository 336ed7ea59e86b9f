"""labs/tools/guest/initramfs.py: the archive, read back by a reader of this file's own."""

from __future__ import annotations

import errno
import os
import random
import socket
import stat
from pathlib import Path

import pytest

from labs.tools.guest import initramfs, root_image
from labs.tools.guest.initramfs import (
    TIME,
    InitramfsError,
    archive,
    character_device,
    folder,
    from_host,
    merged,
    regular,
    symlink,
)

FIELDS = (
    *("ino", "mode", "uid", "gid", "nlink", "mtime", "filesize"),
    *("devmajor", "devminor", "rdevmajor", "rdevminor", "namesize", "check"),
)


def read(data: bytes) -> list[tuple[str, dict[str, int], bytes]]:
    """Path, header and contents of each entry, as Linux's "initramfs buffer format" has them."""
    entries, place = [], 0
    while True:
        assert data[place : place + 6] == b"070701"
        numbers = (int(data[i : i + 8], 16) for i in range(place + 6, place + 110, 8))
        header = dict(zip(FIELDS, numbers, strict=True))
        start = place + 110
        name = data[start : start + header["namesize"]]
        assert name[-1:] == b"\0"
        content = (start + header["namesize"] + 3) // 4 * 4
        place = (content + header["filesize"] + 3) // 4 * 4
        if name == b"TRAILER!!!\0":
            assert place == len(data)
            return entries
        body = data[content : content + header["filesize"]]
        entries.append((os.fsdecode(name[:-1]), header, body))


def test_files_keep_their_contents_and_modes():
    sizes = (0, 1, 2, 3, 4, 5, 4096, 100_001)
    files = {f"f{size}": random.Random(size).randbytes(size) for size in sizes}
    entries = read(archive(regular(name, data, 0o640) for name, data in files.items()))
    assert {path: body for path, _, body in entries} == files
    assert {header["mode"] for _, header, _ in entries} == {0o100640}


def test_links_and_devices():
    (link, head, target), (null, device, _) = read(
        archive([symlink("a", "../b c"), character_device("null", 1, 3)])
    )
    assert (link, stat.S_ISLNK(head["mode"]), target) == ("a", True, b"../b c")
    assert (null, device["mode"]) == ("null", stat.S_IFCHR | 0o666)
    assert (device["rdevmajor"], device["rdevminor"]) == (1, 3)


def test_folders_come_before_what_they_hold():
    paths = ["z/y/x", "a-b", "a/c", "b"]
    order = [path for path, _, _ in read(archive(regular(path, b"") for path in paths))]
    assert order == ["a", "a/c", "a-b", "b", "z", "z/y", "z/y/x"]


def test_the_later_entry_counts():
    entries = [regular("a/b", b"old"), folder("a", 0o700), regular("a/b", b"new")]
    assert [(each.path, each.content) for each in merged(entries)] == [("a", b""), ("a/b", b"new")]
    assert merged(entries)[0].mode == stat.S_IFDIR | 0o700


def test_nothing_lies_below_a_file():
    with pytest.raises(InitramfsError, match="a/b is below a, which is not a folder"):
        archive([regular("a/b", b""), symlink("a", "c")])


def test_same_entries_same_bytes():
    entries = [regular(f"d{i % 7}/f{i}", bytes([i])) for i in range(100)]
    shuffled = random.Random(1).sample(entries, len(entries))
    assert archive(entries) == archive(shuffled)
    assert {header["mtime"] for _, header, _ in read(archive(entries))} == {TIME}
    numbers = [header["ino"] for _, header, _ in read(archive(entries))]
    assert len(set(numbers)) == len(numbers)


# ---- a folder of this machine -------------------------------------------------------------------


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir(mode=0o750)
    program = tmp_path / "bin" / "program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o4711)
    (tmp_path / "link").symlink_to("/nowhere")
    (tmp_path / "to-folder").symlink_to("bin")
    return tmp_path


def test_a_folder_is_taken_along(host):
    entries = {each.path: (each.mode, each.content) for each in from_host(host)}
    assert entries == {
        "bin": (0o40750, b""),
        "bin/program": (0o104711, b"\x7fELF"),
        "link": (0o120777, b"/nowhere"),
        "to-folder": (0o120777, b"bin"),
    }


def test_special_files_are_refused(host):
    os.mkfifo(host / "bin" / "pipe")
    with pytest.raises(InitramfsError, match="bin/pipe is neither a file, a folder nor"):
        from_host(host)


def test_sockets_are_refused(host):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(host / "s"))
        with pytest.raises(InitramfsError, match="/s is neither"):
            from_host(host)


def test_a_folder_without_end_is_refused(host, monkeypatch):
    """PROGRAMS=/ would fill the memory, and a file of 0 bytes in /proc may have no end."""
    monkeypatch.setattr(initramfs, "FOLDER_LIMIT", 4)
    with pytest.raises(InitramfsError, match="has more than 0 GiB"):
        from_host(host)
    assert initramfs.from_file(Path("/proc/self/status"), Path("status")).content == b""


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EFBIG])
def test_an_image_that_cannot_be_made_is_named(tmp_path, monkeypatch, error):
    """And nothing of it is left."""

    def full(entries, top):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(root_image, "write_files", full)
    with pytest.raises(InitramfsError, match=f"a.img cannot be made: {os.strerror(error)}"):
        root_image.make_root_image(tmp_path / "a.img", [])
    assert list(tmp_path.iterdir()) == []


def test_no_folder(tmp_path):
    with pytest.raises(InitramfsError, match="missing is not a folder"):
        from_host(tmp_path / "missing")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read(host):
    (host / "bin").chmod(0)
    with pytest.raises(InitramfsError, match="bin: Permission denied"):
        from_host(host)
    (host / "bin").chmod(0o700)
