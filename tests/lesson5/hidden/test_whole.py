"""All exercises of lesson 5 in one kernel: programs together, on machines of two sizes."""

from __future__ import annotations

import random
import string

import pytest

from tests.lesson3.support import with_files
from tests.lesson4.pipes import WHOLE, require_pipe
from tests.lesson4.support import fail, program
from tests.lesson5.support import USED, require_sound
from tests.support.remote import stopped

ROUNDS = 4  # caches and tables grow at first


@pytest.mark.exercise("5.0", points=2)
@pytest.mark.parametrize("memory", [32, 64])
def test_pipe_of_three(lab, memory):
    """Four programs and four pipes: the text comes through, and the audit finds nothing."""
    require_pipe(lab, "{}; audit", "audit: 0 contradictions", memory=memory)


@pytest.mark.exercise("5.0", points=1)
def test_zones_after_programs(lab):
    """Page array and zones after programs, read from outside: they agree, and the same programs
    once more leave as many free pages."""
    text = "".join(random.Random(lab.seed).choices(string.ascii_lowercase, k=20))
    files = with_files(lab, {"bin/whole": program(WHOLE)})
    script, free = "; ".join([f"run /bin/whole {text}; audit"] * ROUNDS), []
    with stopped(lab, "memory_audit", script, **files) as guest:
        for number in range(1, ROUNDS + 1):
            seen = require_sound(guest, f"when the programs have run {number} times")
            if not seen.count(USED):
                fail("no frame is PAGE_USED: who has the kernel's own pages?")
            free.append(sum(zone.free for zone in seen.zones))
            guest.step()
            if number < ROUNDS:
                guest.run_to("memory_audit")
    if free[-1] != free[-2]:
        fail(f"the programs leave {free[-2]} free pages, and the same once more {free[-1]}")
