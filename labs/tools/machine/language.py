"""What a person reads, in the language of their shell: LANGUAGE, LC_ALL, LC_MESSAGES or LANG, in
this order, as gettext asks them.

    print(told("4.1 needs 4.2, not written yet: begin there"))

The catalogues are labs/locale/LANGUAGE/messages/*.po, which are read as they are: a student's tree
needs no compiler for them. A message of a catalogue may have fields, "{what}: expected {expected},
seen {seen}": it stands for all lines of that form, and a field's text is looked up in its turn.
What no catalogue has stays English. Files for programs (results.json, JUnit) are never translated.
"""

from __future__ import annotations

import ast
import gettext
import os
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path

LOCALES = Path(__file__).resolve().parents[3] / "labs/locale"
VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
ENTRY = re.compile(r'^msgid ((?:".*"\n)+)msgstr ((?:".*"(?:\n|\Z))+)', re.MULTILINE)
FIELD = re.compile(r"\{(\w+)\}")
LABEL = re.compile(r": \{\w+\}\Z")  # such a form may have anything after its colon
EXPECTED = ": expected "  # what a test expected is split off first
WIDE = "WF"  # East Asian widths of letters that take two columns


class Catalogue(gettext.NullTranslations):
    """The messages of a language."""

    def __init__(self, messages: Mapping[str, str]) -> None:
        super().__init__()
        self.exact = {text: string for text, string in messages.items() if not FIELD.search(text)}
        fielded = sorted(messages.keys() - self.exact.keys(), key=weight, reverse=True)
        self.forms = [
            (pattern_of(text), bool(LABEL.search(text)), messages[text]) for text in fielded
        ]

    def gettext(self, message: str) -> str:
        """The message in this language, or as it is."""
        if message in self.exact:
            return self.exact[message]
        for pattern, is_label, string in self.forms:
            found = pattern.fullmatch(message)
            if found and (is_label or not any(EXPECTED in text for text in found.groups())):
                return string.format_map({k: self.gettext(v) for k, v in found.groupdict().items()})
        return message


def weight(message: str) -> tuple[bool, int, str]:
    """The most special form is tried first: one that begins with words, with many of them."""
    return not message.startswith("{"), len(FIELD.sub("", message)), message


def pattern_of(message: str) -> re.Pattern[str]:
    """Matches what has the form of a message with fields. Only a message of several lines stands
    for several lines."""
    parts = FIELD.split(message)
    forms = [f"(?P<{each}>.*?)" if at % 2 else re.escape(each) for at, each in enumerate(parts)]
    return re.compile("".join(forms), re.DOTALL if "\n" in message else 0)


def messages_of(path: Path) -> dict[str, str]:
    """The messages of a .po file; its head has none."""
    found = {text_of(m[1]): text_of(m[2]) for m in ENTRY.finditer(path.read_text("utf-8"))}
    return {text: string for text, string in found.items() if text and string}


def text_of(literals: str) -> str:
    """The text that lines of quoted strings are."""
    return "".join(ast.literal_eval(each) for each in literals.splitlines())


def languages(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The languages that a shell asks for, the best first: zh_CN of zh_CN.UTF-8."""
    value = next((value for name in VARIABLES if (value := environment.get(name))), "")
    if environment.get("LC_ALL") in ("C", "POSIX"):
        return []
    return [re.split(r"[.@]", each)[0] for each in value.split(":")]


@cache
def catalogue(language: str) -> gettext.NullTranslations:
    """The messages of a language; none, if there are no files of it."""
    found: dict[str, str] = {}
    for path in sorted(LOCALES.glob(f"{language}/messages/*.po")):
        found |= messages_of(path)
    return Catalogue(found)


def chosen() -> gettext.NullTranslations:
    """The catalogue of the first language that there is, before English."""
    for each in languages():
        if each.partition("_")[0] in ("en", "C"):
            break
        if re.fullmatch(r"\w+", each) and (LOCALES / each / "messages").is_dir():
            return catalogue(each)
    return gettext.NullTranslations()


def told(text: str) -> str:
    """A text in the reader's language: whole, or else line by line. Blanks before a line stay."""
    found = chosen()
    if "\n" in text and (whole := found.gettext(text)) != text:
        return whole
    return "\n".join(in_place(line, found) for line in text.split("\n"))


def in_place(line: str, found: gettext.NullTranslations) -> str:
    """A line, as far to the right as it was."""
    words = line.strip(" ")
    if not words:
        return line
    return line[: line.index(words)] + found.gettext(words)


def paragraphs(text: str) -> str:
    """A text whose paragraphs are messages."""
    found = chosen()
    return "\n\n".join(found.gettext(each) for each in text.split("\n\n"))


def columns(text: str) -> int:
    """How wide a text is in a terminal."""
    return sum(2 if unicodedata.east_asian_width(each) in WIDE else 1 for each in text)


def left(text: str, width: int) -> str:
    """A text at the left of so many columns."""
    return text + " " * (width - columns(text))


def right(text: str, width: int) -> str:
    """A text at the right of so many columns."""
    return " " * (width - columns(text)) + text
