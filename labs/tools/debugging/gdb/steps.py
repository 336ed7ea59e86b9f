"""Does again what a test did to its machine, up to the last time that the machine ran.

labs/tools/debugging/steps.py says what steps there are, and writes them to a file.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import gdb

from labs.tools.debugging.gdb.processor import quiet


def follow(path: Path) -> None:
    """Does the steps of a file, without a word. The breakpoints that the test had last stay."""
    with suppress(gdb.error):  # new in gdb 12
        quiet("set suppress-cli-notifications on")
    do_steps(json.loads(path.read_text()))
    with suppress(gdb.error):
        quiet("set suppress-cli-notifications off")


def do_steps(steps: list[dict]) -> None:
    """Does one after the other."""
    breakpoints: dict[int, gdb.Breakpoint] = {}
    for step in steps:
        kind, address = step["kind"], step["address"]
        if kind == "break":
            quiet(f"hbreak *{address:#x}")
            breakpoints[address] = gdb.breakpoints()[-1]
        elif kind == "forget":
            breakpoints.pop(address).delete()
        elif kind == "set":
            set_registers(step["values"])
        elif kind == "write":
            gdb.selected_inferior().write_memory(address, bytes.fromhex(step["data"]))
        elif kind == "monitor":
            quiet(f"monitor {step['data']}")
        else:
            quiet("stepi" if kind == "step" else "continue")


def set_registers(values: dict[str, int]) -> None:
    """Changes those that are different: a selector that is written loads its descriptor. EIP comes
    first: in an inlined function gdb computes ESP, and refuses to change it."""
    for name, value in sorted(values.items(), key=lambda each: each[0] != "eip"):
        if int(gdb.parse_and_eval(f"(unsigned)${name}")) & 0xFFFFFFFF != value:
            quiet(f"set ${name} = {value:#x}")
