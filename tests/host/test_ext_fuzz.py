"""Damaged images, mounted for writing: nothing crashes, hangs, or is lost. More: `make fuzz`."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from labs.storage.fuzz import VARIANTS, build_random, image_for
from labs.tools.machine.bounded import run_within

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FOUND = sorted((Path(__file__).parent / "fuzz" / "found").glob("*"))
COUNT = 400
SEED = 1
SECONDS = 500


@pytest.fixture(scope="module")
def program():
    return build_random()


def run(program, image, *words, **environment):
    done = run_within(
        [str(program), *map(str, words)],
        env={**os.environ, "FUZZ_IMAGE": str(image), **environment},
        capture_output=True,
        text=True,
        seconds=SECONDS,
        check=False,
    )
    said = done.stdout.splitlines()
    assert done.returncode == 0, f"{said[-1:]}: {done.stderr}"
    return said


@pytest.mark.parametrize("name", VARIANTS)
def test_random_damage(program, tmp_path, name):
    """A seeded run; the input that ends it can be had alone: random SEED 1 NUMBER."""
    image = image_for(name, tmp_path)
    said = run(program, image, "random", SEED, COUNT)
    assert [line for line in said if re.fullmatch(r"input \d+", line)] == said
    assert len(said) == COUNT
    if FOUND:
        assert len(run(program, image, "files", *FOUND)) == len(FOUND)


def test_random_damage_of_attributes(program, tmp_path):
    """The same where inodes and blocks have extended attributes before they are damaged."""
    image = image_for("ext4", tmp_path)
    assert len(run(program, image, "random", SEED, COUNT, FUZZ_ATTRIBUTES="1")) == COUNT
