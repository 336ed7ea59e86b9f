"""One gdb session with one machine: connects to it, and says at each stop where it is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import gdb

from labs.tools.debugging.gdb.commands import Refusal
from labs.tools.debugging.gdb.past import ask, is_past
from labs.tools.debugging.gdb.processor import ArchitectureFollower, Processor, quiet
from labs.tools.debugging.gdb.programs import PROGRAMS
from labs.tools.debugging.gdb.steps import follow
from labs.tools.debugging.gdb.streams import Console, Tail, open_pipe, plain
from labs.tools.debugging.gdb.tasks import in_ring_3
from labs.tools.machine.explain import PANIC_STATUS

BANNER = """\
Apprentice under gdb. The PC has just been switched on and is before its first instruction.
Type:  {boot_sector}b kmain  and  c  for the kernel; then si, n, bt, x/5i $pc ...
What the kernel prints shows after "| ". Stop it with Ctrl-C. More commands:  apprentice
"""
FOLLOWED = """\
Apprentice under gdb. The machine is where the test is about to let it run for the last time.
Type:  c  to run as the test did, or  s, si, x/5i $pc ...  to go there in small steps.
What the kernel prints shows after "| ". Stop it with Ctrl-C. More commands:  apprentice
"""
RUNNING = ("continue", "step", "next", "stepi", "nexti", "finish", "until", "advance")
HOOK = "define hook-{name}\nbefore-running {name}\nend"
BOOT_SECTOR = "b *0x7c00  and  c  for the boot sector,  "
STATUS_RUNNING = 0xFFFFFFFF

SETTINGS = (
    "set confirm off",
    "set pagination off",
    "set disassembly-flavor intel",
    "set osabi none",
    "set output-radix 16",
    "set demangle-style none",
    "set print pretty on",
    "set print entry-values if-needed",
    "set backtrace limit 64",
    "set stack-cache off",  # a task's stack may be where another one's was seen just before
    "set code-cache off",
    "set remotetimeout 600",  # seconds: the past is searched meanwhile
)


class Session:
    """What the commands share. The directory is the launcher's (labs/tools/debugging/debug.py)."""

    def __init__(self) -> None:
        self._console: Console | None = None
        self._interrupts: Tail | None = None
        self._follower: ArchitectureFollower | None = None
        self._is_drawn = False
        self.is_off = False

    def connect(self, directory: Path) -> None:
        """Loads the symbols, connects to QEMU, and looks at the machine for the first time."""
        for setting in SETTINGS:
            quiet(setting)
        kernel, *others = (directory / "symbols").read_text().splitlines()
        quiet(f"file {kernel}")
        for file in others:
            quiet(f"add-symbol-file {file}")
        PROGRAMS.read(directory)
        self._interrupts = open_pipe(directory / "interrupts")  # of "-d int"
        self._console = Console(directory / "serial")
        self._follower = ArchitectureFollower(directory)
        has_own_loader = any(Path(file).stem == "mbr" for file in others)
        banner = BANNER.format(boot_sector=BOOT_SECTOR if has_own_loader else "")
        steps = directory / "steps"
        if os.environ.get("APPRENTICE_EDITOR"):  # connects by itself, and says so by a stop
            self._watch()
            return
        gdb.write(FOLLOWED if steps.exists() else banner)
        quiet(f"target remote {directory / 'gdb'}")
        self._watch()
        if steps.exists():
            follow(steps)
        self._show_place()

    def _watch(self) -> None:
        """From now on each stop is followed."""
        gdb.events.before_prompt.connect(self._look_at_screen)
        gdb.events.cont.connect(lambda event: self._console.run(not self._is_drawn))
        gdb.events.stop.connect(self._stopped)
        BeforeShowing("before-showing", gdb.COMMAND_OBSCURE)
        gdb.execute("define hook-stop\nbefore-showing\nend")
        BeforeRunning("before-running", gdb.COMMAND_OBSCURE)
        for name in RUNNING:
            gdb.execute(HOOK.format(name=name))

    def console(self) -> Console:
        """The serial line."""
        if self._console is None:
            raise Refusal("there is no console here: start with make gdb")
        return self._console

    def interrupt_log(self) -> str:
        """The end of QEMU's log of exceptions and interrupts, up to where the machine is."""
        if not self._interrupts:
            return ""
        return ask("told", kind="interrupts") if is_past() else self._interrupts.text()

    def written(self) -> str:
        """What the guest has written to its serial line, up to where the machine is."""
        if is_past():
            return plain(ask("told", kind="serial").encode())
        return self.console().text()

    def _look_at_screen(self) -> None:
        """Notes whether gdb draws windows (TUI)."""
        with suppress(gdb.error):
            self._is_drawn = "not active" not in quiet("info win")

    def _stopped(self, event: gdb.StopEvent) -> None:
        self._console.stop()
        if getattr(event, "stop_signal", "") == "SIGQUIT":
            self._switched_off()
        if PROGRAMS.follow() and in_ring_3():
            gdb.write(quiet("frame"))
        self._show_place()

    def follow_mode(self) -> None:
        """Tells gdb whether the code that runs has 16 bits."""
        self._follower.follow(Processor())

    def _show_place(self) -> None:
        self.follow_mode()
        gdb.write(Processor().line() + "\n")

    def _switched_off(self) -> None:
        """QEMU says by SIGQUIT that the machine has switched itself off, or was reset."""
        self.is_off = True
        if "Triple fault" in self._interrupts.text():
            gdb.write("The machine has stopped: a triple fault. Type: last-fault\n")
            return
        status = int(gdb.parse_and_eval("machine_exit_status")) & STATUS_RUNNING
        if status == PANIC_STATUS:
            gdb.write("The machine is off: the kernel has panicked. Type: bt, klog, last-fault\n")
        elif status != STATUS_RUNNING:
            gdb.write(f"The machine is off: the kernel ended with status {status}.\n")
        else:
            gdb.write("The machine was reset, or switched off by other means.\n")


class BeforeShowing(gdb.Command):
    """Runs at each stop before gdb shows it: arguments are read as the mode of the stop wants."""

    def invoke(self, _words: str, _from_tty: bool) -> None:
        """Takes no words."""
        SESSION.follow_mode()


class BeforeRunning(gdb.Command):
    """Runs before `continue` and the like, which would sometimes wait without end."""

    def invoke(self, words: str, from_tty: bool) -> None:
        """A machine that is off does not run; `words` is the name of the command."""
        if goes_back():
            return
        if SESSION.is_off and not is_past():
            raise gdb.GdbError("The machine is off. To see how it came to that: back, or again.")
        if words == "continue":
            leave_breakpoint()


def goes_back() -> bool:
    """Whether gdb is about to run backwards: reverse-step is step, in the other direction."""
    return "Reverse" in quiet("show exec-direction")


def leave_breakpoint() -> None:
    """Steps off a breakpoint that gdb does not know it is on. It compares addresses with EIP,
    and QEMU adds the base of CS, so that in the BIOS the same one would be met again at once."""
    processor = Processor()
    if processor.linear == processor.registers["EIP"]:
        return
    here = [each for each in gdb.breakpoints() if each.enabled and processor.linear in places(each)]
    for each in here:
        each.enabled = False
    if here:
        quiet("stepi")
    for each in here:
        each.enabled = True


def places(breakpoint_: gdb.Breakpoint) -> set[int]:
    """The addresses of a breakpoint; a watchpoint has none."""
    if breakpoint_.type not in (gdb.BP_BREAKPOINT, gdb.BP_HARDWARE_BREAKPOINT):
        return set()
    return {location.address for location in breakpoint_.locations}


SESSION = Session()
