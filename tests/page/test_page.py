"""The pages that run a kernel in a browser: their words, what they take from npm, and the browser's
PC under Node. What a browser shows is in test_browser.py (make page-check)."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from labs.page import build as site
from labs.page import licences
from labs.tools.guest.initramfs import archive
from labs.tools.guest.programs import busybox, guest_root
from labs.tools.machine.symbols import symbols_of
from tests.page.pages import (
    LAST,
    MODULES,
    NAMES,
    PAGE,
    ROOT,
    ask,
    commands,
    messages,
    require_node,
)
from tests.support.building import make

HANZI = re.compile(r"[\u4e00-\u9fff]")
FIELD = re.compile(r"\{(\w+)\}")
SECTOR = 512


# ---- words --------------------------------------------------------------------------------------


def test_words_are_in_both_languages() -> None:
    for key, english in messages("en").items():
        chinese = messages("zh")[key]
        assert english and HANZI.search(chinese), key
        assert not hasattr(dict, key), f"{key}: a template would take dict's own"
        assert set(FIELD.findall(english)) == set(FIELD.findall(chinese)), key


def test_every_word_is_used() -> None:
    scripts = "".join((PAGE / name).read_text() for name in ("page.js", "ends.js", "images.js"))
    used = set(re.findall(r'"([a-z_0-9]+)"', scripts))
    used |= set(re.findall(r"w\.(\w+)", (PAGE / "template.html").read_text()))
    used |= {"handout", "slides"}  # labs/page/build.py: build_books
    assert messages("en").keys() <= used, messages("en").keys() - used
    said = set(re.findall(r'\bword\("(\w+)"', scripts))
    assert said <= messages("en").keys(), said - messages("en").keys()


def test_the_translation_is_whole(tmp_path: Path) -> None:
    """Each text of each page as it is now; none that is there no more."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "gettext", "-c", str(PAGE)]
    command += ["-D", "master_doc=lesson1/page", str(ROOT / "labs"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        asked = {str(m.id) for m in read_po((tmp_path / name / "page.pot").open("rb")) if m.id}
        path = PAGE / "locale/zh_CN/LC_MESSAGES" / name / "page.po"
        given = {str(m.id): m for m in read_po(path.open("rb")) if m.id}
        assert given.keys() == asked, name
        for text, message in given.items():
            assert HANZI.search(message.string) and not message.fuzzy, text


def test_nothing_names_another_host() -> None:
    for path in sorted(PAGE.rglob("*")):
        if path.is_file() and path.suffix not in (".mo", ".pyc"):
            assert not re.search(r"https?://", path.read_text(encoding="utf-8")), path


def test_a_page_explains_itself_without_its_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be blocked, or the page opened as a file. The handout has a link, too."""
    monkeypatch.setattr(site, "build_texts", lambda *_: None)
    monkeypatch.setattr(site, "texts", lambda *_: ("Title", ""))
    books = {language.key: {"handout": "handout/"} for language in site.LANGUAGES}
    monkeypatch.setattr(site, "build_books", lambda _: books)
    site.write_pages(["lesson1"], tmp_path, tmp_path, with_books=True)
    for language in site.LANGUAGES:
        page = (tmp_path / language.folder / "lesson1.html").read_text(encoding="utf-8")
        said = messages(language.key)["not_yet"]
        assert f'<p id="status" role="status">{said}</p>' in page
        assert re.search(r'<a href="(\.\./)?handout/lesson1/README.html">', page)


# ---- what comes from elsewhere ------------------------------------------------------------------


def test_versions_are_pinned() -> None:
    wanted = json.loads((PAGE / "package.json").read_text())
    lock = json.loads((PAGE / "package-lock.json").read_text())["packages"]
    named = {**wanted["dependencies"], **wanted["devDependencies"]}
    assert {name.removeprefix("node_modules/") for name in lock if name} == named.keys()
    for name, version in named.items():
        entry = lock[f"node_modules/{name}"]
        assert re.fullmatch(r"\d+\.\d+\.\d+", version) and entry["version"] == version
        assert entry["integrity"].startswith("sha512-") and "resolved" not in entry


def test_licences_are_shipped(tmp_path: Path) -> None:
    require_node()
    licences.write(MODULES, tmp_path, with_programs=False)
    page = (tmp_path / "licences.html").read_text()
    for part, licence in (("v86", "BSD-2"), ("xterm.js", "MIT"), ("SeaBIOS", "LGPL-3")):
        assert re.search(rf"<li>{re.escape(part)} .*{licence}", page), part
    links = re.findall(r'href="(licences/[^"]+)"', page)
    assert len(links) >= 4 and all((tmp_path / each).stat().st_size > 500 for each in links)


def test_a_licence_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(licences, "COPYRIGHTS", ())
    with pytest.raises(licences.LicenceError, match="licence of SeaBIOS is missing"):
        licences.parts(MODULES, with_programs=False)


# ---- files that are dropped ---------------------------------------------------------------------


def elf(flags: int = 0, checksum: int | None = None, machine: int = 3) -> bytes:
    """The beginning of a kernel's file, with a Multiboot header."""
    magic = 0x1BADB002
    total = -(magic + flags) % (1 << 32) if checksum is None else checksum
    head = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HH", 2, machine)
    return head.ljust(64, b"\0") + struct.pack("<III", magic, flags, total) + bytes(SECTOR)


def test_files_are_recognised(tmp_path: Path) -> None:
    boot = (b"\xfa" + bytes(SECTOR - 3) + b"\x55\xaa").ljust(4 * SECTOR, b"\0")
    ext = bytearray(4 * SECTOR)
    ext[1024 + 0x38 : 1024 + 0x3A] = b"\x53\xef"
    ext[0] = 1  # somebody's code
    wanted = {
        "boot": (boot, "boot"),
        "kernel": (elf(), "kernel"),
        "checksum": (elf(checksum=7), "bad_checksum"),
        "addresses": (elf(flags=1 << 16), "by_address"),
        "headless": (elf().replace(struct.pack("<I", 0x1BADB002), bytes(4)), "no_header"),
        "other": (elf(machine=62), "not_i386"),
        "ext": (bytes(ext), "disk"),
        "empty": (bytes(4 * SECTOR), "disk"),
        "text": (b"hello" * SECTOR, "no_boot_mark"),
        "short": (b"hello", "too_short"),
    }
    for name, (data, _) in wanted.items():
        (tmp_path / name).write_bytes(data)
    found = ask("files", *(tmp_path / name for name in wanted))
    kinds = [each.get("why", each["kind"]) for each in found]
    assert dict(zip(wanted, kinds, strict=True)) == {
        name: kind for name, (_, kind) in wanted.items()
    }


# ---- the machine --------------------------------------------------------------------------------


def image_of(name: str) -> Path:
    """A lesson's boot disk, built."""
    make(f"LESSON={name.removeprefix('lesson')}", "image-disk")
    return ROOT / "build" / name / "boot.img"


def job_of(name: str, work: Path) -> Path:
    """A job for state.mjs: a lesson's kernel with the guest's usual programs."""
    files = {}
    if name != "lesson2":
        make("LESSON=6", "user-programs")
        files["initramfs"] = work / "initramfs"
        entries = guest_root(ROOT / "build/user/bin", busybox())
        files["initramfs"].write_bytes(archive(entries))
    path = work / f"{name}.json"
    path.write_text(json.dumps(site.Kernel(name, image_of(name), {}, files).job()))
    return path


@pytest.mark.fast
def test_lesson_2_in_the_browsers_pc(tmp_path: Path) -> None:
    """What its page says can be typed. Then a triple fault: seen, and told with its place. What
    machine.js uses of v86 without its promise is there."""
    require_node()
    lines = [line for line in commands("lesson2") if not LAST.match(line)]
    job = job_of("lesson2", tmp_path)
    found = ask("types", job, image_of("lesson2"), *lines, "crash triple")
    assert found["missing"] == []
    assert "the processor counts at 1000" in found["said"]
    exceptions = [re.search(r"vector (\d+)", answer) for answer in found["answers"][:-1]]
    assert [each and each[1] for each in exceptions] == ["13", "13", None, "6", "14"]
    assert found["ended"] == {"kind": "fault"}
    assert re.match(r"fault 0x\w{8} empty_table\+0x", found["words"][0])
    assert "run_crash+0x" in found["words"][2] and "kmain+0x" in found["words"][2]


@pytest.mark.fast
def test_lesson_6_goes_on_from_its_state(tmp_path: Path) -> None:
    """The machine is saved at its prompt, and goes on in another one."""
    require_node()
    job, state = job_of("lesson6", tmp_path), tmp_path / "state"
    command = ["node", PAGE / "state.mjs", MODULES, job, state]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["khz"] == pytest.approx(1e6, rel=0.01)
    assert "built-in shell" in said["said"] and "ended" not in said
    job.write_text(json.dumps({**json.loads(job.read_text()), "state": str(state)}))
    found = ask("types", job, image_of("lesson6"), "", "seq 3 | sort -r | head -1", "exit")
    assert found["answers"][1].splitlines()[1] == "3"
    assert found["ended"] == {"kind": "exit", "status": 0}


def test_names_of_functions() -> None:
    """From a kernel's file and, where that is stripped, from the table that it carries itself."""
    image = image_of("lesson2")
    kernel = image.with_name("kernel.elf")
    where = symbols_of(kernel).find("kmain").address
    for path in (kernel, image):
        found = ask("names", path, hex(where + 5), "0x10")
        assert found["names"] == [f"0x{where + 5:08x} kmain+0x5", "0x00000010"], path
        assert found["count"] > 100
