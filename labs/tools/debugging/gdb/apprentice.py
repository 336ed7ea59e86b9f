"""gdb for Apprentice: `make gdb` loads this file; debug.py next to it says where the machine is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
# labs.tools.machine.explain names a class of this module in its type hints, and gdb's Python has
# not what the module needs.
sys.modules.setdefault("labs.tools.machine.symbols", SimpleNamespace(Symbols=object))

import labs.tools.debugging.gdb.breakpoints  # noqa: E402
import labs.tools.debugging.gdb.controller_commands  # noqa: E402
import labs.tools.debugging.gdb.descriptor_commands  # noqa: E402
import labs.tools.debugging.gdb.ext_commands  # noqa: E402
import labs.tools.debugging.gdb.kernel_commands  # noqa: E402
import labs.tools.debugging.gdb.machine_commands  # noqa: E402
import labs.tools.debugging.gdb.memory_commands  # noqa: E402
import labs.tools.debugging.gdb.past_commands  # noqa: E402
import labs.tools.debugging.gdb.process_commands  # noqa: E402
import labs.tools.debugging.gdb.scheduler_commands  # noqa: E402
import labs.tools.debugging.gdb.space_commands  # noqa: E402
import labs.tools.debugging.gdb.storage_commands  # noqa: E402
import labs.tools.debugging.gdb.syscall_commands  # noqa: E402
import labs.tools.debugging.gdb.task_commands  # noqa: E402
import labs.tools.debugging.gdb.waiting_commands  # noqa: E402, F401
from labs.tools.debugging.gdb.session import SESSION  # noqa: E402
from labs.tools.debugging.gdb.unwinding import install  # noqa: E402

install()
if directory := os.environ.get("APPRENTICE_SESSION"):
    SESSION.connect(Path(directory))
