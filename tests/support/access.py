"""What axe says of pages, asked by a headless Chromium (access.mjs)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from labs.tools.machine.bounded import run_within
from slides.pdf import browser

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / "build/npm/node_modules"
PHONE, WINDOW, WALL = 390, 1000, 1280
SECONDS = 1800


class Visit(NamedTuple):
    """A page in a window, on a light or a dark machine. `every`: all slides of a deck at once."""

    page: Path
    width: int = PHONE
    dark: bool = False
    every: bool = False


class Seen(NamedTuple):
    """What was found: axe's violations, and by how many pixels the page is too wide."""

    visit: Visit
    violations: list[str]
    overflow: int


def require_axe() -> None:
    """Skips a test where Chromium, Node or npm's packages are not: setup.sh has said why."""
    if not (browser() and shutil.which("node") and (MODULES / "axe-core").is_dir()):
        pytest.skip("no Chromium, Node or axe: labs/tools/setup/setup.sh page")


def look(visits: Sequence[Visit], work: Path) -> list[Seen]:
    """Visits the pages, one after another, in one browser."""
    plan = work / "visits.json"
    end = {False: "", True: "?print-pdf"}
    asked = [
        {"address": v.page.resolve().as_uri() + end[v.every], "width": v.width, "dark": v.dark}
        for v in visits
    ]
    plan.write_text(json.dumps(asked))
    script = Path(__file__).with_suffix(".mjs")
    done = run_within(
        ["node", script, MODULES, browser(), plan],
        capture_output=True,
        text=True,
        seconds=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout)
    return [Seen(v, **answer) for v, answer in zip(visits, answers, strict=True)]


def complaints(visits: Sequence[Visit], work: Path) -> list[str]:
    """A line for each violation, and for each page that scrolls sideways."""
    found = []
    for visit, violations, overflow in look(visits, work):
        where = f"{visit.page.parent.name}/{visit.page.name}, {visit.width} px"
        found += [f"{where}: {each}" for each in violations]
        if overflow > 0 and not visit.every:
            found.append(f"{where}: {overflow} px too wide")
    return found
