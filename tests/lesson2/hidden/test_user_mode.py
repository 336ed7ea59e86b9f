"""Exercise 2.6, hidden: what a program can do, and cannot; QEMU's record of traps is the judge."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

import pytest

from tests.lesson2.support import (
    FRAME_BYTES,
    INTERRUPTS,
    KERNEL_BASE,
    KERNEL_CODE,
    KERNEL_DATA,
    KERNEL_TASK,
    PRIVILEGE,
    TIMER,
    USER_BASE,
    USER_CODE,
    USER_DATA,
    USER_STACK,
    Lab,
    mask_all_lines,
    run_recorded,
    stopped_at,
    trap_frame,
    user_exceptions,
)

DIVIDE, INT3, UNDEFINED, PROTECTION, PAGE = 0, 3, 6, 13, 14
PROLOGUE = 3  # bytes of "mov eax, [esp]", with which every probe begins
GENERAL = ("eax", "ecx", "edx", "ebx", "ebp", "esi", "edi")
IO_PORTS = 65536
VISIT = struct.Struct("<8I")  # struct user_visit
STATE_ESP0, STATE_SS0, STATE_IO_MAP = 4, 8, 102


@dataclass(frozen=True)
class Probe:
    """A probe, and how it must end: eip counts from the snippet's second instruction."""

    name: str
    argument: int | None
    vector: int
    error: int = 0
    eip: int = 0
    address: int | None = None  # CR2
    target: int | None = None  # eip, where it is somewhere else

    @property
    def command(self) -> str:
        """As the kernel's prompt takes it."""
        return f"probe {self.name}" + ("" if self.argument is None else f" {self.argument:#x}")

    def expected(self) -> tuple:
        """Vector, error code, eip, CR2."""
        place = USER_BASE + PROLOGUE + self.eip if self.target is None else self.target
        return self.vector, self.error, place, self.address

    def found(self, trap) -> tuple:
        """The same of what QEMU has seen."""
        address = None if self.address is None else trap.registers["CR2"]
        return trap.vector, trap.error_code, trap.eip, address


def privileged() -> list[Probe]:
    """Instructions for ring 0 alone."""
    names = ["cli", "sti", "hlt", "cr0", "cr3", "clts", "lgdt", "lidt", "ltr", "wrmsr", "invlpg"]
    return [Probe(name, None, PROTECTION) for name in names]


def plain() -> list[Probe]:
    """What a program may do, and its own exceptions."""
    return [
        Probe("nothing", None, UNDEFINED, eip=1),
        Probe("undefined", None, UNDEFINED),
        Probe("divide", None, DIVIDE, eip=4),
        Probe("int3", None, PROTECTION, error=INT3 * 8 + 2),
        Probe("int", None, PROTECTION, error=0x40 * 8 + 2),
        Probe("far", None, PROTECTION, error=KERNEL_CODE),
    ]


def selectors() -> list[Probe]:
    """Loads of ES and SS. The error code is the selector without its privilege."""
    cases = [
        *(("segment", selector, None) for selector in (0, USER_DATA, USER_CODE, 0x20, 3)),
        *(("segment", selector, selector & ~3) for selector in (0x08, 0x10, 0x13, 0x28, 0x1228)),
        ("stack", USER_DATA, None),
        *(("stack", selector, selector & ~3) for selector in (0, 0x10, 0x13, 0x1B, 0x20, 0x28)),
    ]
    return [
        Probe(name, selector, UNDEFINED, eip=2)
        if error is None
        else Probe(name, selector, PROTECTION, error=error)
        for name, selector, error in cases
    ]


def addresses(seed: int) -> list[Probe]:
    """Reads, writes and jumps to the kernel's memory, to nowhere, and to its own page."""
    numbers = random.Random(seed)
    kernel = KERNEL_BASE + numbers.randrange(896 << 20) & ~3
    nowhere = numbers.randrange(0x10000000, 0xBFFFFFF0) & ~3
    own = USER_BASE + numbers.randrange(0x1000, 0x3F0000) & ~3
    probes = []
    for place, base in ((kernel, 5), (nowhere, 4), (0xF8000000, 4), (0, 4)):
        probes.append(Probe("read", place, PAGE, error=base, address=place))
        probes.append(Probe("write", place, PAGE, error=base | 2, address=place))
        probes.append(Probe("jump", place, PAGE, error=base, address=place, target=place))
    probes += [Probe("read", own, UNDEFINED, eip=2), Probe("write", own, UNDEFINED, eip=2)]
    return probes


def ports(seed: int) -> list[Probe]:
    """Ports, of which none is allowed: those that matter, the ends, and any others."""
    numbers = random.Random(seed)
    chosen = [0, 0x20, 0x21, 0x60, 0x3F8, 0x1F7, 0xFFF8, 0xFFFF]
    chosen += [numbers.randrange(IO_PORTS) for _ in range(8)]
    return [
        Probe(name, port, PROTECTION, eip=2) for port in chosen for name in ("in", "in16", "out")
    ]


def check_probes(lab: Lab, probes: list[Probe]) -> None:
    """Runs them all in one machine, and compares what QEMU has seen, in order."""
    script = "; ".join(probe.command for probe in probes)
    result, traps = run_recorded(lab, script, variables=("probe_visit",))
    seen = user_exceptions(traps)
    for probe, trap in zip(probes, seen, strict=False):
        assert probe.found(trap) == probe.expected(), (
            f"{probe.command}: vector, error code, eip, address are {probe.found(trap)}, "
            f"not {probe.expected()}"
        )
    assert len(seen) == len(probes), f"{probes[len(seen)].command}: the kernel did not come back"
    result.check()
    visit = VISIT.unpack(result.variables["probe_visit"])
    assert (visit[0], visit[1], visit[3]) == probes[-1].expected()[:3], "what the kernel remembers"
    assert visit[5:7] == (USER_CODE, USER_DATA)


@pytest.mark.exercise("2.6", points=2, gate=True)
def test_probes_of_instructions(lab):
    """Privileged instructions, gates and exceptions in user mode: each is reported as the processor
    raises it, in any order."""
    probes = privileged() + plain()
    random.Random(lab.seed).shuffle(probes)
    check_probes(lab, probes)


@pytest.mark.exercise("2.6", points=2)
def test_probes_of_addresses_and_selectors(lab):
    """Forbidden addresses and selectors in user mode: error code and address are exact."""
    check_probes(lab, selectors() + addresses(lab.seed))


@pytest.mark.exercise("2.6", points=2)
def test_probes_of_ports(lab):
    """Ports in user mode: none is allowed, the last one included."""
    check_probes(lab, ports(lab.seed))


@pytest.mark.exercise("2.6", points=2)
def test_allowed_ports(lab):
    """A port that is allowed, once or twice: that port and no other. Two ports may share a byte of
    the bitmap; after the last port the processor reads one more byte."""
    base = random.Random(lab.seed).randrange(0x8000, 0xFF00) & ~7
    first, second = base + 2, base + 5
    free, held = {"vector": UNDEFINED, "eip": 3}, {"vector": PROTECTION, "eip": 2}
    steps: list[Probe | str] = [f"allow {first:#x}"]
    steps += [Probe("in", base + each, **(free if each == 2 else held)) for each in range(-1, 9)]
    steps += [Probe("out", first, **free), Probe("in16", first, **held)]
    steps += [f"allow {second:#x}", f"allow {first:#x}"]
    steps += [Probe("in", first, **free), Probe("in", second, **free)]
    steps += [f"allow {second + 1:#x}", Probe("in16", second, vector=UNDEFINED, eip=4)]
    steps += ["allow 65535", Probe("in", 65535, **free), Probe("in16", 65535, **held)]
    steps += [Probe("in", 65534, **held), "allow 0", Probe("in16", 65535, **held)]
    probes = [step for step in steps if isinstance(step, Probe)]
    script = "; ".join(step if isinstance(step, str) else step.command for step in steps)
    result, traps = run_recorded(lab, script)
    result.check()
    seen = user_exceptions(traps)
    assert len(seen) == len(probes)
    for probe, trap in zip(probes, seen, strict=True):
        assert probe.found(trap) == probe.expected(), (
            f"{probe.command} with ports {first:#x}, then {second:#x} allowed: "
            f"vector {trap.vector} at {trap.eip:#x}"
        )


@pytest.mark.exercise("2.6", points=3, gate=True)
def test_registers_on_entry(lab):
    """Registers at the first instruction of user mode: none of the kernel's values, whatever the
    caller of user_enter has left there, user segments with RPL 3, interrupts enabled, IOPL 0."""
    left = dict.fromkeys(("eax", "ecx", "edx", "ebx", "esi", "edi"), 0xC0FFEE00 | lab.seed & 0xFF)
    with stopped_at(lab, "prompt", "probe nothing") as machine:
        machine.run_to(machine.address("user_enter"))
        machine.set(**left)
        machine.run_to(USER_BASE)
        registers, segments = machine.registers(), machine.segments()
    for name in GENERAL:
        assert registers[name] == 0, f"{name} brings {registers[name]:#x} from the kernel"
    assert registers["esp"] == USER_STACK
    assert registers["eflags"] == INTERRUPTS | 2, f"EFLAGS is {registers['eflags']:#x}"
    assert registers["cs"] == USER_CODE, f"CS is {registers['cs']:#x}"
    for name in ("SS", "DS", "ES", "FS", "GS"):
        segment = segments[name]
        assert segment.selector == USER_DATA, f"{name} is {segment.selector:#x}, not 0x23"
        assert (segment.base, segment.limit) == (0, 0xFFFFFFFF)
        assert segment.access == 0xF3, f"{name} is not a data segment for ring 3"


@pytest.mark.exercise("2.6", points=2, gate=True)
def test_task_state(lab):
    """The task state segment: limit, stack segment, and an I/O bitmap that forbids every port."""
    with stopped_at(lab, "prompt", "probe nothing") as machine:
        machine.run_to(USER_BASE)
        task = machine.segments()["TR"]
        words = machine.read_words(task.base, 26 + IO_PORTS // 32 + 1)
        access = machine.read(machine.tables()["GDT"][0] + KERNEL_TASK + 5, 1)[0]
    state = struct.pack(f"<{len(words)}I", *words)
    ss0 = int.from_bytes(state[STATE_SS0 : STATE_SS0 + 2], "little")
    io_map = int.from_bytes(state[STATE_IO_MAP : STATE_IO_MAP + 2], "little")
    last = io_map + IO_PORTS // 8
    assert ss0 == KERNEL_DATA, f"ss0 is {ss0:#x}"
    assert io_map == 104, f"the map begins at {io_map}, not after 104 bytes of task state"
    assert last <= task.limit < last + 4, f"the limit is {task.limit}, the map ends at {last}"
    assert set(state[io_map : last + 1]) == {0xFF}, (
        "bits of the map, or the byte after it, are clear"
    )
    assert access == 0x8B, f"the task's descriptor has access byte {access:#x}: it is not busy"


@pytest.mark.exercise("2.6", points=1, once=True)
def test_no_port_is_left(lab):
    """task_state_initialize, called again: ports that were allowed before are forbidden."""
    seeded = random.Random(lab.seed)
    with stopped_at(lab, "prompt") as machine:
        for port in (0, IO_PORTS - 1, *(seeded.randrange(IO_PORTS) for _ in range(3))):
            machine.call("task_state_allow_port", port)
        machine.call("task_state_initialize")
        state = machine.address("kernel_task")
        io_map = int.from_bytes(machine.read(state + STATE_IO_MAP, 2), "little")
        found = machine.read(state + io_map, IO_PORTS // 8)
    assert set(found) == {0xFF}, "ports are still allowed when the map has been made again"


@pytest.mark.exercise("2.6", points=2)
def test_stack_of_the_trap(lab):
    """The kernel stack of a trap from user mode: it begins right below what user_enter has saved,
    at any depth, each time again."""
    seeded = random.Random(lab.seed)
    with stopped_at(lab, "prompt", "probe nothing; probe nothing; probe nothing") as machine:
        mask_all_lines(machine)
        esp0_address = machine.segments()["TR"].base + STATE_ESP0
        for depth in (0, 64 + 16 * seeded.randrange(16), 16):
            machine.run_to(machine.address("user_enter"))
            esp = machine.registers()["esp"]
            machine.write(esp - depth, machine.read(esp, 12))
            machine.set(esp=esp - depth)
            machine.run_to(machine.address("trap_dispatch"))
            frame, _ = trap_frame(machine)
            (esp0,) = machine.read_words(esp0_address, 1)
            top = frame + FRAME_BYTES
            saved = esp - depth - 16  # EBP, EBX, ESI, EDI
            assert top == esp0, f"the frame ends at {top:#x}, esp0 is {esp0:#x}"
            assert saved - 64 <= top <= saved, f"esp0 is {esp0:#x}, the stack was at {saved:#x}"
            machine.run_to(machine.address("user_leave"))
            machine.run_to(machine.read_words(esp - depth, 1)[0])
            machine.set(esp=esp + 4)


@pytest.mark.exercise("2.6", points=2)
def test_timer_interrupts_user_mode(lab):
    """Timer interrupts in user mode: they are delivered, and the program goes on after them."""
    result, traps = run_recorded(lab, "probe work; probe flags", variables=("probe_visit",))
    result.check()
    inside = [trap for trap in traps if trap.ring == 3]
    ticks = [trap for trap in inside if trap.vector == TIMER]
    assert len(ticks) >= 2, f"the timer interrupted ring 3 {len(ticks)} times"
    work, flags = user_exceptions(inside)
    assert (work.vector, work.registers["EAX"]) == (UNDEFINED, 50_000_000), (
        "the count was disturbed"
    )
    assert all(tick.registers["EFL"] & PRIVILEGE == 0 for tick in ticks)
    assert flags.registers["EAX"] & (PRIVILEGE | INTERRUPTS) == INTERRUPTS, (
        f"POPF in ring 3 gave itself EFLAGS {flags.registers['EAX']:#x}"
    )
