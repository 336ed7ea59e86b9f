"""gdb for Apprentice: `make gdb` loads this file. labs/tools/debug.py says where the machine is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
# labs.tools.explain names a class of this module in its type hints, and gdb's Python has not what
# the module needs.
sys.modules.setdefault("labs.tools.symbols", SimpleNamespace(Symbols=object))

import labs.tools.gdb.descriptor_commands  # noqa: E402
import labs.tools.gdb.kernel_commands  # noqa: E402
import labs.tools.gdb.machine_commands  # noqa: E402
import labs.tools.gdb.process_commands  # noqa: E402
import labs.tools.gdb.programs  # noqa: E402
import labs.tools.gdb.scheduler_commands  # noqa: E402
import labs.tools.gdb.syscall_commands  # noqa: E402
import labs.tools.gdb.task_commands  # noqa: E402
import labs.tools.gdb.waiting_commands  # noqa: E402, F401
from labs.tools.gdb.session import SESSION  # noqa: E402
from labs.tools.gdb.unwinding import install  # noqa: E402

install()
if directory := os.environ.get("APPRENTICE_SESSION"):
    SESSION.connect(Path(directory))
