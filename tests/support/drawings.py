"""What is wrong with a drawing: text outside of it, on a line, under a box, on other text.

The drawings are SVG made of rect, polyline, polygon and path, without transforms. Widths of text
are those of DejaVu's glyphs, the drawings' first font; matplotlib brings the fonts along. A Chinese
character is as wide as it is high, in every font.
`python -m tests.support.drawings FILE...` prints the findings.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib
from PIL import ImageFont

FONTS = Path(matplotlib.get_data_path(), "fonts", "ttf")
RULE = re.compile(r"([\w.,\s-]+)\{([^}]*)\}")
PATH_STEP = re.compile(r"([MLHVCQZ])([^MLHVCQZ]*)", re.IGNORECASE)
CURVE_STEPS = 12
WIDE = re.compile(r"[\u3000-\u9fff\uff00-\uffef“”]")
ASCENT, DESCENT = 0.73, 0.21  # of a line of DejaVu, in font sizes: capitals, and the tail of a p
TOUCH = 1.0  # pixels that text may come over a line above or below before one sees it
CLEAR = 3.0  # pixels to a line at the left or right, at least
HEAD = 5.0  # half of the width of an arrow's head
Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle, from left to right and top to bottom."""

    left: float
    top: float
    right: float
    bottom: float

    def shrunk(self, by: float) -> Box:
        return Box(self.left + by, self.top + by, self.right - by, self.bottom - by)

    def with_room(self) -> Box:
        """What a line must not enter."""
        return Box(self.left - CLEAR, self.top + TOUCH, self.right + CLEAR, self.bottom - TOUCH)

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def holds(self, other: Box) -> bool:
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )

    def is_cut_by(self, start: Point, end: Point) -> bool:
        """Does the line from start to end pass through? (Liang and Barsky's clipping.)"""
        low, high = 0.0, 1.0
        for begin, delta, lowest, highest in (
            (start[0], end[0] - start[0], self.left, self.right),
            (start[1], end[1] - start[1], self.top, self.bottom),
        ):
            if delta == 0:
                if not lowest < begin < highest:
                    return False
                continue
            ends = sorted(((lowest - begin) / delta, (highest - begin) / delta))
            low, high = max(low, ends[0]), min(high, ends[1])
        return low < high


@dataclass(frozen=True)
class Shape:
    """A thing of the drawing, in the order of painting: its lines, and what it covers if filled."""

    lines: tuple[tuple[Point, Point], ...]
    covers: Box | None


@dataclass(frozen=True)
class Label:
    """A text in its place."""

    text: str
    box: Box


@cache
def font(mono: bool, bold: bool, size: float) -> ImageFont.FreeTypeFont:
    name = f"DejaVuSans{'Mono' if mono else ''}{'-Bold' if bold else ''}.ttf"
    return ImageFont.truetype(str(FONTS / name), size)


def rules(root: ElementTree.Element) -> dict[str, dict[str, str]]:
    """The style sheet: declarations by element name or .class."""
    found: dict[str, dict[str, str]] = {}
    for sheet in root.iter("{*}style"):
        for selectors, body in RULE.findall(sheet.text or ""):
            pairs = (each.split(":", 1) for each in body.split(";") if ":" in each)
            declared = {name.strip(): value.strip() for name, value in pairs}
            for selector in selectors.split(","):
                found.setdefault(selector.strip(), {}).update(declared)
    return found


def style_of(element: ElementTree.Element, sheet: dict[str, dict[str, str]]) -> dict[str, str]:
    """What holds for an element: attributes, then its name's rules, then its classes'."""
    name = element.tag.rpartition("}")[2]
    style = dict(element.attrib) | sheet.get(name, {})
    for each in element.get("class", "").split():
        style |= sheet.get(f".{each}", {})
    return style


def number(text: str) -> float:
    return float(text.removesuffix("px"))


def label(element: ElementTree.Element, style: dict[str, str]) -> Label:
    text = "".join(element.itertext())
    size = number(style.get("font-size", "16"))
    mono, bold = "Mono" in style.get("font-family", ""), style.get("font-weight") == "bold"
    width = font(mono, bold, size).getlength(WIDE.sub("", text)) + size * len(WIDE.findall(text))
    shift = {"middle": width / 2, "end": width}.get(style.get("text-anchor", ""), 0)
    left, base = number(element.get("x", "0")) - shift, number(element.get("y", "0"))
    return Label(text, Box(left, base - ASCENT * size, left + width, base + DESCENT * size))


def polyline(points: str) -> list[Point]:
    numbers = [float(each) for each in re.split(r"[\s,]+", points.strip())]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def path(data: str) -> list[Point]:
    """The corners of a path with absolute commands; curves as short lines."""
    points: list[Point] = []
    for command, text in PATH_STEP.findall(data):
        numbers = [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?", text)]
        if command == "H":
            points.append((numbers[-1], points[-1][1]))
        elif command == "V":
            points.append((points[-1][0], numbers[-1]))
        elif command == "Z":
            points.append(points[0])
        elif command in "CQ":
            control = [points[-1], *zip(numbers[::2], numbers[1::2], strict=True)]
            points += [bend(control, step / CURVE_STEPS) for step in range(1, CURVE_STEPS + 1)]
        else:
            points += zip(numbers[::2], numbers[1::2], strict=True)
    return points


def bend(control: list[Point], at: float) -> Point:
    """A point of a Bezier curve (de Casteljau)."""
    while len(control) > 1:
        control = [
            (a[0] + (b[0] - a[0]) * at, a[1] + (b[1] - a[1]) * at) for a, b in pairwise(control)
        ]
    return control[0]


def shape(element: ElementTree.Element, style: dict[str, str]) -> Shape:
    name = element.tag.rpartition("}")[2]
    covers = None
    if name == "rect":
        left, top = number(element.get("x", "0")), number(element.get("y", "0"))
        right, bottom = left + number(element.get("width")), top + number(element.get("height"))
        corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        if style.get("fill") != "none":
            covers = Box(left, top, right, bottom)
    else:
        corners = path(element.get("d")) if name == "path" else polyline(element.get("points"))
    lines = tuple(pairwise(corners)) if style.get("stroke", "none") != "none" else ()
    if "marker-end" in style:
        lines += head(*corners[-2:])
    return Shape(lines, covers)


def head(start: Point, end: Point) -> tuple[tuple[Point, Point], ...]:
    """The bottom line of the arrow's head."""
    length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5 or 1
    along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
    foot = (end[0] - 2 * HEAD * along[0], end[1] - 2 * HEAD * along[1])
    sides = [(foot[0] - s * HEAD * along[1], foot[1] + s * HEAD * along[0]) for s in (1, -1)]
    return ((sides[0], sides[1]),)


def painted(root: ElementTree.Element) -> Iterator[Label | Shape]:
    """Texts and shapes in the order of painting, without what is only defined."""
    sheet = rules(root)
    for element in root:
        name = element.tag.rpartition("}")[2]
        if name == "text":
            yield label(element, style_of(element, sheet))
        elif name in ("rect", "polyline", "polygon", "path"):
            yield shape(element, style_of(element, sheet))


def findings(source: str) -> list[str]:
    """What is wrong with the drawing, a sentence each."""
    root = ElementTree.fromstring(source)
    left, top, width, height = map(float, root.get("viewBox").split())
    whole = Box(left, top, left + width, top + height)
    things = list(painted(root))
    problems = []
    for index, thing in enumerate(things):
        if isinstance(thing, Label):
            if not whole.holds(thing.box):
                problems.append(f"{thing.text!r} leaves the picture")
            problems += about_shapes(thing, things[:index], things[index + 1 :])
    labels = [thing for thing in things if isinstance(thing, Label)]
    problems += [
        f"{a.text!r} and {b.text!r} overlap"
        for a, b in combinations(labels, 2)
        if a.box.shrunk(TOUCH).meets(b.box.shrunk(TOUCH))
    ]
    return problems


def about_shapes(
    text: Label, below: list[Label | Shape], above: list[Label | Shape]
) -> Iterator[str]:
    """Lines through the text that nothing hides, and boxes on it."""
    box = text.box.with_room()
    hidden = [
        index
        for index, each in enumerate(below)
        if isinstance(each, Shape) and each.covers and each.covers.holds(text.box)
    ]
    seen = [*below[hidden[-1] if hidden else 0 :], *above]
    if any(box.is_cut_by(*line) for each in seen if isinstance(each, Shape) for line in each.lines):
        yield f"{text.text!r} is on a line"
    if any(
        isinstance(each, Shape) and each.covers and each.covers.meets(text.box) for each in above
    ):
        yield f"{text.text!r} is under a box"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for problem in findings(Path(name).read_text(encoding="utf-8")):
            print(f"{name}: {problem}")
