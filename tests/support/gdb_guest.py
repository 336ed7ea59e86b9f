"""Starts `make gdb` for tests, on a kernel that runs programs: fixtures, and what reads answers.

Probes are those of tests/support/gdb_session.py.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from labs.tools.guest.initramfs import archive
from labs.tools.guest.programs import COMMAND, busybox, guest_root
from labs.tools.machine.bounded import run_within
from labs.tools.machine.qemu_command import Config
from tests.support.building import make
from tests.support.gdb_session import PRELUDE, ROOT

USER = ROOT / "build" / "user"
SECONDS = 600
LAUNCH = """\
import pickle, sys
from pathlib import Path
from labs.tools.debugging.debug import debug
config = pickle.loads(Path(sys.argv[1]).read_bytes())
sys.exit(debug(config, Path(sys.argv[2]), user=Path(sys.argv[3])))
"""


def guest_probe(
    directory: Path,
    code: str,
    lesson: int | str = 4,
    programs: Path | None = None,
    *,
    core: bool = False,
    shell: str | None = None,
    **fields: object,
) -> dict[str, Any]:
    """Runs a probe on a lesson's kernel (`core`: without the breadth) with the course's programs,
    all of which are built, and with those of the folder `programs`. `shell` is a script for
    busybox. `fields` are those of Config. Returns what it put into `said`."""
    make(f"LESSON={lesson}", f"BREADTH={'no' if core else 'yes'}", "image-direct", "user-programs")
    files, answer, file = (directory / name for name in ("initramfs", "said.json", "probe.py"))
    box = None if shell is None else busybox()
    root = guest_root(USER / "bin", box, [programs] if programs else [], shell)
    files.write_bytes(archive(root))
    folder = lesson if lesson == "storage" else f"lesson{lesson}"
    kernel = ROOT / f"build/{folder}{'-core' if core else ''}/kernel.elf"
    config = Config(boot="direct", kernel=kernel, initramfs=files, **fields)
    (directory / "config").write_bytes(pickle.dumps(config))
    file.write_text(PRELUDE.format(path=str(answer)) + textwrap.dedent(code) + "\nsaw()\n")
    done = run_within(
        [sys.executable, "-c", LAUNCH, str(directory / "config"), str(file), str(USER)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        seconds=SECONDS,
        check=False,
    )
    assert answer.exists(), done.stdout + done.stderr
    return json.loads(answer.read_text())


def shell(text: str, **settings: str) -> dict[str, object]:
    """Fields for a probe whose guest runs a script in busybox's shell."""
    return {"shell": text, "settings": (("cmd", f"/bin/sh /{COMMAND}"), *settings.items())}


def command(text: str, **settings: str) -> dict[str, object]:
    """Fields of a machine that runs a command in the guest's shell."""
    return {"settings": (("cmd", text), *settings.items())}


def rows(table: str) -> list[list[str]]:
    """The cells of a table, without its heads; an empty cell is left out."""
    return [re.split(r"  +", line.strip()) for line in table.splitlines()[1:]]


def by_name(table: str, name: str) -> list[str]:
    """The one row of a table that has this cell."""
    found = [row for row in rows(table) if name in row]
    assert len(found) == 1, table
    return found[0]


def names_of(backtrace: str) -> list[str]:
    """The functions of a backtrace; what gdb says between < > is one, too."""
    calls = re.findall(r"^#\d+ +(?:0x\w+ in )?(<.*?>|[\w?]+)", backtrace, re.MULTILINE)
    return [name.strip() for name in calls]


def in_order(wanted: list[str], found: list[str]) -> bool:
    """Whether all of these names are among the others, in this order."""
    rest = iter(found)
    return all(name in rest for name in wanted)
