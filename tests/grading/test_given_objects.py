"""Object code in students' trees: none of it is the solution of a later exercise."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

from labs.tools.course import student_tree
from labs.tools.course.exercises import Exercise, lessons, load
from labs.tools.grading.grade import build_reference, graded
from labs.tools.grading.grade_report import text_report, total
from labs.tools.grading.graded_tree import handout_files

ROOT = Path(__file__).resolve().parents[2]
COPIED = 20  # bytes in a row that two ways to do a thing may have in common by chance
ABSOLUTE, RELATIVE, ABSOLUTE_16 = 1, 2, 20  # kinds of relocation


def given(lesson: int) -> list[str]:
    """The sources whose objects a lesson's tree has."""
    return sorted(student_tree.given_as_objects(lesson, ROOT))


def stand_ins(lesson: int) -> list[str]:
    """The same, as they are in the folder of their stand-ins: pytest collects tests without making
    trees, and a test compares both."""
    place = ROOT / student_tree.GIVEN / f"lesson{lesson}"
    found = (path for path in place.rglob("*") if path.suffix in (".c", ".asm"))
    return sorted(path.relative_to(place).as_posix() for path in found)


OBJECTS = [(lesson, path) for lesson in lessons() for path in stand_ins(lesson)]
LATER = [
    pytest.param(lesson, path, exercise, id=f"lesson{lesson}-{Path(path).name}-{exercise.id}")
    for lesson, path in OBJECTS
    for exercise in load()
    if exercise.lesson > lesson and path in exercise.files
]


@pytest.mark.parametrize("lesson", lessons())
def test_every_object_of_a_tree_is_known(lesson):
    """Nothing else that was built is in a tree."""
    tree = student_tree.contents(lesson)
    built = [path for path, data in tree.items() if data[:4] == b"\x7fELF" or path.endswith(".o")]
    assert built == [f"{path}.o" for path in given(lesson)]
    assert stand_ins(lesson) == given(lesson)


@pytest.mark.parametrize(("lesson", "path"), OBJECTS)
def test_object_is_not_the_reference(build, lesson, path):
    """It has no piece of the machine code that the finished exercise has."""
    reference = b"".join(section_bytes(build(f"build/objects/{path}.o").read_bytes()))
    pieces = {reference[i : i + COPIED] for i in range(len(reference) - COPIED + 1)}
    for data in section_bytes(student_tree.object_code(path, lesson, ROOT)):
        assert not any(data[i : i + COPIED] in pieces for i in range(len(data) - COPIED + 1))


def section_bytes(data: bytes) -> Iterator[bytes]:
    """What an object puts into memory."""
    for section in ELFFile(io.BytesIO(data)).iter_sections():
        if section["sh_flags"] & 2 and section["sh_type"] == "SHT_PROGBITS":
            yield section.data()


def test_a_file_without_a_stand_in_is_refused():
    with pytest.raises(student_tree.TreeError, match=r"its object would be the solution\. Write"):
        student_tree.object_code("boot/paging.asm", 2, ROOT)


# ---- disassembled, and handed in -----------------------------------------------------------------


def disassembled(data: bytes) -> str:
    """An object as a source for NASM that makes the same object again: its bytes, with names where
    the linker puts addresses."""
    elf = ELFFile(io.BytesIO(data))
    sections = {
        i: s for i, s in enumerate(elf.iter_sections()) if s["sh_flags"] & 2 and s.data_size
    }
    symbols = list(elf.get_section_by_name(".symtab").iter_symbols())
    lines = [f"extern {s.name}" for s in symbols if s.name and s["st_shndx"] == "SHN_UNDEF"]
    for index, section in sections.items():
        own = [(s["st_value"], s.name) for s in symbols if s.name and s["st_shndx"] == index]
        lines += [*(f"global {name}" for _, name in own), f"section {section.name}"]
        lines += [f"\talign {section['sh_addralign']}", f"section_{index}:"]
        lines += list(pieces_of(elf, index, section, symbols, own))
    return "\n".join(lines) + "\n"


def pieces_of(elf, index, section, symbols, own) -> Iterator[str]:
    """The lines of a section: byte by byte, with labels and relocations."""
    places = relocations(elf, index)
    data, at = section.data(), 0
    while at < len(data):
        yield from (f"{name}:" for place, name in own if place == at)
        if at not in places:
            yield f"\tdb {data[at]:#x}"
            at += 1
            continue
        kind, symbol = places[at]
        width = 2 if kind == ABSOLUTE_16 else 4
        addend = int.from_bytes(data[at : at + width], "little", signed=True)
        name = symbols[symbol].name or f"section_{symbols[symbol]['st_shndx']}"
        here = " - $" if kind == RELATIVE else ""
        yield f"\t{'dw' if width == 2 else 'dd'} {name} + ({addend}){here}"
        at += width
    yield from (f"{name}:" for place, name in own if place == at)


def relocations(elf, index) -> dict[int, tuple[int, int]]:
    """Where the linker changes a section: the kind, and the number of the symbol."""
    return {
        each["r_offset"]: (each["r_info_type"], each["r_info_sym"])
        for section in elf.iter_sections()
        if isinstance(section, RelocationSection) and section["sh_info"] == index
        for each in section.iter_relocations()
    }


def handed_in(exercise: Exercise, path: str, data: bytes, place: Path) -> Path:
    """A submission of an exercise: the handout, with the disassembled object for its file."""
    for each, text in handout_files(exercise).items():
        (place / each).parent.mkdir(parents=True, exist_ok=True)
        (place / each).write_bytes(disassembled(data).encode() if each == path else text)
    return place


@pytest.mark.slow
@pytest.mark.parametrize(("lesson", "path", "exercise"), LATER)
def test_disassembled_it_gains_nothing(one_rate, tmp_path, lesson, path, exercise):
    build_reference(exercise.lesson)
    data = student_tree.object_code(path, lesson, ROOT)
    submission = handed_in(exercise, path, data, tmp_path / "submission")
    scores = graded([exercise], submission, tmp_path / "work", "seed", workers=1)
    assert scores[0].problems == ()
    assert total(scores) == 0, text_report(scores)


@pytest.mark.slow
@pytest.mark.parametrize(("lesson", "path", "exercise"), LATER)
def test_disassembling_works(build, one_rate, tmp_path, lesson, path, exercise):
    """The reference's own object, treated so, has all points of one that is written by hand."""
    build_reference(exercise.lesson)
    data = build(f"build/objects/{path}.o").read_bytes()
    submission = handed_in(exercise, path, data, tmp_path / "submission")
    scores = graded([exercise], submission, tmp_path / "work", "seed", workers=1)
    assert scores[0].points == exercise.points, text_report(scores)
