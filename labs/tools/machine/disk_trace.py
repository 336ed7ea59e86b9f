"""Disk requests as QEMU saw them: its trace of the controller becomes a list of ATA commands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from labs.tools.machine.qemu_command import UNIT_NAMES

Operation = Literal["read", "write", "flush"]

# The ports of a channel's task file start here (ATA-6 calls it the command block).
CHANNEL_OF_PORT = {0x1F0: 0, 0x170: 1}
SECTOR_COUNT, LBA_LOW, LBA_MID, LBA_HIGH, DEVICE = range(2, 7)
DEVICE_IS_SLAVE = 0x10


@dataclass(frozen=True)
class Request:
    """One ATA command that a drive accepted. `lba` and `sectors` count 512 bytes and are 0 for a
    flush. `wide`: a command with 48 bits of address. `way`: that of its command."""

    drive: str
    operation: Operation
    lba: int
    sectors: int
    wide: bool = field(default=False, compare=False)
    way: str = field(default="none", compare=False)


@dataclass(frozen=True)
class Command:
    """What an opcode means. `way` is how the data moves, or "none"."""

    operation: Operation
    way: Literal["pio", "dma", "none"]
    wide: bool


COMMANDS = {
    **dict.fromkeys((0x20, 0x21, 0xC4), Command("read", "pio", wide=False)),
    **dict.fromkeys((0x24, 0x29), Command("read", "pio", wide=True)),
    **dict.fromkeys((0xC8, 0xC9), Command("read", "dma", wide=False)),
    0x25: Command("read", "dma", wide=True),
    **dict.fromkeys((0x30, 0x31, 0x3C, 0xC5), Command("write", "pio", wide=False)),
    **dict.fromkeys((0x34, 0x39), Command("write", "pio", wide=True)),
    **dict.fromkeys((0xCA, 0xCB), Command("write", "dma", wide=False)),
    0x35: Command("write", "dma", wide=True),
    0xE7: Command("flush", "none", wide=False),
    0xEA: Command("flush", "none", wide=True),
}

PORT_WRITE = re.compile(r"ide_ioport_write IDE PIO wr @ 0x(\w+) \(.*?\); val 0x(\w+);")
COMMAND_START = re.compile(r"exec_cmd IDE exec cmd: bus \w+; state (\w+); cmd 0x(\w+)")
SECTOR_READ = re.compile(r"ide_sector_read sector=(-?\d+) nsectors=\d+")
DMA_START = re.compile(r"ide_dma_cb IDEState (\w+); sector_num=(-?\d+) n=(\d+) cmd=(?:DMA )?\w+")


@dataclass
class Channel:
    """The task file of one channel: its two drives see every write to it."""

    registers: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(8), 0))
    previous: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(8), 0))

    def write(self, register: int, value: int) -> None:
        """A register that is written twice keeps its first value for the 48-bit commands."""
        self.previous[register] = self.registers[register]
        self.registers[register] = value

    def address(self, wide: bool) -> int:
        """The logical block address, of 48 or of 28 bits."""
        value = three_bytes(self.registers)
        if wide:
            return value | three_bytes(self.previous) << 24
        return value | (self.registers[DEVICE] & 0x0F) << 24

    def count(self, wide: bool) -> int:
        """The number of sectors; 0 stands for the largest number, one more than fits."""
        if wide:
            value = self.previous[SECTOR_COUNT] << 8 | self.registers[SECTOR_COUNT]
            return value or 1 << 16
        return self.registers[SECTOR_COUNT] or 1 << 8

    def request(self, drive: str, command: Command) -> Request:
        """What the registers ask for now."""
        if command.way == "none":
            return Request(drive, command.operation, 0, 0, command.wide)
        lba, sectors = self.address(command.wide), self.count(command.wide)
        return Request(drive, command.operation, lba, sectors, command.wide, command.way)


def three_bytes(registers: dict[int, int]) -> int:
    """The three address registers as one number."""
    return registers[LBA_LOW] | registers[LBA_MID] << 8 | registers[LBA_HIGH] << 16


class DiskTrace:
    """Reads trace lines in order and collects the requests of the drives that exist.

    The task file says what was asked. Where QEMU shows that it began to move data, its own numbers
    win, and a command that moved none (an aborted one, a DMA command whose bus master was never
    started) is not counted. QEMU does not show the start of a programmed write, so such a write is
    taken at the guest's word, and must use LBA, not CHS.
    """

    def __init__(self, drives: Collection[str]) -> None:
        self.drives = drives
        self.requests: list[Request] = []
        self.lines = 0
        self._channels = (Channel(), Channel())
        self._channel = 0
        self._names: dict[str, str] = {}
        self._read: Request | None = None
        self._dma: dict[str, Request] = {}

    def feed(self, line: str) -> None:
        """Takes the next line; unknown lines are ignored."""
        self.lines += 1
        if match := PORT_WRITE.search(line):
            self._port_write(int(match[1], 16), int(match[2], 16))
        elif match := COMMAND_START.search(line):
            self._command(match[1], int(match[2], 16))
        elif match := SECTOR_READ.search(line):
            self._sector_read(int(match[1]))
        elif match := DMA_START.search(line):
            self._dma_start(match[1], int(match[2]), int(match[3]))

    def _port_write(self, port: int, value: int) -> None:
        """A read that is still unconfirmed was aborted: QEMU confirms it within the command."""
        self._read = None
        if (base := port & ~7) in CHANNEL_OF_PORT:
            self._channel = CHANNEL_OF_PORT[base]
            self._channels[self._channel].write(port & 7, value)

    def _command(self, state: str, opcode: int) -> None:
        """The command register was written; `state` is QEMU's pointer to the selected drive."""
        channel = self._channels[self._channel]
        selected = bool(channel.registers[DEVICE] & DEVICE_IS_SLAVE)
        name = self._names.setdefault(state, UNIT_NAMES[2 * self._channel + selected])
        command = COMMANDS.get(opcode)
        if command is None or name not in self.drives:
            return
        request = channel.request(name, command)
        if command.way == "dma":
            self._dma[state] = request
        elif command.way == "pio" and command.operation == "read":
            self._read = request
        else:
            self.requests.append(request)

    def _sector_read(self, lba: int) -> None:
        """The first block of a programmed read; the later blocks of it find nothing waiting."""
        if self._read:
            self.requests.append(replace(self._read, lba=lba))
            self._read = None

    def _dma_start(self, state: str, lba: int, sectors: int) -> None:
        """The bus master was started; QEMU says so again for each part of the transfer."""
        if request := self._dma.pop(state, None):
            self.requests.append(replace(request, lba=lba, sectors=sectors))


def parse(lines: Iterable[str], drives: Collection[str]) -> list[Request]:
    """Returns the requests in a trace, in order."""
    trace = DiskTrace(drives)
    for line in lines:
        trace.feed(line)
    return trace.requests
