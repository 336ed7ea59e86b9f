"""What a test did to its machine through gdb's protocol: as steps that a person can read, and that
a session of gdb does again (labs/tools/debugging/gdb/steps.py).

The packets are those of "Debugging with GDB", appendix E; the numbers of the registers are QEMU's.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from labs.tools.machine.symbols import Symbols

REGISTERS = (
    *("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip", "eflags"),
    *("cs", "ss", "ds", "es", "fs", "gs"),
)
CONTROL = {19: "cr0", 20: "cr2", 21: "cr3", 22: "cr4"}  # target/i386/gdbstub.c
SET_ONE = re.compile(r"P(?P<number>[0-9a-f]+)=(?P<value>[0-9a-f]{8})")
WRITE = re.compile(r"M(?P<address>[0-9a-f]+),[0-9a-f]+:(?P<data>[0-9a-f]*)")
BREAKPOINT = re.compile(r"(?P<what>[Zz])1,(?P<address>[0-9a-f]+),")
MONITOR = re.compile(r"qRcmd,(?P<text>[0-9a-f]+)")
PORT = re.compile(r"[io] /")  # of QEMU's commands, those that do something to the machine
LINES_SHOWN = 12


@dataclass
class Step:
    """One thing done to the machine. kind: "set" (values: registers), "write" (address, data),
    "break" and "forget" (address), "monitor" (data), "continue", "step"."""

    kind: str
    values: dict[str, int] | None = None
    address: int = 0
    data: str = ""


def steps_of(packets: Sequence[str]) -> list[Step]:
    """The steps up to the last time that the machine ran, which is left to the person at gdb."""
    steps = [step for packet in packets if (step := step_of(packet))]
    runs = [i for i, step in enumerate(steps) if step.kind in ("continue", "step")]
    return steps[: runs[-1]] if runs else []


def last_run(packets: Sequence[str]) -> str:
    """How the machine ran for the last time: "continue" or "step"."""
    runs = [packet for packet in packets if packet in ("c", "s")]
    return "step" if runs[-1:] == ["s"] else "continue"


def step_of(packet: str) -> Step | None:
    """What a packet does; None for one that only looks."""
    if packet in ("c", "s"):
        return Step("continue" if packet == "c" else "step")
    if found := BREAKPOINT.match(packet):
        kind = "break" if found["what"] == "Z" else "forget"
        return Step(kind, address=int(found["address"], 16))
    if found := WRITE.fullmatch(packet):
        return Step("write", address=int(found["address"], 16), data=found["data"])
    if found := MONITOR.fullmatch(packet):
        text = bytes.fromhex(found["text"]).decode()
        return Step("monitor", data=text) if PORT.match(text) else None
    values = registers_of(packet)
    return Step("set", values=values) if values else None


def registers_of(packet: str) -> dict[str, int]:
    """The registers that a packet sets."""
    if found := SET_ONE.fullmatch(packet):
        number = int(found["number"], 16)
        name = CONTROL.get(number) or REGISTERS[number]
        return {name: int.from_bytes(bytes.fromhex(found["value"]), "little")}
    if packet.startswith("G"):
        words = struct.unpack(f"<{len(REGISTERS)}I", bytes.fromhex(packet[1:]))
        return dict(zip(REGISTERS, words, strict=True))
    return {}


def write_steps(path: Path, steps: Sequence[Step]) -> None:
    """Keeps the steps for gdb."""
    path.write_text(json.dumps([asdict(step) for step in steps]))


# ---- in words -----------------------------------------------------------------------------------


def shortened(lines: Sequence[str]) -> list[str]:
    """The end of a long list."""
    more = len(lines) - LINES_SHOWN
    return [f"... {more} more", *lines[more:]] if more > 0 else list(lines)


class Narrator:
    """Puts steps into words, one after the other."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._places: list[int] = []
        self._written: dict[int, bytes] = {}
        self._stack = 0
        self._home = -1  # where the function returns to that was called last

    def lines(self, steps: Sequence[Step]) -> Iterator[str]:
        """What was done, in order; running is told by where it was to end."""
        for step in steps:
            if step.kind == "write":
                self._written[step.address] = bytes.fromhex(step.data)
            elif step.kind == "break":
                self._places.append(step.address)
            elif step.kind == "forget":
                self._places.remove(step.address)
            elif step.kind == "set":
                yield from self._set(step.values or {})
            elif step.kind == "monitor":
                yield f"monitor {step.data}"
            else:
                yield self.running(step.kind)

    def running(self, kind: str) -> str:
        """Where a run was to end."""
        if self._places == [self._home]:
            return "let it return"
        goal = " or ".join(map(self._place, self._places))
        return f"run to {goal}" if kind == "continue" and goal else kind

    def _set(self, values: dict[str, int]) -> Iterator[str]:
        """A call, if that is what the registers are set for: there is a new frame on the stack."""
        self._stack = values.get("esp", self._stack)
        if "eip" not in values:
            return
        frame = self._written.pop(self._stack, b"")
        self._home = int.from_bytes(frame[:4], "little") if frame else -1
        if frame:
            yield f"call {self._place(values['eip'])}({', '.join(self._arguments(frame))})"

    def _arguments(self, frame: bytes) -> Iterator[str]:
        """What is after the address to return to; texts that the test has written, too."""
        for at in range(4, len(frame), 4):
            value = int.from_bytes(frame[at : at + 4], "little")
            text = self._written.get(value, b"")
            is_text = text.endswith(b"\0") and text[:-1].isascii() and text[:-1].strip(b"\0")
            yield f"{value:#x}" + (f" {json.dumps(text[:-1].decode())}" if is_text else "")

    def _place(self, address: int) -> str:
        words = self._symbols.describe(address)
        return words.split()[1].removesuffix("+0x0") if " " in words else words
