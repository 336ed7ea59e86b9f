"""The drawings of handouts and slides can be read: no text leaves the picture, none is on a line,
under a box or on other text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import drawings

ROOT = Path(__file__).resolve().parents[2]
DRAWINGS = sorted(
    str(path.relative_to(ROOT)) for path in ROOT.glob("[ls][al][bi]*/**/drawings/*.svg")
)


@pytest.mark.parametrize("name", DRAWINGS)
def test_can_be_read(name: str) -> None:
    problems = drawings.findings((ROOT / name).read_text(encoding="utf-8"))
    assert not problems, f"{name}: {'; '.join(problems)}"


@pytest.mark.parametrize(
    ("inside", "problems"),
    [
        ('<text x="10" y="40">short</text>', []),
        ('<text x="160" y="40">rather long</text>', ["'rather long' leaves the picture"]),
        (
            '<text x="10" y="40">a word</text><polyline points="0,0 60,90" stroke="#000"/>',
            ["'a word' is on a line"],
        ),
        (
            '<polyline points="0,0 60,90" stroke="#000"/><rect x="5" y="20" width="100" '
            'height="30" fill="#fff"/><text x="10" y="40">a word</text>',
            [],
        ),
        (
            '<text x="10" y="40">a word</text><rect x="5" y="20" width="100" height="30" '
            'fill="#fff"/>',
            ["'a word' is under a box"],
        ),
        (
            '<text x="10" y="40">one word</text><text x="60" y="44">another</text>',
            ["'one word' and 'another' overlap"],
        ),
        (
            '<text x="20" y="40" text-anchor="middle">middle</text>',
            ["'middle' leaves the picture"],
        ),
        (
            '<rect x="100" y="30" width="90" height="30" fill="#fff" stroke="#000"/>'
            '<text x="80" y="50">across it</text>',
            ["'across it' is on a line"],
        ),
        (
            '<rect x="100" y="30" width="90" height="30" fill="#fff" stroke="#000"/>'
            '<text x="110" y="50">in it</text>',
            [],
        ),
        (
            '<path d="M0,30 C50,30 100,30 190,30" stroke="#000"/><text x="10" y="35">on it</text>',
            ["'on it' is on a line"],
        ),
    ],
)
def test_finds_what_is_wrong(inside: str, problems: list[str]) -> None:
    start = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100">'
    assert drawings.findings(f"{start}{inside}</svg>") == problems
