"""Exercise 1.2, the first instructions: do they come to kmain, with what the loader gave?"""

from __future__ import annotations

from random import Random

import pytest

from tests.remote import stopped


@pytest.mark.exercise("1.2", points=1, gate=True)
def test_kmain_is_reached(lab):
    """From _start, through boot/paging.asm, to kmain."""
    with stopped(lab, "_start") as guest:
        guest.run_to("kmain", why="_start was reached; see boot/entry.asm")


@pytest.mark.exercise("1.2", points=2)
def test_arguments(lab):
    """kmain(magic, information) gets what was in EAX and EBX at _start."""
    random = Random(lab.seed)
    with stopped(lab, "_start") as guest:
        guest.set(eax=random.getrandbits(32), ebx=random.getrandbits(32))
        before = guest.registers()
        guest.run_to("kmain")
        stack = guest.registers()["esp"]
        magic, information = guest.read_word(stack + 4), guest.read_word(stack + 8)
    assert magic == before["eax"], (
        f"magic is {magic:#x} and EAX was {before['eax']:#x}: save it before you use EAX, and not "
        "where you clear memory"
    )
    assert information == before["ebx"], (
        f"information is {information:#x} and EBX was {before['ebx']:#x}; the last argument is "
        "pushed first"
    )
