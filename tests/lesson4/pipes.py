"""A pipe of three programs, judged from outside: what it prints, and QEMU's record of its calls.

The kernel has the text and the program, so it could print the right answer without a pipe. What it
cannot do without them is the record: each call is an INT 0x80 that QEMU has executed in ring 3,
with the registers of before and the address space it came from.
"""

from __future__ import annotations

import random
import string
from collections import Counter

from labs.tools.grading.lab import Lab
from labs.tools.machine.result import Result
from tests.lesson1.picture import expect, fail
from tests.lesson2.support import Trap, run_recorded
from tests.lesson3.support import with_files
from tests.lesson4.support import program

WHOLE = "tests/lesson4/hidden/whole.c"
LENGTH = 60  # letters, as many as a program's word may have, and a pipe holds
STAGES, PIECE = 3, 7  # programs between the ends of four pipes, and bytes of a read
GATE, EXECVE, FORK, READ, WRITE, PIPE, WAITPID = 0x80, 11, 2, 3, 4, 42, 7


def text_of(lab: Lab) -> str:
    """What goes into the first pipe."""
    return "".join(random.Random(lab.seed).choices(string.ascii_lowercase, k=LENGTH))


def checksum(text: str) -> int:
    """What the program makes of the letters that come out of the last pipe."""
    total = 0
    for letter in text:
        total = (total * 31 + ord(letter) + STAGES) & 0xFFFFFFFF
    return total & 0x7FFFFFFF


def least_calls() -> Counter[int]:
    """How often each call is made at least, by the programs together."""
    pieces = -(-LENGTH // PIECE)
    return Counter(
        {
            PIPE: STAGES + 1,
            FORK: STAGES,
            EXECVE: STAGES,
            WAITPID: STAGES,
            READ: STAGES * (pieces + 1) + LENGTH + 1,
            WRITE: STAGES * pieces + 1,
        }
    )


def require_record(result: Result, traps: list[Trap]) -> None:
    """Four programs have lived at the same time, and made the calls that the text needs."""
    calls = [each.registers for each in traps if each.vector == GATE and each.ring == 3]
    made = Counter(each["EAX"] for each in calls)
    missing = {number: count for number, count in least_calls().items() if made[number] < count}
    if missing:
        fail(f"calls by number, at least {missing}; QEMU has seen {dict(made)}", result)
    passed = sum(each["EDX"] for each in calls if each["EAX"] == WRITE and each["EBX"] > 2)
    if passed < LENGTH * (STAGES + 1):
        fail(f"{passed} bytes were written to pipes, not {LENGTH} by each of four", result)
    spaces = {each["CR3"] for each in calls}
    if len(spaces) <= STAGES:
        fail(f"the calls came from {len(spaces)} address spaces", result)


def require_pipe(lab: Lab, script: str, *then: str, **fields: object) -> None:
    """Runs a script in which {} is the command of the pipe; `then` is what is printed after it."""
    text = text_of(lab)
    files = with_files(lab, {"bin/whole": program(WHOLE)})
    ready = script.format(f"run /bin/whole {text}")
    result, traps = run_recorded(lab, ready, **files, **fields)
    expect(result, f"read {checksum(text)}", "codes 15", *then)
    require_record(result, traps)
