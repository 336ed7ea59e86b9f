"""Reading the kernel's structures, whatever state they are in: types, texts, and bounded walks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import gdb

from labs.tools.debugging.gdb.commands import Refusal, kernel_file, variable
from labs.tools.debugging.gdb.processor import KERNEL_BASE, read_linear, symbol_at

WORD = 4
MASK = 0xFFFFFFFF


class Walk(NamedTuple):
    """What a walk along a list found: addresses, and in `damage` why it ended too soon, or ""."""

    places: list[int]
    damage: str = ""


def walk(start: int, following: Callable[[int], int], limit: int, end: int = 0) -> Walk:
    """The places of a list from `start` on, up to `end`. Whatever the list has become, this ends:
    after `limit` places, at the second visit of one, and where the kernel has no memory."""
    places: list[int] = []
    seen: set[int] = set()
    at = start
    while at != end:
        if at < KERNEL_BASE or at % WORD:
            return Walk(places, f"the list is damaged: it goes on at {at:#010x}")
        if at in seen:
            return Walk(places, f"the list is damaged: it comes back to {at:#010x}")
        if len(places) == limit:
            return Walk(places, f"the list is damaged: it has more than {limit} places")
        places.append(at)
        seen.add(at)
        try:
            at = following(at)
        except gdb.MemoryError:
            return Walk(places[:-1], f"the list is damaged: there is no memory at {at:#010x}")
    return Walk(places)


def walk_ring(head: gdb.Value, limit: int) -> Walk:
    """The links of a struct list (kernel/lib/list.h), without its head."""
    address = address_of(head)
    return walk(word_at(address), word_at, limit, end=address)


def walk_links(first: int, type_name: str, member: str, limit: int) -> Walk:
    """Structures that point to the next one, NULL after the last."""
    return walk(first, lambda at: pointer(structure(type_name, at)[member]), limit)


def word_at(address: int) -> int:
    """The word in memory. Raises gdb.MemoryError."""
    return int.from_bytes(read_linear(address, WORD), "little")


def words_from(address: int, length: int) -> list[int]:
    """`length` words; those that are there, when the memory ends before."""
    try:
        memory = read_linear(address, length * WORD)
    except gdb.MemoryError:
        return []
    return [int.from_bytes(memory[at : at + WORD], "little") for at in range(0, len(memory), WORD)]


@cache
def kernel_type(name: str) -> gdb.Type:
    """A struct of the kernel, or an enum: a program may have another one of this name. Raises
    Refusal."""
    symbol = kernel_file().lookup_static_symbol(name, gdb.SYMBOL_STRUCT_DOMAIN)
    if symbol is None:
        raise Refusal(f"this kernel has no struct {name}: it comes in a later lesson")
    return symbol.type


def structure(name: str, address: int) -> gdb.Value:
    """The struct at an address."""
    return gdb.Value(address).cast(kernel_type(name).pointer()).dereference()


def container(link: int, type_name: str, *members: str) -> int:
    """The address of the structure that a link is in; `members` lead to it."""
    kind, offset = kernel_type(type_name), 0
    for name in members:
        field = kind[name]
        offset += field.bitpos // 8
        kind = field.type
    return link - offset


def size_of(type_name: str) -> int:
    """A structure's bytes."""
    return kernel_type(type_name).sizeof


def has_member(type_name: str, member: str) -> bool:
    """Whether the structure has it in this lesson."""
    return member in kernel_type(type_name).keys()  # noqa: SIM118 (gdb.Type iterates over fields)


def address_of(value: gdb.Value) -> int:
    """Where a value is."""
    return int(value.address) & MASK


def pointer(value: gdb.Value) -> int:
    """An address that a variable holds."""
    return int(value) & MASK


def text(value: gdb.Value) -> str:
    """An array of characters, up to its NUL."""
    data = read_linear(address_of(value), value.type.sizeof)
    return data.partition(b"\0")[0].decode(errors="replace")


def text_at(address: int) -> str:
    """A short text in memory; "?" where there is none."""
    for limit in (64, 8):
        try:
            data = read_linear(address, limit)
            return data.partition(b"\0")[0].decode(errors="replace")
        except gdb.MemoryError:
            continue
    return "?"


def enumerator(value: gdb.Value, prefix: str) -> str:
    """A constant's name without its prefix, in lower case: "sleeping" of TASK_SLEEPING."""
    name = str(value)
    return name.removeprefix(prefix).lower() if name.startswith(prefix) else f"? ({name})"


def constant(enum: str, number: int) -> str:
    """The name of a number in an enum."""
    names = {field.enumval: field.name for field in kernel_type(enum).fields()}
    return names.get(number, str(number))


def optional(name: str, file: str | None = None) -> gdb.Value | None:
    """A variable of the kernel, or None where this lesson's has none."""
    try:
        return variable(name, file)
    except Refusal:
        return None


def place(address: int) -> str:
    """An address in words: its symbol where it has one."""
    name = symbol_at(address) if address else None
    return f"{name} ({address:#010x})" if name else f"{address:#010x}"


def noted(table: str, damage: str) -> str:
    """A table, and under it what is wrong with what was shown."""
    return f"{table}\n{damage}" if damage else table
