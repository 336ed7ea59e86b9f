"""The texts of the pages in Chinese, by gettext: locale/zh_CN/LC_MESSAGES/reports.po.

Sentences have figures, which each run has of its own. So in the catalogue, and where a text is
looked for in it, numbers are {0}, {1} and so on:

    With 0.5% of its requests retried ...       With {0}% of its requests retried ...

A translation may have them in another order, or leave one out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from babel.messages.pofile import read_po

CATALOGUE = Path(__file__).parent / "locale/zh_CN/LC_MESSAGES/reports.po"
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")
PLACE = re.compile(r"\{(\d+)\}")


def pattern(text: str) -> tuple[str, list[str]]:
    """A text with places in place of its numbers, and those."""
    numbers = NUMBER.findall(text)
    places = iter(range(len(numbers)))
    return NUMBER.sub(lambda _: f"{{{next(places)}}}", text), numbers


@cache
def catalogue(path: Path = CATALOGUE) -> Mapping[str, str]:
    """What there is of each text."""
    with path.open("rb") as file:
        return {str(each.id): str(each.string) for each in read_po(file) if each.id and each.string}


def in_chinese(text: str) -> str | None:
    """A text in Chinese; None: the catalogue does not have it."""
    wanted, numbers = pattern(text)
    found = catalogue().get(wanted)
    return found and PLACE.sub(lambda place: numbers[int(place[1])], found)
