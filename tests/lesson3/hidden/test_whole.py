"""All exercises of lesson 3 in one kernel: it runs programs."""

from __future__ import annotations

import random
import struct

import pytest

from tests.lesson1.picture import expect
from tests.lesson3.support import with_files
from tests.lesson4.support import program

WHOLE = "tests/lesson3/hidden/whole.c"
SECRET = struct.pack("<I", 0x5EC4E75A)


def whole(secret: int) -> bytes:
    """The program with another word in its file, which is part of the sum that it prints."""
    file = program(WHOLE)
    assert file.count(SECRET) == 1
    return file.replace(SECRET, struct.pack("<I", secret))


@pytest.mark.exercise("3.0", points=1)
def test_programs_run(lab):
    """A program with arguments, twice: it prints, asks for memory, and passes a bad pointer."""
    seeded = random.Random(lab.seed)
    first, second, secret = (seeded.randrange(1, 1 << 20) for _ in range(3))
    files = with_files(lab, {"bin/whole": whole(secret)})
    expect(
        lab.run(f"run /bin/whole {first} {second}; run /bin/whole {second} {second}", **files),
        f"sum {first + second + secret}",
        "heap 1",
        "fault -14",
        f"sum {2 * second + secret}",
    )


@pytest.mark.exercise("3.0", points=1)
def test_bad_program_is_refused(lab):
    """A text file as a program: refused, and the next program runs."""
    secret = random.Random(lab.seed).randrange(1, 1 << 20)
    files = with_files(lab, {"bin/whole": whole(secret), "bin/text": b"no program\n" * 9})
    said = lab.run("run /bin/text; run /bin/whole 1 2", **files)
    expect(said, "/bin/text: ENOEXEC|.*/bin/text: ENOEXEC", f"sum {3 + secret}")
