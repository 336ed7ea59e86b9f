"""Exercise 3.3: bytes between the kernel and user mode, and pointers that lead nowhere.

Not looked at here, but by the graders: the last byte below the kernel, how many bytes are left
after a fault in the middle of a word, a string that ends with its page, and exceptions other than
page faults at the same instruction.
"""

from __future__ import annotations

import random

import pytest

from tests.lesson3.support import (
    DATA,
    EFAULT,
    ENOENT,
    KERNEL_BASE,
    OPEN,
    SPACE_END,
    UNAME,
    WRITE,
    ring3,
)
from tests.support.told import Usual, expect, fail, require, told

HINT = "make hint EX=3.3"
COMMON = (
    Usual(
        "first instruction of a program",
        "copy_bytes returns what was copied in place of what is left (0 is success): exec copies "
        "the program's arguments with it",
    ),
    Usual(
        "panicked",
        "an instruction that may fault has no FIXUP entry, or user_copy_fix_up does not find it",
    ),
    Usual("loops for ever", "user_copy_fix_up does not set eip to the entry's resume"),
)
KERNEL_PLACE = KERNEL_BASE + 0x40000  # memory of the kernel that nobody uses


@pytest.mark.exercise("3.3", points=1)
def test_write_comes_from_user_mode(lab):
    """What a program writes comes out of the serial line, byte for byte."""
    word = f"{random.Random(lab.seed).getrandbits(64):016x}".encode()
    usually = (*COMMON, "copy_bytes returns what was copied in place of what is left: 0 is success")
    with told(usually, HINT), ring3(lab) as caller:
        found = caller.result(WRITE, 1, caller.write(DATA, word + b"\n"), 17)
        expect("write of 17 bytes returns", found, 17)
        said = caller.guest.said_bytes()
        require(word in said, f"write of {word!r} returns 17, and other bytes came out: {said!r}")


@pytest.mark.exercise("3.3", points=1)
def test_uname_goes_to_user_mode(lab):
    """A structure arrives in the program's memory, and nothing next to it is changed."""
    usually = (*COMMON, "words and bytes are confused: MOVSL moves four bytes, ECX counts words")
    with told(usually, HINT), ring3(lab) as caller:
        caller.write(DATA, b"\xa5" * 512)
        result = caller.result(UNAME, DATA + 16)
        found = caller.guest.read(DATA, 512)
        expect("uname returns", result, 0)
        expect("the first bytes of uname's structure", found[16:22], b"Linux\0")
        beside = found[:16] + found[16 + 6 * 65 :]
        changed = sum(each != 0xA5 for each in beside)
        expect("changed bytes next to uname's structure of 390 bytes", changed, 0)


@pytest.mark.exercise("3.3", points=1, gate=True)
def test_pointers_that_lead_nowhere(lab):
    """A null pointer, the kernel's memory, and what is after the program: EFAULT, three times."""
    usually = (
        *COMMON,
        Usual("an address of the kernel", "copy_from_user does not ask user_range_ok"),
        Usual(
            "null pointer|after the program",
            "what is left after a fault is not returned: the words that REP MOVSL had left, and "
            "the bytes after them",
        ),
    )
    with told(usually, HINT), ring3(lab) as caller:
        for address, name in (
            (0, "a null pointer"),
            (KERNEL_BASE + 0x100000, "an address of the kernel"),
            (SPACE_END, "the first address after the program"),
        ):
            found = caller.result(WRITE, 1, address, 8)
            expect(f"write of 8 bytes from {name} (EFAULT is {EFAULT})", found, -EFAULT)


@pytest.mark.exercise("3.3", points=1)
def test_kernel_is_out_of_reach(lab):
    """A call that gives something to the program does not give it to the kernel's memory, and none
    takes anything from there."""
    usually = (
        *COMMON,
        Usual("uname", "copy_to_user does not ask user_range_ok: any program can write there"),
        Usual(
            "copy_from_user",
            "copy_from_user does not ask user_range_ok: any program can read there",
        ),
        Usual("open", "string_from_user does not look at the range: any program can read there"),
    )
    with told(usually, HINT), ring3(lab) as caller:
        caller.write(KERNEL_PLACE, b"\xa5" * 512)
        found = caller.result(UNAME, KERNEL_PLACE)
        changed = caller.guest.read(KERNEL_PLACE, 512) != b"\xa5" * 512
        if changed:
            fail(
                "uname with an address of the kernel: expected no change, seen kernel memory "
                "overwritten by a program"
            )
        expect(f"uname with an address of the kernel (EFAULT is {EFAULT})", found, -EFAULT)
        caller.write(KERNEL_PLACE, b"/secret\0")
        found = caller.result(OPEN, KERNEL_PLACE, 0)
        expect(f"open of a name in the kernel's memory (EFAULT is {EFAULT})", found, -EFAULT)
        with caller.in_kernel() as guest:
            left = guest.call("copy_from_user", KERNEL_PLACE + 64, KERNEL_PLACE, 64)
            expect("copy_from_user of 64 bytes of the kernel: bytes that are left", left, 64)


@pytest.mark.exercise("3.3", points=1, gate=True)
def test_ranges(lab):
    """A range that begins below the kernel and reaches into it, and one whose end wraps around
    beyond 4 GiB and is small again."""
    ranges = {
        "a page of the program": (DATA, 4096, True),
        "8 bytes that reach 4 bytes into the kernel": (KERNEL_BASE - 4, 8, False),
        "the kernel": (KERNEL_BASE, 4096, False),
        "8 KiB whose end wraps to 0x1000": (0xFFFFF000, 0x2000, False),
        "4 GiB less one byte from the program on": (DATA, 0xFFFFFFFF, False),
    }
    usually = (
        *COMMON,
        Usual("wraps", "address + length is computed, and wraps: compare length with what is left"),
        "only the first byte of the range is looked at",
    )
    with told(usually, HINT), ring3(lab) as caller, caller.in_kernel() as guest:
        for name, (address, length, is_ok) in ranges.items():
            found = bool(guest.call("user_range_ok", address, length) & 0xFF)
            what = f"user_range_ok({address:#010x}, {length:#x}), {name}"
            expect(what, str(found).lower(), str(is_ok).lower())


@pytest.mark.exercise("3.3", points=1)
def test_names(lab):
    """A name is read up to its NUL; there is no such file."""
    usually = (
        *COMMON,
        Usual("copied", "string_from_user copies the NUL, too"),
        "string_from_user does not stop at the NUL",
    )
    with told(usually, HINT), ring3(lab) as caller:
        caller.write(DATA, b"/no such file\0")
        cases = {
            "a name that no file has (ENOENT)": (DATA, -ENOENT),
            "a null pointer (EFAULT)": (0, -EFAULT),
        }
        for name, (address, expected) in cases.items():
            expect(f"open of {name}", caller.result(OPEN, address, 0), expected)
        caller.write(KERNEL_PLACE, b"\xa5" * 32)
        with caller.in_kernel() as guest:
            guest.call("string_from_user", KERNEL_PLACE, DATA, 32)
            found = guest.read(KERNEL_PLACE, 14)
        expect("what string_from_user has copied", found, b"/no such file\0")
