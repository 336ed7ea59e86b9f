"""A machine on the debugger's leash: stop it anywhere, change registers and memory, call functions.

with stopped(lab, "kmain") as guest:
    guest.call("snprintk", BUFFER, 16, guest.text("%d"), 7)
    assert guest.read(BUFFER, 2) == b"7\0"

QEMU's gdb stub is spoken to directly (GDB manual, appendix E), for tests also stop 16-bit code,
stand in for the BIOS, and fake what a boot loader left behind.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from labs.tools.machine import killed_with_us, short_directory
from labs.tools.qemu_command import Config, qemu_command
from labs.tools.result import Outcome
from labs.tools.symbols import symbols_of
from tests.lab import Lab

REGISTERS = (
    *("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip", "eflags"),
    *("cs", "ss", "ds", "es", "fs", "gs"),
)
WORD = 4
MASK = 0xFFFFFFFF
TRAP = 5  # the signal of a breakpoint or a step
POLL_SECONDS = 0.2
LAST_SELECTOR = 0x40  # what is above it in CS is a real-mode segment, the BIOS's
PIECE = 1024  # bytes of memory in one packet
START_SECONDS = 20
BOOT_SECONDS = 15  # of processor time, for what takes the slowest loader one
CALL_SECONDS = 3  # of processor time, for what takes the guest a tenth of one
STILL_SECONDS = 10  # of real time without any processor time: the machine sleeps for ever
OUTPUT_LIMIT = 256 << 10

# Memory of the stopped kernel that nobody uses: the direct map of 256 to 512 KiB.
SCRATCH = 0xC0040000
SCRATCH_SIZE = 0x40000
TEXT_AREA = SCRATCH + SCRATCH_SIZE - 0x10000


class Guest:
    """A machine that stands still until it is told to run to a place.

    Places are symbols of the kernel or addresses; addresses of memory are those that the processor
    has at that moment. A machine that ends, or runs too long, fails the test with what it said.
    """

    def __init__(
        self, lab: Lab, config: Config, process: subprocess.Popen[bytes], directory: Path
    ) -> None:
        self._lab = lab
        self.symbols = symbols_of(config.kernel)
        self._process = process
        self._directory = directory
        self._stream = connection(directory / "gdb", process)
        self._input = b""
        self._free_text = TEXT_AREA
        self._ask("qXfer:features:read:target.xml:0,fff")  # else QEMU sets no single register

    def close(self) -> None:
        """Lets go of QEMU."""
        self._stream.close()

    # The protocol

    def _ask(self, request: str) -> str:
        """Sends a packet and returns the answer."""
        self._send(request)
        return self._receive(START_SECONDS)

    def _send(self, request: str) -> None:
        checksum = sum(request.encode()) % 256
        self._stream.sendall(f"${request}#{checksum:02x}".encode())

    def _receive(self, seconds: float) -> str:
        """The next packet. Raises TimeoutError when QEMU has used up this much processor time, or
        none at all for long: a busy host does not make a guest late."""
        begun = seen = None
        while (packet := self._packet()) is None:
            if self._take():
                continue
            used, now = processor_seconds(self._process.pid), time.monotonic()
            begun = used if begun is None else begun
            if used != seen:
                seen, since = used, now
            if used - begun > seconds or now - since > STILL_SECONDS:
                raise TimeoutError
        self._stream.sendall(b"+")
        return packet

    def _packet(self) -> str | None:
        """Takes the first packet from the input, if it is whole."""
        start, end = self._input.find(b"$"), self._input.find(b"#")
        if not 0 <= start < end <= len(self._input) - 3:
            return None
        packet, self._input = self._input[start + 1 : end], self._input[end + 3 :]
        return packet.decode()

    def _take(self) -> bool:
        """Adds what arrives within a moment to the input; False when there is nothing."""
        try:
            received = self._stream.recv(1 << 16)
        except TimeoutError:
            return False
        if not received:
            pytest.fail(f"QEMU is gone; the machine said:\n{self.said()}", pytrace=False)
        self._input += received
        return True

    # Registers and memory

    def registers(self) -> dict[str, int]:
        """The general registers, EIP, EFLAGS and the selectors."""
        data = bytes.fromhex(self._ask("g")[: 2 * WORD * len(REGISTERS)])
        words = (data[i : i + WORD] for i in range(0, len(data), WORD))
        return {
            name: int.from_bytes(word, "little")
            for name, word in zip(REGISTERS, words, strict=True)
        }

    def set(self, **values: int) -> None:
        """Sets registers: set(eax=1, eflags=0x402)."""
        for name, value in values.items():
            data = (value & MASK).to_bytes(WORD, "little").hex()
            answer = self._ask(f"P{REGISTERS.index(name):x}={data}")
            assert answer == "OK", f"QEMU does not set {name}: {answer}"

    def read(self, address: int, length: int) -> bytes:
        """Bytes of memory."""
        data = b""
        for at in range(0, length, PIECE):
            piece = self._ask(f"m{address + at:x},{min(PIECE, length - at):x}")
            assert not piece.startswith("E"), f"no memory at {address + at:#x}"
            data += bytes.fromhex(piece)
        return data

    def write(self, address: int, data: bytes) -> None:
        """Changes memory."""
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            answer = self._ask(f"M{address + at:x},{len(piece):x}:{piece.hex()}")
            assert answer == "OK", f"no memory at {address + at:#x}"

    def read_word(self, address: int) -> int:
        """32 bits of memory."""
        return int.from_bytes(self.read(address, WORD), "little")

    def output(self, port: int, value: int) -> None:
        """Writes a byte to an input and output port."""
        self._ask("qRcmd," + f"o /b {port:#x} {value:#x}".encode().hex())

    def text(self, text: str | bytes) -> int:
        """Puts a text with its closing NUL into scratch memory; returns its address."""
        data = text.encode("latin-1") if isinstance(text, str) else text
        address = self._free_text
        if address + len(data) >= TEXT_AREA + 0xF000:
            address = TEXT_AREA
        self.write(address, data + b"\0")
        self._free_text = address + len(data) + 1
        return address

    def address(self, place: str | int) -> int:
        """The address of a place."""
        return self.symbols.find(place).address if isinstance(place, str) else place

    def linear(self) -> int:
        """Where the processor is, in real mode and in flat segments alike."""
        registers = self.registers()
        is_segment = registers["cs"] > LAST_SELECTOR
        return registers["eip"] + (registers["cs"] << 4 if is_segment else 0)

    # Running

    def run_to(
        self, *places: str | int, seconds: float = BOOT_SECONDS, goal: str = "", why: str = ""
    ) -> str | int:
        """Runs until one of the places is reached, and returns it. The failure says `goal`, or the
        places, and `why`."""
        addresses = {self.address(place): place for place in places}
        goal = f"{goal or names(places)}{f' ({why})' if why else ''}"
        if self.linear() in addresses:
            self.step()
        for address in addresses:
            self._ask(f"Z1,{address:x},1")
        signal = self._continue(seconds, goal)
        for address in addresses:
            self._ask(f"z1,{address:x},1")
        reached = addresses.get(self.linear())
        if signal != TRAP or reached is None:
            raise self._failure(f"the machine ended before it reached {goal}")
        return reached

    def _continue(self, seconds: float, goal: str) -> int:
        """Runs to a stop, and returns its signal."""
        self._send("c")
        with suppress(TimeoutError):
            return int(self._receive(seconds)[1:3], 16)
        self._stream.sendall(b"\x03")
        self._receive(START_SECONDS)
        self._lab.stuck.append(Outcome.HANG)
        raise self._failure(f"the machine does not reach {goal}: it loops or waits for ever")

    def step(self) -> None:
        """One instruction."""
        self._ask("s")

    def finish(self, seconds: float = CALL_SECONDS) -> str:
        """Runs to the machine's end; returns all that it said."""
        self._continue(seconds, "its end")
        return self.said()

    def call(self, function: str, *arguments: int, stop_at: tuple[str, ...] = ()) -> int | str:
        """Calls a C function of the stopped kernel and returns EDX:EAX, or that of `stop_at` where
        it went instead; registers are as before afterwards. An argument is 32 bits: give a 64-bit
        one as two."""
        before = self.registers()
        stack = (before["esp"] - 0x200 - WORD * len(arguments)) & ~15
        words = [before["eip"], *arguments]
        frame = b"".join((word & MASK).to_bytes(WORD, "little") for word in words)
        self.write(stack - WORD, frame)
        self.set(esp=stack - WORD, eip=self.address(function))
        goal = f"the end of {function}, which the test has called"
        reached = self.run_to(before["eip"], *stop_at, seconds=CALL_SECONDS, goal=goal)
        after = self.registers()
        self.set(**{name: before[name] for name in REGISTERS[:10]})
        return after["edx"] << 32 | after["eax"] if reached == before["eip"] else reached

    # What it said

    def said_bytes(self) -> bytes:
        """What came out of the serial line, as it is, up to a limit."""
        path = self._directory / "serial"
        if not path.exists():
            return b""
        with path.open("rb") as stream:
            return stream.read(OUTPUT_LIMIT)

    def said(self) -> str:
        """The same as text, with the host's line ends."""
        return self.said_bytes().decode(errors="replace").replace("\r\n", "\n")

    def _failure(self, message: str) -> BaseException:
        """What fails the test. Its first line is the same in each run; where a loop is, is not."""
        where = self.symbols.describe(self.linear())
        said = f"It is at {where}. It said:\n{self.said()[-2000:]}"
        return pytest.fail.Exception(f"{message}\n{said}", pytrace=False)


def names(places: tuple[str | int, ...]) -> str:
    """Places in words."""
    return " or ".join(place if isinstance(place, str) else f"{place:#x}" for place in places)


def connection(path: Path, process: subprocess.Popen[bytes]) -> socket.socket:
    """The connection to QEMU's gdb stub, as soon as there is one."""
    stream = socket.socket(socket.AF_UNIX)
    deadline = time.monotonic() + START_SECONDS
    while stream.connect_ex(str(path)) != 0:
        if process.poll() is not None or time.monotonic() > deadline:
            words = (path.parent / "stderr").read_text(errors="replace")
            pytest.fail(f"QEMU did not start the kernel: {words}", pytrace=False)
        time.sleep(0.005)
    stream.settimeout(POLL_SECONDS)
    return stream


def processor_seconds(process: int) -> float:
    """The processor time that a process has used; 0 where the host does not tell."""
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0


@contextmanager
def halted(lab: Lab, config: Config, serial: tuple[str, ...] = ()) -> Iterator[Guest]:
    """A machine before its first instruction. `serial` is another chardev than a file."""
    directory = Path(tempfile.mkdtemp(prefix="guest-", dir=short_directory()))
    line = serial or (f"file,id=serial,path={directory / 'serial'}",)
    channels = ["-S", "-gdb", f"unix:{directory / 'gdb'},server=on,wait=off"]
    channels += ["-chardev", *line, "-serial", "chardev:serial"]
    with (directory / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [*killed_with_us(), *qemu_command(config, directory, channels)],
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            env={**os.environ, "TMPDIR": str(directory)},
            start_new_session=True,
        )
    try:
        guest = Guest(lab, config, process, directory)
        yield guest
        guest.close()
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def stopped(
    lab: Lab, place: str | int, script: str = "", serial: tuple[str, ...] = (), **fields: object
) -> Iterator[Guest]:
    """The lab's kernel, stopped at a place. `fields` are those of Config."""
    with halted(lab, lab.config(script, **fields), serial) as guest:
        guest.run_to(place)
        yield guest
