"""Where members of the kernel's structures are, by its headers and the compiler: a test that looks
at them from outside has that from nothing that the kernel under test says."""

from __future__ import annotations

import struct
from functools import cache

from tests.lesson4.support import FLAGS, run_tool, tool, workshop

HEADERS = (
    *("kernel/process/process.h", "kernel/task/lock.h", "kernel/task/sched.h"),
    *("kernel/task/timer.h", "kernel/task/wait.h"),
)


@cache
def layout(structure: str, *members: str) -> dict[str, int]:
    """The offset of each member of a structure, by its last name, and "size"."""
    own = [f"__builtin_offsetof(struct {structure}, {each})" for each in members]
    text = "".join(f'#include "{each}"\n' for each in HEADERS)
    text += f"const unsigned layout[] = {{ {', '.join([*own, f'sizeof(struct {structure})'])} }};\n"
    base = workshop() / f"layout-{structure}-{len(members)}"
    source, target, image = (base.with_suffix(each) for each in (".c", ".o", ".bin"))
    source.write_text(text)
    run_tool(*tool("cc"), *FLAGS, "-I.", "-c", str(source), "-o", str(target))
    run_tool(*tool("objcopy"), "-O", "binary", "-j", ".rodata", str(target), str(image))
    words = struct.unpack(f"<{len(own) + 1}I", image.read_bytes())
    names = [each.rpartition(".")[2] for each in members]
    return dict(zip([*names, "size"], words, strict=True))
