"""The judge of the pipe of three: a right answer without the calls is worth nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs.tools.machine.qemu_command import Config
from labs.tools.machine.result import Outcome, Result
from tests.lesson2.support import Trap
from tests.lesson4.pipes import GATE, LENGTH, STAGES, WRITE, least_calls, require_record

SAID = Result(Config(kernel=Path("kernel.elf")), Outcome.ENDED, 0, "", 0.0)
TERMINAL, FIRST_PIPE = 1, 3


def calls(*, ring: int = 3, spaces: int = STAGES + 1, file: int = FIRST_PIPE) -> list[Trap]:
    """As many calls as are needed, evenly from so many address spaces."""
    numbers = list(least_calls().elements())
    share = -(-LENGTH * (STAGES + 1) // numbers.count(WRITE))
    return [
        Trap(
            vector=GATE,
            error_code=0,
            ring=ring,
            is_instruction=True,
            registers={"EAX": number, "EBX": file, "EDX": share, "CR3": at % spaces << 12},
        )
        for at, number in enumerate(numbers)
    ]


def test_all_of_it():
    require_record(SAID, calls())


@pytest.mark.parametrize(
    ("traps", "words"),
    [
        ([], "calls by number, at least"),
        (calls(ring=0), "calls by number, at least"),
        (calls()[1:], "calls by number, at least"),
        (calls(file=TERMINAL), "0 bytes were written to pipes"),
        (calls(spaces=STAGES), "from 3 address spaces"),
    ],
)
def test_what_is_missing(traps, words):
    with pytest.raises(pytest.fail.Exception, match=words):
        require_record(SAID, traps)
