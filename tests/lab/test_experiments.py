"""The family of experiments: the shape of each holds, in a small run, and its page is whole."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import pytest
from rich.cells import cell_len

from labs.bench.counting import Count
from labs.storage import fsx
from labs.storage.disk_model import Request
from labs.storage.experiments import guest, margins, x15_poll, x17_dirty, x18_lru
from labs.storage.experiments.account import account_of
from labs.storage.experiments.base import Where, counted, page_of
from labs.storage.experiments.family import ALL, experiment
from labs.storage.experiments.guest import ExperimentError, GuestRun, counted_rows, phases_of
from labs.storage.pages import TERMINAL_WIDTH, Page, cell, label, legend, pictures, plotting
from labs.tools.machine.result import Outcome
from tests.host.ext.images import OLDEST, knows_revision
from tests.support.building import ROOT, make
from tests.support.pictures import flaws

NUMBERS = [
    pytest.param(number, marks=[pytest.mark.slow] if experiment(number).ABOUT.guest else [])
    for number in ALL
]
PARTS = ("Question", "Expected", "Prediction", "Method", "What it says", "What would change")
IN_CHINESE = (3, 5, 6, 7, 8, 9, 11, 16, 18, 20, 22, 24, 26, 27)  # so says the handout


@pytest.fixture(scope="session")
def kernel() -> Path:
    """The storage lab's kernel with programs."""
    make("LESSON=storage", "image-direct", "user-programs", "build/host/lab-file")
    return ROOT / "build/storage"


@pytest.mark.parametrize("number", NUMBERS)
def test_the_shape_holds(number, request, tmp_path, monkeypatch):
    chosen = experiment(number)
    assert chosen.ABOUT.number == number
    build = request.getfixturevalue("kernel") if chosen.ABOUT.guest else ROOT / "build/storage"
    data = chosen.measure(Where(build, small=True))
    failed = [said for said, holds in chosen.checks(data).items() if not holds]
    assert not failed, json.dumps(data)[:4000]
    figures, plot = [], Page.plot

    def plotted(page, figure, caption):
        plot(page, figure, caption)
        figure.set_layout_engine("none")  # all has its place now, and keeps it
        figures.append((figure, caption))

    monkeypatch.setattr(Page, "plot", plotted)
    assert [wide for each in chosen.tables(data) if (wide := width(*each)) > TERMINAL_WIDTH] == []
    made = page_of(chosen, data, predicted=1)
    page = made.write(tmp_path, data)
    assert number not in IN_CHINESE or made.untranslated() == []
    assert [flaw for figure, _ in figures for flaw in flaws(figure)] == []
    text = page.read_text()
    assert all(f"<h2>{part}" in text for part in PARTS)
    assert text.count("<svg") >= 1 and "你的预测" in text
    assert len(chosen.sentences(data)) == 3
    kept = json.loads((tmp_path / f"x{number}.json").read_text())
    assert set(rows_of(chosen.tables(kept))) == set(rows_of(chosen.tables(data)))
    assert (tmp_path / f"x{number}-1.csv").read_text().count("\n") > 1


def rows_of(tables):
    """Each as a text. A kept file has its keys in another order: no column is found by that."""
    return [json.dumps([*columns, *row]) for _, columns, rows in tables for row in rows]


def test_margins():
    """Known values, and what 400 seeds give: the true mean is inside 95 of 100 times."""
    assert margins.of_mean([1.0, 2.0, 3.0]) == pytest.approx(4.303 / 3**0.5)
    assert margins.of_mean([1.0]) == float("inf")
    assert margins.of_part(0.5, 60) == pytest.approx(0.1226, abs=1e-4)
    assert margins.of_part(0, 60) > 0.02
    one = [Request("read", 8 * number, 1) for number in range(100)]
    assert margins.of_mapping(one) == 0
    both = [each for read in one for each in (Request("read", 4000, 8), read)[read.lba % 16 > 0 :]]
    assert margins.of_mapping(both) == pytest.approx(1.96 * 0.5025 / 10, abs=1e-3)
    inside = 0
    for seed in range(400):
        generator = random.Random(seed)
        values = [generator.expovariate(1) for _ in range(200)]
        inside += abs(fmean(values) - 1) < margins.of_mean(values)
    assert 0.92 < inside / 400 < 0.98


def width(caption, columns, rows):
    """Columns of the terminal without which cells of a table are broken into several lines; 0 for
    text."""
    cells = [[cell(*pair) for pair in zip(columns, row, strict=True)] for row in [columns, *rows]]
    return sum(max(map(cell_len, each)) + 3 for each in zip(*cells, strict=True)) - 1


def test_a_cell_has_as_many_digits_as_say_something():
    """A margin has two; what arithmetic leaves of 0 has none."""
    said = [("±95 %", 0.00068), ("±95 %", 2.34), ("±95 %", 123.4), ("±95 %", 1.9e-19), ("±", "-")]
    assert [cell(*each) for each in said] == ["0.00068", "2.3", "123.4", "0", "-"]
    assert [cell("ms", each) for each in (20.7634, 0.25678, -1e-12)] == ["20.76", "0.2568", "0"]


def test_a_figure_has_its_unit_in_the_right_number():
    assert counted(1, "requests") == "1 request"
    assert counted(1.0, "messages") == "1 message"
    assert counted(1.20255, "messages") == "1.203 messages"
    assert counted(1, "ms") == "1 ms" and counted(1, "percent") == "1 percent"
    assert counted(12_345.6, "instructions") == "12,346 instructions"


def test_flaws_of_a_picture_are_seen():
    """A person would see them, too: text on text or on a curve, beyond the rim, a legend over a
    curve, a mark that is cut off."""

    def picture(spoil):
        with plotting():
            figure, axes = pictures()
            axes.plot([1, 2], [1, 2], label="a")
            label(axes, ("reads", "读"), ("ms", "毫秒"))
            spoil(axes)
        return flaws(figure)

    assert picture(legend) == []
    assert picture(lambda axes: axes.legend()) == ["the legend of 'ms\n毫秒' covers its picture"]
    assert picture(lambda axes: axes.set_xticks([1, 1.01], ["long", "longer"])) == [
        "'long' lies on 'longer'"
    ]
    for at, style in ((1.5, "o"), (1, "o-")):
        assert picture(lambda axes, at=at, style=style: (
            axes.plot([at, 2], [1.5, 1.5], style), axes.text(1.4, 1.5, "in the middle", va="center")
        )) == ["a curve goes through 'in the middle'"]  # fmt: skip
    assert picture(lambda axes: axes.set_ylabel("x" * 99)) == [f"'{'x' * 99}' leaves the picture"]
    assert picture(lambda axes: (axes.plot([1, 2], [1, 2], "o"), axes.set_ylim(0, 2))) == [
        "a mark of 'ms\n毫秒' is cut off"
    ]


def test_the_marks_cut_a_run():
    asked = [("hdb", 8), ("hda", 0), ("hda", 256), ("hda", 257), ("hdb", 16), ("hdc", 24)]
    phases = phases_of([(name, Request("read", lba, 1)) for name, lba in asked])
    assert [len(phase.requests) for phase in phases.values()] == [1, 2]
    assert phases[2].count("hdb") == 1 and phases[2].sectors("hdc", "r") == 1


def test_a_guest_that_stops_early_says_why(monkeypatch, tmp_path):
    """In a student's tree an exercise may be missing."""
    said = "exercise S4 is not written yet"
    for name, value in (
        ("busybox", lambda: None),
        ("guest_root", lambda *_, **__: []),
        ("write_archive", lambda *_: tmp_path),
        (
            "run",
            lambda _: SimpleNamespace(serial=said, explain=lambda: said, outcome=Outcome.PANIC),
        ),
    ):
        monkeypatch.setattr(guest, name, value)
    with pytest.raises(ExperimentError, match=f"^the guest did not come to its end: {said}"):
        guest.run_guest(tmp_path, "true", [])


def test_a_long_report_keeps_its_reason():
    """Its first line; and a time that was used up may be that of a busy computer."""
    report = (
        "the guest did not come to an end (limit 600 s)\n" + "a register\n" * 1000 + "the last line"
    )
    hang = SimpleNamespace(explain=lambda: report, outcome=Outcome.HANG)
    said = guest.reason(hang)
    assert said.startswith(
        "the guest did not come to an end (limit 600 s)\nThis takes longer on a "
    )
    assert said.endswith("the last line") and len(said) < 3000
    panic = SimpleNamespace(explain=lambda: "a panic\nits last words", outcome=Outcome.PANIC)
    assert guest.reason(panic) == "a panic\nits last words"


def counts(*numbers, kind="mark"):
    return [Count(each, 0, each, (0,), kind) for each in numbers]


def test_each_line_of_figures_has_two_marks():
    said = 'hello\n{"a": 1}\n{"a": 2}\n'
    rows = counted_rows(GuestRun(said, {}, counts(10, 15, 100, 107)))
    assert [(row["a"], row["count"].instructions) for row in rows] == [(1, 5), (2, 7)]
    with pytest.raises(ExperimentError, match="2 lines of figures, and 3 marks"):
        counted_rows(GuestRun(said, {}, counts(10, 15, 100)))


def test_prices_of_a_polled_read_and_of_one_with_an_interrupt():
    """A look takes 60; timer interrupts come into some, and may not count."""

    def read(*events):
        return [Count(steps, 0, 0, (), kind) for kind, steps in events]

    ask, clock, end = x15_poll.ASK, x15_poll.CLOCK, x15_poll.END
    awake = []
    for looks, ticks, late in ((0, 0, 30), (1, 0, 0), (5, 0, 0), (9, 700, 0), (2, 0, 90)):
        seen = [(clock, 1600 + 60 * each + ticks * (each > 3)) for each in range(looks)]
        last = seen[-1][1] if seen else 1540
        awake.append(read(("mark", 0), (clock, 900), (ask, 1500), (clock, 1540), *seen,
                          (clock, last + 50), (end, last + 80), (clock, last + 90),
                          ("mark", last + 2460 + late)))  # fmt: skip
    asleep = [
        read(("mark", 0), (ask, 1500), ("halt", 1800), ("halt", 2000), ("mark", 4900 + more))
        for more in (0, 0, 300, 0, 0)
    ]
    found = x15_poll.prices(asleep, awake)
    assert (found["request"], found["sleep"], found["wake"], found["look"]) == (4000, 300, 400, 60)
    with pytest.raises(ExperimentError, match="too fast"):
        x15_poll.prices([read(("mark", 0), (ask, 1500), ("mark", 4000))] * 9, awake)


@pytest.mark.parametrize(
    ("every", "changes", "writes"), [(1, [1, 1, 1, 1], 4), (4, [1, 1, 1, 1], 1), (0, [1, 1, 1], 0)]
)
def test_rounds_of_changes_and_of_write_back(every, changes, writes):
    marks = []
    for number in range(x17_dirty.ROUNDS):
        marks += [100 * number, 100 * number + 1]
        if (number + 1) % every == 0 if every else number + 1 == x17_dirty.ROUNDS:
            marks += [100 * number + 2, 100 * number + 9]
    left = counts(*marks)
    changing, writing = x17_dirty.rounds_of(left, every)
    assert ([each.instructions for each in changing], len(writing), left) == (changes, writes, [])
    assert all(each.instructions == 7 for each in writing)


def test_models_of_a_cache(monkeypatch):
    """With room for three. Second chance knows who was used since the hand came by, so it takes the
    first of pages that were all used, as FIFO does; one that is used again then stays."""
    monkeypatch.setattr(x18_lru, "TOGETHER", 1)

    def last(*reads):
        return [name for name, model in x18_lru.MODELS.items() if list(model(reads, 3))[-1]]

    assert last(1, 2, 3, 1, 4, 1) == [x18_lru.LRU]
    assert last(1, 2, 3, 4, 2, 5, 2) == [x18_lru.SECOND, x18_lru.LRU]
    assert last(1, 2, 3, 4, 1) == []
    assert x18_lru.hits([True, True, False, True], warm=2) == 0.5
    reads = x18_lru.places(1.0, 4000)
    assert max(map(reads.count, set(reads))) > 200 and reads == x18_lru.places(1.0, 4000)


@pytest.mark.parametrize("options", ["ext4 -b 1024", f"ext2 -b 4096 -m 0 {OLDEST}", "ext3 -b 2048"])
def test_the_account_of_any_image_closes(options, tmp_path):
    if not knows_revision():
        options = options.replace(OLDEST, "-E revision=0")
    top, image = tmp_path / "top", tmp_path / "image"
    (top / "folder").mkdir(parents=True)
    (top / "folder/file").write_bytes(bytes(range(1, 256)) * 5000)
    (top / "link").symlink_to("folder/file")
    with image.open("wb") as file:
        file.truncate(48 << 20)
    fsx.tool("mke2fs", "-q", "-F", "-t", *options.split(), "-d", str(top), str(image))
    account = account_of(image)
    assert account.missing == 0
    assert account.held["other files and directories"] * account.block_bytes > 1_270_000
    assert account.free == int(
        fsx.tool("dumpe2fs", "-h", str(image)).partition("Free blocks:")[2].split()[0]
    )


def test_the_account_of_no_image(tmp_path):
    image = tmp_path / "image"
    image.write_bytes(bytes(4096))
    words = [sys.executable, "-m", "labs.storage.experiments.account", str(image)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.endswith("image is not ext2, ext3 or ext4\n")
