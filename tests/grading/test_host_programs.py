"""Programs of the graders for the host: which objects are compiled, and which are kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from labs.tools.grading import host_program

SOURCE = "part/one.c"


@pytest.fixture
def reference(tmp_path, monkeypatch) -> Path:
    """A repository with one source, which includes one header."""
    place = tmp_path / "reference"
    for path, text in (
        (SOURCE, '#include "part/one.h"\nint one = ONE;\n'),
        ("part/one.h", "enum { ONE = 1 };\n"),
        ("tests/host/rename.h", ""),
    ):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    monkeypatch.setattr(host_program, "ROOT", place)
    return place


def own_object() -> tuple[bytes, int]:
    """The object as another process would get it, and when it was made."""
    host_program.own_object.cache_clear()
    data = host_program.own_object(SOURCE, host_program.AS_KERNEL)
    return data, host_program.place_of(SOURCE, host_program.AS_KERNEL).stat().st_mtime_ns


def test_an_object_is_kept_until_what_it_includes_changes(reference):
    first = own_object()
    assert own_object() == first
    header = reference / "part/one.h"
    header.write_text("enum { ONE = 2 };\n")
    os.utime(header, ns=(first[1], first[1]))
    assert own_object()[0] != first[0]


@pytest.mark.parametrize("changed", [SOURCE, "part/one.h"])
def test_a_tree_that_differs_has_objects_of_its_own(reference, tmp_path, changed):
    tree = tmp_path / "tree"
    shutil.copytree(reference, tree)
    host_program.own_object.cache_clear()
    assert host_program.is_own(tree, SOURCE)
    host_program.is_same.cache_clear()
    with (tree / changed).open("a") as file:
        file.write("static int two __attribute__((used)) = 2;\n")
    assert not host_program.is_own(tree, SOURCE)
    mine = host_program.object_of(tree, SOURCE, False)
    assert b"two" in mine
    assert b"two" not in host_program.object_of(reference, SOURCE, False)
