"""The machine under test: starts QEMU, watches it from outside, and says what came of it.

run(Config(boot="direct", kernel=Path("kernel.elf"), script="help")).check()

with Machine(Config(image=Path("disk.img"))) as machine:
    machine.expect("# ")
    machine.send("uname")
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pexpect
from pexpect.fdpexpect import fdspawn
from qemu.qmp import ExecuteError

from labs.tools.machine.bounded import STEP_SECONDS, Patience, has_ended
from labs.tools.machine.disk_trace import DiskTrace
from labs.tools.machine.explain import (
    PANIC,
    PANIC_STATUS,
    header_problem,
    is_stuck,
    parse_registers,
    standstill_report,
)
from labs.tools.machine.guest_time import GuestTime
from labs.tools.machine.monitor import GuestMemoryError, Monitor, MonitorLost
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.qemu_process import start_qemu
from labs.tools.machine.result import BlockStatistics, GuestFailure, Outcome, Result
from labs.tools.machine.symbols import symbols_of
from labs.tools.machine.work_folder import work_folder

START_SECONDS = 60
QUIT_SECONDS = 5
POLL_SECONDS = 0.05
LOG_TAIL = 1 << 20
SAID_TAIL = 1 << 16
PIPE_SIZE = 1 << 20
STUCK = "only a reset can end what it does"

# The contract with the kernel: the exit port takes FIRST_STATUS + status, and without that port the
# status is here when the power goes off.
STATUS_SYMBOL = "machine_exit_status"
FIRST_STATUS = 0x10
STATUSES = range(64)


class Machine:
    """A running machine, for use in a `with` statement; whatever happens, QEMU is gone afterwards.

    `interactive` gives it a serial line to talk on (send, expect). Without it the output goes to a
    file, where the guest never has to wait for us, so that a run with icount repeats itself.

    A guest that may wait for us, or for the host's disk, does not skip its idle time: the five
    seconds that a kernel gives its drive would be over in a tenth of a second.
    """

    def __init__(
        self, config: Config, interactive: bool = True, log_interrupts: bool = False
    ) -> None:
        waits = interactive or config.drives
        self.config = replace(config, skip_idle=config.skip_idle and not waits)
        self.result: Result | None = None
        self._interactive = interactive
        self._log_interrupts = log_interrupts
        self._process: subprocess.Popen[bytes] | None = None
        self._monitor = Monitor(config.clock)
        self._transcript = io.StringIO()
        self._line = -1  # what the guest says, where we talk with it, and what we type
        self._keys = -1
        self._started = time.monotonic()
        self._patience = Patience(config.wall_limit)
        self._guest_time = GuestTime(self._monitor, self.config)
        self._folders = ExitStack()

    @property
    def process_id(self) -> int:
        """QEMU's process."""
        return self._process.pid

    def __enter__(self) -> Machine:
        self._directory = self._folders.enter_context(work_folder("machine"))
        try:
            self._start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    # Starting and ending QEMU

    def _start(self) -> None:
        self._monitor.listen(self._directory / "qmp")
        self._process = start_qemu(self.config, self._directory, self._channels())
        try:
            self._monitor.accept(self._process, START_SECONDS)
            if self._interactive:
                self._keys = os.open(self._directory / "line.in", os.O_WRONLY)
                self._terminal = fdspawn(self._line, encoding="utf-8", codec_errors="replace")
                self._terminal.logfile_read = self._transcript
            self._monitor.execute("cont")
        except (MonitorLost, TimeoutError) as error:
            result = self._finish(Outcome.QEMU_FAILED)
            raise GuestFailure(result.explain(), result) from error

    def _channels(self) -> list[str]:
        """QEMU's monitor and serial line. It waits for `cont` (-S), so that no event is missed."""
        serial = f"file,id=serial,path={self._directory / 'serial'}"
        if self._interactive:
            self._line = open_line(self._directory / "line")
            serial = f"pipe,id=serial,path={self._directory / 'line'}"
        channels = ["-S", "-qmp", f"unix:{self._directory / 'qmp'}"]
        channels += ["-chardev", serial, "-serial", "chardev:serial"]
        if self._log_interrupts:
            self._monitor.keep_tail(self._directory / "interrupts", LOG_TAIL)
            channels += ["-d", "int,cpu_reset", "-D", str(self._directory / "interrupts")]
        return channels

    def _close(self) -> None:
        """Ends QEMU in any state, waits for it (or its images stay locked), and tidies up."""
        if self._process:
            self._process.kill()
            self._process.wait()
        self._monitor.close()
        for end in {self._line, self._keys} - {-1}:
            os.close(end)
        self._folders.close()

    def _quit(self) -> None:
        """Ends QEMU in good order, so that its log is complete; a stuck one is killed."""
        with suppress(MonitorLost, ExecuteError):
            self._monitor.execute("quit")
        if not has_ended(self._process, QUIT_SECONDS):
            self._process.kill()
            self._process.wait()

    # Watching

    def said_so_far(self) -> bytes:
        """What has come out of the serial line of a machine that is not interactive."""
        path = self._directory / "serial"
        return path.read_bytes()[-SAID_TAIL:] if path.exists() else b""

    def wait(
        self,
        look: Callable[[], object] | None = None,
        last_look: Callable[[], object] = lambda: None,
    ) -> Result:
        """Lets the guest run to its end, or to a limit. A look at the limits costs what QEMU could
        have run, so that there are fewer of them as time goes by. `look` is called about 20 times a
        second, `last_look` when the guest has ended and can still be looked at."""
        pause = POLL_SECONDS
        while self.result is None:
            outcome = self._watch(pause)
            pause = pause if self._interactive or look else min(1.2 * pause, STEP_SECONDS)
            self._drain()
            if look and not outcome:
                look()
            limit = ""
            may_be_stuck = outcome in (None, Outcome.HANG) and not (look or self._interactive)
            if may_be_stuck and self._is_stuck():
                outcome, limit = outcome or self._watch(0) or Outcome.HANG, STUCK
            if outcome is Outcome.ENDED:
                last_look()
            if outcome:
                self._finish(outcome, limit)
        return self.result

    def _watch(self, seconds: float) -> Outcome | None:
        """Lets the guest run for `seconds` at most; says why the run is over, if it is."""
        event = self._monitor.shutdown_event(seconds)
        if event and event["data"]["reason"] == "guest-reset":
            return Outcome.TRIPLE_FAULT
        if event and event["data"]["reason"] == "host-signal":
            return Outcome.QEMU_FAILED
        if event and self.config.debug_exit:
            has_ended(self._process, QUIT_SECONDS)
        if self._process.poll() is not None:
            return self._outcome_of_exit(self._process.returncode)
        return Outcome.ENDED if event else self._limit_reached()

    def _outcome_of_exit(self, code: int) -> Outcome:
        """QEMU has ended by itself. isa-debug-exit makes it end with 2 v + 1."""
        ended = self.config.debug_exit and (code == 0 or exit_status(code) is not None)
        return Outcome.ENDED if ended else Outcome.QEMU_FAILED

    def _limit_reached(self) -> Outcome | None:
        """The guest's own limits come first: a host that looks late finds several passed, and the
        one in real time is only for a guest that passes no other."""
        if self._output_size() > self.config.output_limit:
            return Outcome.OUTPUT_LIMIT
        if self._has_passed(self.config.guest_limit):
            return Outcome.HANG
        return Outcome.WALL_LIMIT if self._patience.is_over() else None

    def _has_passed(self, seconds: float | None) -> bool:
        """Whether this much guest time has gone by since power-on; False for None, and where QEMU
        can no longer be asked."""
        with suppress(MonitorLost):
            return seconds is not None and self._guest_time.seconds() >= seconds
        return False

    def _is_stuck(self) -> bool:
        """Whether the guest's limit is certain to be reached, or it has just asked for its end.
        While it runs, QEMU may show registers of a moment ago: what looks stuck is stopped, and
        looked at again. Before QEMU answers then, it says that the machine has ended, if it has."""
        with suppress(MonitorLost):
            if is_stuck(self._monitor.human("info registers"), self.read_memory):
                self._monitor.execute("stop")
                if is_stuck(self._monitor.human("info registers"), self.read_memory):
                    return True
                self._monitor.execute("cont")
        return False

    def guest_seconds(self) -> float:
        """Guest time since power-on, in seconds."""
        return self._monitor.guest_seconds()

    # The result

    def _finish(self, outcome: Outcome, limit: str = "") -> Result:
        """Looks at what is left of the machine, ends it, and makes the result of it. `limit` says
        which limit was reached, if it is not one of the Config."""
        known = {
            "config": self.config,
            "limit": limit,
            "wall_seconds": time.monotonic() - self._started,
        }
        with suppress(MonitorLost):
            known |= self._inspect(outcome)
        self._quit()
        known.setdefault("status", exit_status(self._process.returncode))
        serial = self._serial_text()
        if outcome is Outcome.QEMU_FAILED:
            known["details"] = self._qemu_words()
        if outcome is Outcome.TRIPLE_FAULT:
            known["interrupt_log"] = self._run_again
        if outcome is Outcome.ENDED and is_panic(known["status"], serial):
            outcome = Outcome.PANIC
        requests = self._requests(known.get("block_statistics", {}))
        self.result = Result(outcome=outcome, serial=serial, all_requests=requests, **known)
        return self.result

    def _inspect(self, outcome: Outcome) -> dict[str, object]:
        """What only the standing machine can tell: time, statistics, status, registers."""
        self._monitor.execute("stop")
        found: dict[str, object] = {
            "guest_seconds": self.guest_seconds(),
            "block_statistics": self._block_statistics(),
            "status": self._status() if outcome is Outcome.ENDED else None,
        }
        if outcome is Outcome.ENDED:
            found["variables"] = {name: self.read_symbol(name) for name in self.config.variables}
        if outcome not in (Outcome.ENDED, Outcome.TRIPLE_FAULT):
            symbols = symbols_of(self.config.kernel)
            dump = self._monitor.human("info registers")
            found["details"] = standstill_report(dump, self.read_memory, symbols)
        return found

    def _status(self) -> int | None:
        """The status in the guest's memory; None where the kernel left none."""
        try:
            status = int.from_bytes(self.read_symbol(STATUS_SYMBOL, 4), "little")
        except LookupError:
            return None
        return status if status in STATUSES else None

    def _block_statistics(self) -> dict[str, BlockStatistics]:
        names = {drive.name for drive in self.config.all_drives()}
        answers = {each["device"]: each for each in self._monitor.execute("query-blockstats")}
        there = sorted(names & answers.keys())  # not all of them, after drive_del
        return {name: counted(answers[name]["stats"]) for name in there}

    def _requests(self, statistics: dict[str, BlockStatistics]) -> tuple:
        """The disk requests in QEMU's log."""
        if not self.config.trace:
            return ()
        trace = DiskTrace([drive.name for drive in self.config.all_drives()])
        with suppress(FileNotFoundError), (self._directory / "trace").open() as lines:
            for line in lines:
                trace.feed(line)
        if not trace.lines and any(each.reads or each.writes for each in statistics.values()):
            raise RuntimeError(f"{self.config.qemu} was built without QEMU's trace backend log")
        return tuple(trace.requests)

    def _qemu_words(self) -> str:
        """What QEMU said on standard error, and how it ended."""
        text = (self._directory / "stderr").read_text(errors="replace").strip()
        if self.config.boot == "direct" and (problem := self._header_problem()):
            return f"QEMU does not load the kernel: {problem}"
        return f"QEMU ended with {self._process.returncode}: {text or 'it gave no reason'}"

    def _header_problem(self) -> str:
        """Why QEMU does not know the kernel for one; empty when it does."""
        kernel = self.config.kernel
        return header_problem(kernel.read_bytes()) if kernel and kernel.exists() else ""

    def _run_again(self) -> str:
        """Runs the same machine once more and returns the end of QEMU's log of interrupts, empty if
        that run went another way. The images are protected this time; what the first run wrote to a
        writable one stays in it."""
        drives = tuple(replace(drive, writable=False) for drive in self.config.drives)
        extra = without_logs(self.config.extra)
        config = replace(self.config, drives=drives, trace=False, extra=extra)
        with Machine(config, interactive=False, log_interrupts=True) as machine:
            again = machine.wait()
            return machine.interrupt_log() if again.outcome is Outcome.TRIPLE_FAULT else ""

    def interrupt_log(self) -> str:
        """The end of QEMU's log of interrupts, for a finished run with `log_interrupts`."""
        return self._monitor.tail()

    # The serial line

    def send(self, line: str) -> None:
        """Types a line and Enter."""
        os.write(self._keys, (line + "\n").encode())

    def expect(self, pattern: str, guest_limit: float | None = None) -> re.Match[str]:
        """Waits until the output matches the regular expression, and returns the match.

        `guest_limit` is in guest seconds from now. Raises GuestFailure when the machine ends first
        or a limit is reached; its `result` tells the rest. Of two limits that were passed since the
        last look the earlier one is named.
        """
        deadline, limit = self._deadline(guest_limit), ""
        outcome: Outcome | None = None
        while True:
            with suppress(pexpect.TIMEOUT, pexpect.EOF):
                self._terminal.expect(pattern, timeout=POLL_SECONDS)
                return self._terminal.match
            if outcome:
                result = self._finish(outcome, limit)
                raise GuestFailure(f"no match for {pattern!r}; {result.explain()}", result)
            outcome = self._watch(0)
            if outcome in (None, Outcome.HANG, Outcome.WALL_LIMIT) and self._has_passed(deadline):
                outcome, limit = Outcome.HANG, f"limit {guest_limit:g} s for this answer"

    def _deadline(self, guest_limit: float | None) -> float | None:
        """When so many guest seconds from now have gone by; None when the machine's own limit comes
        before, or QEMU has ended."""
        if guest_limit is not None:
            with suppress(MonitorLost):
                deadline = self._guest_time.seconds() + guest_limit
                return deadline if deadline <= self.config.guest_limit else None
        return None

    def _drain(self) -> None:
        """Moves what has arrived on the serial line to the transcript."""
        with suppress(pexpect.TIMEOUT, pexpect.EOF):
            while self._interactive and self._output_size() <= self.config.output_limit:
                self._terminal.read_nonblocking(1 << 16, timeout=0)

    def _output_size(self) -> int:
        """Bytes (or, on a line we talk on, characters) of output so far."""
        if self._interactive:
            return self._transcript.tell()
        return (self._directory / "serial").stat().st_size

    def _serial_text(self) -> str:
        """The serial output up to the limit, with line ends as the host has them."""
        if self._interactive:
            text = self._transcript.getvalue()
        elif (path := self._directory / "serial").exists():
            with path.open("rb") as stream:
                text = stream.read(self.config.output_limit).decode(errors="replace")
        else:
            text = ""
        return text.replace("\r\n", "\n")

    # The guest's memory and processor

    def read_memory(self, address: int, length: int) -> bytes:
        """Bytes at a virtual address, as the processor maps it now. Raises GuestMemoryError."""
        return self._monitor.save_memory("memsave", address, length, self._directory / "memory")

    def read_physical(self, address: int, length: int) -> bytes:
        """Bytes of the RAM. Raises GuestMemoryError beyond it, where QEMU would read zeros."""
        if not 0 <= address <= (self.config.memory << 20) - length:
            raise GuestMemoryError(f"{length} bytes at {address:#x} are not in the RAM")
        return self._monitor.save_memory("pmemsave", address, length, self._directory / "memory")

    def read_symbol(self, name: str, length: int | None = None) -> bytes:
        """The contents of a kernel variable, all of it or `length` bytes. Raises LookupError."""
        symbol = symbols_of(self.config.kernel).find(name)
        return self.read_memory(symbol.address, symbol.size if length is None else length)

    def is_paused(self) -> bool:
        """Whether the guest has written to QEMU's pvpanic, with -action panic=pause."""
        return self._monitor.execute("query-status")["status"] == "guest-panicked"

    def go_on(self) -> None:
        """Lets a paused guest go on."""
        self._monitor.execute("cont")

    def registers(self) -> dict[str, int]:
        """The processor's registers: EAX to ESP, EIP, EFL, CR0 to CR4, the selectors."""
        return parse_registers(self._monitor.human("info registers"))


def run(config: Config) -> Result:
    """Runs a machine to its end. Raises ConfigError for a machine that cannot be built; everything
    that happens after that is a Result. Nobody sees the screen: only who boots by the BIOS has one.
    """
    config = replace(config, screen=config.screen and config.boot != "direct")
    try:
        with Machine(config, interactive=False) as machine:
            return machine.wait()
    except GuestFailure as failure:
        return failure.result


def without_logs(extra: Sequence[str]) -> tuple[str, ...]:
    """QEMU's options, in pairs, without those for a log: it keeps only one."""
    pairs = zip(extra[::2], extra[1::2], strict=True)
    return tuple(each for pair in pairs if pair[0] not in ("-d", "-D") for each in pair)


def exit_status(code: int) -> int | None:
    """The guest's status in QEMU's exit code, None where isa-debug-exit did not make it."""
    status = code // 2 - FIRST_STATUS
    return status if code % 2 == 1 and status in STATUSES else None


def is_panic(status: int | None, serial: str) -> bool:
    """A panic ends with its status; where no status can be read its words must do."""
    return status == PANIC_STATUS or (status is None and bool(PANIC.search(serial)))


def counted(stats: dict[str, int]) -> BlockStatistics:
    """QEMU's counters of one drive, in our words."""

    def total(prefix: str) -> int:
        return sum(stats[f"{prefix}_{kind}_operations"] for kind in ("rd", "wr", "flush"))

    return BlockStatistics(
        reads=stats["rd_operations"],
        read_bytes=stats["rd_bytes"],
        writes=stats["wr_operations"],
        written_bytes=stats["wr_bytes"],
        flushes=stats["flush_operations"],
        failed=total("failed"),
        invalid=total("invalid"),
    )


def open_line(path: Path) -> int:
    """Makes the two pipes of QEMU's pipe device, and opens the one to read from.

    A guest gives a character up that its serial port does not take in time. In a pipe there is room
    for all that a machine says while nobody has time to read; a socket, with a packet for each
    character, is full after some 300 of them.
    """
    for end in (".out", ".in"):
        os.mkfifo(f"{path}{end}")
    line = os.open(f"{path}.out", os.O_RDONLY | os.O_NONBLOCK)
    with suppress(OSError):  # an ordinary user has only so many large pipes
        fcntl.fcntl(line, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    return line
