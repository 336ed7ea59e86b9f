"""Exercise 3.4: SYSENTER, and the page that knows how to use it."""

from __future__ import annotations

import pytest

from tests.lesson3.support import DATA, EFAULT, GETPID, UNAME, ring3, signed


@pytest.mark.exercise("3.4", points=1)
def test_getpid_by_sysenter(lab):
    """The shared page's stub leads to syscall_dispatch by SYSENTER, not by INT 0x80."""
    with ring3(lab) as caller:
        assert caller.call_shared(GETPID)["eax"] == 1
        caller.stop_in_shared_call("sysenter_entry", GETPID)


@pytest.mark.exercise("3.4", points=1)
def test_arguments_by_sysenter(lab):
    """A structure arrives, a bad pointer is EFAULT, as by INT 0x80."""
    with ring3(lab) as caller:
        assert caller.call_shared(UNAME, DATA)["eax"] == 0
        assert caller.guest.read(DATA, 6) == b"Linux\0"
        assert signed(caller.call_shared(UNAME, 0)["eax"]) == -EFAULT


@pytest.mark.exercise("3.4", points=1)
def test_registers_behind_the_stub(lab):
    """SYSEXIT takes ECX and EDX; the stub's caller has them all the same."""
    mine = {"ebx": 0x1111, "ecx": 0x2222, "edx": 0x3333, "esi": 0x4444, "edi": 0x5555}
    with ring3(lab) as caller:
        after = caller.call_shared(GETPID, **mine, ebp=0x6666)
    assert {name: after[name] for name in mine} == mine
    assert after["ebp"] == 0x6666
