"""Asks the server between gdb and QEMU (labs/tools/debugging/past/server.py)."""

from __future__ import annotations

import json
from typing import Any

import gdb

from labs.tools.debugging.gdb.commands import Refusal


def ask(what: str, **arguments: object) -> Any:
    """Asks the server. Raises Refusal with its words."""
    text = json.dumps({"do": what, **arguments})
    try:
        answer = json.loads(gdb.execute(f"monitor past {text}", to_string=True))
    except json.JSONDecodeError as error:
        raise Refusal("this machine has no past: start with make gdb or make replay") from error
    if isinstance(answer, dict) and "error" in answer:
        raise Refusal(answer["error"])
    return answer


def here() -> int:
    """The instruction count of where the machine is."""
    return ask("where")["now"]


def is_past() -> bool:
    """Whether gdb sees the machine as it was before."""
    where = ask("where")
    return where["now"] < where["present"]
