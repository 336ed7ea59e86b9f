"""The laboratories' static Linux programs for i386, which our kernel and Linux's can both run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

COMPILER = ("i686-linux-gnu-gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-static", "-no-pie")


def linux_program(sources: Path, program: Path) -> Path:
    """`program`, compiled of all C files in the folder `sources` if a file there is newer. Several
    processes may ask at once. Raises CalledProcessError when the compiler refuses them."""
    files = sorted(sources.glob("*.[ch]"))
    newest = max(path.stat().st_mtime for path in files)
    if not program.exists() or program.stat().st_mtime < newest:
        program.parent.mkdir(parents=True, exist_ok=True)
        new = program.with_name(f"{program.name}.{os.getpid()}")
        code = [str(path) for path in files if path.suffix == ".c"]
        subprocess.run([*COMPILER, *code, "-o", str(new)], check=True)
        new.replace(program)
    return program
