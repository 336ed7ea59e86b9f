"""Exercise 3.3, hidden: borders, wraps, exact counts, strings at the end of the world, and memory
that changes while it is read."""

from __future__ import annotations

import random
import struct

import pytest

from tests.lesson3.support import (
    DATA,
    EFAULT,
    ENAMETOOLONG,
    EXECVE,
    GETPID,
    KERNEL_BASE,
    KERNEL_CODE,
    OPEN,
    READ,
    SHARED_PAGE,
    SPACE_END,
    SPACE_START,
    UNAME,
    WATCH_READS,
    WRITE,
    call_with_access,
    ring3,
    signed,
    steps_to,
)
from tests.support.remote import SCRATCH

BUFFER = SCRATCH + 0x1000  # the kernel's side of a copy
GUARD = b"\xa5" * 16
PAGE_FAULT, GENERAL_PROTECTION = 14, 13
FRAME_EIP = 14  # a word of struct trap_frame
LLSEEK, IOCTL = 140, 54
SEEK_CURRENT = 1
TCGETS = 0x5401  # the settings of a terminal
PAGE_BUDGET = 1024 + 80  # instructions to copy a page: a word each, and what is around it


def range_is_ok(address: int, length: int) -> bool:
    """What user_range_ok must say."""
    return address + length <= KERNEL_BASE


def arguments_of(function: str, user: int, length: int, kernel: int = BUFFER) -> tuple[int, ...]:
    """What one of the three functions that move bytes is called with."""
    return {
        "copy_from_user": (kernel, user, length),
        "copy_to_user": (user, kernel, length),
        "clear_user": (user, length),
    }[function]


class Copies:
    """The three functions that move bytes, called in the middle of a call, on a model of memory."""

    def __init__(self, guest):
        self.guest = guest

    def check(self, function: str, user: int, length: int, good: int, kernel: int = BUFFER) -> None:
        """The function moves `good` bytes, says how many are left, and touches nothing else."""
        data = random.Random(user ^ length).randbytes(length)
        goal = user if function != "copy_from_user" else kernel
        source = {"copy_from_user": user, "copy_to_user": kernel}.get(function)
        arguments = arguments_of(function, user, length, kernel)
        whole = good if goal == user else length
        around = 0 if goal == user and not self._is_there(user, whole) else len(GUARD)
        if around:
            self.guest.write(goal - around, GUARD + b"\x5a" * whole)
        if around and whole == length and self._is_there(goal, whole + around):
            self.guest.write(goal + whole, GUARD)
        if source is not None:
            self.guest.write(source, data[: good if source == user else length])
        left = self.guest.call(function, *arguments)
        assert left == length - good, (
            f"{function} with {length} bytes at {user:#x}, of which {good} are there, leaves "
            f"{left}, not {length - good}"
        )
        if not around:
            return
        expected = (bytes(good) if source is None else data[:good]) + b"\x5a" * (whole - good)
        found = self.guest.read(goal - around, around + whole)
        assert found == GUARD + expected, f"{function}: other bytes than asked for have changed"
        if whole == length and self._is_there(goal, whole + around):
            assert self.guest.read(goal + whole, around) == GUARD, f"{function} writes too much"

    @staticmethod
    def _is_there(address: int, length: int) -> bool:
        return (address >= SPACE_START and address + length <= SPACE_END) or address >= SCRATCH


FUNCTIONS = ("copy_from_user", "copy_to_user", "clear_user")


@pytest.mark.exercise("3.3", points=2)
def test_copies(lab):
    """Copies of 0 to several hundred bytes: right at every alignment of both sides."""
    seeded = random.Random(lab.seed)
    with ring3(lab) as caller, caller.in_kernel() as guest:
        copies = Copies(guest)
        for function in FUNCTIONS:
            for length in (*range(9), *(seeded.randrange(9, 600) for _ in range(4))):
                user = DATA + 64 + seeded.randrange(8)
                copies.check(function, user, length, length, BUFFER + seeded.randrange(8))


@pytest.mark.exercise("3.3", points=2, gate=True)
def test_range(lab):
    """Ranges that wrap, reach the kernel or are empty, and a thousand random ones: accepted and
    refused exactly."""
    seeded = random.Random(lab.seed)
    edges = (0, 1, 4096, KERNEL_BASE - 1, KERNEL_BASE, KERNEL_BASE + 1, 0xFFFFF000, 0xFFFFFFFF)
    cases = [(address, length) for address in edges for length in edges]
    cases += [(0xFFFFF000, 0x2000), (KERNEL_BASE - 0x1000, 0x1000), (KERNEL_BASE - 0x1000, 0x1001)]
    for _ in range(100):
        address = seeded.getrandbits(32)
        cases += [(address, KERNEL_BASE - address + seeded.randrange(-2, 3) & 0xFFFFFFFF)]
    with ring3(lab) as caller, caller.in_kernel() as guest:
        for address, length in cases:
            found = guest.call("user_range_ok", address, length) & 0xFF
            assert found == range_is_ok(address, length), (
                f"user_range_ok({address:#x}, {length:#x}) is {bool(found)}"
            )


@pytest.mark.exercise("3.3", points=3, gate=True)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_exact_counts(lab, function):
    """Ranges that end after the program's last byte: all before is copied, and the number of bytes
    left is exact."""
    with ring3(lab) as caller, caller.in_kernel() as guest:
        copies = Copies(guest)
        for good in (0, 1, 2, 3, 4, 5, 7, 8, 11, 64):
            for bad in (1, 2, 3, 4, 6, 61):
                copies.check(function, SPACE_END - good, good + bad, good)
        for user, length in ((SPACE_END - 5, 0x80000001), (SPACE_END - 7, KERNEL_BASE - SPACE_END)):
            guest.write(user, b"\x5a" * (SPACE_END - user))
            left = guest.call(function, *arguments_of(function, user, length))
            expected = length - (SPACE_END - user)
            assert left == expected, f"{function}, {length:#x} bytes: {left:#x}, not {expected:#x}"


@pytest.mark.exercise("3.3", points=2, gate=True)
def test_kernel_memory_is_out_of_reach(lab):
    """Addresses in the kernel, and ranges that reach into it or wrap: nothing is copied, and all is
    left."""
    places = [(SCRATCH, 64), (KERNEL_BASE, 1), (KERNEL_BASE + 0x100000, 4096)]
    places += [(0xFFFFFFFF, 1), (0xFFFFFFFF, 2), (0xFFFFF000, 0x2000), (SCRATCH, 0xFFFFFFFF)]
    places += [(KERNEL_BASE - 16, 17), (SPACE_START, KERNEL_BASE - SPACE_START + 1)]
    with ring3(lab) as caller, caller.in_kernel() as guest:
        guest.write(SCRATCH, b"\x5a" * 64)
        guest.write(BUFFER, b"\x66" * 64)
        text = guest.read(KERNEL_BASE + 0x100000, 4096)
        for function in FUNCTIONS:
            for address, length in places:
                left = guest.call(function, *arguments_of(function, address, length))
                assert left == length, f"{function} at {address:#x}, {length:#x} bytes: {left:#x}"
        assert guest.read(SCRATCH, 64) == b"\x5a" * 64, "the kernel's memory was changed"
        assert guest.read(KERNEL_BASE + 0x100000, 4096) == text, "the kernel's code was changed"
        assert guest.read(BUFFER, 64) == b"\x66" * 64, (
            "the kernel's memory was copied to the program"
        )


@pytest.mark.exercise("3.3", points=1)
def test_shared_page_is_read_only(lab):
    """The shared page: it can be read, and the kernel does not write to it for a program."""
    with ring3(lab) as caller, caller.in_kernel() as guest:
        before = guest.read(SHARED_PAGE, 4096)
        guest.write(BUFFER, b"\x66" * 4096)
        for place, length in ((0, 64), (4092, 4), (100, 7)):
            assert guest.call("copy_to_user", SHARED_PAGE + place, BUFFER, length) == length
            assert guest.call("clear_user", SHARED_PAGE + place, length) == length
        assert guest.read(SHARED_PAGE, 4096) == before
        assert guest.call("copy_from_user", BUFFER, SHARED_PAGE, 4096) == 0
        assert guest.read(BUFFER, 4096) == before


def call_string(guest, address: int, size: int) -> tuple[int, bytes]:
    """string_from_user into a buffer with guards; its result, and the bytes that it may write."""
    guest.write(BUFFER - 16, GUARD + b"\x5a" * size + GUARD)
    result = signed(guest.call("string_from_user", BUFFER, address, size))
    found = guest.read(BUFFER - 16, size + 32)
    assert (found[:16], found[16 + size :]) == (GUARD, GUARD), "a string overruns its buffer"
    return result, found[16 : 16 + size]


@pytest.mark.exercise("3.3", points=2, gate=True)
def test_strings(lab):
    """Strings as long as the buffer, one shorter, one longer, and empty: right length or error."""
    with ring3(lab) as caller, caller.in_kernel() as guest:
        for length in (0, 1, 2, 14, 15):
            text = bytes(range(65, 65 + length))
            guest.write(DATA, text + b"\0more")
            result, found = call_string(guest, DATA, 16)
            assert (result, found[: length + 1]) == (length, text + b"\0")
        length = random.Random(lab.seed).randrange(33000, 40000)  # more than some pages
        guest.write(DATA, b"c" * length + b"\0")
        result, found = call_string(guest, DATA, length + 9)
        assert (result, found[: length + 1]) == (length, b"c" * length + b"\0")
        for length, size in ((16, 16), (17, 16), (40, 16), (1, 1)):
            guest.write(DATA, b"b" * length + b"\0")
            result, _ = call_string(guest, DATA, size)
            assert result == -ENAMETOOLONG, f"{length} letters into {size} bytes: {result}"


@pytest.mark.exercise("3.3", points=2)
def test_string_at_the_end(lab):
    """A string at the end of memory: its NUL is the program's or the shared page's last byte.
    Without a NUL it is an error."""
    with ring3(lab) as caller, caller.in_kernel() as guest:
        for length in range(9):
            guest.write(SPACE_END - length - 1, b"c" * length + b"\0")
            result, found = call_string(guest, SPACE_END - length - 1, 64)
            assert (result, found[: length + 1]) == (length, b"c" * length + b"\0")
        assert call_string(guest, KERNEL_BASE - 1, 64)[0] == 0
        guest.write(SPACE_END - 8, b"d" * 8)
        for length in range(9):
            assert call_string(guest, SPACE_END - length, 64)[0] == -EFAULT
        before = guest.read(KERNEL_BASE - 8, 8)
        guest.write(KERNEL_BASE - 8, b"f" * 8)
        for size, expected in ((64, -EFAULT), (9, -EFAULT), (8, -ENAMETOOLONG)):
            result, _ = call_string(guest, KERNEL_BASE - 8, size)
            assert result == expected, f"8 letters up to the kernel, room for {size}: {result}"
        guest.write(KERNEL_BASE - 8, before)
        guest.write(SCRATCH, b"e\0")
        for address in (0, 4095, SPACE_START - 1, KERNEL_BASE, SCRATCH, 0xFFFFFFFF):
            result, found = call_string(guest, address, 64)
            assert result == -EFAULT, f"a string at {address:#x}: {result}"
            assert b"e" not in found


@pytest.mark.exercise("3.3", points=2)
def test_string_that_changes(lab):
    """A string that is overwritten once its NUL has been read: the kernel's copy is a whole string
    of the length that it returned."""
    with ring3(lab) as caller, caller.in_kernel() as guest:
        guest.write(DATA, b"abcdefgh\0")
        guest.write(BUFFER, b"\x5a" * 64)
        result = call_with_access(
            guest,
            "string_from_user",
            *(BUFFER, DATA, 32),
            kind=WATCH_READS,
            at=DATA + 8,
            then=lambda: guest.write(DATA, b"X" * 64),
        )
        found = guest.read(BUFFER, 64)
    length = signed(result)
    assert length == -ENAMETOOLONG or (0 <= length < 32 and found.find(b"\0") == length), (
        f"string_from_user says {length}, and the kernel has {found[:32]}: it reads the program's "
        "memory twice"
    )
    assert found[32:] == b"\x5a" * 32


POINTERS = {
    "null": 0,
    "in the first page": 0xFFC,
    "before the program": SPACE_START - 0x1000,
    "after the program": SPACE_END,
    "in the middle of nowhere": 0x60000000,
    "the border": KERNEL_BASE,
    "the kernel's code": KERNEL_BASE + 0x100000,
    "free kernel memory": SCRATCH,
    "the top": 0xFFFFFFFC,
    "the top, wrapping": 0xFFFFFFF0,
}


@pytest.mark.exercise("3.3", points=3)
def test_forty_probes(lab):
    """Bad pointers to each of seven calls: EFAULT, and the machine survives."""
    with ring3(lab) as caller:
        guest = caller.guest
        guest.write(SCRATCH, b"\x5a" * 512)
        zero = caller.result(OPEN, caller.write(DATA, b"/dev/zero\0"), 0)
        file = caller.result(OPEN, caller.write(DATA, b"/bin/caller\0"), 0)
        assert min(file, zero) >= 0
        for words, address in POINTERS.items():
            calls = {
                "write": (WRITE, 1, address, 64),
                "read": (READ, zero, address, 64),
                "ioctl": (IOCTL, 1, TCGETS, address),
                "_llseek": (LLSEEK, file, 0, 0, address, 0),
                "open": (OPEN, address, 0),
                "uname": (UNAME, address),
                "execve": (EXECVE, address, 0, 0),
            }
            for name, call in calls.items():
                found = caller.result(*call)
                assert found == -EFAULT, f"{name} with a pointer to {words}: {found}"
        assert guest.read(SCRATCH, 512) == b"\x5a" * 512
        for call in ((READ, zero, SHARED_PAGE, 64), (UNAME, SHARED_PAGE)):
            assert caller.result(*call) == -EFAULT
        assert caller.result(GETPID) == 1


@pytest.mark.exercise("3.3", points=1)
def test_partial_transfers(lab):
    """read and write of a range whose end is unmapped: as many bytes as there are."""
    with ring3(lab) as caller:
        file = caller.result(OPEN, caller.write(DATA, b"/bin/caller\0"), 0)
        zero = caller.result(OPEN, caller.write(DATA, b"/dev/zero\0"), 0)
        caller.write(SPACE_END - 11, b"0123456789a")
        assert caller.result(WRITE, 1, SPACE_END - 11, 40) == 11
        assert caller.result(READ, zero, SPACE_END - 11, 40) == 11
        assert caller.guest.read(SPACE_END - 11, 11) == bytes(11)
        assert caller.result(READ, file, SPACE_END - 11, 40) == 11
        assert caller.guest.read(SPACE_END - 11, 4) == b"\x7fELF"
        assert caller.result(LLSEEK, file, 0, 0, DATA, SEEK_CURRENT) == 0
        assert caller.guest.read(DATA, 8) == struct.pack("<Q", 11), "the offset moves by as many"


@pytest.mark.exercise("3.3", points=2)
def test_only_these_faults_are_fixed_up(lab):
    """Page faults at instructions of the exception table: execution goes on at the table's
    addresses. Other addresses and other exceptions are reported."""
    with ring3(lab) as caller, caller.in_kernel() as guest:
        start, end = guest.address("fixups_start"), guest.address("fixups_end")
        words = guest.read_words(start, (end - start) // 4)
        table = list(zip(words[::2], words[1::2], strict=True))
        assert len(table) >= 3
        frame = SCRATCH

        def trap(vector: int, eip: int) -> int | None:
            values = [0] * 12 + [vector, 0, eip, KERNEL_CODE, 2]
            guest.write(frame, struct.pack("<17I", *values))
            before = guest.registers()
            ended = guest.call("trap_dispatch", frame, stop_at=("panic_announce",))
            if ended is None:
                guest.set(**before)
                return None
            after = guest.read_words(frame, len(values))
            changed = [i for i, (a, b) in enumerate(zip(values, after, strict=True)) if a != b]
            assert changed == [FRAME_EIP], "more than EIP has changed in the frame"
            return after[FRAME_EIP]

        for fault, resume in table:
            found = trap(PAGE_FAULT, fault)
            assert found == resume, f"a page fault at {fault:#x}: {found}"
            assert trap(GENERAL_PROTECTION, fault) is None, "not a page fault, and fixed up"
            assert trap(PAGE_FAULT, fault + 1) is None, "an instruction that is not in the table"
        for resume in {resume for _, resume in table} - {fault for fault, _ in table}:
            assert trap(PAGE_FAULT, resume) is None, "the place to go on at may not fault itself"


@pytest.mark.exercise("3.3", points=1)
def test_crashes_are_still_reported(lab):
    """Wild pointers of the kernel itself: a panic, as before."""
    result = lab.run("crash null")
    assert "exception 14, page fault (error code 0x2)" in result.serial, result.explain()


@pytest.mark.exercise("3.3", points=1)
def test_price_of_a_page(lab):
    """The cost of 4096 bytes: copied and zeroed word by word."""
    with ring3(lab) as caller, caller.in_kernel() as guest:
        before = guest.registers()
        stack = before["esp"] - 0x200 & ~15
        for function, arguments in (
            ("copy_from_user", (BUFFER, DATA, 4096)),
            ("copy_to_user", (DATA, BUFFER, 4096)),
            ("clear_user", (DATA, 4096)),
        ):
            words = (before["eip"], *arguments)
            guest.write(stack, struct.pack(f"<{len(words)}I", *words))
            guest.set(esp=stack, eip=guest.address(function))
            taken = len(steps_to(guest, before["eip"], 5000))
            guest.set(**before)
            assert taken <= PAGE_BUDGET, f"{function} takes {taken} instructions for a page"
