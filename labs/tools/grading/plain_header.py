"""A header that a student writes, and that a test's own program includes.

It may define what the exercise asks for, and nothing that changes how the rest of that program is
compiled: no pragma, no attribute that sets options, no assembler directive, no global register
variable, no macro that changes the program's own lines, none of the program's names in a text for
the assembler. Looked at is what the preprocessor makes of the whole program, and just that is
compiled: so nothing is hidden in a macro, and a header cannot tell the look from the compilation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

# What may be in __attribute__((...)): hints about one function, none of which sets options.
ATTRIBUTES = {"always_inline", "artificial", "gnu_inline", "unused", "warn_unused_result"}

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
DEFINED = re.compile(r"\b(\w+)(?:\(|\[\w+\];|;)")  # in a C file: functions and variables, and more
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
ADJACENT = re.compile(r'"\s*"')
MARKER = re.compile(r'^# \d+ "([^"]*)"')
PRAGMA = re.compile(r"^\s*#\s*pragma\b.*$", re.MULTILINE)
ATTRIBUTE = re.compile(r"\b__attribute(?:__)?\s*\(")
DIRECTIVE = re.compile(r"(?<![\w$%.])\.[A-Za-z_]\w*")
ESCAPE = re.compile(r"\\[^nt\"'\\]")
GLOBAL_REGISTER = re.compile(r"\bregister\b[^;{}]*\b(?:asm|__asm|__asm__)\b")


def header_problem(text: str, usual: str, program: str) -> str:
    """Why a header is not taken; empty when it is. text: what `cc -E` makes of a program that
    includes it, usual: of the same program with the reference's header. program: its file."""
    own, header = parts(text, program)
    known, _ = parts(usual, program)
    found = [*pragmas(header), *attributes(header), *assembly(header, names_in(known))]
    if own != known:
        seen, wanted = next(
            (a, b) for a, b in zip_longest(own, known, fillvalue="the end") if a != b
        )
        found.append(f"the program that includes it has {seen} in place of {wanted}")
    return f"{found[0]}; it must not change how other code is compiled" if found else ""


def parts(text: str, program: str) -> tuple[list[str], str]:
    """Of what the preprocessor has made: the words of the program's own lines, and the lines of all
    that it includes."""
    file, own, others = "", [], []
    for line in text.splitlines():
        if marker := MARKER.match(line):
            file = marker[1]
        else:
            (own if file.endswith(program) else others).append(line)
    return " ".join(own).split(), "\n".join(others)


def names_in(words: list[str]) -> set[str]:
    """What a program defines, with some names more."""
    return set(DEFINED.findall(" ".join(words)))


def pragmas(text: str) -> Iterator[str]:
    """Each pragma, _Pragma too: the preprocessor makes lines of them."""
    return (f"it has a pragma ({each[0].strip()[:60]})" for each in PRAGMA.finditer(text))


def attributes(text: str) -> Iterator[str]:
    """Each attribute that may do more than say something about one function."""
    if re.search(r"\[\s*\[", text):
        yield "it has an attribute in [[ ]]"
    for start in ATTRIBUTE.finditer(text):
        inside = text[start.end() : closing(text, start.end())]
        for name in re.findall(r"[A-Za-z_]\w*", re.sub(r"\([^()]*\)", "", inside.strip("() \n\t"))):
            if name.strip("_") not in ATTRIBUTES:
                yield f"it has the attribute {name}"


def closing(text: str, place: int) -> int:
    """Where the bracket is closed that was opened before `place`."""
    depth = 1
    while place < len(text) and depth:
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        place += 1
    return place


def assembly(text: str, names: set[str]) -> Iterator[str]:
    """Texts for the assembler that are more than instructions, or say a name of the program's; and
    registers taken from all."""
    for literal in LITERAL.finditer(ADJACENT.sub("", text)):
        if ESCAPE.search(literal[1]):
            yield f"it has a text with the escape {ESCAPE.search(literal[1])[0]}"
        words = literal[1].replace("\\n", "\n").replace("\\t", " ")
        if directive := DIRECTIVE.search(words):
            yield f"it has the assembler directive {directive[0]}"
        if taken := names & set(IDENTIFIER.findall(words)):
            yield f"it has the name {min(taken)} in a text for the assembler"
    if GLOBAL_REGISTER.search(outside_functions(text)):
        yield "it takes a register from the whole program"


def outside_functions(text: str) -> str:
    """The text without what is in braces."""
    depth, kept = 0, []
    for letter in text:
        depth += letter == "{"
        if depth == 0:
            kept.append(letter)
        depth -= letter == "}"
    return "".join(kept)
