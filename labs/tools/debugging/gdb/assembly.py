"""Who called a piece of the kernel's assembly: read from its instructions, at each of them.

NASM describes no frames, and much of this assembly is the student's. So it is followed, one
instruction after the other: from the start of a function up to here, to see what was pushed; or
from here on to its end (RET, IRET or SYSEXIT), to see what it will pop. The second is needed for
traps, and where the code takes another stack. Nothing runs: memory and registers are only read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import gdb

from labs.tools.debugging.gdb.processor import symbol_at

GENERAL = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi")  # as PUSHA pushes them
LOST_IN_CALLS = ("eax", "ecx", "edx")  # System V ABI for the i386, 3-11
SEGMENTS = ("cs", "ds", "es", "fs", "gs", "ss")
MOST_STEPS = 400
WORD = 4
GROWTH = {"push": WORD, "pop": -WORD, "pushf": WORD, "popf": -WORD}
CALL, CALL_BYTES = b"\xe8", 5
MASK = 0xFFFFFFFF
NUMBER = re.compile(r"0x[0-9a-f]+$|[0-9]+$")
MEMORY = re.compile(r"(?:DWORD PTR )?(?:[c-gs]s:)?(?:\[(?P<inner>[^]]+)\]|(?P<plain>0x[0-9a-f]+))$")
TERM = re.compile(r"([+-]?)(\w+)(?:\*(\d))?")

Registers = dict[str, int | None]


class Unknown(Exception):
    """The code does something to the stack that is not understood."""


@dataclass(frozen=True)
class Instruction:
    """One instruction, as gdb prints it."""

    address: int
    length: int
    name: str
    operands: list[str]

    @property
    def next(self) -> int:
        """Where the one after it is."""
        return self.address + self.length


@dataclass(frozen=True)
class Way:
    """How the code is left: "ret", "iret" or "sysexit", and the registers then; `esp` is at what
    the instruction takes from the stack."""

    by: str
    registers: Registers


@lru_cache(maxsize=4096)
def decode(address: int) -> Instruction:
    """The instruction at an address, as it was when it was read first: the kernel's code stays as
    it is, and reading takes time. Raises gdb.MemoryError."""
    (found,) = gdb.selected_inferior().architecture().disassemble(address, count=1)
    text = re.sub(r"<.*?>", "", str(found["asm"])).strip()
    name, _, rest = text.partition(" ")
    operands = [each.strip() for each in rest.split(",")] if rest.strip() else []
    return Instruction(address, int(found["length"]), name, operands)


def read_word(address: int) -> int:
    """A word of memory. Raises gdb.MemoryError."""
    data = bytes(gdb.selected_inferior().read_memory(address & MASK, WORD))
    return int.from_bytes(data, "little")


# ---- forward to the end --------------------------------------------------------------------------


@dataclass
class Run:
    """What the code would do from here on. A conditional jump is not taken: each way out gives the
    caller the same registers."""

    registers: Registers
    written: dict[int, int | None] = field(default_factory=dict)

    def to_end(self, pc: int) -> Way | None:
        """How it ends; None where it does not. Raises Unknown, gdb.error."""
        for _ in range(MOST_STEPS):
            instruction = decode(pc)
            if instruction.name in ("ret", "iret", "sysexit"):
                return Way(instruction.name, self.registers)
            if instruction.name == "hlt":
                return None
            pc = self._jump(instruction) or self._do(instruction)
        return None

    def word(self, address: int) -> int | None:
        """A word, as the code that was followed has left it."""
        address &= MASK
        return self.written[address] if address in self.written else read_word(address)

    def _jump(self, instruction: Instruction) -> int | None:
        if instruction.name != "jmp":
            return None
        target = self._value(instruction.operands[0])
        if target is None:
            raise Unknown("a jump")
        return target

    def _do(self, instruction: Instruction) -> int:
        """Does an instruction; returns where the next one is."""
        name, operands = instruction.name, instruction.operands
        actions: dict[str, Callable[..., None]] = {
            **dict.fromkeys(("push",), self._push),
            **dict.fromkeys(("pop",), self._pop),
            **dict.fromkeys(("pusha", "pushad"), self._push_all),
            **dict.fromkeys(("popa", "popad"), self._pop_all),
            **dict.fromkeys(("pushf", "popf"), self._flags),
            **dict.fromkeys(("int", "sysenter", "call"), self._call),
            **dict.fromkeys(("add", "sub", "and"), self._sum),
            **dict.fromkeys(("cmp", "test"), lambda *_: None),
            "leave": self._leave,
            "mov": self._move,
            "lea": self._lea,
            "xor": self._clear,
        }
        if name in actions:
            actions[name](name, *operands)
        elif operands and operands[0] in GENERAL:
            self._set(operands[0], None)
        return instruction.next

    def _push_all(self, _name: str) -> None:
        for value in [self.registers[each] for each in GENERAL]:
            self._push_value(value)

    def _pop_all(self, _name: str) -> None:
        for each in reversed(GENERAL):
            value = self._pop_value()
            if each != "esp":
                self.registers[each] = value

    def _flags(self, name: str) -> None:
        self._move_stack(-WORD if name == "pushf" else WORD)

    def _call(self, name: str, _what: str = "") -> None:
        """A function, or the kernel, which changes EAX only."""
        self.registers |= dict.fromkeys(LOST_IN_CALLS if name == "call" else ("eax",))

    def _leave(self, _name: str) -> None:
        self._set("esp", self.registers["ebp"])
        self.registers["ebp"] = self._pop_value()

    def _push(self, _name: str, what: str) -> None:
        self._push_value(None if what in SEGMENTS else self._value(what))

    def _pop(self, _name: str, where: str) -> None:
        value = self._pop_value()
        if where in GENERAL:
            self._set(where, value)

    def _move(self, _name: str, to: str, what: str) -> None:
        value = self._value(what)
        if to in GENERAL:
            self._set(to, value)
        elif MEMORY.match(to) and (place := self._place(to)) is not None:
            self.written[place] = value

    def _lea(self, _name: str, to: str, what: str) -> None:
        self._set(to, self._place(what))

    def _sum(self, name: str, to: str, what: str) -> None:
        if to not in GENERAL:
            return
        old, value = self.registers[to], self._value(what)
        if old is None or value is None:
            self._set(to, None)
            return
        results = {"add": old + value, "sub": old - value, "and": old & value}
        self._set(to, results[name] & MASK)

    def _clear(self, _name: str, to: str, what: str) -> None:
        if to in GENERAL:
            self._set(to, 0 if to == what else None)

    def _set(self, name: str, value: int | None) -> None:
        if name == "esp" and value is None:
            raise Unknown("a stack")
        self.registers[name] = value

    def _move_stack(self, by: int) -> None:
        self.registers["esp"] = (self.registers["esp"] + by) & MASK

    def _push_value(self, value: int | None) -> None:
        self._move_stack(-WORD)
        self.written[self.registers["esp"]] = value

    def _pop_value(self) -> int | None:
        value = self.word(self.registers["esp"])
        self._move_stack(WORD)
        return value

    def _value(self, text: str) -> int | None:
        """What an operand is; None where nobody can know."""
        if text in self.registers:
            return self.registers[text]
        if NUMBER.match(text):
            return int(text, 0) & MASK
        place = self._place(text)
        return None if place is None else self.word(place)

    def _place(self, text: str) -> int | None:
        """The address of an operand in memory."""
        found = MEMORY.match(text)
        if not found:
            return None
        if found["plain"]:
            return int(found["plain"], 16)
        total = 0
        for sign, term, scale in TERM.findall(found["inner"]):
            value = int(term, 0) if NUMBER.match(term) else self.registers.get(term)
            if value is None:
                return None
            total += (-1 if sign == "-" else 1) * value * int(scale or 1)
        return total & MASK


# ---- from the start of a function ----------------------------------------------------------------


@dataclass
class Pushed:
    """What a function has on its stack: bytes below the caller's, and where registers are, counted
    from there. depth None: it has taken another stack."""

    depth: int | None = WORD
    saved: dict[str, int] = field(default_factory=dict)
    frame: int | None = None  # the depth at which EBP was set to ESP

    def after(self, instruction: Instruction) -> Pushed:
        """The same, an instruction later."""
        name, operands = instruction.name, instruction.operands
        first = operands[0] if operands else ""
        if self.depth is None:
            return self
        if name in GROWTH:
            return self._pushed([first], GROWTH[name])
        if name in ("pusha", "pushad"):
            return self._pushed(GENERAL, WORD)
        if name in ("popa", "popad"):
            return self._pushed([], -WORD * len(GENERAL))
        if name in ("add", "sub") and first == "esp" and NUMBER.match(operands[1]):
            return self._pushed([], int(operands[1], 0) * (1 if name == "sub" else -1))
        if name == "mov" and operands == ["ebp", "esp"]:
            return replace(self, frame=self.depth)
        if name == "leave" and self.frame is not None:
            return replace(self, depth=self.frame)._pushed([], -WORD)
        return Pushed(None) if first == "esp" or name == "leave" else self

    def _pushed(self, registers: Sequence[str], growth: int) -> Pushed:
        """Each of the registers pushed; without any the stack only grows, or shrinks. What was
        saved above its end stays."""
        depth, saved = self.depth, dict(self.saved)
        for each in registers:
            depth += growth
            if growth > 0 and each in GENERAL:
                saved.setdefault(each, depth)
        depth += 0 if registers else growth
        saved = {each: place for each, place in saved.items() if place <= depth}
        return replace(self, depth=depth, saved=saved)


def pushed_at(start: int, pc: int) -> Pushed:
    """What a function that begins at `start` has pushed when it is at `pc`. Raises gdb.error."""
    at, state, known = start, Pushed(), {}
    while at < pc:
        state = known.get(at, state)
        instruction = decode(at)
        after = state.after(instruction)
        target = instruction.operands[0] if instruction.operands else ""
        if instruction.name.startswith("j") and NUMBER.match(target):
            known.setdefault(int(target, 16), after)
        at = instruction.next
        state = Pushed() if instruction.name in ("ret", "jmp", "iret") else after
    return known.get(at, state) if at == pc else state


def caller_of_function(start: int, pc: int, registers: Registers) -> Registers | None:
    """The registers of the caller of a function that is called as C functions are; None where it
    has taken another stack."""
    pushed = pushed_at(start, pc)
    if pushed.depth is None:
        return None
    outside = registers["esp"] + pushed.depth
    found = {name: read_word(outside - place) for name, place in pushed.saved.items()}
    found.pop("esp", None)
    return {**registers, **found, "eip": read_word(outside - WORD), "esp": outside}


# ---- which code it is ----------------------------------------------------------------------------


class Label(NamedTuple):
    """A label of the kernel's assembly, its address, and that of the part of it (with a dot in its
    name) that the code is in."""

    name: str
    address: int
    part: int


def label_of(pc: int) -> Label | None:
    """The label that code is after. None where the code is not the kernel's assembly."""
    table = gdb.find_pc_line(pc).symtab
    if table is None or not table.filename.endswith((".asm", ".inc")):
        return None
    part = (symbol_at(pc) or "").partition("+")[0]
    name = part.partition(".")[0]
    return Label(name, address_of(name), address_of(part)) if name else None


def address_of(name: str) -> int:
    """Where a label is."""
    return int(gdb.parse_and_eval(f"(unsigned)&'{name}'"))


def called_before(pc: int) -> str:
    """The name of the function whose call ends at an address; "" where none does."""
    call = bytes(gdb.selected_inferior().read_memory(pc - CALL_BYTES, CALL_BYTES))
    if call[:1] != CALL:
        return ""
    return symbol_at(pc + int.from_bytes(call[1:], "little") & MASK) or ""
