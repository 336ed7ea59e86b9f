"""Commands that go back in time: the server between gdb and QEMU (labs/tools/debugging/past) runs
the run again, up to an earlier instruction."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

import gdb

from labs.tools.debugging.gdb.commands import Refusal, command, count
from labs.tools.debugging.gdb.machine_commands import CR4_LARGE_PAGES, PAGE, mappings
from labs.tools.debugging.gdb.past import ask, here
from labs.tools.debugging.gdb.processor import KERNEL_BASE, Processor, quiet
from labs.tools.debugging.gdb.programs import PROGRAMS, path_of
from labs.tools.debugging.gdb.tasks import current_task

MOST_TIMES = 1_000
DIRECT_MAP = 896 << 20  # bytes of physical memory at KERNEL_BASE: kernel/cpu/memory_layout.h
PHYSICAL = re.compile(r"gpa: (0x\w+)")
BEFORE_FRAME = 8  # from a frame pointer to what ESP is in the caller, after the return


class Hit(NamedTuple):
    """A stop of the past at an address: the instruction count, and the registers there."""

    instruction: int
    registers: dict[str, int]


def go_to(instruction: int) -> None:
    """Makes gdb stop at an instruction count, as after a step."""
    ask("jump", count=instruction)
    gdb.execute("reverse-stepi")


def look_at(instruction: int) -> None:
    """The machine is as it was at an instruction count; gdb shows no stop."""
    ask("look", count=instruction)
    refresh()


def refresh() -> None:
    """gdb forgets what it knows of registers and frames."""
    try:
        quiet("maintenance flush register-cache")
    except gdb.error:  # its name before gdb 12
        quiet("flushregs")


# ---- where this is, and the beginning ------------------------------------------------------------


@command("when")
def when() -> str:
    """Where this is in the run: instructions, guest time, how often this instruction has run."""
    where = ask("where")
    processor = Processor()
    times = ask("times", address=processor.linear, before=where["now"], most=MOST_TIMES)
    often = f"at least {times:,}" if times == MOST_TIMES else f"{times:,}"
    place = "the present" if where["now"] == where["present"] else f"{where['present']:,} is now"
    return (
        f"instruction {where['now']:,} ({place}), {ask('seconds'):.6f} s of guest time; "
        f"this one has run {often} times before"
    )


@command("again")
def again() -> None:
    """The same run from its start, with the same input; breakpoints stay."""
    go_to(0)


@command("now")
def now() -> None:
    """Out of the past: to where the run has come so far."""
    go_to(ask("where")["present"])


# ---- back ----------------------------------------------------------------------------------------


@command("back", "[COUNT]")
def back(instructions: str = "") -> None:
    """One source line earlier, in this function or in its caller; COUNT: so many instructions."""
    instruction = here()
    if not instruction:
        raise Refusal("the run begins here")
    if instructions:
        go_to(max(0, instruction - count(instructions)))
    else:
        go_to(line_before(instruction))


def line_before(instruction: int) -> int:
    """Where the source line began that ran before this one, in this call of the function; in its
    caller if this is the first. Without lines: the instruction before."""
    frame = gdb.newest_frame()
    sal, pc = frame.find_sal(), Processor().linear
    starts = line_starts(frame)
    function = frame.function()
    first = int(function.value().address) if function else None
    if not starts or pc == first:
        return instruction - 1
    before, target = instruction, None
    is_inside = pc not in starts  # of a line: then back to where it began
    while found := hits_before(before, starts):
        for hit in reversed(found):
            if function and not is_of_call(hit, frame, first):
                continue
            line = line_of(hit)
            if target is None and line == sal.line and not is_inside and not is_entry(hit, first):
                continue
            if target is not None and line != target[1]:
                return target[0]
            if target is None and line == sal.line and is_entry(hit, first) and not is_inside:
                return hit.instruction - 1
            target = hit.instruction, line
            if is_entry(hit, first):
                return target[0]
        if target is not None:
            return target[0]
        before = found[0].instruction
    return max(0, instruction - 1)


def line_starts(frame: gdb.Frame) -> dict[int, int]:
    """The addresses at which lines begin, with their numbers: those of the function, or of the file
    in assembly."""
    sal, function = frame.find_sal(), frame.function()
    if sal.symtab is None:
        return {}
    known = {entry.pc: entry.line for entry in sal.symtab.linetable() if entry.line}
    if function is None:
        return known
    block = gdb.block_for_pc(frame.pc())
    while block and block.function is None:
        block = block.superblock
    return {pc: line for pc, line in known.items() if block.start <= pc < block.end}


def hits_before(instruction: int, addresses: Iterable[int]) -> list[Hit]:
    """The last stops at these addresses, in order."""
    return [Hit(*each) for each in ask("hits", addresses=list(addresses), before=instruction)]


def line_of(hit: Hit) -> int:
    """The number of its line."""
    return gdb.find_pc_line(hit.registers["eip"]).line


def is_entry(hit: Hit, first: int | None) -> bool:
    """Whether a function has just been called."""
    return hit.registers["eip"] == first


def is_of_call(hit: Hit, frame: gdb.Frame, first: int | None) -> bool:
    """Whether it belongs to the call that the frame is: what it calls itself is another one."""
    older = frame.older()
    if older is None:
        return True
    after_return = int(older.read_register("esp")) & 0xFFFFFFFF
    if is_entry(hit, first):
        return hit.registers["esp"] + 4 == after_return
    return hit.registers["ebp"] + BEFORE_FRAME == after_return


@command("back-to", "PLACE")
def back_to(place: str) -> None:
    """To the last time that a place was reached: file:line, a function, PROGRAM:FUNCTION."""
    path, addresses = place_of(place)
    instruction, before = here(), here()
    while found := hits_before(before, addresses):
        for hit in reversed(found):
            if not path or runs_program(hit.instruction, path, instruction):
                go_to(hit.instruction)
                return
        before = found[0].instruction
    raise Refusal(f"{place} was not reached before")


def place_of(place: str) -> tuple[str, list[int]]:
    """The program of a place ("" for the kernel's), and its addresses. Raises Refusal."""
    program, colon, function = place.partition(":")
    if colon and PROGRAMS.has(program):
        path = PROGRAMS.find(program)
        return path, [PROGRAMS.address(path, function)]
    locations = gdb.decode_line(place)[1] or ()
    if not locations:
        raise Refusal(f"there is no {place}")
    return "", sorted({each.pc for each in locations})


def runs_program(instruction: int, path: str, back_at: int) -> bool:
    """Whether a program ran at an instruction count."""
    try:
        look_at(instruction)
        with suppress(gdb.error, Refusal):
            return path_of(current_task()) == path
        return False
    finally:
        look_at(back_at)


# ---- who wrote it, and when was it so for the first time -----------------------------------------


@command("last-change", "EXPRESSION")
def last_change(*words: str) -> str:
    """Back to the store that gave it its present value, whatever wrote it."""
    expression = " ".join(words)
    value = gdb.parse_and_eval(expression)
    if value.address is None:
        raise Refusal(f"{expression} is not in memory")
    linear, size = int(value.address) & 0xFFFFFFFF, value.type.sizeof
    physical = physical_of(linear, size)
    known = [linear] if physical >= DIRECT_MAP else list({linear, KERNEL_BASE + physical})
    kind, new = value.type, str(value)
    change = ask("change", physical=physical, size=size, linear=known, before=here())
    if change["way"] == "none":
        return f"{expression} has had this value since the machine was switched on."
    go_to(change["count"])
    old = gdb.Value(bytes.fromhex(change["old"]), kind)
    return f"{expression}: {old} -> {new}, {wording(change['way'], physical, known)}"


def wording(way: str, physical: int, known: list[int]) -> str:
    """Who has made a change."""
    if way == "store":
        return "by the next instruction."
    if way == "device":
        return (
            f"but no instruction writes it (physical address {physical:#x}): a device did (DMA) "
            "when the processor was here."
        )
    others = ", ".join(f"{each:#010x}" for each in aliases(physical) if each not in known)
    return (
        f"by the next instruction, through another address ({others or 'mapped here only now'}): "
        f"the physical address is {physical:#x}."
    )


def aliases(physical: int) -> list[int]:
    """The linear addresses of a physical one, as the page tables have it here."""
    processor = Processor()
    if not processor.has_paging:
        return [physical]
    root = processor.registers["CR3"] & ~(PAGE - 1)
    large = bool(processor.registers["CR4"] & CR4_LARGE_PAGES)
    return [
        each.start + physical - each.physical
        for each in mappings(root, large)
        if each.physical <= physical < each.physical + each.size
    ]


def physical_of(linear: int, size: int) -> int:
    """The physical address. Raises Refusal where none is, or where the next page is elsewhere."""
    first, last = (physical_address(each) for each in (linear, linear + size - 1))
    if last - first != size - 1:
        raise Refusal("it is in two pages that are not neighbours: ask for a part of it")
    return first


def physical_address(linear: int) -> int:
    """That of one byte."""
    found = PHYSICAL.search(quiet(f"monitor gva2gpa {linear:#x}"))
    if not found:
        raise Refusal(f"no page is at {linear:#010x}")
    return int(found[1], 16)


@command("first-time", "CONDITION")
def first_time(*words: str) -> str:
    """Back to the first instruction after which a condition is true, as in ticks > 3."""
    condition = " ".join(words)
    end = here()
    is_true(condition)  # one that gdb does not understand ends here
    look_at(0)
    try:
        found = first_true(condition, end)
    except BaseException:
        look_at(end)
        raise
    if found is None:
        look_at(end)
        raise Refusal(f"{condition} has not been true so far")
    go_to(found)
    return f"{condition} is true from here on; type  back 1  for what made it so."


def first_true(condition: str, end: int) -> int | None:
    """The first instruction count with a true condition; None: there is none up to `end`."""
    if holds(condition):
        return 0
    places = read_by(condition)
    if not places:
        raise Refusal("it reads no memory: only what is in memory can be followed from the start")
    at = 0
    while at < end:
        step = ask("advance", end=end, places=places)
        refresh()
        if holds(condition):
            return narrowed(condition, step["since"], step["now"])
        places, at = read_by(condition), step["now"]
    return None


def narrowed(condition: str, since: int, until: int) -> int:
    """The first count at which it is true: it is not at `since`, and it is at `until`."""
    first = until - 1  # most often the instruction before has made it true
    while until - since > 1:
        middle, first = first if first is not None else (since + until) // 2, None
        look_at(middle)
        if holds(condition):
            until = middle
        else:
            since = middle
    return until


def is_true(condition: str) -> bool:
    """Whether a condition holds. Raises gdb.error."""
    return bool(gdb.parse_and_eval(condition))


def holds(condition: str) -> bool:
    """The same; what cannot be read, as before the kernel has page tables, is not true."""
    try:
        return is_true(condition)
    except gdb.error:
        return False


def read_by(condition: str) -> list[list[int]]:
    """What of memory a condition reads: addresses and sizes."""
    ask("reads", on=True)
    holds(condition)
    return [list(each) for each in sorted({tuple(each) for each in ask("reads", on=False)})]
