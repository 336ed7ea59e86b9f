"""What students hand in: each of these is taken, or refused by name; none is a crash."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from labs.tools.cohort import entries, reader
from labs.tools.cohort.reader import Reading, read, read_here
from labs.tools.course import hint, submit
from labs.tools.course.exercises import ROOT, STORAGE, of_lesson
from labs.tools.course.start import commit
from labs.tools.course.submit import MANIFEST, graded_files, missing, write_archive

LESSON = 1
FILES = {path: f"; {path}\n".encode() for path in graded_files(LESSON)}
ENTRY = "boot/entry.asm"


def folder(place: Path, files: Mapping[str, bytes] = FILES) -> Path:
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    return place


def zipped(place: Path, files: Mapping[str, bytes] = FILES, **more: bytes) -> Path:
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in {**files, **more}.items():
            archive.writestr(path, data)
    return place


def tarred(place: Path, members: list[tarfile.TarInfo], mode: str = "w:gz") -> Path:
    """A tar with the graded files, then with these members, which are empty or links."""
    with tarfile.open(place, mode) as archive:
        for path, data in FILES.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for each in members:
            archive.addfile(each, io.BytesIO(b"\0" * each.size))
    return place


def member(name: str, kind: bytes = tarfile.REGTYPE, **changes: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    for key, value in changes.items():
        setattr(made, key, value)
    return made


def renamed(change: Callable[[str], str]) -> dict[str, bytes]:
    return {change(path): data for path, data in FILES.items()}


def reading_of(place: Path, out: Path) -> Reading:
    out.mkdir(exist_ok=True)
    return read_here(place, LESSON, out)


def assert_whole(found: Reading, out: Path) -> None:
    assert found.refusal == "" and found.files == sorted(FILES)
    assert {path: (out / "files" / path).read_bytes() for path in found.files} == FILES


# ---- taken as it is ------------------------------------------------------------------------------

RUBBISH = {
    "__MACOSX/boot/._entry.asm": b"\0\5\26\7",
    "boot/.DS_Store": b"\0\0\0\1Bud1",
    "boot/._entry.asm": b"\0\5\26\7",
    "build/boot/entry.asm": b"old",
    ".venv/lib/boot/entry.asm": b"older",
    ".git/boot/entry.asm": b"oldest",
}


@pytest.mark.parametrize(
    ("files", "note"),
    [
        (FILES, ""),
        (FILES | RUBBISH, ""),
        (renamed(lambda path: f"lesson1-anna/{path}"), "the files are in lesson1-anna/"),
        (renamed(lambda path: f"./{path}"), ""),
        (renamed(lambda path: f"/srv/anna/{path}"), "the files are in srv/anna/"),
        (renamed(lambda path: f"C:\\l1\\{path}".replace("/", "\\")), "the files are in l1/"),
        (renamed(str.upper), f"{ENTRY} is called BOOT/ENTRY.ASM here"),
        (renamed(lambda path: path.rpartition("/")[2]), f"{ENTRY} is called entry.asm here"),
        (FILES | {"../../etc/passwd": b"x"}, "../../etc/passwd: outside of the folder"),
        (FILES | {"old/boot/entry.asm": b"older"}, ""),
        (FILES | {"a\nb\x1b[2J.c": b"x", "\udce9.c".encode(errors="replace").decode(): b"x"}, ""),
        (FILES | {f"{n}.txt": b"" for n in range(999)}, ""),
    ],
)
def test_a_zip_is_taken(tmp_path, files, note):
    found = reading_of(zipped(tmp_path / "a.zip", files), tmp_path / "out")
    assert_whole(found, tmp_path / "out")
    assert [each for each in found.notes if each.startswith(note)] or not note
    assert note or found.notes == []


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_taken(tmp_path, mode):
    devices = [
        member("disk", tarfile.BLKTYPE), member("pipe", tarfile.FIFOTYPE),
        member("d", tarfile.DIRTYPE), member("out", tarfile.SYMTYPE, linkname="/etc"),
        member("out/passwd"),
    ]  # fmt: skip
    found = reading_of(tarred(tmp_path / "a.tar", devices, mode), tmp_path / "out")
    assert_whole(found, tmp_path / "out")


def test_a_folder_and_a_whole_tree_are_taken(tmp_path):
    tree = folder(tmp_path / "tree", FILES | {"Makefile": b"x", "labs/lesson2/answers.toml": b"x"})
    os.mkfifo(tree / "pipe")
    (tree / "loop").symlink_to(".")
    assert_whole(reading_of(tree, tmp_path / "out"), tmp_path / "out")


def test_a_repository_is_taken_in_each_form(tmp_path):
    tree = folder(tmp_path / "tree")
    commit(tree, "Handed in")
    (tree / ".git/config").write_text("[core]\nfsmonitor = touch /tmp/started\n[broken")
    bare, only = tmp_path / "bare", tmp_path / "only"
    (tree / ".git").rename(bare)
    (only / ".git").parent.mkdir()
    subprocess.run(["cp", "-r", bare, only / ".git"], check=True)
    assert_whole(reading_of(tree, tmp_path / "out"), tmp_path / "out")
    for place in (bare, only):
        assert_whole(read(place, LESSON, tmp_path / "out"), tmp_path / "out")
    (bare / "HEAD").write_text("ref: refs/heads/none\n")
    assert "the git repository cannot be read: " in read(bare, LESSON, tmp_path / "out").refusal


def test_an_archive_in_an_archive_is_taken(tmp_path):
    inner = zipped(tmp_path / "a.zip", renamed(lambda path: f"l1/{path}")).read_bytes()
    for place in (
        zipped(tmp_path / "b.zip", {"Anna/a.zip": inner}),
        folder(tmp_path / "f", {"Anna/a.zip": inner, "Anna/essay.txt": b"x"}),
    ):
        found = reading_of(place, tmp_path / "out")
        assert_whole(found, tmp_path / "out")
        assert found.notes == ["the files are in Anna/a.zip", "the files are in l1/"]


@pytest.mark.parametrize(
    ("data", "clean", "note"),
    [
        (b"a\r\nb\r\n", b"a\nb\n", "line ends of Windows"),
        (b"a\rb\r", b"a\nb\n", "line ends of Windows"),
        (b"\xef\xbb\xbfa\n", b"a\n", "a byte order mark"),
        ("ä\r\n".encode("utf-16"), "ä\n".encode(), "UTF-16"),
        ("ä\r\n".encode("utf-32"), "ä\n".encode(), "UTF-32"),
        ("ä\n".encode("utf-16-be"), "ä\n".encode("utf-16-be"), ""),
        (b"\xff\xfea", b"\xff\xfea", ""),
        (b"\xe4\n", b"\xe4\n", ""),
        (b"\x7fELF\0\r\n", b"\x7fELF\0\r\n", ""),
    ],
)  # fmt: skip
def test_texts_of_other_computers(tmp_path, data, clean, note):
    found = reading_of(zipped(tmp_path / "a.zip", FILES | {ENTRY: data}), tmp_path / "out")
    assert (tmp_path / "out/files" / ENTRY).read_bytes() == clean
    assert bool(found.notes) == bool(note) and note in "".join(found.notes)


# ---- taken in part -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "note"),
    [
        (member(ENTRY, tarfile.SYMTYPE, linkname="/etc/passwd"), f"{ENTRY} is a link"),
        (member(ENTRY, tarfile.LNKTYPE, linkname="/etc/passwd"), f"{ENTRY} is a link"),
        (member(ENTRY, tarfile.CHRTYPE, devmajor=1, devminor=5), f"{ENTRY} is a device"),
        (member(ENTRY, tarfile.FIFOTYPE), f"{ENTRY} is a device or a pipe"),
        (member(ENTRY, size=10), f"{ENTRY} is there 2 times: the last one is taken"),
        (member(ENTRY, size=8 << 20), f"{ENTRY} has more than 256 KiB"),
    ],
)
def test_one_file_that_cannot_be_taken(tmp_path, member, note):
    found = reading_of(tarred(tmp_path / "a.tgz", [member]), tmp_path / "out")
    assert found.refusal == "" and note in "\n".join(found.notes)
    assert len(found.files) >= len(FILES) - 1
    place = tmp_path / "out/files" / ENTRY
    assert not place.is_symlink() and (
        not place.exists() or place.stat().st_size <= (256 << 10) + 1
    )


def test_devices_and_links_of_a_folder_are_not_opened(tmp_path):
    tree = folder(tmp_path / "tree")
    (tree / ENTRY).unlink()
    os.mkfifo(tree / ENTRY)
    (tree / "boot/mbr.asm").unlink()
    (tree / "boot/mbr.asm").symlink_to("/dev/zero")
    found = reading_of(tree, tmp_path / "out")
    assert {f"{ENTRY} is a device or a pipe: not taken", "boot/mbr.asm is a link: not taken"} == {
        *found.notes
    }
    assert len(found.files) == len(FILES) - 2


# ---- refused -------------------------------------------------------------------------------------


def encrypted(place: Path) -> Path:
    data = bytearray(zipped(place).read_bytes())
    for magic, offset in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        at = -1
        while (at := data.find(magic, at + 1)) >= 0:
            data[at + offset] |= 1
    place.write_bytes(data)
    return place


def written(place: Path, data: bytes) -> Path:
    place.write_bytes(data)
    return place


def linked(place: Path) -> Path:
    place.symlink_to("/etc")
    return place


def piped(place: Path) -> Path:
    os.mkfifo(place)
    return place


def deep(place: Path) -> Path:
    (place / "/".join("d" * 60)).mkdir(parents=True)
    return place


OTHER = dict.fromkeys(graded_files(2), b"x")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: folder(p, OTHER), "it has the files of lesson 2, not those of 1"),
        (lambda p: zipped(p, {"x/essay.doc": b"x"}), "it has none of the files of lesson 1"),
        (lambda p: zipped(p, {f"../{ENTRY}": b"x"}), f"../{ENTRY}: outside of the folder"),
        (lambda p: zipped(p, FILES | {MANIFEST: b'{"lesson": "2", "hints": {}}'}), "for lesson 2"),
        (encrypted, "it is encrypted"),
        (lambda p: written(p, b""), "it is empty"),
        (lambda p: p.mkdir() or p, "it has none of the files"),
        (lambda p: written(p, b"Rar!\x1a\7\1\0" + b"x" * 600), "it is a RAR archive"),
        (lambda p: written(p, b"<!DOCTYPE html><title>x"), "it is a web page (of a login?)"),
        (lambda p: written(p, b"PK\3\4 and no more"), "it cannot be read: File is not a zip"),
        (lambda p: written(p, b"\x1f\x8b\x08 and no more"), "it cannot be read"),
        (lambda p: written(p, tarred(p, []).read_bytes()[:-99]), "it cannot be read: "),
        (lambda p: written(p, b"main(){}\n" * 99), "it cannot be read: "),
        (linked, "it is a link"),
        (piped, "it is neither a file nor a folder"),
        (deep, "nested more than 40 deep"),
        (lambda p: zipped(p, {f"{n}": b"" for n in range(101)}), "it has more than 100 files"),
        (lambda p: tarred(p, [member("x", size=2 << 20)]), "it unpacks to more than 1 MiB"),
        (lambda p: folder(p, {f"{n}/{ENTRY}": b"x" * 65536 for n in range(17)}), "1 MiB"),
    ],
)
def test_what_is_refused(tmp_path, monkeypatch, make, words):
    monkeypatch.setattr(entries, "MOST_ENTRIES", 100)
    monkeypatch.setattr(entries, "MOST_UNPACKED", 1 << 20)
    monkeypatch.setattr(reader, "MOST_KEPT", 1 << 20)
    found = reading_of(make(tmp_path / "a"), tmp_path / "out")
    assert words in found.refusal and found.refusal.isprintable()
    assert not (tmp_path / "out/files").exists()


def test_another_years_submission_is_told(tmp_path):
    table = b'{"lesson": "1", "course": "y1", "hints": {}}'
    found = reading_of(zipped(tmp_path / "a.zip", FILES | {MANIFEST: table}), tmp_path / "out")
    assert found.notes == ["it was made in the tree of another course: y1"]
    assert found.files == sorted(FILES)


@pytest.mark.parametrize("table", [b"[", b"[" * 99999, b"3", b'{"lesson": 1, "hints": [1]}'])
def test_a_manifest_that_cannot_be_read_is_left_out(tmp_path, table):
    found = reading_of(zipped(tmp_path / "a.zip", FILES | {MANIFEST: table}), tmp_path / "out")
    assert found.files == sorted(FILES) and f"{MANIFEST} is not" in found.notes[0]


def test_a_reader_that_is_ended_is_a_refusal(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MEMORY", 1 << 20)
    found = read(zipped(tmp_path / "a.zip"), LESSON, tmp_path / "out")
    assert found == Reading(refusal="reading it takes too much time or memory")


def test_any_error_of_a_library_is_a_refusal(tmp_path, monkeypatch):
    def broken(*_: object) -> None:
        raise KeyError("\n\x1b")

    monkeypatch.setattr(reader, "found_in", broken)
    assert reading_of(tmp_path, tmp_path / "o").refusal.startswith("it cannot be read: KeyError")


def test_of_a_bomb_no_more_is_unpacked_than_is_kept(tmp_path, monkeypatch):
    asked = []
    plain = zipfile.ZipExtFile.read
    monkeypatch.setattr(
        zipfile.ZipExtFile, "read", lambda file, n=-1: asked.append(n) or plain(file, n)
    )
    found = reading_of(zipped(tmp_path / "a.zip", FILES | {ENTRY: bytes(8 << 20)}), tmp_path / "o")
    assert f"{ENTRY} has more than 256 KiB" in found.notes
    assert asked == [(256 << 10) + 1] * len(FILES)


# ---- make submit ---------------------------------------------------------------------------------


def test_what_submit_makes_is_read_whole(tmp_path):
    """The reference's files are all written; its measurement is not there."""
    archive = tmp_path / "a.zip"
    packed = write_archive(LESSON, ROOT, archive, {"1.2": 3, "2.1": 4})
    found = reading_of(archive, tmp_path / "out")
    assert found == Reading(files=packed, hints={"1.2": 3})
    assert {each for e in of_lesson(LESSON) for each in e.files} <= set(packed)
    before = archive.read_bytes()
    write_archive(LESSON, ROOT, archive, {"1.2": 3, "2.1": 4})
    assert archive.read_bytes() == before


def test_submit_says_what_is_missing(tmp_path, monkeypatch, capsys):
    tree = folder(tmp_path, dict.fromkeys(FILES, b"written\n"))
    (tree / ENTRY).unlink()
    stub = "; your code, exercise 1.4 {\n exercise_missing\n; } exercise 1.4\n"
    (tree / "boot/mbr.asm").write_text(stub)
    (tree / "labs/exercises.toml").write_bytes((ROOT / "labs/exercises.toml").read_bytes())
    said = "\n".join(missing(LESSON, tree))
    assert f"{ENTRY} is not there" in said and "1.4 The boot loader: not written yet" in said
    assert "labs/lesson1/measurement.json is not as make measure writes it" in said
    assert "labs/lesson1/answers.toml cannot be read" in said and len(said.splitlines()) == 4
    monkeypatch.setattr(submit, "ROOT", tree)
    monkeypatch.setattr(hint, "MEMORY", tree / "hints.json")
    monkeypatch.setattr("sys.argv", ["submit", "--lesson", "1"])
    assert submit.main() == 0
    assert "missing: 1.2 The first instructions" in capsys.readouterr().out
    assert json.loads(zipfile.ZipFile(tree / "build/submit/lesson1.zip").read(MANIFEST)) == {
        "lesson": "1", "course": "", "hints": {},
    }  # fmt: skip


def test_the_storage_lab_is_handed_in_alike(tmp_path):
    write_archive(STORAGE, ROOT, tmp_path / "a.zip", {"S1": 1})
    found = read_here(tmp_path / "a.zip", STORAGE, tmp_path)
    assert found.hints == {"S1": 1} and "labs/storage/answers.toml" in found.files
