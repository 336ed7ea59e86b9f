"""The words of the course: which ones a student's texts do not use, and where each text is.

The field has terms; a student can look them up, and a translator too. REFUSED names the private
words that stood in their place, each with the reason or the better word. A text is what a person
reads: Markdown and SVG, comments, and strings of programs; code, and excerpts in `...`, are not.

`python -m tests.support.words` lists all findings, `... FILE` those of a file or folder.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]

# What a student or a user of the kernel sees.
SEEN = (
    *("README.md", "*/README.md", "labs/*.md", "slides/*.md", "*.svg"),
    *("labs/exercises.toml", "labs/*/map.toml", "labs/rooms.toml", "labs/tools/course/start.md"),
    *("boot/*", "drivers/*", "fs/*", "kernel/*", "mm/*", "user/*"),
    *("labs/*.c", "labs/*.h", "labs/*.asm", "labs/*.py", "labs/*.sh", "labs/*.mk", "Makefile"),
    *("tests/lesson*/visible/*", "tests/lesson*/*.py", "tests/lesson*/host/*"),
    *(
        "tests/lesson*/hidden/*",
        "tests/storage/hidden/*",
        "tests/storage/visible/*",
        "tests/storage/*.py",
    ),
)
NOT_SEEN = ("*.o", "*.bin")


@dataclass(frozen=True)
class Word:
    """A pattern that no text may contain: why, and what to write. A space in it is any space."""

    pattern: str
    instead: str
    only: str = "*"
    outside: tuple[str, ...] = ()  # files that the rule is not for

    @property
    def expression(self) -> re.Pattern[str]:
        return re.compile(self.pattern.replace(" ", r"\s+"))


NOUN = r"(?:the|a|an|it|they|there|this|that|these|those|he|she|we|you|nobody|nothing|some\w+)"
VERB = r"(?:is|are|was|were|may|can|could|has|have|had|must|does|do|will|would|comes?|needs?|goes)"

OF_DEVELOPERS = ("labs/tools/*", "labs/storage/*.py", "tests/*", "user/testing/*")  # docstrings

REFUSED = (
    # The field's terms.
    Word(r"\b[Aa]n END\b|\bboth want an END|\bEND (?:for|of|to|that|is|goes)\b", "EOI"),
    Word(
        r"\b(?:[Ll]ines?) (?:\d+|of the (?:second |first )?controller)\b(?! of)",
        "IRQ, where an interrupt request is meant",
        "labs/lesson2/*",
    ),
    Word(r"(?<!serial\s)\binterrupt lines?\b", "IRQ"),
    Word(r"\b[Uu]rgen(?:cy|t|cies)\b", "priority; only Linux's nice is something else"),
    Word(r"(?<!time-)(?<!time\s)(?<!Time-)\b[Ss]tamps?\b", "TSC cycles, or the time", "kernel/*"),
    Word(r"\b[Bb]ack traces?\b", "backtrace"),
    Word(
        r"\b[Ii]nterrupts? (?:(?:are|is|were|was|be|stay|remain|must|switched|go) )*"
        r"(?:on|off)\b(?! (?:the|a|an|its|IRQ|of)\b)|\b[Ss]witch(?:es|ed)? interrupts (?:on|off)\b",
        "enabled, disabled",
    ),
    Word(
        r"\b[Rr]ing 3 (?:wants?|may|can|cannot|has|had|puts?|gives?|leaves?|left|tries|asks?|"
        r"executes|uses|sees?|believes|knows|reads|writes|wrote|calls?|gets?|took|takes|does)\b",
        "user mode, or the program: a privilege level does nothing",
    ),
    Word(r"\bof ring 3\b|\bring 3's\b", "the user's, or the program's"),
    # Subjects are things that act.
    Word(r"(?:^|[.;:] |- )Who(?:ever)? [^.?!]*\.", "a task that ...: who only in questions"),
    Word(r"\b[Ww]hoever\b", "any caller, any task that ..."),
    Word(r"\b[Ww]hose (?:is|are)\b", "who uses, who owns"),
    # No space for time or logic.
    Word(r"\b[Bb]ehind\b", "after, beyond, below, in"),
    Word(r"\b(?:lie|lies|lay)\b", "is, are, was"),
    Word(
        r"\b[Ss]tands?\b(?! for\b)(?!-for\b)(?! alone\b)|\bstood\b(?! for\b)",
        "is, comes; (stands for is right)",
    ),
    Word(r"\b[Hh](?:ang|angs|ung) (?:on|from)\b", "depends on, is connected to"),
    # Modern connectives.
    Word(rf",\s+for (?!the (?:other|first|second|last)){NOUN} (?:\w+ ){{0,4}}{VERB}\b", "because"),
    Word(r"\b[Ss]hall\b", "must, or is to"),
    Word(r"\b[Aa]new\b", "again"),
    Word(r"\b(?:is|are) none (?:of|for)\b|\bwhat is none\b", "is not one of; out of range"),
    Word(r"\bthat is none\b|\bwhich is none\b", "that is not one"),
    Word(r"\b(?:[Tt]hereof|[Ww]hereof|[Tt]herein|[Ww]herefore|[Hh]erein)\b", "of it, in it, why"),
    Word(r"\bparted by\b", "separated by"),
    Word(r"\b(?:is|are) so (?:large|long|many|wide)\b(?! (?:that|as))[.;:]", "name the number"),
    Word(r"\b[Bb]eside(?! the)\b(?!s)", "besides, next to, together with"),
    Word(r"\b[Mm]end(?:s|ed|ing)?\b", "fix, repair"),
    # Words of another language in English dress.
    Word(
        r"(?<![Tt]here\s)\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|worse\b|such\b)\w+",
        "is not a ...; there is no ... is right",
        outside=OF_DEVELOPERS,
    ),
    Word(r"\b[Bb]orders?\b", "boundary, edge, limit", outside=OF_DEVELOPERS),
    Word(
        r"(?<!every\s)\b[Ss]o many\b(?! (?:that|as)\b)",
        "this many, or the argument's name",
        outside=OF_DEVELOPERS,
    ),
    Word(
        r"\b[Ss]ome (?:ten|hundred|thousand)\b",
        "about ten, several hundred",
        outside=OF_DEVELOPERS,
    ),
    Word(r"\b[Tt]he contrary\b(?! of)", "the reverse"),
    Word(r"\b[Ff]ree of hardware\b", "it uses no hardware"),
    Word(r"\b(?:giv(?:es?|en|ing)|gave) (?:\w+ ){0,3}away\b", "give up, hand out"),
    Word(
        r"\beach (?:[\d.]+ )?(?:[mun]s|(?:nano|micro|milli)?seconds?|minutes?)\b",
        "every 10 ms",
    ),
    Word(r"\b(?:an?|the) own\b", "its own, one of its own"),
    Word(r"\b(?:[Tt]he|its|last|first|single) look\b", "check", outside=OF_DEVELOPERS),
    Word(r"\bbelongs? into\b", "belongs in", outside=OF_DEVELOPERS),
)


def seen() -> tuple[str, ...]:
    """The files with texts that a student sees, by path from the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    names = sorted({name for name in done.stdout.split("\0") if (ROOT / name).is_file()})
    return tuple(
        name
        for name in names
        if any(fnmatch(name, each) for each in SEEN)
        and not any(fnmatch(name, each) for each in NOT_SEEN)
    )


# ---- the texts of a file: all else becomes blanks, so that lines stay --------------------------


def blanked(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def kept(source: str, pattern: re.Pattern[str]) -> str:
    """What the pattern finds."""
    out, end = [], 0
    for found in pattern.finditer(source):
        out += [blanked(source[end : found.start()]), found[0]]
        end = found.end()
    return "".join(out) + blanked(source[end:])


C_TEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", re.DOTALL)
ASM_TEXT = re.compile(r"\"[^\"\n]*\"|;[^\n]*")
HASH_TEXT = re.compile(r"#[^\n]*|echo \"[^\"\n]*\"|@echo[^\n]*")
FENCE = re.compile(r"^```([^\n]*)\n.*?^```$", re.MULTILINE | re.DOTALL)
CODE_OF_MARKDOWN = re.compile(
    r"^<!--.*?-->$|`[^`\n]+`|\]\([^)\n]*\)|^    [^\n]*$", re.MULTILINE | re.DOTALL
)
CODE_OF_HINTS = re.compile(r"^\t[^\n]*$", re.MULTILINE)
BLANKS = re.compile(r" {2,}")  # most of a source is blanks then; they would take most of the time
SVG_TEXT = re.compile(r"(?<=>)[^<]+(?=<)")


def is_shown(language: str) -> bool:
    """Does a fence show what the course's programs print?"""
    return language in ("console", "gdb") or language.startswith("{admonition}")


def of_python(source: str) -> str:
    """Comments and strings."""
    lines = [list(blanked(line)) for line in source.split("\n")]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for row, line in enumerate(token.string.split("\n"), token.start[0] - 1):
                column = token.start[1] if row == token.start[0] - 1 else 0
                lines[row][column : column + len(line)] = line
    return "\n".join("".join(line) for line in lines)


@cache
@cache
def texts(name: str, source: str) -> str:
    """The source with everything blanked that nobody reads as prose."""
    suffix = PurePosixPath(name).suffix
    if suffix in (".c", ".h", ".ld", ".S"):
        text = kept(source, C_TEXT)
    elif suffix in (".asm", ".inc", ".s"):
        text = kept(source, ASM_TEXT)
    elif suffix == ".py":
        text = of_python(source)
    elif suffix == ".svg":
        text = kept(source, SVG_TEXT)
    elif suffix in (".md", ".toml"):
        source = CODE_OF_HINTS.sub(lambda found: blanked(found[0]), source)
        text = FENCE.sub(lambda each: each[0] if is_shown(each[1]) else blanked(each[0]), source)
        text = CODE_OF_MARKDOWN.sub(lambda found: blanked(found[0]), text)
    else:
        text = kept(source, HASH_TEXT)
    text = BLANKS.sub(" ", text)
    # The marks at the beginning of a comment's lines, and what joins two strings.
    text = re.sub(
        r"^(\s*)(?:\*|;+|#+|//)(?= |$)", lambda m: blanked(m[0]), text, flags=re.MULTILINE
    )
    return re.sub(r"\"(\s*\n\s*)\"", lambda m: f" {m[1]} ", text)


@dataclass(frozen=True)
class Finding:
    """A refused word in its place."""

    name: str
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.name}:{self.line}: {self.text!r}: {self.instead}"


@cache
def findings(name: str) -> tuple[Finding, ...]:
    """All refused words of a file, in order."""
    return tuple(in_text(name, (ROOT / name).read_text(encoding="utf-8", errors="replace")))


def in_text(name: str, source: str) -> list[Finding]:
    text = texts(name, source)
    found = [
        Finding(
            name, text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), word.instead
        )
        for word in REFUSED
        if fnmatch(name, word.only) and not any(fnmatch(name, each) for each in word.outside)
        for match in word.expression.finditer(text)
    ]
    return sorted(found, key=lambda each: (each.line, each.text))


# ---- the command ---------------------------------------------------------------------------------


def chosen(paths: list[str]) -> Iterator[str]:
    for name in seen():
        if not paths or any(PurePosixPath(name).is_relative_to(path) for path in paths):
            yield name


def main() -> None:
    for name in chosen(sys.argv[1:]):
        print(*findings(name), sep="\n", end="\n" if findings(name) else "")


if __name__ == "__main__":
    main()
