"""The handouts' drawings: no text on a line, across the edge of a box, under a box, on another
text, or out of the picture. Widths are those of DejaVu, the font that the drawings name."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib
import pytest
from PIL import ImageFont

ROOT = Path(__file__).resolve().parent.parent
DRAWINGS = sorted((ROOT / "labs").glob("lesson*/drawings/*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
SAMPLE = 100  # the size at which widths are measured
ASCENT, DESCENT = 0.75, 0.2  # of the size: capitals, and what is below the line
TOUCH = 0.5  # so many pixels may overlap
GAP = 2.5  # and so many must be between a text's ends and a line, or the edge of a box


@dataclass(frozen=True)
class Box:
    """A rectangle of the drawing; `order` is its place among the elements."""

    left: float
    top: float
    right: float
    bottom: float
    order: int
    text: str = ""

    def overlaps(self, other: Box) -> bool:
        return (
            min(self.right, other.right) - max(self.left, other.left) > TOUCH
            and min(self.bottom, other.bottom) - max(self.top, other.top) > TOUCH
        )

    def is_inside(self, other: Box) -> bool:
        return (
            self.left >= other.left - TOUCH
            and self.right <= other.right + TOUCH
            and self.top >= other.top - TOUCH
            and self.bottom <= other.bottom + TOUCH
        )


@cache
def font(name: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(FONTS / name, SAMPLE)


def text_box(element: ET.Element, order: int) -> Box:
    """The place that a text takes."""
    text, size = "".join(element.itertext()), float(element.get("font-size", "12"))
    family = "DejaVuSansMono" if element.get("class") == "m" else "DejaVuSans"
    weight = "-Bold" if element.get("font-weight") == "bold" else ""
    width = font(f"{family}{weight}.ttf").getlength(text) * size / SAMPLE
    x, y = float(element.get("x", "0")), float(element.get("y", "0"))
    left = x - width * {"middle": 0.5, "end": 1}.get(element.get("text-anchor", ""), 0)
    return Box(left, y - ASCENT * size, left + width, y + DESCENT * size, order, text)


def rectangle(element: ET.Element, order: int) -> Box:
    x, y = float(element.get("x", "0")), float(element.get("y", "0"))
    width, height = float(element.get("width", "0")), float(element.get("height", "0"))
    return Box(x, y, x + width, y + height, order)


def segments(root: ET.Element) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    for element in root.iter(f"{SVG}polyline"):
        points = [tuple(map(float, p.split(","))) for p in element.get("points", "").split()]
        yield from pairwise(points)
    for element in root.iter(f"{SVG}line"):
        ends = [float(element.get(name, "0")) for name in ("x1", "y1", "x2", "y2")]
        yield (ends[0], ends[1]), (ends[2], ends[3])


def crosses(box: Box, start: tuple[float, float], end: tuple[float, float]) -> bool:
    """Does the segment go through the box? Clipped on each axis in turn (Liang and Barsky)."""
    low, high = 0.0, 1.0
    for at, distance, least, most in (
        (start[0], end[0] - start[0], box.left + TOUCH, box.right - TOUCH),
        (start[1], end[1] - start[1], box.top + TOUCH, box.bottom - TOUCH),
    ):
        if distance == 0:
            if not least < at < most:
                return False
            continue
        first, second = sorted(((least - at) / distance, (most - at) / distance))
        low, high = max(low, first), min(high, second)
    return low < high


def faults(root: ET.Element) -> list[str]:
    """What a reader would stumble over."""
    elements = list(root.iter())
    texts = [text_box(e, i) for i, e in enumerate(elements) if e.tag == f"{SVG}text"]
    texts = [each for each in texts if each.text.strip()]
    page, *boxes = [rectangle(e, i) for i, e in enumerate(elements) if e.tag == f"{SVG}rect"]
    lines = list(segments(root))
    found = []
    for text in texts:
        if not text.is_inside(page):
            found.append(f"{text.text!r} is not wholly in the picture")
        wide = replace(text, left=text.left - GAP, right=text.right + GAP)
        if any(crosses(wide, *line) for line in lines):
            found.append(f"{text.text!r} is on a line")
        for box in filter(wide.overlaps, boxes):
            if not wide.is_inside(box):
                found.append(f"{text.text!r} is across the edge of a box")
            elif box.order > text.order:
                found.append(f"{text.text!r} is under a box")
    found += [
        f"{one.text!r} is on {other.text!r}"
        for one, other in combinations(texts, 2)
        if one.overlaps(other)
    ]
    return found


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_every_text_can_be_read(path: Path) -> None:
    assert not faults(ET.parse(path).getroot())


@pytest.mark.parametrize(
    ("element", "fault"),
    [
        ('<text x="10" y="50">free</text>', None),
        ('<text x="110" y="50">in it</text>', None),
        ('<text x="80" y="50">across it</text>', "across the edge"),
        ('<text x="10" y="90">on it</text>', "on a line"),
        ('<text x="190" y="20">too far to the right</text>', "in the picture"),
        ('<text x="10" y="20">one</text><text x="12" y="22">two</text>', "is on"),
        ('<text x="10" y="50">below</text><rect x="0" y="30" width="90" height="30"/>', "under"),
    ],
)
def test_faults_are_found(element: str, fault: str | None) -> None:
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg"><rect width="200" height="100"/>'
        '<rect x="100" y="30" width="90" height="30"/><polyline points="0,86 200,86"/>'
        f"{element}</svg>"
    )
    found = faults(ET.fromstring(drawing))
    assert len(found) == (fault is not None) and all(fault in each for each in found), found
