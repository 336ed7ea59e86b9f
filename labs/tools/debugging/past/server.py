"""Between gdb and QEMU: for gdb one machine that can go back, made of several of QEMU's.

The front machine is the one that runs on: recorded while a person works with it, or a record that
is replayed. When gdb goes back, another machine takes its place, that repeats the run up to then
(history.py); when that has come to where the front machine is, the front machine goes on. gdb's
own packets for going back (`bs`, `bc`) are served, so that reverse-step and the like work, too. The
commands of labs/tools/debugging/gdb/past_commands.py ask by `monitor past`, in JSON.
"""

from __future__ import annotations

import json
import re
import select
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labs.tools.debugging.past.history import Edit, History, Past, StandstillError
from labs.tools.debugging.past.search import count_hits, last_change, last_hits
from labs.tools.debugging.past.stub import INTERRUPT, PHYSICAL, Stub, registers_in
from labs.tools.machine.gdb_protocol import PACKET, StubError, framed, monitor_answers
from labs.tools.machine.monitor import PM_TIMER_PORT, rtc_seconds, seconds_by

ASKED = "past "
ENDS = ("k", "D", "vKill")
END_SECONDS = 5
TOLD = 1 << 16  # bytes
LOOK_INSTRUCTIONS = 1_000_000  # at most, between two looks at memory that nobody seems to change
TRAPPED, INTERRUPTED = "T05", "T02"
REGISTERS = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip", "eflags", "cs")
FRAME = 12  # bytes that an interrupt pushes in ring 0
FIRST_DEVICE, DEVICES = 32, 16  # vectors of IRQ 0 to 15: drivers/chip/pic.h
TABLE = re.compile(r"^IDT= +(\w{8})", re.MULTILINE)
UNWATCHED_INSTRUCTIONS = 20_000  # the same, where watchpoints cannot be used
STOPPED = "T05thread:01;"
NO_MORE = "T05replaylog:begin;thread:01;"
REFUSED = "E22"
GOES = re.compile(r"(?:vCont;)?(?P<how>[cCsS])(?![a-z])")
WRITES = re.compile(r"[MXGP]")
SETS = re.compile(r"[zZ][0-4],")
PORT = re.compile(r"[io] /|sendkey |mouse_")  # commands of QEMU's that do something to the machine
FEATURES = ("ReverseStep+", "ReverseContinue+", "QStartNoAckMode+")


class Server:
    """Serves gdb at one socket until gdb leaves; call `serve` in a thread."""

    def __init__(
        self, history: History, socket_path: Path, front: Path, process: subprocess.Popen[bytes]
    ) -> None:
        self._history = history
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(socket_path))
        self._listener.listen(1)
        self._process = process
        self._front = Stub(front, process)
        self._past: Past | None = None
        self._set: dict[str, str] = {}  # breakpoints, by what takes them away
        self._in_front: dict[str, str] = {}  # those that the front machine has
        self._jumped = ""  # a stop packet, when a command has moved the machine under gdb
        self._final = ""  # the last stop of a front machine that is off
        self._received = b""
        self._acknowledges = True
        self._reads: list[tuple[int, int]] | None = None

    def serve(self) -> None:
        """Answers gdb's packets, one after the other."""
        self._stream, _ = self._listener.accept()
        try:
            while (packet := self._next()) is not None:
                if packet.startswith(ENDS):
                    self._end_talk(packet)
                    return
                try:
                    self._answer(packet)
                except StubError:
                    if self._process.poll() is not None:
                        return
                    self._reply(REFUSED)
        except OSError:
            pass  # gdb has gone, or QEMU, which gdb sees
        finally:
            self._stream.close()
            self.end()

    def _end_talk(self, packet: str) -> None:
        """Lets gdb go. It acknowledges an answer, which must be taken."""
        if packet != "k":
            self._reply("OK")
            self._stream.settimeout(END_SECONDS)
            while self._stream.recv(1 << 10):
                pass

    def end(self) -> None:
        """Ends the machine of the past, if there is one."""
        if self._past is not None:
            self._past.end()
            self._past = None

    # gdb's packets

    def _next(self) -> str | None:
        """The next packet of gdb's; None at its end. A Ctrl-C that comes too late is dropped."""
        while not (match := PACKET.search(self._received)):
            data = self._stream.recv(1 << 16)
            if not data:
                return None
            self._received += data
        self._received = self._received[match.end() :]
        if self._acknowledges:
            self._stream.sendall(b"+")
        return match[1].decode("latin-1")

    def _reply(self, packet: str) -> None:
        self._stream.sendall(framed(packet.encode("latin-1")))

    def _answer(self, packet: str) -> None:
        if packet in ("bs", "bc"):
            self._reply(self._going_back(packet))
        elif GOES.match(packet) and packet != "vCont?":
            self._reply(self._going(packet))
        elif packet.startswith("qRcmd,"):
            self._command(packet, bytes.fromhex(packet[6:]).decode(errors="replace"))
        elif packet.startswith("qSupported"):
            features = self._front.ask(packet).split(";")
            self._reply(";".join(dict.fromkeys([*features, *FEATURES])))
        elif packet.startswith("QStartNoAckMode"):
            self._reply("OK")
            self._acknowledges = False
        elif SETS.match(packet):
            self._reply(self._breakpoint(packet))
        elif WRITES.match(packet):
            self._reply(self._written(packet))
        else:
            if self._reads is not None and packet.startswith("m"):
                address, _, size = packet[1:].partition(",")
                self._reads.append((int(address, 16), int(size, 16)))
            self._reply(self._machine().ask(packet))

    def _machine(self) -> Stub:
        """The one that gdb sees."""
        return self._past.stub if self._past else self._front

    def _count(self) -> int:
        """Where the machine that gdb sees is."""
        return self._past.count if self._past else self._present()

    def _present(self) -> int:
        """Where the front machine is."""
        self._history.present = self._front.count()
        return self._history.present

    def _breakpoint(self, packet: str) -> str:
        """Sets or takes away a breakpoint in the machine that gdb sees."""
        answer = self._machine().ask(packet)
        if answer == "OK":
            undo = "z" + packet[1:]
            known = [self._set] if self._past else [self._set, self._in_front]
            for each in known:
                if packet[0] == "Z":
                    each[undo] = packet
                else:
                    each.pop(undo, None)
        return answer

    def _written(self, packet: str) -> str:
        """A change of memory or registers is part of the run from now on. The past has none."""
        if self._past:
            return REFUSED
        answer = self._front.ask(packet)
        if answer == "OK":
            self._history.edits.append(Edit(self._present(), packet))
        return answer

    # Going on

    def _going(self, packet: str) -> str:
        """Runs or steps; returns the stop packet."""
        if self._jumped:
            return self._jump()
        how = GOES.match(packet)["how"].lower()
        return self._step() if how == "s" else self._goes(how)

    def _step(self) -> str:
        """One instruction. An interrupt that comes before it is handled first, as if it had come
        later: nobody asked for its handler."""
        start = self._place()
        reply = self._goes("s")
        while reply.startswith(TRAPPED) and self._is_interrupted_at(start):
            reply = self._let_return(start)
            if not reply:
                reply = self._goes("s")
        return reply

    def _place(self) -> dict[str, int]:
        """The registers of the machine that gdb sees."""
        return registers_in(self._machine().ask("g"), REGISTERS)

    def _is_interrupted_at(self, start: dict[str, int]) -> bool:
        """Whether an interrupt of a device has come instead of an instruction: what is on the stack
        is where that is, and this is the beginning of a handler."""
        now = self._place()
        is_deeper = start["cs"] & 3 == 3 != now["cs"] & 3 or now["esp"] == start["esp"] - FRAME
        if not is_deeper or now["eip"] == start["eip"]:
            return False
        words = self._machine().ask(f"m{now['esp']:x},8")
        if words != (start["eip"].to_bytes(4, "little") + start["cs"].to_bytes(4, "little")).hex():
            return False
        return now["eip"] in self._handlers()

    def _handlers(self) -> set[int]:
        """Where the handlers of the devices' interrupts begin: Intel SDM volume 3, 6.11."""
        table = TABLE.search(self._machine().monitor("info registers"))
        gates = self._machine().ask(f"m{int(table[1], 16) + FIRST_DEVICE * 8:x},{DEVICES * 8:x}")
        if gates.startswith("E"):
            return set()
        entries = struct.iter_unpack("<HHHH", bytes.fromhex(gates))
        return {low | high << 16 for low, _, _, high in entries}

    def _let_return(self, start: dict[str, int]) -> str:
        """Goes on to where the interrupt came; a stop packet where something else stops it."""
        packet = f"1,{start['eip']:x},1"
        is_new = f"z{packet}" not in self._set
        if is_new:
            self._breakpoint(f"Z{packet}")
        try:
            while True:
                reply = self._goes("c")
                now = self._place() if reply.startswith(TRAPPED) else {}
                if now.get("eip") != start["eip"]:
                    return reply
                if now["esp"] == start["esp"]:
                    return ""
                self._goes("s")  # another task, or another call
        finally:
            if is_new:
                self._breakpoint(f"z{packet}")

    def _goes(self, how: str) -> str:
        """Runs ("c") or steps ("s"); returns the stop packet."""
        while self._past:
            reply = self._past_goes(how)
            if reply:
                return reply
            self._to_front()
            if how == "s":
                break
        return self._front_goes(how)

    def _past_goes(self, how: str) -> str:
        """The machine of the past runs or steps; "" when it is where the front machine is."""
        present = self._history.present
        if self._past.count >= present:
            return ""
        if how == "s":
            return self._past.step()
        begun = self._past.count
        try:
            reply = self._past.run(present, self._is_interrupted)
        except StandstillError:
            self._past = None
            self._replace(begun)
            reply = self._past.run(present, self._is_interrupted)
        if reply.startswith(INTERRUPTED):  # it may not go on: another one takes its place
            self._replace(self._past.count)
        return "" if self._past.count >= present else reply

    def _is_interrupted(self) -> bool:
        """Whether gdb has sent a Ctrl-C."""
        if select.select([self._stream], [], [], 0)[0]:
            self._received += self._stream.recv(1 << 10)
        if INTERRUPT in self._received:
            self._received = self._received.replace(INTERRUPT, b"")
            return True
        return False

    def _to_front(self) -> None:
        """The front machine is the one that gdb sees again, with gdb's breakpoints."""
        self.end()
        gone = [undo for undo in self._in_front if undo not in self._set]
        new = [self._set[undo] for undo in self._set if undo not in self._in_front]
        self._front.ask_all(*gone, *new)
        self._in_front = dict(self._set)

    def _front_goes(self, how: str) -> str:
        if self._final:
            return self._final
        self._front.send(how)
        while (reply := self._front.poll()) is None:
            ready, _, _ = select.select([self._front.stream, self._stream], [], [])
            if self._stream in ready and not self._pass_interrupt():
                raise StubError("gdb has ended")
        self._present()
        if reply.startswith("T03"):
            self._final = reply
        return reply

    def _pass_interrupt(self) -> bool:
        """Ctrl-C goes to QEMU; False when gdb has gone."""
        data = self._stream.recv(1 << 10)
        if INTERRUPT in data:
            self._front.interrupt()
        self._received += data.replace(INTERRUPT, b"").lstrip(b"+")
        return bool(data)

    # Going back

    def _going_back(self, packet: str) -> str:
        """A step back, or on to the last stop at a breakpoint. gdb gets an error as a beginning of
        the run: what it was is told when it is asked for (`monitor past`)."""
        if self._jumped:
            return self._jump()
        now = self._count()
        if packet == "bs":
            return self._stand_at(now - 1) if now else NO_MORE
        watches = [each for each in self._set.values() if not each.startswith(("Z0", "Z1"))]
        found = last_hits(self._history, now, list(self._set.values())) if self._set else []
        if not found:
            self._stand_at(0)
            return NO_MORE
        return self._stand_at(found[-1].count - (1 if watches else 0))

    def _jump(self) -> str:
        """Tells gdb of the jump that a command has made."""
        reply, self._jumped = self._jumped, ""
        return reply

    def _stand_at(self, count: int) -> str:
        """gdb sees the machine as it was at an instruction count."""
        if count >= self._present():
            self._to_front()
            return self._final or STOPPED
        if self._past is None or self._past.count > count:
            self._replace(count)
        else:
            past, self._past = self._past, None  # it may end on the way
            try:
                past.stub.ask_all(*self._set)
                past.go(count)
                past.stub.ask_all(*self._set.values())
                self._past = past
            except StandstillError:
                self._replace(count)
        return STOPPED

    def _replace(self, count: int) -> None:
        """Another machine becomes the one of the past."""
        past = self._history.at(count)
        self.end()
        self._past = past
        past.stub.ask_all(*self._set.values())

    # Commands

    def _command(self, packet: str, text: str) -> None:
        """One of QEMU's monitor, or of ours."""
        if text.startswith(ASKED):
            printed = json.dumps(self._ask(json.loads(text.removeprefix(ASKED)))) + "\n"
        elif self._past and PORT.match(text):
            printed = "The past cannot be changed.\n"
        else:
            printed = self._machine().ask_all(packet)[0]
            if PORT.match(text):
                self._history.edits.append(Edit(self._present(), packet))
        for answer in monitor_answers(printed):
            self._reply(answer)

    def _ask(self, question: dict[str, Any]) -> Any:
        """Does what a command of gdb's asks; an error is told in words."""
        try:
            return getattr(self, f"do_{question.pop('do')}")(**question)
        except StubError as error:
            return {"error": str(error)}

    def do_where(self) -> dict[str, int]:
        """Where the machine is in its run, and how far the run has come."""
        return {"now": self._count(), "present": self._present()}

    def do_seconds(self) -> float:
        """Guest time since power-on."""
        rtc = json.loads(self._machine().monitor("qom-get /machine rtc-time"))
        ticks = self._machine().monitor(f"i /w {PM_TIMER_PORT:#x}").split("=")[1]
        return seconds_by(rtc_seconds(rtc, self._history.clock), int(ticks, 16))

    def do_told(self, kind: str) -> str:
        """What the machine has written up to where it is, the end of it: to its serial line
        ("serial"), or QEMU about exceptions ("interrupts")."""
        return self._history.told(self._count(), kind)[-TOLD:]

    def do_advance(self, end: int, places: list[list[int]]) -> dict[str, int]:
        """Goes on up to a count, or to the first change of memory at these linear addresses and
        sizes: `since` is the last count at which it had not changed. Without a word to gdb."""
        watches = [f"2,{address:x},{size:x}" for address, size in places]
        begun = self._past.count
        self._past.stub.ask_all(*(f"Z{each}" for each in watches))
        try:
            found = self._advance(end, places, LOOK_INSTRUCTIONS)
        except StandstillError:
            self._past = None
            self._replace(begun)
            return self._advance(end, places, UNWATCHED_INSTRUCTIONS)
        self._past.stub.ask_all(*(f"z{each}" for each in watches))
        return found

    def _advance(self, end: int, places: list[list[int]], look: int) -> dict[str, int]:
        past = self._past
        reads = [f"m{address:x},{size:x}" for address, size in places]
        known, since = past.stub.ask_all(*reads), past.count
        while past.count < end:
            past.run_watched(min(end, past.count + look))
            if past.stub.ask_all(*reads) != known:
                break
            since = past.count
        return {"now": past.count, "since": since}

    def do_jump(self, count: int) -> dict:
        """Goes to an instruction count. gdb learns of it by its next step, forward or back."""
        self._jumped = self._stand_at(count)
        return {}

    def do_look(self, count: int) -> dict:
        """The same at once, without a word to gdb."""
        self._stand_at(count)
        return {"now": self._count()}

    def do_hits(self, addresses: list[int], before: int) -> list:
        """The last stops at addresses: [count, registers] for each."""
        packets = [f"Z1,{each:x},1" for each in addresses]
        found = last_hits(self._history, self._bounded(before), packets)
        return [[each.count, each.registers] for each in found[-2000:]]

    def do_times(self, address: int, before: int, most: int) -> int:
        """How often an address was reached."""
        return count_hits(self._history, self._bounded(before), [f"Z1,{address:x},1"], most)

    def do_change(self, physical: int, size: int, linear: list[int], before: int) -> dict:
        """What gave memory the value that it has now."""
        before = self._bounded(before)
        value = self._value(physical, size)
        change = last_change(self._history, before, (physical, size), linear, value)
        if change is None:
            return {"way": "none"}
        return {"count": change.count, "way": change.way, "old": change.old.hex()}

    def _value(self, physical: int, size: int) -> bytes:
        """Bytes of physical memory, of the machine that gdb sees."""
        on, off = PHYSICAL
        return bytes.fromhex(self._machine().ask_all(on, f"m{physical:x},{size:x}", off)[1])

    def _bounded(self, before: int) -> int:
        return min(before, self._present())

    def do_reads(self, on: bool) -> list:
        """Begins to note what gdb reads, or ends it, and returns the addresses and sizes."""
        found, self._reads = self._reads or [], [] if on else None
        return found


@contextmanager
def serving(
    history: History, socket_path: Path, front: Path, process: subprocess.Popen[bytes]
) -> Iterator[None]:
    """Serves gdb in a thread. `front` is the socket of the front machine's stub."""
    server = Server(history, socket_path, front, process)
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield
    finally:
        server.end()
