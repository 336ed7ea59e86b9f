"""What the comments of an exercise promise, and the mutants that break it. In
tests/mutants/1.3.toml, after all mutants:

[promises]
text = '''
put_raw: sends the byte as it is, as soon as the line status says CAN_SEND.
        does-not-wait raw-gets-a-return

labs/lesson1/README.md explains I/O ports and the UART.
        none: it says where to look
'''

Each sentence of a comment that has the word EXERCISE is there, in order: with the names of mutants,
or with "none: " and why there can be none.
"""

from __future__ import annotations

import re
import tomllib
from itertools import groupby

from labs.tools.course.exercises import ROOT, by_id
from labs.tools.proving.prove_mutants import PROMISES, file_of

NONE = "none: "
OF_C = re.compile(r"/\*.*?\*/", re.DOTALL)
MARGIN = re.compile(r"^\s*(?:/\*|;+|\*(?=\s|$))?\s*")
TITLE = re.compile(r"^EXERCISE \S+(?:,? its [\w ]+| \([^)]*\))?[,:.]\s*")
NUMBER = re.compile(r"(?:^|(?<=[.?!] ))\d\. ")
END = re.compile(r"(?<=[.?!])\s+(?!\()|\s+(?=- [A-Za-z])")


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
            text = " ".join(MARGIN.sub("", line) for line in comment.splitlines())
            text = text.removesuffix("*/").replace("SOLUTION " + exercise + " {", "")
            text = NUMBER.sub("", TITLE.sub("", " ".join(text.split())))
            found += [each for each in END.split(text) if each]
    return found


def promises_of(exercise: str) -> dict[str, str]:
    """Sentences, and the mutants of each."""
    text = tomllib.loads(file_of(exercise).read_text()).get(PROMISES, {}).get("text", "")
    blocks = [each.partition("\n\t") for each in text.strip().split("\n\n")] if text else []
    return {" ".join(each.split()): " ".join(value.split()) for each, _, value in blocks}
