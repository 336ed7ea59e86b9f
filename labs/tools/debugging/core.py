"""A machine out of a file: what the command `core` has written, for gdb to look at.

QEMU's dump-guest-memory makes an ELF core: physical memory, and in a note the processor's registers
(QEMU, target/i386/arch_dump.c). gdb alone would know neither addresses through the page tables nor
the tables' registers. So the file is served by gdb's remote protocol, as QEMU serves a machine that
is stopped: every command works that does not run it.
"""

from __future__ import annotations

import json
import mmap
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from labs.tools.machine.gdb_protocol import PACKET, framed, monitor_answers

NOTE, LOAD = 4, 1  # types of segments: Tool Interface Standard, ELF 1.2
# By ELF's class: where the table of segments is named, where its sizes are, and its first fields.
# With memory up to 4 GiB, as a PC has it for its BIOS, QEMU takes the class of 64 bits.
LAYOUTS = {1: ((28, "<I"), 42, "<5I"), 2: ((32, "<Q"), 54, "<I4x4Q")}
GENERAL = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rsp", "rbp")
SEGMENTS = ("cs", "ds", "es", "fs", "gs", "ss", "ldt", "tr", "gdt", "idt")
IN_PACKET = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "rip", "rflags")
SELECTORS = ("cs", "ss", "ds", "es", "fs", "gs")
TOLD = ("es", "cs", "ss", "ds", "fs", "gs", "ldt", "tr")  # in this order, by QEMU's monitor
PRESENT, LARGE, PAGING, LARGE_ALLOWED = 1, 1 << 7, 1 << 31, 1 << 4
PAGE, LARGE_PAGE = 1 << 12, 1 << 22
READ = re.compile(r"m([0-9a-f]+),([0-9a-f]+)$")
TRANSLATE = re.compile(r"gva2gpa (\S+)$")
STOPPED = "T05thread:01;"
NO_PAST = "a core is one moment of a machine: it has no past, and does not run"
FEATURES = "PacketSize=1000;qXfer:features:read+;QStartNoAckMode+"
CONTROL = ("cr0", "cr2", "cr3", "cr4")
FLOATING = [*(f"st{number}" for number in range(8)), "fctrl", "fstat", "ftag", "fiseg", "fioff"]
FLOATING += ["foseg", "fooff", "fop"]
FLOATING_BYTES = 8 * 10 + 8 * 4
CR3_SET = re.compile(r"P([0-9a-f]+)=([0-9a-f]{8})$")
NOWHERE = {"now": 0, "present": 0}


class CoreError(ValueError):
    """The file is not such a core; the text says why."""


class Core:
    """The machine in a file."""

    def __init__(self, path: Path) -> None:
        """Raises CoreError, OSError, ValueError (an empty file)."""
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._data[:4] != b"\x7fELF" or self._data[4] not in LAYOUTS:
            words = "no core of a machine: the command `core` of make gdb writes one"
            raise CoreError(f"{path}: {words}")
        self._parts: list[tuple[int, int, int]] = []  # physical, offset, size
        self.registers: dict[str, int] = {}
        self.segments: dict[str, tuple[int, int, int, int]] = {}  # selector, base, limit, flags
        for kind, offset, physical, size in self._segments():
            if kind == LOAD:
                self._parts.append((physical, offset, size))
            elif kind == NOTE:
                self._read_notes(offset, offset + size)
        if not self.registers:
            raise CoreError(f"{path}: this core has no registers that QEMU has written")

    def _segments(self) -> Iterator[tuple[int, int, int, int]]:
        first, numbers, layout = LAYOUTS[self._data[4]]
        (start,) = struct.unpack_from(first[1], self._data, first[0])
        size, count = struct.unpack_from("<HH", self._data, numbers)
        for at in range(start, start + size * count, size):
            kind, offset, _, physical, in_file = struct.unpack_from(layout, self._data, at)
            yield kind, offset, physical, in_file

    def _read_notes(self, at: int, end: int) -> None:
        while at < end:
            name, size, _ = struct.unpack_from("<3I", self._data, at)
            start = at + 12 + (name + 3 & -4)
            if self._data[at + 12 : at + 12 + name] == b"QEMU\0":
                self._read_state(start)
            at = start + (size + 3 & -4)

    def _read_state(self, at: int) -> None:
        """struct QEMUCPUState."""
        values = struct.unpack_from("<18Q", self._data, at + 8)
        names = (*GENERAL, *(f"r{number}" for number in range(8, 16)), "rip", "rflags")
        self.registers = dict(zip(names, values, strict=True))
        for number, name in enumerate(SEGMENTS):
            place = at + 8 + 18 * 8 + 24 * number
            selector, limit, flags, _, base = struct.unpack_from("<4IQ", self._data, place)
            self.segments[name] = selector, base, limit, flags
        control = struct.unpack_from("<5Q", self._data, at + 8 + 18 * 8 + 24 * len(SEGMENTS))
        self.registers |= {f"cr{number}": value for number, value in enumerate(control)}

    def physical(self, address: int, size: int) -> bytes | None:
        """Bytes of physical memory; None where there is none."""
        for start, offset, length in self._parts:
            if start <= address and address + size <= start + length:
                at = offset + address - start
                return self._data[at : at + size]
        return None

    def translate(self, address: int) -> int | None:
        """The physical address of a linear one. Intel SDM volume 3, 4.3."""
        if not self.registers["cr0"] & PAGING:
            return address
        entry = self._entry(self.registers["cr3"] & -PAGE, address >> 22)
        if not entry & PRESENT:
            return None
        if entry & LARGE and self.registers["cr4"] & LARGE_ALLOWED:
            return entry & -LARGE_PAGE | address & LARGE_PAGE - 1
        entry = self._entry(entry & -PAGE, address >> 12 & 0x3FF)
        return entry & -PAGE | address & PAGE - 1 if entry & PRESENT else None

    def _entry(self, table: int, index: int) -> int:
        return int.from_bytes(self.physical(table + 4 * index, 4) or b"\0" * 4, "little")

    def linear(self, address: int, size: int) -> bytes | None:
        """Bytes at a linear address; None where a page is missing."""
        found = b""
        while len(found) < size:
            place = address + len(found) & 0xFFFFFFFF
            physical = self.translate(place)
            part = min(size - len(found), PAGE - place % PAGE)
            data = None if physical is None else self.physical(physical, part)
            if data is None:
                return None
            found += data
        return found

    def told(self) -> str:
        """The registers, as QEMU's monitor tells them."""
        short = {name: f"{value & 0xFFFFFFFF:08x}" for name, value in self.registers.items()}
        lines = [" ".join(f"E{name[1:].upper()}={short[name]}" for name in GENERAL)]
        lines.append(
            f"EIP={short['rip']} EFL={short['rflags']} [-------] CPL=0 II=0 A20=1 SMM=0 HLT=0"
        )
        for name in TOLD:
            selector, base, limit, flags = self.segments[name]
            title = f"{name.upper():<3}"
            lines.append(f"{title}={selector:04x} {base:08x} {limit:08x} {flags:08x}")
        for name in ("gdt", "idt"):
            _, base, limit, _ = self.segments[name]
            lines.append(f"{name.upper()}=     {base:08x} {limit:08x}")
        lines.append(" ".join(f"CR{each}={short[f'cr{each}']}" for each in (0, 2, 3, 4)))
        return "\n".join(lines) + "\n"


def description() -> str:
    """The registers of a packet `g`, in gdb's XML ("Debugging with GDB", appendix G)."""
    names = {"eip": "code_ptr", "esp": "data_ptr", "ebp": "data_ptr"}
    general = ["eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip", "eflags", *SELECTORS]
    lines = [register(name, 32, names.get(name, "int32")) for name in general]
    lines += [
        register(name, 80, "i387_ext") if name.startswith("st") else register(name, 32, "int")
        for name in FLOATING
    ]
    control = [register(name, 32, "int32") for name in CONTROL]
    return (
        '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target>'
        "<architecture>i386</architecture>"
        f'<feature name="org.gnu.gdb.i386.core">{"".join(lines)}</feature>'
        f'<feature name="org.qemu.gdb.i386.control">{"".join(control)}</feature></target>'
    )


def register(name: str, bits: int, kind: str) -> str:
    """One register of that."""
    return f'<reg name="{name}" bitsize="{bits}" type="{kind}"/>'


CR3_NUMBER = 10 + len(SELECTORS) + len(FLOATING) + CONTROL.index("cr3")


class CoreServer:
    """Answers gdb's packets out of a core."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._description = description()
        self._is_physical = False

    def answers(self, packet: str) -> list[str]:
        """What gdb gets for a packet."""
        if packet.startswith("qRcmd,"):
            return monitor_answers(self._command(bytes.fromhex(packet[6:]).decode()))
        return [self._answer(packet)]

    def _answer(self, packet: str) -> str:
        if found := READ.match(packet):
            address, size = (int(each, 16) for each in found.groups())
            read = self._core.physical if self._is_physical else self._core.linear
            data = read(address, size)
            return "E14" if data is None else data.hex()
        if packet.startswith("qXfer:features:read:target.xml:"):
            offset, length = (int(each, 16) for each in packet.rpartition(":")[2].split(","))
            part = self._description[offset : offset + length]
            return ("l" if offset + length >= len(self._description) else "m") + part
        if packet.startswith("Qqemu.PhyMemMode:"):
            self._is_physical = packet.endswith("1")
            return "OK"
        if (found := CR3_SET.match(packet)) and int(found[1], 16) == CR3_NUMBER:
            # How a task's memory is seen (views.py).
            value = int.from_bytes(bytes.fromhex(found[2]), "little")
            self._core.registers["cr3"] = value
            return "OK"
        fixed = {"?": STOPPED, "g": self._registers(), "qfThreadInfo": "m01", "qsThreadInfo": "l"}
        fixed |= {"qC": "QC01", "qAttached": "1", "D": "OK", "QStartNoAckMode": "OK"}
        if packet.startswith(("qSupported", "H")):
            return FEATURES if packet.startswith("q") else "OK"
        if packet.startswith(("Z", "z", "M", "X", "G", "P", "c", "s", "vCont;")):
            return "E22"
        return fixed.get(packet, "")

    def _registers(self) -> str:
        values = [self._core.registers[name] & 0xFFFFFFFF for name in IN_PACKET]
        values += [self._core.segments[name][0] for name in SELECTORS]
        control = [self._core.registers[name] & 0xFFFFFFFF for name in CONTROL]
        first, last = (
            b"".join(value.to_bytes(4, "little") for value in each) for each in (values, control)
        )
        return (first + bytes(FLOATING_BYTES) + last).hex()

    def _command(self, text: str) -> str:
        """One of the monitor's, of those that our commands use."""
        if text == "info registers":
            return self._core.told()
        if found := TRANSLATE.match(text):
            physical = self._core.translate(int(found[1], 16))
            return "Unmapped\n" if physical is None else f"gpa: {physical:#x}\n"
        if text.startswith("past "):
            asked = json.loads(text.removeprefix("past "))["do"]
            return json.dumps(NOWHERE if asked == "where" else {"error": NO_PAST}) + "\n"
        return NO_PAST + "\n"

    def serve(self, listener: socket.socket) -> None:
        """Serves one gdb until it leaves."""
        stream, _ = listener.accept()
        received, acknowledges = b"", True
        with stream, suppress(OSError):
            while data := stream.recv(1 << 16):
                received += data
                while match := PACKET.search(received):
                    received = received[match.end() :]
                    if acknowledges:
                        stream.sendall(b"+")
                    acknowledges &= match[1] != b"QStartNoAckMode"
                    for answer in self.answers(match[1].decode("latin-1")):
                        stream.sendall(framed(answer.encode("latin-1")))


@contextmanager
def serving_core(core: Core, path: Path) -> Iterator[None]:
    """Serves a core at a socket, in a thread."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        server = CoreServer(core)
        threading.Thread(target=server.serve, args=(listener,), daemon=True).start()
        yield
