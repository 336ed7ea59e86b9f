"""What the storage lab calls published stands in a source, and what it calls computed follows from
one: every number of such a sentence is in published.toml."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from labs.storage import published, sensitivity
from labs.storage.disks import FULL_READS, Experiment
from labs.storage.experiments.family import ALL, experiment
from labs.storage.published import numbers, sources
from labs.storage.report import PUBLISHED
from tests.support.building import ROOT

SAID = {number for each in sources().values() for said in each.said for number in numbers(said)}
COMPUTED = {n for each in sources().values() for said in each.computed for n in numbers(said)}
YEARS = {number for each in sources().values() for number in numbers(each.when)}
NOTHING = re.compile(r"(No figure was|Nothing was|Nobody has|not) published", re.IGNORECASE)
END = r"(?<=[.?])\s+(?=[A-Z`{])"  # of a sentence
LISTED = {"10", "3", "7"}  # powers of ten: 10^3 to 10^7


def strings(path: Path) -> Iterator[str]:
    """The texts of a module that a reader may see: no docstrings; what is put in is a gap."""
    tree = ast.parse(path.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
             for part in ast.walk(node) if part is not node}  # fmt: skip
    for node in ast.walk(tree):
        if id(node) in docs or id(node) in inner:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "..." for p in node.values)
            yield "".join(str(part) for part in parts)


def sentences() -> Iterator[tuple[str, str]]:
    """Each with where it is, of the pages, the handout and the slides."""
    for path in sorted((ROOT / "labs/storage").rglob("*.py")):
        for text in strings(path):
            yield from ((path.name, each) for each in re.split(END, text))
    for name in ("labs/storage/README.md", "slides/storage.md"):
        text = (ROOT / name).read_text().split(published.BEGINNING)[0]
        for part in re.split(r"\n\n|\n- | *\| *", text):  # paragraphs, items, cells
            yield from ((name, each) for each in re.split(END, " ".join(part.split())))


def unknown(sentence: str) -> set[str]:
    """The numbers of a sentence that is said to be somebody else's, and are in no source."""
    is_computed = re.search(r"computed|◇", sentence, re.IGNORECASE) is not None
    is_published = re.search(r"\bpublished\b|◆", sentence, re.IGNORECASE) is not None
    if not (is_computed or is_published) or NOTHING.search(sentence):
        return set()
    known = SAID | YEARS | LISTED | (COMPUTED if is_computed else set())
    return numbers(sentence) - known


def test_numbers_of_others_are_in_a_source():
    found = {(where, each): sorted(missing) for where, each in sentences()
             if (missing := unknown(each))}  # fmt: skip
    assert not found, "\n".join(
        f"{where}: {each}\n    {what}" for (where, each), what in found.items()
    )


@pytest.mark.parametrize(("sentence", "missing"), [
    ("Published: 0.910 pointer blocks a read.", {"0.910"}),
    ("Computed from the published: 0.910 pointer blocks.", set()),
    ("Published: 1484.0 s.", set()),
    ("Here it takes 17 ms.", set()),
    ("Nothing was published about 17 ms.", set()),
    ("X3 of ext4 is published: 20.64 ms", {"20.64"}),
])  # fmt: skip
def test_a_number_without_a_source_is_found(sentence, missing):
    assert unknown(sentence) == missing


def content(text: str) -> set[str]:
    """The words of a text that say something, by their first letters."""
    common = {"publi", "witho", "figur", "there", "where", "which", "about"}
    return {word[:5] for word in re.findall("[a-z]{5,}", text.lower())} - common


def unsaid(sentence: str) -> set[str]:
    """Of a sentence that begins with "Published" and has no number: the words that are not in the
    source from which most of them are."""
    if not sentence.startswith("Published") or numbers(sentence):
        return set()
    said = [content(" ".join([each.author, *each.said])) for each in sources().values()]
    return min((content(sentence) - words for words in said), key=len)


def test_claims_without_a_number_are_in_a_source():
    for number in ALL:
        for sentence in re.split(END, experiment(number).ABOUT.expected):
            missing = unsaid(sentence)
            assert len(missing) * 3 <= len(content(sentence)), (number, sentence, missing)
    assert len(unsaid("Published: printk costs orders of magnitude more than a ring.")) > 2


def test_the_table_of_2010_is_that_of_the_source():
    for row in PUBLISHED.values():
        assert {f"{row.seconds:.1f}", f"{row.tps:.2f}"} <= SAID
        assert {f"{row.sectors_per_request:.2f}", f"{row.ms_per_read:.2f}"} <= COMPUTED
        tps_over_run = row.tps * row.seconds / FULL_READS
        assert abs(tps_over_run - row.requests_per_read) < 0.006


def test_the_kept_sensitivity_is_that_of_the_model():
    """A hundredth of the size shows it within what chance does to 1,000 reads."""
    experiment = Experiment()
    requests = sensitivity.requests_of(experiment)
    names = "seek_start_ms head_switch_ms"
    for row in (sensitivity.kept()[names][0], sensitivity.kept()[names][-1]):
        now = sensitivity.outcome(sensitivity.changed(names, row["value"]), requests, experiment)
        assert now["ratio"] == pytest.approx(row["ratio"], abs=0.04)
        assert now["seek_root_ms"] == pytest.approx(row["seek_root_ms"], abs=0.6)
    kept = {row["value"]: row["ratio"] for row in sensitivity.kept()[names]}
    text = (ROOT / "labs/storage/README.md").read_text()
    shown = re.search(r"^\| ext3 / ext4, direct, at full size \| (.*) \|$", text, re.MULTILINE)
    assert shown
    said = [float(cell.strip("* ")) for cell in shown[1].split("|")]
    assert said == [round(kept[value], 2) for value in (0.0, 0.4, 0.8, 1.6, 3.0)]
    others = [row["ratio"] - kept[0.8] for name, _, _ in sensitivity.OTHERS
              for row in sensitivity.kept()[name]]  # fmt: skip
    assert max(map(abs, others)) < 0.03  # as the handout says
