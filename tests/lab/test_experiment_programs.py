"""The programs of the storage lab's experiments X8, X17 and X18, built for this machine: what they
do with files, and what they refuse."""

from __future__ import annotations

import json
import random
import subprocess
from array import array
from pathlib import Path

import pytest

from labs.tools.machine.bounded import run_within

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I.")
PAGE = 4096


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The folder they are in."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("cpbench", "dirtycost", "pageread"):
        words = ["gcc", *FLAGS, f"user/{name}.c", "-o", str(folder / name)]
        subprocess.run(words, cwd=ROOT, check=True)
    return folder


def call(programs, *words):
    """Status, output, first line of what it complains about."""
    command = [programs / words[0], *map(str, words[1:])]
    done = run_within(command, capture_output=True, text=True, check=False, seconds=300)
    return done.returncode, done.stdout, done.stderr.partition("\n")[0]


def test_copies_of_any_length_by_each_way(programs, tmp_path):
    """The last piece is a part of a buffer, of a page, or nothing."""
    source, target = tmp_path / "from", tmp_path / "to"
    for size in (0, 1, PAGE, 3 * PAGE + 100, 200_000):
        source.write_bytes(random.Random(size).randbytes(size))
        for words in (["-b", 512, "read"], ["read"], ["-b", PAGE, "mmap"], ["mmap"], ["both"],
                      ["-b", PAGE, "both"]):  # fmt: skip
            target.write_bytes(bytes(300_000))
            status, said, _ = call(programs, "cpbench", "-j", *words, source, target)
            assert status == 0 and target.read_bytes() == source.read_bytes()
            found = json.loads(said)
            pieces = -(-size // found["buffer"])
            calls = {"read": 2 * pieces + 1, "mmap": 3 * pieces + 1, "both": 4 * pieces + 2}
            assert (found["bytes"], found["calls"]) == (size, calls[words[-1]])
    assert call(programs, "cpbench", "compare", source, target)[0] == 0
    changed = bytearray(target.read_bytes())
    changed[150_000] ^= 1
    target.write_bytes(changed)
    status, _, complaint = call(programs, "cpbench", "compare", source, target)
    assert (status, complaint) == (
        1, f"cpbench: {target} differs from {source} after offset {150_000 // PAGE * PAGE}"
    )  # fmt: skip


def test_changes_of_pages(programs, tmp_path):
    """A tenth of them, evenly spread; each round writes its number."""
    path = tmp_path / "file"
    for way in ("mmap", "write"):
        words = ["-p", 100, "-t", 10, "-w", 2, "-r", 3, "-n", 2, way, path]
        status, said, _ = call(programs, "dirtycost", *words)
        found, data = json.loads(said), path.read_bytes()
        assert (status, found["changed"], found["written"], len(data)) == (0, 10, 1, 100 * PAGE)
        changed = bytes([1] + 63 * [3])
        for page in range(100):
            expected = 2 * changed if page % 10 == 0 else bytes([1]) + bytes(127)
            assert data[page * PAGE :][:128] == expected


def test_reads_of_pages(programs, tmp_path):
    pages, order = tmp_path / "pages", tmp_path / "list"
    pages.write_bytes(b"".join(array("I", [n] + 1023 * [0]).tobytes() for n in range(50)))
    order.write_bytes(array("I", [3, 49, 0, 3]).tobytes())
    for way in ("read", "mmap", "touch"):
        status, said, _ = call(programs, "pageread", "-w", 1, way, pages, order)
        assert (status, json.loads(said)["reads"]) == (0, 3)
    order.write_bytes(array("I", [50]).tobytes())
    assert call(programs, "pageread", "read", pages, order)[::2] == (
        1, f"pageread: {order}: page 50, but {pages} has 50"
    )  # fmt: skip
    order.write_bytes(array("I", [7]).tobytes())
    pages.write_bytes(bytes(8 * PAGE))
    for way in ("read", "mmap"):
        assert call(programs, "pageread", way, pages, order)[::2] == (
            1, f"pageread: {pages}: page 7 says that it is 0"
        )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        ("cpbench read a", 2, "a way and two files, please"),
        ("cpbench -b 511 read a b", 2, "-b wants a whole number from 512 to 67108864, not '511'"),
        ("cpbench -b", 2, "-b wants an argument"),
        ("cpbench -q", 2, "there is no option -q"),
        ("cpbench cp a b", 2, "there is no way 'cp'"),
        ("cpbench -d mmap a b", 2, "-d goes with read only: pages that are mapped are cached"),
        ("cpbench -d -b 1000 read a b", 2, "with -d, BYTES must be a multiple of 512, and 1000"),
        ("cpbench -b 1000 both a b", 2, "with both, BYTES must be a multiple of 4096, and 1000"),
        ("cpbench read absent b", 1, "absent cannot be opened: No such file or directory"),
        ("cpbench read /dev b", 1, "/dev is not a file"),
        ("cpbench read here here", 1, "here and here are the same file"),
        ("dirtycost mmap", 2, "a way and a file, please"),
        ("dirtycost -t 101 mmap a", 2, "-t wants a whole number from 0 to 100, not '101'"),
        ("dirtycost map a", 2, "there is no way 'map'"),
        ("dirtycost mmap absent/a", 1, "absent/a: open: No such file or directory"),
        ("pageread read a", 2, "a way, a file and a list, please"),
        ("pageread -w x read a b", 2, "-w wants a whole number, not 'x'"),
        ("pageread look a b", 2, "there is no way 'look'"),
        ("pageread read absent b", 1, "absent cannot be opened: No such file or directory"),
        ("pageread read here here", 1, "here has 0 numbers, and -w 0 leaves none"),
    ],
)
def test_what_they_refuse(programs, tmp_path, monkeypatch, words, status, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").touch()
    name = words.partition(" ")[0]
    found, _, said = call(programs, *words.split())
    assert (found, said[: len(name) + 2 + len(complaint)]) == (status, f"{name}: {complaint}")
