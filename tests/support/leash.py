"""QEMU on its gdb stub, with its memory: started, kept where it stands for a test that begins there
too, ended.

with standing(config, "prompt") as (leash, is_there):
    if not is_there:
        ...  # to the place, and then: leash.stay()
"""

from __future__ import annotations

import atexit
import hashlib
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

import pytest

from labs.tools.machine.explain import header_problem
from labs.tools.machine.qemu_command import Config, memory_arguments
from labs.tools.machine.qemu_process import start_qemu
from labs.tools.machine.work_folder import work_folder
from tests.support.gdb_stub import GdbStub, Packet, StubGone
from tests.support.guest_memory import contents, memory_of, put_back

KEPT = 4  # machines of a process: two clock rates, with a program and without
LARGEST = 32 << 20  # bytes of memory that a machine which is kept may have used
WITHOUT_MEMORY = "migrate_set_capability x-ignore-shared on"  # QEMU's snapshots are, then
STANDS = "VM status: paused (debug)"


class Leash:
    """A machine before its first instruction; a `with` statement ends it. `serial` is another
    chardev than a file; `may_stay`: the machine gets room for a snapshot, which no guest sees."""

    def __init__(
        self, config: Config, serial: tuple[str, ...] = (), may_stay: bool = False
    ) -> None:
        self.config = config
        self.breakpoints: set[int] = set()
        self._may_stay = may_stay
        self._sent: list[Packet] | None = None  # up to the place where it is kept
        self._pieces: list[tuple[int, bytes]] = []  # of its memory there
        self._said = 0  # bytes, up to there
        self._folders = ExitStack()
        try:
            self._directory = self._folders.enter_context(work_folder("guest"))
            files = self._folders.enter_context(memory_of(config))
            self._descriptor, self.memory = files
            channels = self._channels(serial)
            self._process = start_qemu(config, self._directory, channels, [self._descriptor])
        except BaseException:
            self._folders.close()
            raise

    def _channels(self, serial: tuple[str, ...]) -> list[str]:
        """What QEMU is connected with."""
        line = serial or (f"file,id=serial,append=on,path={self.serial}",)
        channels = ["-S", "-gdb", f"unix:{self._directory / 'gdb'},server=on,wait=off"]
        channels += ["-chardev", *line, "-serial", "chardev:serial"]
        channels += memory_arguments(self.config, self._descriptor)
        if self._may_stay:
            room = self._directory / "room"
            room.touch()
            channels += ["-drive", f"if=none,id=room,format=raw,snapshot=on,file={room}"]
        return channels

    @property
    def serial(self) -> Path:
        """The file with what comes out of the serial line."""
        return self._directory / "serial"

    @cached_property
    def stub(self) -> GdbStub:
        """QEMU's gdb stub. Raises StubGone where QEMU does not start."""
        return GdbStub(self._directory / "gdb", self._process)

    # Staying, and going back

    def stay(self) -> None:
        """The machine can go back to where it is now, if QEMU makes a snapshot."""
        sent = list(self.stub.sent)
        if self.stub.monitor(WITHOUT_MEMORY) or self.stub.monitor("savevm place"):
            return
        self._pieces = contents(self._descriptor, self.memory)
        self._said = self.serial.stat().st_size
        if sum(len(data) for _, data in self._pieces) <= LARGEST:
            self._sent = sent
        self.stub.sent = list(sent)

    def can_go_back(self) -> bool:
        """Whether it was kept, and QEMU can go on: a machine that has ended cannot."""
        with suppress(StubGone, OSError):
            self.stub.ask_all(*(f"z1,{address:x},1" for address in self.breakpoints))
            self.breakpoints.clear()
            return self._sent is not None and STANDS in self.stub.monitor("info status")
        return False

    def go_back(self) -> bool:
        """Puts the machine back. False where QEMU has gone, or does not do it."""
        with suppress(StubGone, OSError):
            if self.stub.monitor("loadvm place"):
                return False
            put_back(self._pieces, self.memory)
            with self.serial.open("r+b") as stream:
                stream.truncate(self._said)
            self.stub.begin_again(self._sent)
            return True
        return False

    # The end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        words = self._words(error) if isinstance(error, StubGone) else ""
        self.end()
        if words:
            pytest.fail(words, pytrace=False)

    def end(self) -> None:
        """Ends QEMU."""
        self._process.kill()
        self._process.wait()
        if "stub" in self.__dict__:
            self.stub.close()
        self._folders.close()

    def _words(self, gone: StubGone) -> str:
        """Why QEMU has gone, or does not load a kernel."""
        is_direct = self.config.boot == "direct" and self.config.kernel
        if is_direct and (problem := header_problem(self.config.kernel.read_bytes())):
            return f"QEMU does not load the kernel: {problem}"
        errors = (self._directory / "stderr").read_text(errors="replace").splitlines()
        return "\n".join([str(gone), *(line for line in errors if "warning:" not in line)])


class Standing:
    """The machines of this process that are kept, in the order in which they were used."""

    def __init__(self) -> None:
        self._leashes: dict[Hashable, Leash] = {}
        atexit.register(self.end)

    def take(self, key: Hashable) -> Leash | None:
        """A machine, at its place again, which nobody else gets meanwhile."""
        leash = self._leashes.pop(key, None)
        if leash is None or leash.go_back():
            return leash
        leash.end()
        return None

    def keep(self, key: Hashable, leash: Leash) -> None:
        """Keeps a machine, and ends another one for it where there are too many."""
        if (known := self._leashes.pop(key, None)) is not None:
            known.end()
        self._leashes[key] = leash
        while len(self._leashes) > KEPT:
            self._leashes.pop(next(iter(self._leashes))).end()

    def end(self) -> None:
        """Ends them all."""
        while self._leashes:
            self._leashes.popitem()[1].end()


STANDING = Standing()


@contextmanager
def standing(config: Config, place: int) -> Iterator[tuple[Leash, bool]]:
    """A machine, and whether it stands at the place already. It is kept, unless the test fails."""
    key = identity(config), place
    leash = STANDING.take(key)
    is_there = leash is not None
    if leash is None:
        leash = Leash(config, may_stay=True)
    leash.config = config
    with ExitStack() as stack:
        stack.push(leash)
        yield leash, is_there
        if leash.can_go_back():
            stack.pop_all()
            STANDING.keep(key, leash)


def may_stay(config: Config) -> bool:
    """Whether a machine does the same each time, and has nothing that a snapshot is without."""
    others = config.drives, config.extra, config.record, config.replay, config.trace
    return config.boot == "direct" and config.icount is not None and not any(others)


def identity(config: Config) -> Hashable:
    """What two machines that do the same have in common. Tests write their own files anew."""
    kernel = config.kernel.stat()
    files = hashlib.sha256(config.initramfs.read_bytes()).digest() if config.initramfs else b""
    return replace(config, initramfs=None), kernel.st_mtime_ns, kernel.st_size, files
