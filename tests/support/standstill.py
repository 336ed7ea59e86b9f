"""Where a stopped kernel is, in words: what the processor does, what each task waits for, and what
the interrupt controllers still have to be told.

for a test whose machine did not get where it was to go:

    found = standstill(guest)
    found.headline	"every task waits for something that does not happen"
    found.lines		a line each for the processor, the tasks, the interrupt controllers

Nothing here trusts the kernel's memory: whatever a list has become, each walk ends.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

if TYPE_CHECKING:
    from tests.support.remote import Guest

KERNEL_BASE = 0xC0000000
USER = 3
INTERRUPTS = 0x200
TASKS_AT_MOST, CALLS_AT_MOST = 64, 24
SHOWN_TASKS = 8
HLT = b"\xf4"
SAMPLES, STEPS = 8, 40  # of the loop that the processor is in
SWITCH_FRAME_WORDS = 5  # kernel/task/switch.h: EDI, ESI, EBX, EBP, and where it goes on
LIVES = ("ready", "sleeping", "blocked", "stopped", "zombie")  # enum task_life
STACK_REGION, STACK_SLOT, STACK_GUARD = 0xF8000000, 0x4000, 0x2000  # mm/kernel_stack.c
STACK_SLOTS = 256
TRAP_FRAME_EIP, TRAP_FRAME_CS = 14 * 4, 15 * 4  # offsets in struct trap_frame
TRAP = "trap_common"
# How a task gives the processor away; its own business is what called these.
WAYS_OUT = {
    *("switch_to", "schedule", "sched_sleep", "sleep", "wait_any", "wait_sleep_until"),
    *("wait_sleep_blocked", "sched_work", "task_before_user", "trap_dispatch", TRAP),
}
IRQ_NAMES = {0: "timer", 1: "keyboard", 2: "cascade", 4: "serial line", 8: "clock", 14: "disk"}
PIC = re.compile(r"pic(\d): irr=(\w\w) imr=(\w\w) isr=(\w\w)")


@dataclass(frozen=True)
class Standstill:
    """Where a kernel is. headline: in some words that are the same in each run of the same kernel.
    lines: the details."""

    headline: str
    lines: list[str]


def standstill(guest: Guest) -> Standstill:
    """Describes a stopped guest; steps it by some instructions to find the loop that it is in."""
    tasks, controllers = tasks_of(guest), controller_lines(guest)
    processor = Processor.of(guest)  # last: it steps
    lines = [processor.sentence(tasks)]
    lines += [task.sentence() for task in tasks if not task.is_current][:SHOWN_TASKS]
    lines += (
        [f"... and {len(tasks) - 1 - SHOWN_TASKS} more"] if len(tasks) > SHOWN_TASKS + 1 else []
    )
    return Standstill(processor.headline(tasks), lines + controllers)


# ---- the interrupt controllers ------------------------------------------------------------------


def in_service(guest: Guest) -> str:
    """The interrupt requests whose EOI has not been sent; "none"."""
    bits = sum(
        int(serviced, 16) << 8 * int(number)
        for number, _, _, serviced in PIC.findall(guest.monitor("info pic"))
    )
    return irqs(bits) if bits else "none"


def controller_lines(guest: Guest) -> list[str]:
    """What the two controllers wait for, as far as it can explain a standstill."""
    service, requests = 0, 0
    for number, requested, masked, serviced in PIC.findall(guest.monitor("info pic")):
        shift = 8 * int(number)
        service |= int(serviced, 16) << shift
        requests |= (int(requested, 16) & ~int(masked, 16)) << shift
    lines = []
    if service:
        lines.append(
            f"interrupt controller: {irqs(service)} in service: its EOI has not been sent, and no "
            "interrupt of equal or lower priority is delivered until then"
        )
    elif requests & ~(1 << 2):
        lines.append(f"interrupt controller: {irqs(requests)} requested, not yet taken")
    return lines


def irqs(bits: int) -> str:
    """The interrupt requests of these bits, with their devices."""
    found = [each for each in range(16) if bits >> each & 1]
    return ", ".join(
        f"IRQ {each}" + (f" ({IRQ_NAMES[each]})" if each in IRQ_NAMES else "") for each in found
    )


# ---- the processor ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Processor:
    """What the processor does. calls: functions from the innermost on that are the same all the
    time; empty in user mode."""

    calls: list[str]
    place: str
    is_user: bool
    is_halted: bool
    has_interrupts: bool

    @classmethod
    def of(cls, guest: Guest) -> Processor:
        """Looks at it some times, a few instructions apart. One that is about to halt counts as
        halted: QEMU gives it no interrupt while it steps, and would never come to the next
        instruction."""
        found = cls.here(guest, is_halted="HLT=1" in guest.monitor("info registers"))
        if found.is_halted or found.is_user:
            return found
        chains = [found.calls]
        for _ in range(SAMPLES):
            for _ in range(STEPS):
                if guest.read(guest.linear(), 1) == HLT:
                    return cls.here(guest, is_halted=True)
                guest.step()
            chains.append(calls_of_processor(guest))
        return replace(found, calls=common(chains))

    @classmethod
    def here(cls, guest: Guest, is_halted: bool) -> Processor:
        """At this instruction."""
        registers = guest.registers()
        return cls(
            calls=calls_of_processor(guest),
            place=describe(guest, guest.linear()),
            is_user=registers["cs"] & USER == USER,
            is_halted=is_halted,
            has_interrupts=bool(registers["eflags"] & INTERRUPTS),
        )

    def headline(self, tasks: list[Task]) -> str:
        """A few words, the same in each run."""
        idles = not any(each.is_current and each.pid for each in tasks)
        if self.is_halted and not self.has_interrupts:
            return "the processor is halted with interrupts disabled"
        if idles and any(each.life == "ready" and each.pid for each in tasks):
            return "the idle task runs, although other tasks are ready"
        if tasks and (self.is_halted or idles):
            return "every task waits for something that does not happen"
        return "it loops for ever"

    def sentence(self, tasks: list[Task]) -> str:
        """Where it is, with its callers."""
        whose = next((f", for {each.title}" for each in tasks if each.is_current), "")
        mode = "in user mode" if self.is_user else "in the kernel"
        flag = "enabled" if self.has_interrupts else "disabled"
        state = "halted" if self.is_halted else "running"
        calls = "" if self.is_halted else " < ".join(self.calls[:5])
        loop = f"; it loops in {calls}" if calls else ""
        return f"processor: {state} {mode} at {self.place}{whose}, interrupts {flag}{loop}"


def within(calls: list[str]) -> str:
    """The innermost function, and who called it."""
    return f"{calls[0]}, called from {calls[1]}" if len(calls) > 1 else "".join(calls)


def common(chains: list[list[str]]) -> list[str]:
    """What the chains have in common, seen from the outermost caller."""
    shared: list[str] = []
    for level in zip(*(reversed(chain) for chain in chains), strict=False):
        if len(set(level)) > 1:
            break
        shared.insert(0, level[0])
    return shared


def calls_of_processor(guest: Guest) -> list[str]:
    """The functions that the processor is in, the innermost first; none in user mode."""
    registers = guest.registers()
    if registers["cs"] & USER == USER:
        return []
    return chain(guest, registers["eip"], registers["ebp"])


def chain(guest: Guest, eip: int, ebp: int) -> list[str]:
    """A chain of calls by frame pointers. A trap of the kernel in between is passed."""
    calls = [function(guest, eip)]
    while len(calls) < CALLS_AT_MOST and ebp >= KERNEL_BASE and ebp % 4 == 0:
        above, caller, argument = words(guest, ebp, 3) or (0, 0, 0)
        if caller < KERNEL_BASE:
            break
        calls.append(function(guest, caller - 1))
        if calls[-1] == TRAP:
            calls += interrupted(guest, argument)
        if above <= ebp:
            break
        ebp = above
    return calls


def interrupted(guest: Guest, frame: int) -> list[str]:
    """The function of the kernel that a trap has interrupted."""
    eip, selector = words(guest, frame + TRAP_FRAME_EIP, 2) or (0, USER)
    return [] if selector & USER == USER else [function(guest, eip)]


def function(guest: Guest, address: int) -> str:
    """The name of the function at an address."""
    if own := own_place(guest, address):
        return own
    found = describe(guest, address).split()
    is_named = len(found) > 1 and "+0x" in found[1]
    return re.split(r"[+.]", found[1])[0] if is_named else f"{address:#010x}"


def describe(guest: Guest, address: int) -> str:
    """An address in words, by the kernel's symbols or those of the test's own code."""
    for symbols in (guest.symbols, *guest.more_symbols):
        words_ = symbols.describe(address)
        if " " in words_:
            return words_
    own = own_place(guest, address)
    return f"{address:#010x}, {f'in {own}' if own else 'where no code of the kernel is'}"


def own_place(guest: Guest, address: int) -> str:
    """The words for a place of the test's; "" for another one."""
    return next((words_ for place, words_ in guest.own_places if address in place), "")


def words(guest: Guest, address: int, count: int) -> tuple[int, ...]:
    """Words of memory; none where no memory is."""
    try:
        return guest.read_words(address, count)
    except LookupError:
        return ()


# ---- tasks --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """A task. calls: its functions in the kernel, the innermost first. deadline: it waits for a
    time as well."""

    pid: int
    name: str
    life: str
    is_current: bool
    calls: list[str]
    mutex_owner: str

    @property
    def title(self) -> str:
        """How it is called in sentences."""
        return f"task {self.pid} ({self.name})" if self.pid else "the idle task"

    def sentence(self) -> str:
        """What it does."""
        if self.life == "zombie":
            return f"{self.title} has ended, and nobody has asked for its status"
        own = [each for each in self.calls if each not in WAYS_OUT]
        where = f" in {within(own)}" if own else ""
        if self.life == "ready":
            return f"{self.title} is ready{where}, but does not get the processor"
        owner = f", whose owner is {self.mutex_owner}" if self.mutex_owner else ""
        return f"{self.title} {self.life_word}{where}{owner}"

    @property
    def life_word(self) -> str:
        """Its state as a verb."""
        return {"sleeping": "sleeps", "blocked": "sleeps (no signal wakes it)"}.get(
            self.life, f"is {self.life}"
        )


def tasks_of(guest: Guest) -> list[Task]:
    """All tasks by age, the idle task last if it runs; none before there are tasks."""
    try:
        layout = task_layout(guest.symbols.path)
        current = guest.read_word(guest.address("current"))
        places = [*list_of_all(guest, layout), current]
    except (LookupError, AttributeError):
        return []
    found = [task_at(guest, layout, each, current) for each in dict.fromkeys(places) if each]
    return [each for each in found if each]


def list_of_all(guest: Guest, layout: Mapping[str, int]) -> Iterator[int]:
    """The tasks in kernel/task/task.c's list."""
    try:
        head = guest.address("all_tasks")
        link = guest.read_word(head)
        for _ in range(TASKS_AT_MOST):
            if link == head or link < KERNEL_BASE:
                return
            yield link - layout["in_all"]
            link = guest.read_word(link)
    except LookupError:
        return


def task_at(guest: Guest, layout: Mapping[str, int], address: int, current: int) -> Task | None:
    """The struct task at an address; None where none can be."""
    try:
        pid = guest.read_word(address + layout["pid"])
        name = guest.read(address + layout["name"], 16).partition(b"\0")[0]
        life = guest.read_word(address + layout["life"])
        esp = guest.read_word(address + layout["esp"])
        mutex = guest.read_word(address + layout["waiting"]) if "waiting" in layout else 0
    except LookupError:
        return None
    is_current = address == current
    return Task(
        pid=struct.unpack("<i", struct.pack("<I", pid))[0],
        name=name.decode(errors="replace"),
        life=LIVES[life] if life < len(LIVES) else f"in state {life}, which does not exist",
        is_current=is_current,
        calls=[] if is_current else calls_of_task(guest, esp),
        mutex_owner=owner_of(guest, layout, mutex),
    )


def calls_of_task(guest: Guest, esp: int) -> list[str]:
    """The functions on the stack of a task that does not run: struct switch_frame is on top."""
    saved = words(guest, esp, SWITCH_FRAME_WORDS) if esp >= KERNEL_BASE else ()
    return chain(guest, saved[4], saved[3]) if saved else []


def owner_of(guest: Guest, layout: Mapping[str, int], mutex: int) -> str:
    """The task that owns the mutex that another one waits for."""
    owner = words(guest, mutex, 1) if mutex else ()  # struct mutex's first field
    pid = words(guest, owner[0] + layout["pid"], 1) if owner and owner[0] else ()
    return f"task {pid[0]}" if pid else ""


@lru_cache(maxsize=8)
def task_layout(kernel: Path) -> dict[str, int]:
    """Offsets of struct task's members, by the kernel's debugging information. Raises LookupError
    where there is none."""
    with kernel.open("rb") as stream:
        elf = ELFFile(stream)
        units = elf.get_dwarf_info().iter_CUs() if elf.has_dwarf_info() else ()
        for unit in units:
            for die in unit.get_top_DIE().iter_children():
                if is_task(die):
                    return dict(members(die))
    raise LookupError("no struct task in the debugging information")


def is_task(die: DIE) -> bool:
    """Whether this is the definition of struct task."""
    name = die.attributes.get("DW_AT_name")
    return (
        die.tag == "DW_TAG_structure_type"
        and bool(name)
        and name.value == b"task"
        and "DW_AT_byte_size" in die.attributes
    )


def members(die: DIE) -> Iterator[tuple[str, int]]:
    """Names and offsets."""
    for child in die.iter_children():
        if child.tag == "DW_TAG_member":
            offset = child.attributes["DW_AT_data_member_location"].value
            yield child.attributes["DW_AT_name"].value.decode(), offset


# ---- panics and stacks ---------------------------------------------------------------------------


def stack_words(guest: Guest, address: int) -> str:
    """What an address in the region of kernel stacks is; "" anywhere else."""
    if not STACK_REGION <= address < STACK_REGION + STACK_SLOTS * STACK_SLOT:
        return ""
    stack = (address - STACK_REGION) // STACK_SLOT * STACK_SLOT + STACK_REGION + STACK_GUARD
    owner = owner_of_stack(guest, stack)
    if address < stack:
        return f"the guard page below the kernel stack of {owner or 'no task that is left'}"
    if owner:
        return f"the kernel stack of {owner}"
    return "a kernel stack that has been freed: its task has ended"


def owner_of_stack(guest: Guest, stack: int) -> str:
    """The task whose kernel stack begins there; "" when it is nobody's."""
    try:
        layout = task_layout(guest.symbols.path)
        current = guest.read_word(guest.address("current"))
        for place in [*list_of_all(guest, layout), current]:
            task = task_at(guest, layout, place, current)
            if task and guest.read_word(place + layout["kernel_stack"]) == stack:
                return task.title
    except LookupError:
        pass
    return ""


ADDRESS = re.compile(r"address (0x[0-9a-f]{8})")
BACKTRACE = re.compile(r"^backtrace: 0x[0-9a-f]{8} (\S+?)\+0x", re.MULTILINE)
CALLERS = 6


def panic_details(guest: Guest, report: str) -> list[str]:
    """What helps to understand a panic: what its address is, and who called whom. `report` is what
    the kernel printed, from the panic on."""
    lines = []
    if found := ADDRESS.search(report.partition("\n")[0]):
        words_ = stack_words(guest, int(found[1], 16))
        if "no page is there" in report and words_.startswith("the kernel stack of"):
            words_ += ", which has been freed while it was in use"
        lines += [f"{found[1]} is in {words_}"] if words_ else []
    if callers := BACKTRACE.findall(report):
        lines.append(" < ".join(callers[:CALLERS]))
    return lines
