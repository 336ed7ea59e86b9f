"""Before which instructions the search for races has a tick come (tests/lesson4/races.py)."""

from __future__ import annotations

import pytest

from tests.lesson4.races import is_private

TOUCH_REGISTERS = {
    "MOVL %EBX, %EAX": "89d890",
    "LEAL 4(%ESP), %EAX": "8d4424",
    "PUSHL %EBP": "5589e5",
    "CALL": "e81234",
    "JNE": "750890",
    "JNE, far": "0f8512",
    "MOVZBL %AL, %EAX": "0fb6c0",
    "TESTL %EAX, %EAX": "85c090",
}
TOUCH_MEMORY = {
    "MOVL (%EBX), %EAX": "8b0390",
    "MOVL %EAX, 8(%EBP)": "894508",
    "MOVZBL (%EBX), %EAX": "0fb603",
    "INCL (%EAX)": "ff0090",
    "PUSHL (%EAX)": "ff3090",
    "MOVL symbol, %EAX": "a10000",
    "CLI": "fa9090",
    "POPF": "9d9090",
}


@pytest.mark.parametrize("name", [*TOUCH_REGISTERS, *TOUCH_MEMORY])
def test_what_touches_registers_only(name):
    """A tick before one of these is one before the next instruction. What enables or disables
    interrupts counts as memory."""
    code = (TOUCH_REGISTERS | TOUCH_MEMORY)[name]
    assert is_private(bytes.fromhex(code)) is (name in TOUCH_REGISTERS)
