"""The decks' sources, page by page: what a page shows, its notes, and the commands of both.

slides/README.md has the form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.dialogues import GDB_PROMPT, SHELL_PROMPT, Step, lines_of

ROOT = Path(__file__).resolve().parents[2]
SLIDES = ROOT / "slides"
DECKS = sorted(path.stem for path in SLIDES.glob("*.md") if path.stem != "README")

LATER = {"storage": "Buffered against direct"}
"""Decks of two classes of two hours, and where the second one begins; the others have one."""

LECTURES = [name for name in DECKS if name != "index"]

FENCE = re.compile(r"^```(\{?[\w-]+\}?)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^##? (.+)$", re.MULTILINE)
NOTES = re.compile(r"^:::\{revealjs-notes\}\n(.*?)^:::$", re.MULTILINE | re.DOTALL)
MINUTES = re.compile(r"\A(\d+) min\. ")
WRONG = re.compile(r"^- Wrong: ", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A page: its title, what it shows, and its notes (empty, if it has none)."""

    title: str
    shown: str
    notes: str

    @property
    def minutes(self) -> int:
        """What the notes give to the page; 0 if they say nothing."""
        found = MINUTES.match(self.notes)
        return int(found[1]) if found else 0

    @property
    def wrong_answers(self) -> int:
        """How many of them the notes tell."""
        return len(WRONG.findall(self.notes))


@dataclass(frozen=True)
class Session:
    """A `make gdb` that a deck tells to type, and what is typed at gdb's prompt."""

    command: str
    walk: tuple[Step, ...]


def source_of(name: str) -> str:
    """The deck's text."""
    return (SLIDES / f"{name}.md").read_text(encoding="utf-8")


def pages_of(text: str) -> list[Page]:
    """The deck's pages. A heading in a fence is none."""
    hidden = FENCE.sub(lambda fence: re.sub(r"^#", " ", fence[0], flags=re.MULTILINE), text)
    starts = [title.start() for title in TITLE.finditer(hidden)]
    return [page_of(text[at:end]) for at, end in zip(starts, [*starts[1:], None], strict=True)]


def page_of(part: str) -> Page:
    """A page from its part of the deck's text."""
    title, _, rest = part.partition("\n")
    notes = NOTES.findall(rest)
    assert len(notes) <= 1, f"{title}: notes twice"
    shown = NOTES.sub("", rest)
    assert ":::" not in shown, f"{title}: notes begin with :::{{revealjs-notes}} and end with :::"
    return Page(title.lstrip("# ").strip(), shown, notes[0] if notes else "")


def classes_of(name: str) -> list[list[Page]]:
    """The pages of each class that the deck is for."""
    pages = pages_of(source_of(name))
    if name not in LATER:
        return [pages]
    (second,) = (at for at, page in enumerate(pages) if page.title == LATER[name])
    return [pages[:second], pages[second:]]


def dialogue(fence: str, prompt: str) -> list[Step]:
    """The commands of a fence, with what it shows below each."""
    head, *parts = re.split(rf"^{re.escape(prompt)}", fence, flags=re.MULTILINE)
    assert not head, f"a fence begins with {head!r}, not with {prompt}"
    return [Step(command, tuple(lines)) for command, *lines in map(lines_of, parts)]


def shell_steps(text: str) -> list[Step]:
    """What the deck tells to type at a shell's prompt; `make gdb` is in sessions_of."""
    steps = [
        step
        for language, body in FENCE.findall(text)
        if language == "console"
        for step in dialogue(body, SHELL_PROMPT)
    ]
    return [step for step in steps if not is_gdb(step)]


def is_gdb(step: Step) -> bool:
    """Does the command begin a session of gdb?"""
    return step.command.split()[:2] == ["make", "gdb"]


def sessions_of(text: str) -> list[Session]:
    """The sessions of gdb: each begins with `make gdb`. Notes either repeat the commands of their
    page, with what they show (each is one step), or go on with further ones."""
    sessions: list[Session] = []
    for page in pages_of(text):
        asked: list[Step] = []
        for part in (page.shown, page.notes):
            for language, body in FENCE.findall(part):
                if language == "console":
                    begun = filter(is_gdb, dialogue(body, SHELL_PROMPT))
                    sessions += [Session(step.command, ()) for step in begun]
                elif language == "gdb":
                    assert sessions, f"{page.title}: gdb, and no `make gdb` before it"
                    new, last = dialogue(body, GDB_PROMPT), sessions.pop()
                    if part is page.notes and commands(new) == commands(asked):
                        last = Session(last.command, last.walk[: len(last.walk) - len(asked)])
                        asked = []
                    sessions.append(Session(last.command, (*last.walk, *new)))
                    asked += new if part is page.shown else []
    return sessions


def commands(steps: list[Step]) -> list[str]:
    """What is typed."""
    return [step.command for step in steps]
