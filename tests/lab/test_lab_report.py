"""`make lab`: the prediction, the report of X1, and a disk of this computer.

Requests come from paper here (report.predict); tests/lab/test_measure.py has them from a guest.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import StringIO
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len
from rich.console import Console

from labs.storage import chinese, random_reads, report, run, x1, x1_plots
from labs.storage.disks import Experiment
from labs.storage.guest_trace import Purpose, Record
from labs.storage.pages import Page, table_of
from labs.storage.random_reads import LabError, Row, in_row
from labs.tools.course.measurement import MeasurementError
from labs.tools.machine.qemu_command import Config
from labs.tools.machine.result import Outcome
from tests.support.pictures import flaws

EXPERIMENT = Experiment(scale=100, reads=300, seed=2010)


COLUMNS = 80


@pytest.fixture(scope="module")
def figures():
    """The six rows, on paper, each looked at after 10, 110 and all requests."""
    sectors = EXPERIMENT.drive_bytes // 512
    runs = []
    for each in report.predict(EXPERIMENT):
        looks = [
            (n, sum(request.sectors for request in each.requests[:n]))
            for n in (10, 110, len(each.requests))
        ]
        runs.append(replace(each, samples=looks))
    return [report.measure(each, sectors) for each in runs]


@pytest.fixture
def make_lab(figures, monkeypatch, tmp_path, capsys):
    """Runs the command with these options; its status, what it said, and its folder."""
    monkeypatch.setattr(x1, "measured", lambda *_: figures)
    monkeypatch.setattr(x1, "SEEKRW", tmp_path / "seekrw")
    monkeypatch.setattr(x1, "own_figures", lambda *_: {"requests": 300})

    def command(*arguments):
        words = ["--build", "build/storage", "--reads", "300", "--out", str(tmp_path / "report")]
        words += ["--hand-in", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["x1", *words, *arguments])
        status = x1.main()
        said = capsys.readouterr()
        return status, said.out + said.err, tmp_path / "report"

    return command


def test_the_report_is_whole(make_lab):
    """A page with five plots, each a picture with axes in two languages and units; JSON; CSV."""
    status, said, folder = make_lab("--predict", "2 1.5")
    assert status == 0, said
    assert "The report is" in said
    page = (folder / "x1.html").read_text()
    for heading in (
        "Question",
        "Prediction",
        "Method",
        "deviates",
        "gets wrong",
        "change the",
        "Checked",
    ):
        assert heading in page
    plots = sorted(folder.glob("x1-*.svg"))
    assert len(plots) == 6
    for path in plots:
        text = "".join(ElementTree.parse(path).getroot().itertext())
        assert any(unit in text for unit in ("ms", "%", "GB")), path
        assert any("\u4e00" <= letter <= "\u9fff" for letter in text), path
    assert "your prediction" in plots[0].read_text()
    assert "predicted mean" in plots[2].read_text()
    data = json.loads((folder / "x1.json").read_text())
    assert data["predicted"] == {"ext3": 2, "ext4": 1.5}
    assert list(data["rows"]) == sorted([*report.PUBLISHED, "raw direct"])


def test_the_report_in_chinese(make_lab):
    """All of it: each paragraph, caption and column; the numbers are those of the page in English.
    The two pages lead to each other."""
    _, _, folder = make_lab("--predict", "2 1.5")
    english, other = ((folder / f"x1{kind}.html").read_text() for kind in ("", ".zh_CN"))
    assert '<html lang="zh-CN">' in other and "<h2>方法</h2>" in other
    assert 'href="x1.zh_CN.html"' in english and 'href="x1.html"' in other
    told = re.findall(r"<(?:p|h3|figcaption)>([^<]+)<", other)
    assert len(told) > 20
    assert [each for each in told if not re.search("[\u4e00-\u9fff]", each)] == []
    assert all(english.count(each) == other.count(each) > 0 for each in ("0.90", "1.369"))


def test_texts_are_looked_for_without_their_numbers(tmp_path, monkeypatch):
    """A page of which a text is not translated is there in English alone."""
    path = tmp_path / "reports.po"
    path.write_text('msgid "of {0} MB {1} %, x18 apart"\nmsgstr "{1} % of {0} MB"\n')
    monkeypatch.setattr(chinese, "catalogue", partial(chinese.catalogue, path))
    assert chinese.in_chinese("of 1,000.5 MB -3 %, x18 apart") == "-3 % of 1,000.5 MB"
    assert chinese.in_chinese("of 1 MB 2 %, x19 apart") is None
    page = Page("x0", "A title", "标题")
    page.text("Method", "方法", "Nobody has translated this.")
    (tmp_path / "x0.zh_CN.html").write_text("that of an earlier run")
    assert "<small>标题" in page.write(tmp_path, {}).read_text()
    assert page.untranslated() and not (tmp_path / "x0.zh_CN.html").exists()


def test_each_place_of_a_translation_is_a_number_of_its_text():
    places = re.compile(r"\{\d+\}")
    for text, said in chinese.catalogue().items():
        assert set(places.findall(said)) <= set(places.findall(text)), text


def test_what_does_not_hold_is_said(figures, monkeypatch):
    """Each promise of the report can fail: by times that are not the published ones (chance is
    larger with 300 reads), and by rows that are mixed up."""
    rows = report.by_name(figures)

    def publish(part):
        monkeypatch.setattr(report, "PUBLISHED", {
            name: replace(row, seconds=part * rows[name].ms_per_read * 100)
            for name, row in report.PUBLISHED.items()
        })  # fmt: skip

    publish(1.06)
    assert [holds for _, holds in report.checks(figures).items()] == [False, *4 * [True]]
    publish(1)
    assert all(report.checks(figures).values())
    names = [row.name for row in figures]
    mixed = [
        replace(row, name=name) for row, name in zip(figures, names[1:] + names[:1], strict=True)
    ]
    assert not any(report.checks(mixed).values())


def test_a_page_is_printed_letter_by_letter(capsys):
    page = Page("x0", "A title", "标题")
    page.text("Method", "方法", "At 1:100: each :100: is a number, and no picture.")
    page.show()
    assert "At 1:100: each :100: is" in capsys.readouterr().out


def test_a_wide_table_names_its_columns_in_each_row():
    """On a phone its rows become lists."""
    columns, cells = ["row", "a", "b", "the last"], [["x", "1", "2", "3"]]
    wide = table_of(columns, cells)
    assert 'class="wide"' in wide and wide.count("data-column=") == 4
    assert '<td data-column="the last">3</td>' in wide
    assert "wide" not in table_of(columns[:3], [cells[0][:3]])


def test_plots_have_no_flaws(figures):
    assert [flaw for each in (
        x1_plots.plot_times(figures, {"ext3": 2, "ext4": 1.5}),
        x1_plots.plot_places(figures),
        x1_plots.plot_latencies(figures, {"ext3": 2, "ext4": 1.5}),
        x1_plots.plot_parts(figures),
        x1_plots.plot_hits(figures, EXPERIMENT.drive_bytes),
    ) for flaw in flaws(each)] == []  # fmt: skip


def test_each_request_is_in_a_table(make_lab, figures):
    """With its parts, one after the other."""
    _, _, folder = make_lab()
    with (folder / "requests.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(each.requests) for each in figures)
    mine = [row for row in rows if row["row"] == "ext3 direct"]
    total = sum(float(mine[-1][part]) for part in list(mine[-1])[4:])
    row = report.by_name(figures)["ext3 direct"]
    assert total == pytest.approx(1000 * row.seconds, abs=0.01)


def test_nothing_is_predicted_without_a_terminal(make_lab):
    status, said, folder = make_lab()
    assert status == 0
    assert "Nothing is predicted: there is no terminal, and no PREDICT" in said
    assert "your prediction" not in (folder / "x1-1.svg").read_text()


def test_a_wrong_prediction_is_refused(make_lab):
    status, said, _ = make_lab("--predict", "2 fast")
    assert status == 1
    assert "it begins with your prediction, 2 numbers" in said


def test_this_computers_disk(make_lab, tmp_path):
    """What seekrw says of it is next to the model; it may only read."""
    program, result = tmp_path / "seekrw", {"file": "/dev/x", "reads": 4, "ns": 8_000_000}
    result |= {"percentiles_ns": dict.fromkeys(("50.0", "90.0", "99.0", "100.0"), 2_000_000)}
    result |= {"requests": {"reads": 4}}
    program.write_text(f"#!/bin/sh\necho \"$@\" >{tmp_path}/words\necho '{json.dumps(result)}'\n")
    program.chmod(0o755)
    status, said, _ = make_lab("--file", "/dev/x")
    assert status == 0
    words = (tmp_path / "words").read_text().split()
    assert words == ["-f", "/dev/x", "-a", "300", "-l", "4096", "-r", "-s", "2010", "-j", "-d"]
    assert "this computer" in said and "2" in said
    program.write_text("#!/bin/sh\necho 'seekrw: /dev/x is mounted' >&2; exit 1\n")
    status, said, _ = make_lab("--file", "/dev/x")
    assert (status, "make lab: seekrw: /dev/x is mounted" in said) == (1, True)


def test_wrong_options_are_refused(make_lab):
    for arguments in (("--scale", "0"), ("--scale", "half"), ("--reads", "0")):
        with pytest.raises(SystemExit):
            make_lab(*arguments)


def test_without_a_terminal_make_run_demonstrates(figures, monkeypatch, capsys):
    """The tables, and status 0."""
    monkeypatch.setattr(run, "measured", lambda *_: figures)
    monkeypatch.setattr(sys, "argv", ["run", "--build", "build/storage", "--reads", "300"])
    assert run.main() == 0
    said = capsys.readouterr().out
    assert "Guest and QEMU agree on all" in said and "raw direct" in said


def test_six_rows_fit_a_terminal_of_80_columns(figures, make_lab):
    """The tables of `make run`, and those of the page whose rows are six."""
    console = Console(file=StringIO(), force_terminal=True, width=COLUMNS, color_system=None)
    report.print_report(figures, console)
    page = x1.make_page(figures, EXPERIMENT, {}, None)
    page.show(console)
    lines = console.file.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= COLUMNS
    rows = [line for line in lines if "raw direct " in line and len(re.findall("[│|]", line)) > 4]
    assert len(rows) == 4 + 4  # each in one line
    assert not any("…" in line for line in lines)


def test_a_sample_is_what_iostat_shows(figures):
    """It ends within the published seconds: requests and sectors between two looks, and the
    model's time of these requests."""
    rows = report.by_name(figures)
    for name, row in rows.items():
        last = 110 if row.seconds > (60 if name == "ext3 buffered" else 30) else len(row.requests)
        assert row.sample is not None
        assert row.sample.requests == last - 10, name
        seconds = sum(access.total_ms for access in row.accesses[10:last]) / 1000
        assert row.sample.tps == pytest.approx((last - 10) / seconds)
    direct, buffered = rows["raw direct"].sample, rows["raw buffered"].sample
    assert direct.blocks_per_second == pytest.approx(direct.tps)
    assert buffered.blocks_per_second == pytest.approx(8 * buffered.tps)
    assert report.PUBLISHED["ext4 direct"].blocks_per_second == 67.9
    run = replace(report.predict(EXPERIMENT)[0], samples=[(5, 40)])
    assert report.measure(run, EXPERIMENT.drive_bytes // 512).sample is None


def test_the_sample_of_a_long_run_is_from_its_middle():
    """6,000 reads take 88 s: from the look at 3,000 on, 30 s are 2,000 requests and some more."""
    run = next(each for each in report.predict(replace(EXPERIMENT, reads=6000))
               if each.name == "raw direct")  # fmt: skip
    looks = [(number, number + (number < 3000)) for number in range(0, 6001, 1000)]
    sample = report.measure(replace(run, samples=looks), EXPERIMENT.drive_bytes // 512).sample
    assert (sample.requests, sample.sectors) == (2000, 2000)


def test_a_sample_must_agree_with_the_ring():
    """Looks before the row do not count, and a sector too many is an error."""
    records = [Record("hdb", "R", n, 8, Purpose.DATA, 0, 0, 0) for n in range(3)]
    row = Row("raw buffered", "hdb", direct=False)
    looks = [(6, 90), (7, 100), (8, 108), (10, 124)]
    assert in_row(row, looks, 7, records) == [(0, 0), (1, 8), (3, 24)]
    with pytest.raises(LabError, match="raw buffered: a sample"):
        in_row(row, [(7, 100), (8, 109)], 7, records)


def test_a_long_run_is_looked_at_to_its_end():
    """Each row, for longer than one of 100,000 reads takes on a busy computer."""
    said = random_reads.script(random_reads.ROWS, EXPERIMENT)
    loops = re.findall(r"for s in ([\d. ]+); do for i in \$\(seq (\d+)\); do sleep \$s; grep", said)
    assert len(loops) == len(random_reads.ROWS)
    assert all(sum(map(float, waits.split())) * int(times) > 900 for waits, times in loops)


def test_a_guest_that_stops_early_says_why(monkeypatch, tmp_path):
    """Before QEMU's list of requests is read, in which drives are missing then."""
    stopped = SimpleNamespace(outcome=Outcome.ENDED, status=1, block_statistics={},
                              serial="exercise S1 is not written yet\n",
                              explain=lambda **_: "after 0.1 s")  # fmt: skip
    monkeypatch.setattr(random_reads, "_run", lambda *_: (stopped, SimpleNamespace(records=[])))
    kernel = tmp_path / "kernel.elf"
    kernel.touch()
    with pytest.raises(LabError, match=r"S1 is not written yet"):
        random_reads.measure(lambda _: Config("direct", kernel=kernel), tmp_path, EXPERIMENT)
    with pytest.raises(LabError, match="0 drives were read; there are hdb, hdc, hdd"):
        random_reads.seen_by_qemu("")


def test_the_lab_has_a_kernel_of_its_own(monkeypatch, tmp_path):
    """make may build another one meanwhile, whose symbols are elsewhere."""
    kernel, seen = tmp_path / "kernel.elf", []
    kernel.write_bytes(b"as it was")

    def run(config, _):
        kernel.unlink()
        seen.append(config.kernel.read_bytes())
        raise LabError("enough")

    monkeypatch.setattr(random_reads, "_run", run)
    with pytest.raises(LabError, match="enough"):
        random_reads.measure(lambda _: Config("direct", kernel=kernel), tmp_path, EXPERIMENT)
    assert seen == [b"as it was"]


def test_a_failed_program_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(x1, "SEEKRW", "false")
    with pytest.raises(MeasurementError):
        x1.read_own(tmp_path / "file", EXPERIMENT)


def test_rows_without_time_are_left_out(figures, make_lab, monkeypatch):
    """The report says which, has what there is, and is not a success."""
    done = [row for row in figures if row.name not in ("ext3 direct", "raw direct")]
    monkeypatch.setattr(x1, "measured", lambda *_: done)
    status, said, folder = make_lab("--predict", "2 1.5")
    assert status == 1
    assert "make lab: left out, as the time was used up: ext3 direct, raw direct" in said
    page = (folder / "x1.html").read_text()
    assert "What was left out" in page and "ext3 buffered" in page
    assert "ext3 direct, raw direct: not done within 122 seconds" in " ".join(page.split())


def test_each_row_has_a_machine_and_a_limit(monkeypatch, tmp_path):
    """Where several run at a time; if none is done in time, that is said."""
    kernel, asked = tmp_path / "kernel.elf", []
    kernel.touch()
    late = SimpleNamespace(outcome=Outcome.WALL_LIMIT, status=None, serial="",
                           explain=lambda **_: "its time is used up")  # fmt: skip

    def run(config, _):
        asked.append(config.wall_limit)
        return late, SimpleNamespace(records=[])

    monkeypatch.setattr(random_reads, "_run", run)
    full = Experiment(1, 100_000)
    with pytest.raises(LabError, match="no row was done within 920 seconds"):
        random_reads.measure(
            lambda _: Config("direct", kernel=kernel), tmp_path, full, machines=2
        )  # fmt: skip
    assert asked == [920] * 6
    with pytest.raises(LabError, match="its time is used up"):
        random_reads.measure(lambda _: Config("direct", kernel=kernel), tmp_path, EXPERIMENT)


def test_progress_is_told(monkeypatch, capsys):
    """Without a terminal a line for each tenth."""
    lines = []

    @contextmanager
    def told(words):
        lines.append(words())
        yield
        lines.append(words())

    monkeypatch.setattr(x1, "told", told)
    with x1.progress_bar(Experiment(1, 100_000)) as advance:
        advance(200_000)
        advance(50_000)
    assert lines[0].startswith("make lab: the drives are made")
    assert lines[1] == "make lab: 30 % of some 781,000 requests"
