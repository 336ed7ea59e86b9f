"""Functions of a stopped kernel, called from outside: nothing of a test is in the guest.

kernel = Outside(guest)
page = kernel.call("page_alloc", 0, enabled=1)

What a test expects, has asked and has seen stays in this process. A kernel under test finds its
arguments on its own stack and a return address where nothing is: there QEMU stops. So do functions
of the test that the kernel calls (Outside.serve). What a call costs is counted instruction by
instruction (Outside.cost), and by no clock that the guest has.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from labs.tools.machine.monitor import PM_TIMER_HERTZ, PM_TIMER_MASK, PM_TIMER_PORT
from labs.tools.machine.symbols import KERNEL_BASE
from tests.support.guest_memory import NotMapped
from tests.support.remote import CALL_SECONDS, INTERRUPTS, MASK, SCRATCH, TEXT_AREA, WORD, Guest
from tests.support.told import fail

ALWAYS_SET = 2  # in EFLAGS
APART = 0x100  # bytes from one place to the next
CALL_BYTES = 8  # from a call to the address that it returns to, at most
ROOM = 0x200  # of the stack, left between a function and who is below it
PARAMETERS = 4  # that a function of the test can have
PAGE, ENTRIES = 4096, 1024  # bytes; of a table
PRESENT, LARGE = 0x01, 0x80  # of an entry
PANIC_ROOM = 400  # bytes of a panic's message
MOST_STEPS = 5000
MOST_STOPS = 1000  # of one call, at functions of the test: none was seen to need 100
MASKS = (0x21, 0xA1)  # of the interrupt controllers
OFTEN = ((0x43, 0x34), (0x40, 4), (0x40, 0))  # the PIT interrupts every 3 microseconds
TEST = "the test"

LINK = bytes.fromhex("ab 83c418 c3")  # STOSL; ADDL $24, %ESP; RET: keeps EAX, to the next call
FRAME = 8 * WORD  # of a call in a chain: the function, LINK's place, six arguments
RESULTS = TEXT_AREA - 0x4000

Handler = Callable[..., int | None]
Call = tuple[str | int, *tuple[int, ...]]


def words_of(*values: int) -> bytes:
    """Numbers as words of 32 bits."""
    return struct.pack(f"<{len(values)}I", *(value & MASK for value in values))


class Panicked(Exception):
    """The kernel was about to end with a panic; the text is its message."""


def quiet(guest: Guest) -> None:
    """No interrupt comes any more from a device. At each stop the guest's time goes on to the next
    event of a device, which here is soon: the timer's, which nobody hears of."""
    for port in MASKS:
        guest.out8(port, 0xFF)
    for port, value in OFTEN:
        guest.out8(port, value)


class Outside:
    """Calls into a kernel that stands still. Afterwards it stands where it did. No interrupt comes
    any more from a device."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.enabled = 0  # were interrupts, when the last call came back, called us, or panicked?
        self._now = guest.registers()  # from here on it calls
        self._places: dict[str, int] = {}
        self._pages: dict[int, int] = {}  # of stacks: where in the direct map they are
        self._link = 0  # where the code is that leads from one call of a chain to the next
        self._served: dict[int, Handler] = {}
        self._watched: dict[int, Handler] = {}
        quiet(guest)

    # Memory

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """This many times 32 bits: of the direct map, or of a stack of the kernel's."""
        length = WORD * count
        try:
            data = self.guest.data(address, length)
        except NotMapped:
            data = b"".join(self.guest.data(*each) for each in self._pieces(address, length))
        return struct.unpack(f"<{count}I", data)

    def word(self, place: int | str) -> int:
        """32 bits at an address, or of a variable."""
        return self.words(self.guest.address(place), 1)[0]

    def set_word(self, place: int | str, value: int) -> None:
        """Changes them."""
        self._put(self.guest.address(place), struct.pack("<I", value & MASK))

    def _put(self, address: int, data: bytes) -> None:
        """Changes memory of the direct map, or of a stack of the kernel's."""
        try:
            self.guest.put_data(address, data)
        except NotMapped:
            for place, length in self._pieces(address, len(data)):
                self.guest.put_data(place, data[:length])
                data = data[length:]

    def _pieces(self, address: int, length: int) -> Iterator[tuple[int, int]]:
        """Where in the direct map pages from elsewhere are, and how many bytes of each."""
        while length > 0:
            here = min(length, PAGE - address % PAGE)
            yield self._page(address & -PAGE) + address % PAGE, here
            address, length = address + here, length - here

    def _page(self, page: int) -> int:
        """The page in the direct map, by the page tables; asked for once. Raises NotMapped."""
        if page not in self._pages:
            entry = self.guest.dump()["CR3"]
            for shift in (22, 12):
                table = KERNEL_BASE + (entry & -PAGE)
                entry = self.word(table + (page >> shift) % ENTRIES * WORD)
                if entry & (PRESENT | LARGE) != PRESENT:
                    raise NotMapped(f"no memory at {page:#x}")
            self._pages[page] = KERNEL_BASE + (entry & -PAGE)
        return self._pages[page]

    # Calls

    def place(self, name: str) -> int:
        """An address by which a function of the test is known in the guest. Nothing is there."""
        if name not in self._places:
            place = SCRATCH + APART * (len(self._places) + 1)
            assert place < TEXT_AREA, "a test with hundreds of functions"
            self._places[name] = place
            self.guest.stop_at(place)
        return self._places[name]

    def name_of(self, address: int) -> str:
        """Whose place an address is; or where it is in the kernel."""
        own = (name for name, place in self._places.items() if 0 <= place - address < CALL_BYTES)
        return next(own, "") or self.guest.symbols.describe(address)

    def call(self, function: str | int, *arguments: int, enabled: int = 0, by: str = TEST,
             eax: int = 0) -> int:  # fmt: skip
        """Calls a function, with interrupts enabled or not, for the function `by` of the test.
        Returns EAX, which was `eax` before."""
        before = self._now
        entry, stack, back = self._entry(function, arguments, enabled, by, eax)
        goal = f"the end of {self._words(function)}, which the test has called"
        after, stops = self.guest.leap(entry, stack, CALL_SECONDS, goal), 0
        while after["eip"] != back:
            if (stops := stops + 1) > MOST_STOPS:
                last = self.name_of(after["eip"])
                fail(f"{self._words(function)} does not end: it calls {last} again and again")
            self._stopped(after["eip"])
            self.guest.go(CALL_SECONDS, goal)
            after = self.guest.registers()
        return self._end(before, after)

    def cost(
        self,
        function: str | int,
        *arguments: int,
        most: int = MOST_STEPS,
        enabled: int = 0,
        each: Callable[[dict[str, int]], None] | None = None,
    ) -> tuple[int, int]:
        """The same in steps, without functions of the test: how many instructions it takes, and
        EAX. Fails beyond `most`. `each` gets the registers before each of them."""
        before, count = self._now, 0
        entry, stack, back = self._entry(function, arguments, enabled, TEST, 0)
        self._put(entry["esp"], stack)
        self.guest.put(entry)
        while (now := self.guest.registers())["eip"] != back:
            if count == most:
                fail(f"{self._words(function)}: expected at most {most} instructions, seen more")
            if each:
                each(now)
            self.guest.step()
            count += 1
        return count, self._end(before, now)

    def price(self, nanoseconds: int, function: str, *arguments: int) -> tuple[int, int]:
        """The same for a function that takes many thousands of instructions, of so many nanoseconds
        of QEMU's clock each: how many it takes, some hundreds more at most, and EAX. The PM timer,
        which no guest can set, is asked by QEMU's monitor while the guest stands still. When the
        guest stops, QEMU's clock goes on to what it waits for next: that is the PIT, very soon. A
        kernel that makes the PIT slower makes itself dearer."""
        for port, value in OFTEN:
            self.guest.out8(port, value)
        before = self.guest.in32(PM_TIMER_PORT)
        result = self.call(function, *arguments)
        after = self.guest.in32(PM_TIMER_PORT)
        if before == after or after > PM_TIMER_MASK:
            fail(f"{function}: the PM timer does not advance")
        ticks = after - before & PM_TIMER_MASK
        return int(ticks * 1e9 / PM_TIMER_HERTZ / nanoseconds), result

    def _words(self, function: str | int) -> str:
        """A function's name."""
        if isinstance(function, str):
            return function
        words = self.name_of(function).split()
        return words[1].partition("+")[0] if len(words) > 1 else words[0]

    def _entry(
        self, function: str | int, arguments: tuple[int, ...], enabled: int, by: str, eax: int
    ) -> tuple[dict[str, int], bytes, int]:
        """The registers at a function's beginning, its stack, and where the call comes back."""
        back = self.place(by)
        stack = (self._now["esp"] - ROOM - WORD * len(arguments) & -16) - WORD
        flags = ALWAYS_SET | (INTERRUPTS if enabled else 0)
        where = self.guest.address(function)
        entry = self._now | {"esp": stack, "eip": where, "eflags": flags, "eax": eax}
        entry["ebp"] = 0  # nobody has called this function: a backtrace ends here
        return entry, words_of(back, *arguments), back

    def _end(self, before: dict[str, int], after: dict[str, int]) -> int:
        self.enabled = int(after["eflags"] & INTERRUPTS > 0)
        self._now = before
        return after["eax"]

    def chain(self, *calls: Call) -> list[int]:
        """Calls functions one after the other, without a stop in between, with interrupts disabled.
        Returns what each has returned. The guest has all their arguments from the beginning: let no
        argument tell what an earlier one should return."""
        if not calls:
            return []
        if not self._link:
            self._link = self.place("the next call of the test") - APART // 2
            self.guest.write(self._link, LINK)
        before, back, results = self._now, self.place(TEST), RESULTS
        frames = [
            words_of(self.guest.address(name), self._link, *arguments) for name, *arguments in calls
        ]
        stack = b"".join(each.ljust(FRAME, b"\0") for each in frames) + words_of(back)
        entry = before | {
            "esp": (before["esp"] - ROOM - len(stack) & -16) - WORD,
            "eip": self.guest.address(calls[0][0]),
            "eflags": ALWAYS_SET,
            "edi": results,
        }
        goal = f"the end of {self._words(calls[-1][0])}, which the test has called"
        after = self.guest.leap(entry, stack[WORD:], CALL_SECONDS, goal)
        if after["eip"] != back or self.guest.data(self._link, len(LINK)) != LINK:
            fail(f"the kernel writes to memory that is not its own, or goes to {after['eip']:#x}")
        self._end(before, after)
        return list(self.words(results, len(calls)))

    # What the kernel calls

    def serve(self, place: int, handler: Handler) -> int:
        """From here on a call of this place, which may be a function of the kernel, is one of
        `handler`: it gets the parameters, knows whether interrupts are enabled, and may call the
        kernel. Returns the place."""
        self.guest.stop_at(place)
        self._served[place] = handler
        return place

    @contextmanager
    def watching(self, function: str, handler: Handler) -> Iterator[None]:
        """`handler` gets the parameters of each call of the kernel's function, before it begins. It
        may step on, at most to the end of what the test has called."""
        place = self.guest.address(function)
        self._watched[place] = handler
        with self.guest.stopping_at(place):
            yield
        del self._watched[place]

    def _stopped(self, here: int) -> None:
        """On the way back, at a place that somebody waits for."""
        now, outer = self.guest.registers(), self._now
        back, *parameters = self.words(now["esp"], 1 + PARAMETERS)
        if here in self._watched:
            self._watched[here](*parameters)
            if self.guest.linear() == here:
                self.guest.step()
            return
        self._now = now
        enabled = int(now["eflags"] & INTERRUPTS > 0)
        if here == self.guest.address("panic"):
            message = self._message(parameters[0], now["esp"] + 2 * WORD)
            self.enabled = enabled
            raise Panicked(message)
        if here not in self._served:
            fail(f"the kernel goes to {here:#x}, where it was not called from")
        self.enabled = enabled
        result = self._served[here](*parameters) or 0
        self._now = outer
        self.guest.put(now | {"eip": back, "esp": now["esp"] + WORD, "eax": result})

    # Panics

    def panic_of(
        self, function: Callable[..., object] | str, *arguments: int, by: str = TEST
    ) -> str:
        """Calls a function of the test, or of the kernel as `call` does. Returns what the kernel's
        panic would say, or "" if it came back: the machine goes on as if it had not been called."""
        outer = self._now
        with self.guest.stopping_at(self.guest.address("panic")):
            try:
                if callable(function):
                    function(*arguments)
                else:
                    self.call(function, *arguments, by=by)
            except Panicked as panic:
                self._now = outer
                return str(panic)
        return ""

    def _message(self, text: int, arguments: int) -> str:
        room = self.guest.text(b" " * PANIC_ROOM)
        self.call("vsnprintk", room, PANIC_ROOM, text, arguments)
        return self.guest.read(room, PANIC_ROOM).partition(b"\0")[0].decode(errors="replace")
