"""A header that a student writes, and that a test's own program includes.

It may define what the exercise asks for, and nothing that changes how the rest of that program is
compiled: no pragma, no attribute that sets options, no macro with a name that the program uses, no
assembler directive, no global register variable. Looked at is what the preprocessor makes of it, so
that nothing is hidden in a macro.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# What may be in __attribute__((...)): hints about one function, none of which sets options.
ATTRIBUTES = {"always_inline", "artificial", "gnu_inline", "unused", "warn_unused_result"}

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """auto break case char const continue default do double else enum extern float for goto if
        inline int long register restrict return short signed sizeof static struct switch typedef
        union unsigned void volatile while asm typeof _Alignas _Alignof _Atomic _Bool _Generic
        _Noreturn _Static_assert _Thread_local __asm__ __asm __volatile__ __volatile __inline__
        __inline __const__ __const __attribute__ __attribute __extension__ __typeof__""",
    )
)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
ADJACENT = re.compile(r'"\s*"')
MACRO = re.compile(r"^#define (\w+)(.*)$", re.MULTILINE)
MARKER = re.compile(r"^# \d+ .*$", re.MULTILINE)
PRAGMA = re.compile(r"^\s*#\s*pragma\b.*$", re.MULTILINE)
ATTRIBUTE = re.compile(r"\b__attribute(?:__)?\s*\(")
DIRECTIVE = re.compile(r"(?<![\w$%.])\.[A-Za-z_]\w*")
ESCAPE = re.compile(r"\\[^nt\"'\\]")
GLOBAL_REGISTER = re.compile(r"\bregister\b[^;{}]*\b(?:asm|__asm|__asm__)\b")


def header_problem(text: str, macros: str, usual_macros: str, program: str) -> str:
    """Why a header is not taken; empty when it is. text: what `cc -E` makes of it. macros: `cc -E
    -dM` of it, and usual_macros of the reference's. program: the source that includes it."""
    text = MARKER.sub("", text)
    found = [*pragmas(text), *attributes(text), *assembly(text)]
    found += changed_macros(defined(macros), defined(usual_macros), program)
    return f"{found[0]}; it must not change how other code is compiled" if found else ""


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


def assembly(text: str) -> Iterator[str]:
    """Texts for the assembler that are more than instructions, and registers taken from all."""
    for literal in LITERAL.finditer(ADJACENT.sub("", text)):
        if ESCAPE.search(literal[1]):
            yield f"it has a text with the escape {ESCAPE.search(literal[1])[0]}"
        words = literal[1].replace("\\n", "\n").replace("\\t", " ")
        if directive := DIRECTIVE.search(words):
            yield f"it has the assembler directive {directive[0]}"
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


def defined(macros: str) -> dict[str, str]:
    """The macros that `cc -E -dM` lists, with what they are."""
    return dict(MACRO.findall(macros))


def changed_macros(
    found: Mapping[str, str], usual: Mapping[str, str], program: str
) -> Iterator[str]:
    """Each macro that is not as usual, and whose name the program uses or the language has."""
    names = KEYWORDS | set(IDENTIFIER.findall(program))
    for name in sorted((found.keys() | usual.keys()) & names):
        if found.get(name) != usual.get(name):
            yield f"it makes a macro of {name}"
