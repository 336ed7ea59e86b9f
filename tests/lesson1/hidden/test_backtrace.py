"""Exercise 1.6, the backtrace: chains that are broken, and addresses at every border."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from random import Random

import pytest

from tests.lesson1.frames import (
    FIRST_FRAME,
    FRAME_SIZE,
    FRAMES_AT_MOST,
    STACK_SIZE,
    Code,
    backtrace_from,
    put_frame,
    require_lines,
    walk,
)
from tests.lesson1.support import KERNEL, is_longer
from tests.support.remote import SCRATCH, Guest, stopped

JUNK = 0xCCCCCCCC
STEPS = 220  # instructions: a search by halves takes fewer than 100, a walk 4 for each symbol
OTHER_STACK, OTHER_SIZE = SCRATCH + 0x8000, 0x800


@contextmanager
def prepared(lab) -> Iterator[tuple[Guest, Code, Random]]:
    """A kernel at kmain's beginning, with its serial port ready."""
    with stopped(lab, "kmain") as guest:
        guest.call("serial_initialize")
        guest.write(guest.address("boot_stack"), b"\xcc" * (STACK_SIZE // 2))
        yield guest, Code(lab.build(KERNEL)), Random(lab.seed)


def require_start(guest: Guest, address: int, expected: int) -> None:
    """symbol_start of the kernel says where the function of an address begins; 0: there is none."""
    start = guest.call("symbol_start", address)
    assert start == expected, f"symbol_start({address:#x}) is {start:#x} and not {expected:#x}"


def description(guest: Guest, address: int) -> str:
    """symbol_describe of the kernel."""
    guest.call("symbol_describe", address, SCRATCH, 100)
    return guest.read(SCRATCH, 100).partition(b"\0")[0].decode("latin-1")


# Symbols


@pytest.mark.exercise("1.6", points=3)
def test_every_function(lab):
    """First and last byte of a function: both belong to it, also in the first and in the last
    function of the table."""
    with prepared(lab) as (guest, code, random):
        chosen = {0, 1, len(code.starts) - 2, len(code.starts) - 1}
        chosen |= set(random.sample(range(len(code.starts)), 16))
        ends = [*code.starts[1:], code.end]
        for index in sorted(chosen):
            start, end = code.starts[index], ends[index]
            for address in (start, end - 1, random.randrange(start, end)):
                require_start(guest, address, start)
        shortest = min(range(len(code.starts) - 1), key=lambda i: ends[i] - code.starts[i])
        for start in code.starts[shortest : shortest + 2]:  # one right after the other
            require_start(guest, start, start)
        address = random.randrange(code.start, code.end)
        text = description(guest, address)
        assert code.is_described(address, text), f"{address:#x} is described as {text!r}"


@pytest.mark.exercise("1.6", points=2)
def test_no_function(lab):
    """Addresses outside the code (before it, after it, in data): they have no function. Addresses
    in the code have one."""
    with prepared(lab) as (guest, code, random):
        require_start(guest, code.start, code.start)
        data = guest.address("boot_info") + random.randrange(64)
        for address in (0, code.start - 1, code.end, data, random.randrange(1 << 20), 0xFFFFFFFF):
            require_start(guest, address, 0)
            text = description(guest, address)
            assert text == f"{address:#010x}", f"{address:#x} is described as {text!r}"


@pytest.mark.exercise("1.6", points=2)
def test_tables_of_any_length(lab):
    """Symbol tables of any length: none as in the kernel's first link, one symbol, two, several,
    and code before the first symbol."""
    with prepared(lab) as (guest, code, random):
        count = guest.address("symbol_count")
        all_symbols = guest.read_word(count)
        for length in (0, 1, 2, 3, random.randrange(8, all_symbols), all_symbols - 1):
            guest.write(count, length.to_bytes(4, "little"))
            known = [guest.read_word(guest.address("symbols") + 8 * i) for i in range(length)]
            in_code = [start for start in known if start >= code.start]
            for address in (code.start, code.end - 1, *in_code[-2:]):
                expected = max((start for start in known if start <= address), default=0)
                require_start(guest, address, expected)
        guest.write(count, (1).to_bytes(4, "little"))
        guest.write(guest.address("symbols"), (code.start + 8).to_bytes(4, "little"))
        require_start(guest, code.start + 7, 0)
        require_start(guest, code.start + 8, code.start + 8)


@pytest.mark.exercise("1.6", points=1)
def test_cost_of_a_lookup(lab):
    """The cost of a lookup: a binary search, wherever in the table the function is."""
    with prepared(lab) as (guest, code, _):
        for index in (0, len(code.starts) // 2, len(code.starts) - 1):
            is_slow = is_longer(guest, STEPS, "symbol_start", code.starts[index])
            assert not is_slow, (
                f"function {index} of {len(code.starts)} is not found with {STEPS} instructions"
            )
            require_start(guest, code.starts[index], code.starts[index])


# Frames


@pytest.mark.exercise("1.6", points=2)
def test_chains(lab):
    """Chains of frames, with gaps between them: each return address is printed in order. A return
    address may be where the next function begins, because the call before it is the last
    instruction of a function that does not return. It may be garbage, too."""
    with prepared(lab) as (guest, code, random):
        for length in (1, 2, random.randint(4, 12)):
            gaps = [4, *(random.randrange(8, 256, 4) for _ in range(length - 1))]
            returns = [random.randrange(code.start + 1, code.end) for _ in gaps]
            returns[-1] = random.choice(code.starts[1:])
            if length > 2:
                gaps[2] = FRAME_SIZE
                returns[1:3] = 0, random.getrandbits(20)
            first = guest.address("boot_stack") + FIRST_FRAME
            frames = [first + offset for offset in accumulate(gaps)]
            for frame, caller, address in zip(frames, [*frames[1:], 0], returns, strict=True):
                put_frame(guest, frame, caller, address)
            require_lines(code, backtrace_from(guest, frames[0]), returns)


@pytest.mark.exercise("1.6", points=6)
def test_chain_ends_in_garbage(lab):
    """A saved EBP that is not aligned, outside the stack or not mapped: the frame before it is the
    last one."""
    with prepared(lab) as (guest, code, _):
        bottom, top = guest.address("boot_stack"), guest.address("boot_stack_top")
        frame = bottom + FIRST_FRAME
        address = code.starts[5] + 1
        odd = [frame + 0x101, frame + 0x102, frame + 0x103]
        outside = [0, 4, bottom - 4, bottom - 8, top - 4, top, top + 8]
        nowhere = [0x1000, 0x12345678, 0xBFFFFFFC, 0xFFFFFFFC, 0xFFFFFFF8, 0xFFFFFFFF, JUNK]
        for garbage in (*odd, *outside, *nowhere):
            put_frame(guest, frame, garbage, address)
            require_lines(code, backtrace_from(guest, frame), [address])
            require_lines(code, backtrace_from(guest, garbage), [])


@pytest.mark.exercise("1.6", points=1)
def test_ends_of_the_stack(lab):
    """The lowest and the highest frame that fits on the stack: both are printed."""
    with prepared(lab) as (guest, code, _):
        lowest = guest.address("boot_stack")
        highest = guest.address("boot_stack_top") - FRAME_SIZE
        returns = [code.starts[3] + 1, code.starts[4] + 1]
        kept = guest.read(highest, FRAME_SIZE)
        put_frame(guest, lowest, highest, returns[0])
        put_frame(guest, highest, 0, returns[1])
        said = backtrace_from(guest, lowest)
        guest.write(highest, kept)
    require_lines(code, said, returns)


@pytest.mark.exercise("1.6", points=3)
def test_another_stack(lab):
    """A backtrace on another stack: frames are on that stack, up to its ends, and nowhere else."""
    with prepared(lab) as (guest, code, _):
        boot, address = guest.address("boot_stack") + FIRST_FRAME, code.starts[3] + 1
        highest = OTHER_STACK + OTHER_SIZE - FRAME_SIZE
        put_frame(guest, boot, 0, address)
        guest.call("backtrace_use_stack", OTHER_STACK, OTHER_SIZE)
        put_frame(guest, OTHER_STACK, highest, address)
        put_frame(guest, highest, highest + 4, address)
        require_lines(code, backtrace_from(guest, OTHER_STACK), [address] * 2)
        for outside in (boot, OTHER_STACK - 4, highest + 4):
            require_lines(code, backtrace_from(guest, outside), [])
        guest.call("backtrace_use_stack", 0, 0)
        require_lines(code, backtrace_from(guest, boot), [address])
        require_lines(code, backtrace_from(guest, OTHER_STACK), [])


@pytest.mark.exercise("1.6", points=2)
def test_loops(lab):
    """A chain that loops: it ends, because a caller's frame is at a higher address."""
    with prepared(lab) as (guest, code, _):
        first = guest.address("boot_stack") + FIRST_FRAME
        second, returns = first + 64, [code.starts[3] + 1, code.starts[4] + 1]
        put_frame(guest, first, first, returns[0])
        require_lines(code, backtrace_from(guest, first), returns[:1])
        put_frame(guest, first, second, returns[0])
        put_frame(guest, second, first, returns[1])
        require_lines(code, backtrace_from(guest, first), returns)


@pytest.mark.exercise("1.6", points=1)
def test_at_most_32_frames(lab):
    """A recursion without end: at most 32 frames are printed, each time again."""
    with prepared(lab) as (guest, code, random):
        first = guest.address("boot_stack") + FIRST_FRAME
        returns = [random.randrange(code.start + 1, code.end) for _ in range(100)]
        for index, address in enumerate(returns):
            put_frame(guest, first + 32 * index, first + 32 * (index + 1), address)
        for _ in range(2):
            require_lines(code, backtrace_from(guest, first), returns[:FRAMES_AT_MOST])


@pytest.mark.exercise("1.6", points=2)
def test_panic_from_our_own_loader(lab):
    """A panic after a boot from the disk: the backtrace has the frames that are in memory."""
    code = Code(lab.build(KERNEL))
    with stopped(lab, "backtrace", script="memory; panic", boot="disk") as guest:
        returns = walk(guest, guest.read_word(guest.registers()["esp"] + 4))
        said = guest.finish()
    assert len(returns) >= 3, "panic was called from the command, that from the script"
    require_lines(code, said, returns)
