"""Exercise 3.4: SYSENTER, and the page that knows how to use it."""

from __future__ import annotations

import pytest

from tests.lesson3.support import DATA, EFAULT, GETPID, STACK, UNAME, ring3, same, signed


@pytest.mark.exercise("3.4", points=1)
def test_getpid_by_sysenter(lab):
    """The processor has SYSENTER, and the shared page's stub uses it, not INT 0x80."""
    with ring3(lab) as caller:
        with caller.in_kernel() as guest:
            told = guest.call("sysenter_is_there") & 0xFF
            assert told == 1, "the processor has SYSENTER, and sysenter_is_there says no"
        caller.stop_in_shared_call("sysenter_entry", GETPID)
        found = caller.call_shared(GETPID)["eax"]
        assert found == 1, f"getpid returns {found}, not 1"


@pytest.mark.exercise("3.4", points=1)
def test_arguments_by_sysenter(lab):
    """A structure arrives, a bad pointer is EFAULT, as by INT 0x80."""
    with ring3(lab) as caller:
        for address, expected in ((DATA, 0), (0, -EFAULT)):
            found = signed(caller.call_shared(UNAME, address)["eax"])
            assert found == expected, f"uname({address:#x}) returns {found}, not {expected}"
        assert caller.guest.read(DATA, 6) == b"Linux\0", "uname's structure did not arrive"


@pytest.mark.exercise("3.4", points=1)
def test_registers_behind_the_stub(lab):
    """SYSEXIT takes ECX and EDX; the stub's caller has them all the same."""
    mine = {"ebx": 0x1111, "ecx": 0x2222, "edx": 0x3333, "esi": 0x4444, "edi": 0x5555}
    mine |= {"ebp": 0x6666, "esp": STACK - 8}
    with ring3(lab) as caller:
        after = caller.call_shared(GETPID, **mine)
    same(after, mine, "behind a call through the shared page")
