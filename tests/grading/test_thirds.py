"""Points follow the parts of an exercise: who leaves out a third of it loses a quarter of its
points at least, with the points that the tests have today. What fails then is in
tests/mutants/thirds.txt, which `make thirds` writes."""

from __future__ import annotations

import pytest

from labs.tools.course.exercises import by_id
from labs.tools.proving.prove_thirds import (
    FILE,
    LEAST,
    MOST,
    MUST_LOSE,
    Piece,
    body_without,
    choices,
    files_without,
    functions,
    lost,
    named,
    names_of,
    part_of,
    quiet,
    read,
    write,
)

BODY = """/* Helps. */
static int half(int a)
{
	return a / 2;
}

int pick(int (*of)(int), struct a *b)
{
	return half(of(1));
}

/* Puts. */
void put(int a)
{
	half(a);
}
"""
STUB = """#include "missing.h"

int pick(int (*of)(int), struct a *b)
{
	exercise_missing("1.1");
}

void put(int a)
{
	if (a)
		exercise_missing("1.1");
}
"""


@pytest.mark.parametrize("known", read().values(), ids=lambda known: known.name)
def test_a_third_costs_a_quarter(known):
    """What is left out is about a third of the exercise, as it is today."""
    assert LEAST <= part_of(by_id(known.exercise), named(known)) <= MOST
    assert lost(known) >= MUST_LOSE


def test_what_is_kept_is_what_is_written(tmp_path):
    """Nothing is lost on the way."""
    write(read(), tmp_path / "thirds")
    assert (tmp_path / "thirds").read_text() == FILE.read_text()


def test_functions_are_found():
    """With those that have functions for parameters."""
    found = functions(BODY)
    assert [each.name for each in found] == ["half", "pick", "put"]
    assert [each.kind for each in found] == ["static int ", "int ", "void "]
    assert BODY[found[2].start :] == "void put(int a)\n{\n\thalf(a);\n}\n"


def test_a_function_is_left_out():
    """The blank is in its place, and returns 0 or nothing."""
    text = body_without(BODY, quiet(STUB, ""), {"pick"})
    assert text.startswith('#include "missing.h"\n')
    assert "struct a *b)\n{\n\treturn 0;\n}\n" in text and "half(a);" in text
    assert "\tif (a)\n\t\treturn;\n" in quiet(STUB, "")


@pytest.mark.parametrize(
    "kind, nothing",
    [("int64_t ", " 0"), ("void ", ""), ("void *", " 0"), ("struct a ", " (struct a){ 0 }")],
)
def test_a_blank_within_a_function(kind, nothing):
    """What it returns is what the function returns."""
    before = f"int other(void)\n{{\n}}\n\n{kind}call(int a,\n\t int b)\n{{\n\t"
    assert quiet('exercise_missing("S9");\n', before) == f"return{nothing};\n"


@pytest.mark.parametrize("number", ["1.3", "2.4", "4.5", "5.2", "S9"])
def test_every_third_is_a_third(number):
    """Each choice is one, and changes the files."""
    assert choices(number)
    for left in choices(number):
        assert LEAST <= part_of(by_id(number), left) <= MOST
        assert set(files_without(by_id(number), left)) == {piece.path for piece in left}


def test_helpers_go_along():
    """2.4: nothing else asks in_service, so it is a part of is_spurious."""
    piece = Piece("drivers/clock/pic.c", 0, "is_spurious")
    text = files_without(by_id("2.4"), [piece])["drivers/clock/pic.c"].decode()
    assert names_of([piece]) == ("is_spurious",) and "in_service(" not in text
