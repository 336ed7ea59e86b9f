"""What the tests of the pages share: their texts, and questions to the browser's PC under Node."""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from labs.tools.machine.bounded import run_within

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "labs/page"
MODULES = ROOT / "build/npm/node_modules"
SECONDS = 900  # a backstop: what a machine does is counted in its own time
BLOCK = re.compile(r"^```\{code-block\} text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMES = [f"lesson{number}" for number in range(1, 7)] + ["storage"]
LAST = re.compile(r"^(?:panic|crash \w+|exit)$")
"""A command after which a machine does not go on."""


def commands(name: str) -> list[str]:
    """The commands of a page, in their order."""
    text = (ROOT / "labs" / name / "page.md").read_text(encoding="utf-8")
    return [line for block in BLOCK.findall(text) for line in block.splitlines()]


def require_node() -> None:
    """Skips a test where Node or npm's packages are not: setup.sh has said why."""
    if not shutil.which("node") or not (MODULES / "v86").is_dir():
        pytest.skip("no Node, or no npm packages: labs/tools/setup/setup.sh page")


def ask(question: str, *words: str | Path) -> Any:
    """The answer of node.mjs."""
    require_node()
    command = ["node", str(Path(__file__).with_name("node.mjs")), str(MODULES), question]
    done = run_within(
        [*command, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        seconds=SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@cache
def messages(key: str) -> dict[str, str]:
    """The page's words in a language."""
    import tomllib

    words = tomllib.loads((PAGE / "words.toml").read_text(encoding="utf-8"))
    return {name: text[key] for name, text in words.items()}
