"""What an exercise promises, and the mutants that break it. In tests/mutants/1.3.toml, after all
mutants:

[promises]
text = '''
put_raw: sends the byte as it is, as soon as the line status says CAN_SEND.
        does-not-wait raw-gets-a-return

labs/lesson1/README.md explains I/O ports and the UART.
        none: it says where to look
'''

Each sentence of a comment that has the word EXERCISE is there, in order: with the names of mutants,
or with "none: " and why there can be none, or with "open: " and a bug that no hidden test catches
yet. In the same form [contracts] has what headers say of the exercise's functions, and [pitfalls]
what its hints call a pitfall.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from itertools import groupby

from labs.tools.course.exercises import ROOT, by_id
from labs.tools.proving.prove_mutants import CONTRACTS, PITFALLS, PROMISES, file_of

NONE, OPEN = "none: ", "open: "
OF_C = re.compile(r"/\*.*?\*/", re.DOTALL)
MARGIN = re.compile(r"^\s*(?:/\*|;+|\*(?=\s|$))?\s*")
TITLE = re.compile(r"^EXERCISE \S+(?:,? its [\w ]+| \([^)]*\))?[,:.]\s*")
NUMBER = re.compile(r"(?:^|(?<=[.?!] ))\d\. ")
END = re.compile(r"(?<=[.?!])\s+(?!\()|\s+(?=- [A-Za-z])")
REGION = r"SOLUTION {0} \{{(.*?)\}} SOLUTION {0}"
DEFINED = re.compile(
    r"^global (\w+)|^(?!static)[a-z][^;={}()]*?\b(\w+)\([^;{]*\)\n\{", re.MULTILINE
)
# A function, one that a pointer leads to, and a member of a structure of functions.
DECLARED = r"^(?!static)\t?[a-z][^;{{}}()/]*[\s*](?:\(\*)?(?:{})\)?\([^;{{}}]*;"
PITFALL = re.compile(r"^The pitfalls?(?: in part \d)?: ")
PART = re.compile(END.pattern + r"|(?<=;)\s+")
HEADERS = ("boot", "kernel", "mm", "drivers", "fs")
# Functions of an exercise that are declared as pointers.
POINTERS = {
    "4.2": ("join", "enqueue", "tick"),
    "4.4": ("join", "enqueue", "pick", "charge", "tick", "preempts"),
    "4.6": ("join", "enqueue", "pick", "charge", "tick", "preempts"),
    "5.5": ("kmalloc", "kfree", "kmalloc_size"),
}


def comments(path: str) -> list[str]:
    """The comments of a file: blocks of C, or lines of assembly that follow each other."""
    text = (ROOT / path).read_text()
    if not path.endswith((".asm", ".inc")):
        return OF_C.findall(text)
    lines = groupby(text.splitlines(), lambda line: line.lstrip().startswith(";"))
    return ["\n".join(block) for is_comment, block in lines if is_comment]


def sentences(exercise: str) -> list[str]:
    """What the comments of an exercise say, sentence by sentence."""
    found = []
    for path in by_id(exercise).files:
        for comment in comments(path):
            if f"EXERCISE {exercise}" not in comment:
                continue
            text = words_of(comment).replace("SOLUTION " + exercise + " {", "")
            text = NUMBER.sub("", TITLE.sub("", " ".join(text.split())))
            found += [each for each in END.split(text) if each]
    return found


def words_of(comment: str) -> str:
    """A comment without its margin."""
    text = " ".join(MARGIN.sub("", line) for line in comment.splitlines())
    return " ".join(text.removesuffix("*/").split())


def functions(exercise: str) -> list[str]:
    """What others call of an exercise: the names of its functions that are not static."""
    found = [*POINTERS.get(exercise, ())]
    for path in by_id(exercise).files:
        text = (ROOT / path).read_text()
        for region in re.findall(REGION.format(re.escape(exercise)), text, re.DOTALL):
            found += [name or other for name, other in DEFINED.findall(region)]
    return found


@cache
def headers() -> dict[str, str]:
    """The kernel's headers, by path."""
    paths = sorted(path for folder in HEADERS for path in (ROOT / folder).glob("**/*.h"))
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def contracts(exercise: str) -> list[str]:
    """What headers say of the exercise's functions, sentence by sentence, in the headers' order."""
    names, found = "|".join(functions(exercise)), []
    if not names:
        return []
    declared = re.compile(DECLARED.format(names), re.MULTILINE)
    for text in headers().values():
        said = dict.fromkeys(comment_above(text, each.start()) for each in declared.finditer(text))
        found += [each for comment in said for each in END.split(words_of(comment)) if each]
    return found


def pitfalls(exercise: str) -> list[str]:
    """What the hints of an exercise call a pitfall, part by part."""
    paragraphs = [each for hint in by_id(exercise).hints for each in hint.split("\n\n")]
    lines = [" ".join(each.split()) for each in paragraphs]
    named = [PITFALL.sub("", each) for each in lines if PITFALL.match(each)]
    return [part for each in named for part in PART.split(each)]


def comment_above(text: str, place: int) -> str:
    """The comment above a declaration, and above those that are between; "" for none."""
    words, end, _ = text[:place].rpartition("\n\n")[2].rpartition("*/")
    return words[words.rfind("/*") :] + end if end else ""


def promises_of(exercise: str, kind: str = PROMISES) -> dict[str, str]:
    """Sentences, and the mutants of each. kind: one of KINDS."""
    text = tomllib.loads(file_of(exercise).read_text()).get(kind, {}).get("text", "")
    blocks = [each.partition("\n\t") for each in text.strip().split("\n\n")] if text else []
    return {" ".join(each.split()): " ".join(value.split()) for each, _, value in blocks}


KINDS = {PROMISES: sentences, CONTRACTS: contracts, PITFALLS: pitfalls}
