"""Exercise 3.2: C functions around INT 0x80."""

from __future__ import annotations

import pytest

from tests.lesson3.stubs import NUMBER, stubs
from tests.lesson3.support import ARGUMENTS, ENOSYS, GETPID, same, signed


@pytest.mark.exercise("3.2", points=1)
def test_arguments_arrive(lab):
    """None and three of them, in their registers, and the result comes back."""
    with stubs(lab) as program:
        program.begin("call0", GETPID)
        found = program.end()
        assert found == 1, f"_syscall0(getpid) returns {found}, not 1"
        frame = program.begin("call3", NUMBER, 11, 22, 33)
        same(frame, dict(zip(ARGUMENTS, (11, 22, 33), strict=False)), "in _syscall3's call")
        found = signed(program.end())
        assert found == -ENOSYS, f"_syscall3 returns {found}, not {-ENOSYS}"


@pytest.mark.exercise("3.2", points=1)
def test_errors(lab):
    """-2 is an error: -1, and 2 in errno. 5 is a result."""
    with stubs(lab) as program:
        judge, errno = program.address("judge"), program.address("errno")
        for result, returned, error in ((5, 5, 0), (-2, -1, 2)):
            found = signed(program.guest.call(judge, result, name="result_of"))
            assert found == returned, f"result_of({result}) is {found}, not {returned}"
            found = signed(program.guest.read_word(errno))
            assert found == error, f"behind result_of({result}) errno is {found}, not {error}"
