"""What the tests of lesson 3 share: a program in ring 3 that makes the calls a test wants.

with ring3(lab) as caller:
    after = caller.call(GETPID)
    assert after["eax"] == 1

The program (programs/caller.asm) does nothing by itself. The machine is stopped; the test sets
the registers, lets one call run, and looks.
"""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from labs.tools.grading.lab import Lab
from labs.tools.guest.initramfs import archive, regular
from tests.support.remote import CALL_SECONDS, Guest, stopped

HERE = Path(__file__).resolve().parent
KERNEL_BASE = 0xC0000000
SPACE_START, SPACE_END = 0x08000000, 0x08400000
SHARED_PAGE = 0xBFFFF000
KERNEL_CODE, KERNEL_DATA, USER_CODE, USER_DATA = 0x08, 0x10, 0x1B, 0x23
THREAD_LOCAL = 0x3B  # a user segment, which nothing in the core fills in

# Places in programs/caller.asm.
START, GATE, AFTER_GATE, FAST = 0x08048100, 0x08048110, 0x08048112, 0x08048120
MANY, CLOSE_ALL, RANDOMS = 0x08048130, 0x08048140, 0x08048150
DATA, DATA_SIZE = 0x08050000, 0x10000
STACK = SPACE_END - 0x4000

EXIT, READ, WRITE, OPEN, CLOSE, GETPID, BRK = 1, 3, 4, 5, 6, 20, 45
EXECVE, UNAME, EXIT_GROUP = 11, 122, 252
CALL_NAMES = ("EXIT", "READ", "WRITE", "OPEN", "CLOSE", "GETPID", "BRK", "EXECVE", "UNAME")
ENOENT, E2BIG, ENOEXEC, EBADF, ENOMEM, EFAULT = 2, 7, 8, 9, 12, 14
ENAMETOOLONG, ENOSYS = 36, 38

CARRY, TRAP, INTERRUPTS, DIRECTION, NESTED, ALIGNMENT = 0x1, 0x100, 0x200, 0x400, 0x4000, 0x40000
IDENTITY = 0x200000
IO_PRIVILEGE = 0x3000
STATUS_FLAGS = 0x8D5  # carry, parity, auxiliary, zero, sign, overflow

ARGUMENTS = ("ebx", "ecx", "edx", "esi", "edi", "ebp")
SEGMENTS = ("ds", "es", "fs", "gs")
FRAME = (
    "edi", "esi", "ebp", "esp_ignored", "ebx", "edx", "ecx", "eax", "gs", "fs", "es", "ds",
    "vector", "error_code", "eip", "cs", "eflags", "user_esp", "user_ss",
)  # fmt: skip
PID_IN_TASK = 4  # bytes from a struct task's beginning
WATCH_WRITES, WATCH_READS = 2, 3  # kinds of gdb's Z packets


def call_name(number: int) -> str:
    """A call in words."""
    known = {value: name.lower() for name, value in globals().items() if name in CALL_NAMES}
    return known.get(number, f"call {signed(number)}, which does not exist")


def signed(word: int) -> int:
    """32 bits as a number with a sign."""
    return word - (1 << 32) if word >> 31 else word


# ---- programs and files -----------------------------------------------------------------------


def assembled(lab: Lab, name: str, **values: int) -> bytes:
    """A program of tests/lesson3/programs, or of the hidden tests, as an ELF file. `values` are
    NASM's -D."""
    target = lab.scratch / name
    settings = [f"-D{key}={value}" for key, value in values.items()]
    (source,) = HERE.glob(f"*/{name}.asm")
    subprocess.run(["nasm", "-f", "bin", *settings, source, "-o", target], check=True)
    return target.read_bytes()


def with_files(lab: Lab, files: Mapping[str, bytes], *options: str) -> dict[str, object]:
    """The fields of Config for a machine whose root has these files; `options` are QEMU's."""
    path = lab.scratch / "initramfs"
    path.write_bytes(archive(regular(name, data) for name, data in sorted(files.items())))
    return {"initramfs": path, "extra": options}


def answers(lab: Lab, program: Path, questions: Sequence[str], source: str) -> list[str]:
    """What a program made by Lab.host prints for its input: a line a question. `source` is the
    file that is to blame when it ends early."""
    done = lab.ask(program, "".join(f"{each}\n" for each in questions).encode())
    said = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        words = (said[-400:] + done.stderr.decode(errors="replace")[-2000:]).strip()
        pytest.fail(f"{source}, on the host, stopped early:\n{words}", pytrace=False)
    return said.splitlines()


# ---- what a test expects ----------------------------------------------------------------------


def same(found: Mapping[str, int], expected: Mapping[str, int], what: str) -> None:
    """Fails with the names and numbers of those that are not as expected."""
    differ = [
        f"{name} expected {value:#x}, seen {found[name]:#x}"
        for name, value in expected.items()
        if found[name] != value
    ]
    assert not differ, f"{what}: {'; '.join(differ)}"


# ---- ring 3 on a leash ------------------------------------------------------------------------


class Caller:
    """A stopped machine whose processor is in ring 3, in programs/caller.asm."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest

    def prepare(self, number: int, arguments: Sequence[int], **registers: int) -> None:
        """Everything up to the call: by default it will be made by INT 0x80."""
        values = dict(zip(ARGUMENTS, arguments, strict=False))
        defaults = {"eip": GATE, "esp": STACK, "eflags": INTERRUPTS | 2, "eax": number}
        self.guest.set(**(defaults | values | registers))

    def call(self, number: int, *arguments: int, **registers: int) -> dict[str, int]:
        """Makes a call and returns the user's registers after it."""
        self.prepare(number, arguments, **registers)
        self.guest.run_to(AFTER_GATE, seconds=CALL_SECONDS, goal=f"the end of {call_name(number)}")
        return self.guest.registers()

    def back(self) -> dict[str, int]:
        """Lets a call that was begun come back, and returns the user's registers after it."""
        self.guest.run_to(AFTER_GATE, seconds=CALL_SECONDS, goal="the end of the call")
        return self.guest.registers()

    def result(self, number: int, *arguments: int, **registers: int) -> int:
        """What a call returns, with its sign."""
        return signed(self.call(number, *arguments, **registers)["eax"])

    def prepare_shared(self, number: int, arguments: Sequence[int], **registers: int) -> None:
        """Everything up to the call, through the shared page."""
        entry_point = self.guest.read_word(self.guest.address("shared_vsyscall"))
        stack = registers.pop("esp", STACK) - 4
        self.guest.write(stack, struct.pack("<I", AFTER_GATE))
        self.prepare(number, arguments, **({"eip": entry_point, "esp": stack} | registers))

    def call_shared(self, number: int, *arguments: int, **registers: int) -> dict[str, int]:
        """Makes a call through the shared page."""
        self.prepare_shared(number, arguments, **registers)
        goal = f"the end of {call_name(number)} by SYSENTER"
        self.guest.run_to(AFTER_GATE, seconds=CALL_SECONDS, goal=goal)
        return self.guest.registers()

    def stop_in_shared_call(
        self, place: str, number: int, *arguments: int, **registers: int
    ) -> dict[str, int]:
        """Makes such a call as far as a place of the kernel, and returns the registers there."""
        self.prepare_shared(number, arguments, **registers)
        reached = self.guest.run_to(place, AFTER_GATE, seconds=CALL_SECONDS, goal=place)
        assert reached == place, f"a call through the shared page comes back without {place}"
        return self.guest.registers()

    def stop_in_call(self, number: int, *arguments: int, **registers: int) -> dict[str, int]:
        """Makes a call as far as syscall_dispatch, and returns its frame, with its address."""
        self.prepare(number, arguments, **registers)
        places = ("syscall_dispatch", AFTER_GATE)
        reached = self.guest.run_to(*places, seconds=CALL_SECONDS, goal=places[0])
        assert reached == places[0], f"{call_name(number)} comes back without syscall_dispatch"
        return self.frame()

    def frame(self) -> dict[str, int]:
        """At the beginning of a function that is given a frame: its words, and its "address"."""
        address = self.guest.read_word(self.guest.registers()["esp"] + 4)
        words = self.guest.read_words(address, len(FRAME))
        return {"address": address, **dict(zip(FRAME, words, strict=True))}

    def write(self, address: int, data: bytes) -> int:
        """Changes memory, and returns the address."""
        self.guest.write(address, data)
        return address

    def renumber(self, seeded: random.Random) -> int:
        """Gives the program another pid, so that nobody knows what getpid returns; which one."""
        pid = seeded.randrange(2, 1 << 30)
        task = self.guest.read_word(self.guest.address("current"))
        self.write(task + PID_IN_TASK, struct.pack("<I", pid))
        return pid

    def moved_segment(self) -> int:
        """The selector of a data segment of user mode that does not begin at 0: a kernel that goes
        through it finds other memory than it thinks."""
        table, _ = self.guest.tables()["GDT"]
        limit, base_low, access, pages = 0xFFFF, DATA & 0xFFFFFF, 0xF2, 0xCF
        descriptor = limit | base_low << 16 | access << 40 | pages << 48 | DATA >> 24 << 56
        self.write(table + (THREAD_LOCAL & ~7), struct.pack("<Q", descriptor))
        return THREAD_LOCAL

    @contextmanager
    def in_kernel(self) -> Iterator[Guest]:
        """The guest in the middle of a call, for calling functions of the kernel."""
        self.stop_in_call(GETPID)
        yield self.guest
        self.guest.run_to(AFTER_GATE, seconds=CALL_SECONDS, goal="the end of getpid")


@contextmanager
def ring3(lab: Lab, *options: str, files: Mapping[str, bytes] | None = None) -> Iterator[Caller]:
    """The lab's kernel, running programs/caller.asm; no interrupt comes."""
    everything = {"bin/caller": assembled(lab, "caller"), **(files or {})}
    fields = with_files(lab, everything, *options)
    goal = "the first instruction of a program that the kernel loads"
    with stopped(lab, START, "run /bin/caller", goal=goal, **fields) as guest:
        mask_all_lines(guest)
        yield Caller(guest)


def mask_all_lines(guest: Guest) -> None:
    """No interrupt comes any more."""
    guest.out8(0x21, 0xFF)
    guest.out8(0xA1, 0xFF)


@contextmanager
def watching(guest: Guest, kind: int, address: int, length: int = 1) -> Iterator[None]:
    """The guest stops after each access to these bytes; see run_to_access."""
    assert guest._stub.ask(f"Z{kind},{address:x},{length:x}") == "OK"
    yield
    guest._stub.ask(f"z{kind},{address:x},{length:x}")


def run_to_access(guest: Guest, *places: str | int) -> bool:
    """Runs to the next watched access, or to one of the places; whether it was an access."""
    addresses = {guest.address(place) for place in places}
    with guest.stopping_at(*addresses):
        guest._continue(3, "the access to memory that the test waits for")
    return guest.linear() not in addresses


def call_with_access(
    guest: Guest, function: str, *arguments: int, kind: int, at: int, then: Callable[[], object]
) -> int:
    """Calls a function of the kernel, with interrupts as they are; does `then` after each access
    to the byte `at`. Returns EAX; registers are as before."""
    before = guest.registers()
    stack = (before["esp"] - 0x200 & ~15) - 4
    guest.write(stack, struct.pack(f"<{1 + len(arguments)}I", before["eip"], *arguments))
    guest.set(esp=stack, eip=guest.address(function))
    with watching(guest, kind, at):
        while run_to_access(guest, before["eip"]):
            then()
    result = guest.registers()["eax"]
    guest.set(**before)
    return result


def steps_to(guest: Guest, place: int, limit: int) -> list[dict[str, int]]:
    """The registers before each instruction on the way to a place, one at a time."""
    seen = []
    while len(seen) <= limit:
        registers = guest.registers()
        if registers["eip"] == place:
            return seen
        seen.append(registers)
        guest.step()
    raise AssertionError(f"after {limit} instructions the call has not come back")
