"""A machine that runs only when it is told to: QEMU behind its gdb server, driven from Python.

with StoppedMachine(lab.config(None)) as machine:
    machine.run_to(machine.address("kmain"))
    assert machine.segments()["CS"].selector == 8

The protocol is gdb's remote serial protocol ("Debugging with GDB", appendix E), with QEMU's two
additions: qRcmd takes commands of QEMU's monitor, and Qqemu.PhyMemMode reads physical memory.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from labs.tools.explain import parse_registers
from labs.tools.machine import killed_with_us, short_directory
from labs.tools.qemu_command import Config, qemu_command
from labs.tools.symbols import Symbols, symbols_of

START_SECONDS = 20
# A guest that does not come where it should: seconds of processor time and of real time, whichever
# ends first. All that is asked for here takes a tenth of the former.
BUSY_SECONDS = 6
WALL_SECONDS = 40
POLL_SECONDS = 0.2

REGISTERS = (
    "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip", "eflags",
    "cs", "ss", "ds", "es", "fs", "gs",
)  # fmt: skip
CONTROL = {"cr0": 19, "cr2": 20, "cr3": 21, "cr4": 22}  # QEMU's numbers: target/i386/gdbstub.c
SEGMENT = re.compile(r"^(\w\w) *=(\w{4}) (\w{8}) (\w{8}) (\w{8})", re.MULTILINE)
TABLE = re.compile(r"^([GI]DT) *= +(\w{8}) (\w{8})", re.MULTILINE)
STOPPED_BY_BREAKPOINT = "T05"
INTERRUPTS = 0x200
MISSING = re.compile(r"exercise \d\.\d is not written yet.*")


class Lost(AssertionError):
    """The guest did not come where it should; the text says where it is instead."""


class Stuck(Lost):
    """It runs for ever, or waits for ever."""


@dataclass(frozen=True)
class Segment:
    """A segment register with its hidden half; limit is in bytes, attributes as in QEMU's dump:
    bits 8 to 15 are the access byte, 20 to 23 the flags."""

    selector: int
    base: int
    limit: int
    attributes: int

    @property
    def access(self) -> int:
        """The access byte: present, privilege, type."""
        return self.attributes >> 8 & 0xFF

    @property
    def flags(self) -> int:
        """Granularity, size, and two more."""
        return self.attributes >> 20 & 0xF


class StoppedMachine:
    """For a `with` statement. Before the first `run_to` no instruction has been executed."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.directory = Path(tempfile.mkdtemp(prefix="remote-", dir=short_directory()))
        self._breakpoints: set[int] = set()

    def __enter__(self) -> StoppedMachine:
        path = self.directory / "gdb"
        channels = ["-S", "-gdb", f"unix:{path},server=on,wait=off"]
        channels += ["-serial", f"file:{self.directory / 'serial'}"]
        command = [*killed_with_us(), *qemu_command(self.config, self.directory, channels)]
        with (self.directory / "stderr").open("wb") as stderr:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env={**os.environ, "TMPDIR": str(self.directory)},
                start_new_session=True,
            )
        try:
            self._connect(path)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        if hasattr(self, "_socket"):
            self._socket.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _connect(self, path: Path) -> None:
        """Waits until QEMU listens."""
        deadline = time.monotonic() + START_SECONDS
        self._socket = socket.socket(socket.AF_UNIX)
        while self._socket.connect_ex(str(path)) != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Lost("QEMU did not start: " + (self.directory / "stderr").read_text())
            time.sleep(0.01)
        self._socket.settimeout(POLL_SECONDS)
        self._received = b""
        self._ask("qXfer:features:read:target.xml:0,fff")  # without it QEMU sets no single register

    # The protocol

    def _ask(self, packet: str) -> str:
        """Sends a packet and returns the answer."""
        self._send(packet)
        return self._answer()

    def _send(self, packet: str) -> None:
        data = packet.encode()
        self._socket.sendall(b"$%s#%02x" % (data, sum(data) & 0xFF))

    def _answer(self) -> str:
        """The next packet from QEMU."""
        while not (match := re.search(rb"\$([^#]*)#..", self._received)):
            self._receive()
        self._received = self._received[match.end() :]
        self._socket.sendall(b"+")
        return match[1].decode()

    def _receive(self) -> None:
        """Waits for more bytes, but not for ever."""
        busy, started = self._busy_seconds(), time.monotonic()
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError:
                if self._busy_seconds() - busy > BUSY_SECONDS:
                    raise Stuck("the kernel runs and runs") from None
                if time.monotonic() - started > WALL_SECONDS:
                    raise Stuck("the kernel waits for ever") from None
                continue
            if not data:
                raise Lost("QEMU has ended")
            self._received += data
            return

    def _busy_seconds(self) -> float:
        """Processor time that QEMU has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    # Running

    def _resume(self, packet: str) -> None:
        try:
            answer = self._ask(packet)
        except Stuck as stuck:
            self._socket.sendall(b"\x03")
            self._answer()
            raise Stuck(f"{stuck}, and does not come to {self._goal()}\n{self._place()}") from None
        if not answer.startswith(STOPPED_BY_BREAKPOINT):
            words = self.serial().strip().splitlines()[-1:]
            missing = MISSING.search(self.serial())
            reason = missing[0] if missing else f"the machine ended before {self._goal()}"
            raise Lost(f"{reason}; its last words: {words}\n{self._place()}")

    def _goal(self) -> str:
        """The places that were to be reached, in words."""
        places = [self.symbols.describe(each) for each in sorted(self._breakpoints)]
        return " or ".join(places) or "the next instruction"

    def _place(self) -> str:
        """Where the guest stands now, with the end of what it printed."""
        words = self.symbols.describe(self.registers()["eip"])
        return f"It is at {words}. The serial line ends with:\n{self.serial()[-1000:]}"

    def step(self) -> None:
        """Executes one instruction; no interrupt comes in between."""
        self._resume("s")

    def resume(self) -> int:
        """Runs to a breakpoint (see stopping_at) and returns its address. Raises Lost."""
        if self.registers()["eip"] in self._breakpoints:
            self.step()
            if (here := self.registers()["eip"]) in self._breakpoints:
                return here
        self._resume("c")
        return self.registers()["eip"]

    @contextmanager
    def stopping_at(self, *addresses: int):
        """Breakpoints at these addresses, for a `with` statement."""
        added = set(addresses) - self._breakpoints
        for address in added:
            self._ask(f"Z1,{address:x},1")
        self._breakpoints |= added
        yield
        for address in added:
            self._ask(f"z1,{address:x},1")
        self._breakpoints -= added

    def run_to(self, *addresses: int) -> int:
        """Runs to the first of these addresses that is reached, and returns it. Raises Lost."""
        with self.stopping_at(*addresses):
            return self.resume()

    def call(self, function: int, *arguments: int, stop_at: tuple[int, ...] = ()) -> int | None:
        """Calls a C function of the 32-bit guest with interrupts off and returns EAX; afterwards
        the registers are as before. The guest must have a stack. None where it went to one of
        `stop_at` instead; there it is left."""
        before = self.registers()
        home = before["eip"]
        words = (home, *arguments)
        stack = (before["esp"] - 256 & ~15) - 4
        self.write(stack, struct.pack(f"<{len(words)}I", *words))
        flags = before["eflags"] & ~INTERRUPTS
        self.set_registers(esp=stack, eip=function, eflags=flags)
        if self.run_to(home, *stop_at) != home:
            return None
        result = self.registers()["eax"]
        self.set_registers(**before)
        return result

    # Looking and changing

    def registers(self) -> dict[str, int]:
        """EAX to EDI, EIP, EFLAGS and the selectors, by gdb's names."""
        data = bytes.fromhex(self._ask("g")[: 8 * len(REGISTERS)])
        return dict(zip(REGISTERS, struct.unpack(f"<{len(REGISTERS)}I", data), strict=True))

    def set_registers(self, **values: int) -> None:
        """Changes some of the registers; a selector brings its descriptor with it."""
        words = (self.registers() | values).values()
        data = struct.pack(f"<{len(REGISTERS)}I", *words)
        assert self._ask("G" + data.hex()) == "OK"

    def set_control(self, name: str, value: int) -> None:
        """Changes cr0, cr2, cr3 or cr4."""
        assert self._ask(f"P{CONTROL[name]:x}={struct.pack('<I', value).hex()}") == "OK"
        assert self.dump()[name.upper()] == value

    def dump(self) -> dict[str, int]:
        """The registers as QEMU's monitor names them, in capitals: CR0, EFL, EIP, ..."""
        return parse_registers(self.monitor("info registers"))

    def segments(self) -> dict[str, Segment]:
        """CS to GS and TR with their hidden halves."""
        found = SEGMENT.findall(self.monitor("info registers"))
        return {name: Segment(*(int(field, 16) for field in fields)) for name, *fields in found}

    def tables(self) -> dict[str, tuple[int, int]]:
        """Base and limit of GDT and IDT."""
        found = TABLE.findall(self.monitor("info registers"))
        return {name: (int(base, 16), int(limit, 16)) for name, base, limit in found}

    def read(self, address: int, length: int) -> bytes:
        """Memory at a virtual address. Raises LookupError where nothing is mapped."""
        answer = self._ask(f"m{address:x},{length:x}")
        if answer.startswith("E"):
            raise LookupError(f"{length} bytes at {address:#010x} are not mapped")
        return bytes.fromhex(answer)

    def read_words(self, address: int, count: int) -> tuple[int, ...]:
        """32-bit words at a virtual address."""
        data = b"".join(
            self.read(address + start, min(1024, 4 * count - start))
            for start in range(0, 4 * count, 1024)
        )
        return struct.unpack(f"<{count}I", data)

    def read_physical_words(self, address: int, count: int) -> tuple[int, ...]:
        """32-bit words at a physical address."""
        self._ask("Qqemu.PhyMemMode:1")
        try:
            return self.read_words(address, count)
        finally:
            self._ask("Qqemu.PhyMemMode:0")

    def write(self, address: int, data: bytes) -> None:
        """Changes memory at a virtual address."""
        for start in range(0, len(data), 1024):
            part = data[start : start + 1024]
            packet = f"M{address + start:x},{len(part):x}:{part.hex()}"
            assert self._ask(packet) == "OK", f"nothing is mapped at {address:#x}"

    def monitor(self, command: str) -> str:
        """Runs a command of QEMU's monitor and returns what it prints."""
        answer, text = self._ask("qRcmd," + command.encode().hex()), ""
        while answer.startswith("O") and answer != "OK":
            text += bytes.fromhex(answer[1:]).decode()
            answer = self._answer()
        return text

    def out8(self, port: int, value: int) -> None:
        """Writes to a port, as OUT would."""
        self.monitor(f"o /b {port:#x} {value:#x}")

    def in8(self, port: int) -> int:
        """Reads from a port, as IN would."""
        return int(self.monitor(f"i /b {port:#x}").split("=")[1], 16)

    def in32(self, port: int) -> int:
        """Reads 32 bits from a port."""
        return int(self.monitor(f"i /w {port:#x}").split("=")[1], 16)

    def serial(self) -> str:
        """What the guest has printed so far."""
        path = self.directory / "serial"
        return path.read_text(errors="replace") if path.exists() else ""

    def address(self, name: str) -> int:
        """Where a symbol of the kernel lies."""
        return self.symbols.find(name).address

    @property
    def symbols(self) -> Symbols:
        """The kernel's symbols."""
        return symbols_of(self.config.kernel)
