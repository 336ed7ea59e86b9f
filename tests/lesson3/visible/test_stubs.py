"""Exercise 3.2: C functions around INT 0x80."""

from __future__ import annotations

import pytest

from tests.lesson3.stubs import NUMBER, stubs
from tests.lesson3.support import ARGUMENTS, ENOSYS, GETPID, signed


@pytest.mark.exercise("3.2", points=1)
def test_arguments_arrive(lab):
    """None and three of them, in their registers, and the result comes back."""
    with stubs(lab) as program:
        assert program.begin("call0", GETPID)["eax"] == GETPID
        assert program.end() == 1
        frame = program.begin("call3", NUMBER, 11, 22, 33)
        assert (frame["eax"], *(frame[name] for name in ARGUMENTS[:3])) == (NUMBER, 11, 22, 33)
        assert signed(program.end()) == -ENOSYS


@pytest.mark.exercise("3.2", points=1)
def test_errors(lab):
    """-2 is an error: -1, and 2 in errno. 5 is a result."""
    with stubs(lab) as program:
        judge, errno = program.address("judge"), program.address("errno")
        assert program.guest.call(judge, 5) == 5
        assert program.guest.read_word(errno) == 0
        assert signed(program.guest.call(judge, -2)) == -1
        assert program.guest.read_word(errno) == 2
