"""The pages in headless Chromium: every lesson in both languages, what is typed and dropped, each
kind of end, sizes, access (make page-check). Times are printed, and decide nothing."""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slides.pdf import browser
from tests.page.pages import LAST, MODULES, NAMES, ROOT, ask, commands, require_node

SITE = ROOT / "build/page"
pytestmark = pytest.mark.skipif(
    not os.environ.get("PAGES"), reason="the pages in a browser: make page-check"
)

BYTES = {"lesson6": 2_500_000, "storage": 3_000_000}
OTHERS = 2_500_000
"""The bytes that a page may load until its kernel is at its prompt, from a server that does not
compress."""

ONE_LINE = "seq 3 | sort -r | head -1"
TYPED = {
    "lesson1": ("memory", r"KiB free$"),
    "lesson2": ("probe read 0xc0100000", "vector 14"),
    "lesson3": ("run /bin/hello one", "^argument 1: one$"),
}
"""What is typed in a page without a shell, and a pattern of a row that then comes."""

HALT = bytes.fromhex("fa f4")  # cli, hlt
LOOP = bytes.fromhex("eb fe")  # jump to itself
RESET = bytes.fromhex("b0 fe e6 64 f4")  # the keyboard controller's reset line, hlt


class Quiet(http.server.SimpleHTTPRequestHandler):
    """As a plain static server, without its log."""

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serves the site on loopback."""
    require_node()
    assert (SITE / "site.json").is_file(), "make page-check builds it"
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def look(address: str, work: Path, *visits: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of browser.mjs; none may have failed, or asked another host."""
    program = browser()
    assert program, "no Chromium: labs/tools/setup/setup.sh suite"
    plan = work / "visits.json"
    plan.write_text(json.dumps(visits))
    script = Path(__file__).with_name("browser.mjs")
    done = subprocess.run(
        ["node", script, MODULES, program, address, plan, work],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    for visit, result in zip(visits, found, strict=True):
        assert "failure" not in result, (visit, result)
        assert result["others"] == [] and result["errors"] == [], (visit, result)
    return found


def disk(tmp_path: Path, name: str, code: bytes) -> str:
    """A boot disk with this code in its first sector."""
    path = tmp_path / name
    path.write_bytes((code.ljust(510, b"\0") + b"\x55\xaa").ljust(1 << 20, b"\0"))
    return str(path)


@pytest.mark.parametrize("language", ["", "zh/"], ids=["en", "zh"])
def test_every_page(address: str, tmp_path: Path, language: str) -> None:
    """At its prompt, within its bytes, without a barrier; what is typed is answered."""
    visits = []
    for name in NAMES:
        line, expected = TYPED.get(name, (ONE_LINE, "^3$"))
        visit = {"path": f"{language}{name}.html", "type": line, "expect": expected}
        visits.append({**visit, "axe": True})
    for name, result in zip(NAMES, look(address, tmp_path, *visits), strict=True):
        loaded = result["until_prompt"]
        print(f"{language}{name}: {loaded:,} bytes, prompt after {result['prompt']} ms")
        assert result["language"] == ("zh-CN" if language else "en")
        assert result["violations"] == [], name
        assert loaded <= BYTES.get(name, OTHERS), name


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1000, True)])
def test_windows_of_phones_and_in_the_dark(
    address: str, tmp_path: Path, width: int, dark: bool
) -> None:
    visit = {"path": "lesson6.html", "width": width, "height": 800, "dark": dark, "axe": True}
    (result,) = look(address, tmp_path, visit)
    assert result["violations"] == []
    assert result["overflow"] <= 0, "the page is wider than the window"


def test_each_kind_of_end(address: str, tmp_path: Path) -> None:
    """Typed in lesson 2's page: an exit, a panic, a triple fault, a loop."""
    page = {"path": "lesson2.html"}
    ended = {"wait": "ended"}
    left, panicked, fell, loops = look(
        address,
        tmp_path,
        {**page, "type": "exit", **ended},
        {**page, "type": "crash null", **ended},
        {**page, "type": "crash triple", **ended},
        {**page, "type": "crash hang", "press": "where", "wait": "where", "axe": True},
    )
    assert "status 0" in left["status"]
    assert "page fault" in panicked["status"] and "backtrace" in panicked["status"]
    assert re.search(r"Triple fault at 0x\w{8} empty_table\+0x", fell["status"])
    assert "IDT" in fell["report"] and "CR3" in fell["report"]
    assert re.search(r"0x\w{8} hang\+0x", loops["status"])
    assert "called from" in loops["report"] and loops["violations"] == []


def test_files_that_are_dropped(address: str, tmp_path: Path) -> None:
    """Whole kernels, one that halts for good, loops, or resets; a file that is no kernel."""
    image, kernel = (str(ROOT / "build/lesson2" / name) for name in ("boot.img", "kernel.elf"))
    text = tmp_path / "notes.txt"
    text.write_text("not a disk\n" * 100)
    page = {"path": "zh/lesson1.html"}
    whole, direct, halted, looping, resets, refused = look(
        address,
        tmp_path,
        {**page, "drop": [image, kernel], "type": "crash triple", "wait": "ended"},
        {**page, "path": "lesson1.html", "drop": [kernel], "wait": "prompt"},
        {"path": "lesson1.html", "drop": [disk(tmp_path, "halt.img", HALT)], "wait": "where"},
        {"path": "lesson1.html", "drop": [disk(tmp_path, "loop.img", LOOP)], "press": "where",
         "wait": "where"},
        {"path": "lesson1.html", "drop": [disk(tmp_path, "reset.img", RESET)], "wait": "ended"},
        {"path": "lesson1.html", "drop": [str(text)], "wait": "refused"},
    )  # fmt: skip
    assert re.search(r"三重故障.*0x\w{8} empty_table", whole["status"])
    assert "kernel.elf is running" in direct["status"]
    assert "interrupts disabled" in halted["status"]
    assert "0x00007c00" in looping["status"]
    assert "reset the machine" in resets["status"]
    assert "does not end in 55 AA" in refused["status"]


def test_the_network_goes_when_the_page_is_there(address: str, tmp_path: Path) -> None:
    """All that ends, or is dropped, is explained as with a network; the machine starts again."""
    image, kernel = (str(ROOT / "build/lesson2" / name) for name in ("boot.img", "kernel.elf"))
    page = {"path": "lesson2.html", "offline": True}
    panicked, dropped, again, on = look(
        address,
        tmp_path,
        {**page, "type": "crash null", "wait": "ended"},
        {**page, "drop": [image, kernel], "type": "crash triple", "wait": "ended"},
        {**page, "press": "again", "wait": "prompt"},
        {**page, "press": "power", "wait": "prompt"},
    )
    assert "page fault" in panicked["status"] and "backtrace" in panicked["status"]
    assert re.search(r"Triple fault at 0x\w{8} empty_table\+0x", dropped["status"])
    assert all("could not be loaded" not in each["status"] for each in (again, on))


def test_by_keyboard_alone(address: str, tmp_path: Path) -> None:
    """Into the terminal, a line, and out of it at both ends; a button by Enter."""
    page = {"path": "lesson2.html"}
    pages = len(json.loads((SITE / "site.json").read_text())["kernels"])
    links = ["Tab"] * (pages + 2)  # those, the other language, the terminal
    (typed,) = look(
        address, tmp_path, {**page, "keys": links, "type": "memory", "expect": r"KiB free$"}
    )
    assert typed["focus"][-1] == "textarea"
    inside = [*links, "Tab"]
    back, forward = look(
        address,
        tmp_path,
        {**page, "keys": [*inside, "Shift+Tab"]},
        {**page, "keys": [*inside, "Escape", "Tab", "Tab", "Enter"], "wait": "prompt"},
    )
    assert back["focus"][-3:] == ["textarea", "textarea", "a"]
    assert forward["focus"][-4:] == ["textarea", "again", "power", "power"]


def test_a_command_that_is_touched_on_a_phone(address: str, tmp_path: Path) -> None:
    """Its terminal comes into view, which draws nothing elsewhere: what it says is read there."""
    pages = len(json.loads((SITE / "site.json").read_text())["kernels"])
    keys = ["Tab"] * (pages + 2) + ["Escape"] + ["Tab"] * 7 + ["Enter"]
    visit = {"path": "lesson2.html", "width": 390, "height": 600, "keys": keys}
    (result,) = look(address, tmp_path, {**visit, "type": "memory", "expect": r"KiB free$"})
    assert result["focus"][-2:] == ["button", "textarea"]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_of_a_page(name: str) -> None:
    """Under Node. Each is known, and those after which a machine ends, end it."""
    job, image = ROOT / f"build/page-work/{name}.json", ROOT / f"build/{name}/boot.img"
    lines = [line for line in commands(name) if not LAST.match(line)]
    found = ask("types", job, image, *lines)
    assert found["ended"] is None and len(found["answers"]) == len(lines)
    assert not re.search(r"not found|[Uu]nknown|not one of|No such|error:", found["said"])
    for line in filter(LAST.match, commands(name)):
        found = ask("types", job, image, line)
        is_hang = line == "crash hang"
        assert (found["ended"] is None) == is_hang, line
        assert found["words"][0].split()[0] in ("loops", "panic", "fault", "exit_0"), line
