"""Breakpoints in the guest's programs, also before they are loaded: `break sh:main`."""

from __future__ import annotations

import re
from contextlib import suppress

import gdb

from labs.tools.debugging.gdb.commands import Refusal, command
from labs.tools.debugging.gdb.programs import PROGRAMS, path_of
from labs.tools.debugging.gdb.tasks import current_task

IF = re.compile(r"(?:^| )if\b")


class UserBreakpoint(gdb.Breakpoint):
    """Stops in one program only: the others have their code at the same addresses."""

    def __init__(self, path: str, address: int, temporary: bool = False) -> None:
        super().__init__(f"*{address:#x}", temporary=temporary)
        self._path = path

    def stop(self) -> bool:
        """Whether the program that has come here is the one that is meant."""
        with suppress(gdb.error, Refusal):
            return path_of(current_task()) == self._path
        return False


class Break(gdb.Command):
    """Sets a breakpoint: break PLACE [if CONDITION], where PLACE is as in gdb, or PROGRAM:PLACE.
    That is in a program of the guest, whether it runs now or later, and in no other one."""

    def __init__(self, name: str, temporary: bool) -> None:
        super().__init__(name, gdb.COMMAND_BREAKPOINTS, gdb.COMPLETE_LOCATION)
        self._temporary = temporary

    def invoke(self, words: str, _from_tty: bool) -> None:
        """Takes the place of gdb's own command, which knows no programs."""
        found = IF.search(words)
        place, condition = (words[: found.start()], words[found.end() :]) if found else (words, "")
        try:
            made = self._set(place.strip() or "*$pc")
            if condition:
                made.condition = condition
        except (Refusal, gdb.error) as reason:
            raise gdb.GdbError(str(reason)) from reason

    def _set(self, place: str) -> gdb.Breakpoint:
        program, colon, rest = place.partition(":")
        if colon and PROGRAMS.has(program):
            path = PROGRAMS.find(program)
            return UserBreakpoint(path, address_in(path, rest), self._temporary)
        gdb.decode_line(place)  # an error for what is not there
        return gdb.Breakpoint(place, temporary=self._temporary)


def address_in(path: str, place: str) -> int:
    """The address of a function or a line of a program. Its symbols are gdb's from now on. Raises
    Refusal, gdb.error."""
    PROGRAMS.show(path)
    if re.fullmatch(r"\w+", place):
        return PROGRAMS.address(path, place)
    locations = gdb.decode_line(place)[1] or ()
    if not locations:
        raise Refusal(f"{path} has no {place}")
    return locations[0].pc


@command("user-break", "PROGRAM [FUNCTION]")
def user_break(program: str, function: str = "main") -> str:
    """A breakpoint at the beginning of a function of a program, as break PROGRAM:FUNCTION sets."""
    path = PROGRAMS.find(program)
    address = address_in(path, function)
    UserBreakpoint(path, address)
    return f"It stops in {path} at {function} ({address:#010x}), and in no other program."


Break("break", temporary=False)
Break("tbreak", temporary=True)
