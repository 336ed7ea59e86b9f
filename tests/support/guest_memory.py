"""A guest's memory: a file of the host that QEMU uses, and packets of its gdb stub."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from labs.tools.machine.qemu_command import Config
from labs.tools.machine.symbols import KERNEL_BASE

PIECE = 1024  # bytes of memory in one packet


class NotMapped(AssertionError, LookupError):
    """There is no memory at an address; the text says at which."""


@contextmanager
def memory_of(config: Config) -> Iterator[tuple[int, mmap.mmap]]:
    """A file in memory that a machine has for its memory: a descriptor, and its bytes."""
    descriptor, size = os.memfd_create("guest"), config.memory << 20
    try:
        os.ftruncate(descriptor, size)
        with mmap.mmap(descriptor, size) as memory:
            yield descriptor, memory
    finally:
        os.close(descriptor)


def contents(descriptor: int, memory: mmap.mmap) -> list[tuple[int, bytes]]:
    """What is in such a file: pieces, each with its place. Elsewhere are zeros."""
    pieces: list[tuple[int, bytes]] = []
    end = 0
    with suppress(OSError):  # there is no more
        while True:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
            pieces.append((start, memory[start:end]))
    return pieces


def put_back(pieces: Iterable[tuple[int, bytes]], memory: mmap.mmap) -> None:
    """Makes it what it was."""
    memory.madvise(mmap.MADV_REMOVE)
    for start, data in pieces:
        memory[start : start + len(data)] = data


def place_of(address: int, length: int, memory: mmap.mmap) -> slice:
    """Where bytes of the direct map are in memory. Raises NotMapped."""
    start = address - KERNEL_BASE
    if not 0 <= start <= len(memory) - length:
        raise NotMapped(f"no memory at {address:#x}")
    return slice(start, start + length)


def writes(address: int, data: bytes) -> Iterator[str]:
    """The packets that change memory."""
    for at in range(0, len(data), PIECE):
        piece = data[at : at + PIECE]
        yield f"M{address + at:x},{len(piece):x}:{piece.hex()}"


def setting(registers: Iterable[int]) -> str:
    """The packet that sets all registers of 32 bits, in QEMU's order."""
    words = ((each & 0xFFFFFFFF).to_bytes(4, "little") for each in registers)
    return "G" + b"".join(words).hex()
