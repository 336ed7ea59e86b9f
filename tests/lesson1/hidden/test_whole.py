"""All exercises of lesson 1 in one kernel: what the handout shows under "What you will see", on
machines that nobody can know before."""

from __future__ import annotations

from random import Random

import pytest

from tests.lesson1.frames import Code, require_lines, walk
from tests.lesson1.memory import AVAILABLE, Range, kibibytes, loader_ranges
from tests.lesson1.picture import expect_said
from tests.lesson1.support import KERNEL, KERNEL_BASE
from tests.support.remote import stopped


def line_of(each: Range) -> str:
    """How the kernel shows a range."""
    kind = "usable" if each.type == AVAILABLE else "reserved"
    return f"memory: 0x{each.base:09x} - 0x{each.base + each.length - 1:09x}  {kind}"


@pytest.mark.exercise("1.0", points=1)
def test_own_loader_and_kernel(lab):
    """A boot from the disk to the prompt: the memory map and the loader's name are the ones in
    memory."""
    memory = Random(lab.seed).randrange(17, 300)
    with stopped(lab, "kmain", script="memory", boot="disk", memory=memory) as guest:
        information = guest.read_word(guest.registers()["esp"] + 8)
        told = loader_ranges(guest, information, base=KERNEL_BASE)
        said = guest.finish()
    shown = [line_of(each) for each in sorted(told, key=lambda each: each.base)]
    expect_said(
        said,
        r"Apprentice boot: kernel of \d+ bytes at LBA \d+",
        *shown,
        f"memory: {kibibytes(told)} KiB usable",
        r"boot: loaded by Apprentice boot",
        r"> memory",
        *shown,
        rf"memory: \d+ of {kibibytes(told)} KiB free",
    )


@pytest.mark.exercise("1.0", points=1)
def test_panic_with_a_backtrace(lab):
    """A panic's backtrace: its frames are the ones in memory."""
    memory = Random(lab.seed).randrange(17, 300)
    code = Code(lab.build(KERNEL))
    with stopped(lab, "backtrace", script="panic", boot="disk", memory=memory) as guest:
        returns = walk(guest, guest.read_word(guest.registers()["esp"] + 4))
        said = guest.finish()
    names = [name for each in returns for name in code.names[code.function(each - 1)]]
    wanted = ("monitor_execute", "kmain")
    assert [name for name in names if name in wanted] == list(wanted), f"frames of {names}"
    expect_said(said, "PANIC: asked for by the command line", r"backtrace: 0x\w+ run_panic\+")
    require_lines(code, said, returns)
