"""The lessons' measurements: the figures have the shape that theory says, and come out twice."""

from __future__ import annotations

import csv
import importlib
import math
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from labs.lesson1 import measure as measure_boot
from labs.lesson2 import measure as measure_ticks
from labs.lesson3 import measure as measure_calls
from labs.tools.course.handed_in import measurement_path, read_measurement, sources_of
from labs.tools.course.measurement import (
    MeasurementError,
    Question,
    fit_line,
    plot_predictions,
    write_csv,
)
from labs.tools.debugging.stamps import NotReachedError, instructions_to
from labs.tools.machine import qemu_command
from labs.tools.machine.bounded import run_within
from labs.tools.machine.machine import run
from labs.tools.machine.qemu_command import Config
from slides import draw
from tests.support.building import WHOLE, shared_folder
from tests.support.pictures import flaws
from tests.tree.test_handouts import ROOT, built

pytestmark = pytest.mark.slow

SECONDS = 300
LOOKED_AT = """
from labs.tools.course import measurement
from tests.support.pictures import flaws
def look(figure, path, save=measurement.save_plot):
    save(figure, path)
    figure.set_layout_engine("none")  # all has its place now, and keeps it
    if found := flaws(figure):
        raise SystemExit(f"{path.name}: {found}")
measurement.save_plot = measure.save_plot = look
"""
STEPS = [1, 2, 4, 8, 16, 32, 64, 127] if WHOLE else [1, 4, 16, 64, 127]
SECTORS = measure_boot.KERNEL_BYTES // 512 if WHOLE else 4 * 127


def measured(lesson: int, out: Path, less: str = "") -> dict[str, bytes]:
    """Runs a measurement as make does, and looks at its plots; returns the files that it writes.
    less: lines of Python that make `measure` shorter, but with WHOLE=yes."""
    module = f"labs.lesson{lesson}.measure"
    questions = importlib.import_module(module).QUESTIONS
    code = f"from labs.lesson{lesson} import measure\n{'' if WHOLE else less}\n{LOOKED_AT}"
    command = [sys.executable, "-c", f"{code}raise SystemExit(measure.main())"]
    command += ["--build", str(built(lesson))]
    command += ["--predict", " ".join(str(10 * i) for i in range(len(questions)))]
    done = run_within(
        [*command, "--out", str(out), "--hand-in", str(out)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        seconds=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("Before you look, write down what you expect:")
    check_handed_in(lesson, out, questions, done.stdout)
    return files_of(out)


def files_of(out: Path) -> dict[str, bytes]:
    """The tables and plots of a measurement."""
    return {
        path.name: path.read_bytes() for path in out.iterdir() if path.suffix in (".csv", ".svg")
    }


def measured_once(lesson: int, factory: pytest.TempPathFactory, less: str = "") -> dict[str, bytes]:
    """The same, which one process of this run does for all of them."""
    fill = partial(measured, lesson, less=less)
    return files_of(shared_folder(factory, f"measured-{lesson}", fill))


def check_handed_in(lesson: int, tree: Path, questions: list[Question], printed: str) -> None:
    """The file is as the grader takes it, and each prediction is drawn and printed beside its
    result."""
    path = measurement_path(lesson)
    handed = read_measurement((tree / path).read_bytes(), path)
    keys = [each.key for each in questions]
    assert list(handed.prediction) == list(handed.result) == keys
    assert list(handed.prediction.values()) == [10.0 * i for i in range(len(keys))]
    assert handed.sources == sources_of(ROOT, lesson)
    drawn = "".join(ElementTree.fromstring((tree / "prediction.svg").read_bytes()).itertext())
    for number, key in enumerate(keys, 1):
        (line,) = re.findall(rf"^{number}\. {key.replace('_', ' ')}, .*$", printed, re.MULTILINE)
        assert f"{10 * (number - 1):,}" in line.split()
        assert key.replace("_", " ") in drawn


def rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(data.decode().splitlines()))


def slope(xs: list[float], ys: list[float]) -> float:
    """The slope of the points in a double logarithmic plot."""
    return fit_line([math.log(x) for x in xs], [math.log(y) for y in ys])[0]


@pytest.fixture(scope="module")
def boot(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A point of the sweep takes two seconds, so that some are left out but with WHOLE=yes, and a
    quarter is read."""
    less = f"measure.SECTORS_PER_READ, measure.KERNEL_BYTES = {STEPS}, {512 * SECTORS}\n"
    less += "from labs.tools.machine import qemu_command\n"
    less += f"qemu_command.AT_ONCE = {qemu_command.AT_ONCE}"
    return measured_once(1, tmp_path_factory, less)


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return measured_once(2, tmp_path_factory)


# ---- where did the boot go? ----------------------------------------------------------------------


@pytest.mark.slow
def test_reads_are_size_by_chunk(boot):
    table = rows(boot["boot_reads.csv"])
    steps = [int(row["sectors_per_read"]) for row in table]
    reads = [int(row["reads"]) for row in table]
    assert steps == STEPS
    assert reads == [math.ceil(SECTORS / step) for step in steps]
    assert {int(row["sectors"]) for row in table} == {SECTORS}
    assert slope(steps, reads) == pytest.approx(-1, abs=0.01)


@pytest.mark.slow
def test_instructions_are_calls_and_a_rest(boot):
    """More sectors per call cost less, along a line in the number of calls. A single sector has its
    own way through the BIOS."""
    table = [
        {name: int(cell) for name, cell in row.items()} for row in rows(boot["boot_reads.csv"])
    ]
    instructions = [row["instructions"] for row in table]
    assert instructions == sorted(instructions, reverse=True)
    several = table[1:]
    per_call, rest = fit_line([r["reads"] for r in several], [r["instructions"] for r in several])
    assert 500 < per_call < 5000
    for row in several:
        assert row["instructions"] == pytest.approx(per_call * row["reads"] + rest, rel=1e-3)
    calls_alone = [row["instructions"] - rest for row in several[:-2]]
    assert slope([r["sectors_per_read"] for r in several[:-2]], calls_alone) == pytest.approx(
        -1, abs=0.05
    )


@pytest.mark.slow
def test_phases(boot):
    table = {row["phase"]: int(row["instructions"]) for row in rows(boot["boot_phases.csv"])}
    assert list(table) == list(measure_boot.PHASES)
    assert min(table.values()) > 0
    last = rows(boot["boot_reads.csv"])[-1]
    assert table["read the kernel"] == int(last["instructions"])


def on_slides(name: str) -> list[list[float]]:
    """The figures of a slide's plot, curve by curve."""
    (plot,) = (plot for plot in draw.figures() if plot["name"] == name)
    return [curve["y"] for curve in plot["curve"]]


def check_curve(name: str, number: int, table: list[dict[str, str]], x: str, y: str) -> None:
    """A curve of a slide's plot is this column of a measured table, at those x that it has."""
    (plot,) = (plot for plot in draw.figures() if plot["name"] == name)
    of = {float(row[x]): float(row[y]) for row in table}
    shown = plot["curve"][number]["y"]
    found = [of[at] for at in plot["x"][: len(shown)]]
    assert shown == pytest.approx(found, rel=0.1, abs=0.01), (name, number)


@pytest.mark.slow
def test_slides_show_these_figures(boot):
    """But for what depends on how much is read, which WHOLE=yes compares, too."""
    table = {row["phase"]: int(row["instructions"]) for row in rows(boot["boot_phases.csv"])}
    (shown,) = on_slides("lesson1_phases")
    for (phase, instructions), thousands in zip(table.items(), shown, strict=True):
        if WHOLE or phase != "read the kernel":
            assert thousands == pytest.approx(instructions / 1e3, rel=0.1, abs=0.05), phase
    if WHOLE:
        reads = [int(row["instructions"]) / 1e6 for row in rows(boot["boot_reads.csv"])]
        assert on_slides("lesson1_reads") == [pytest.approx(reads, rel=0.1)]


@pytest.mark.slow
def test_boot_plot_is_a_picture_with_words(boot):
    words = "".join(ElementTree.fromstring(boot["boot.svg"]).itertext())
    for word in ("Where did the boot go?", "slope -1", "sectors per call", "place its segments"):
        assert word in words


def test_stamps_are_the_same_twice():
    """Also when another place is asked for before."""
    build = built(1)
    kernel = build / "kernel.elf"
    config = Config(boot="card", image=build / "boot.img", kernel=kernel, icount=0, script="memory")
    places = measure_boot.addresses(build, kernel)
    first, other, again = (
        instructions_to(config, name, places[name])
        for name in ("boot sector", "kernel entry", "boot sector")
    )
    assert first == again < other


def test_place_that_is_never_reached_is_named():
    build = built(1)
    kernel = build / "kernel.elf"
    config = Config(boot="direct", kernel=kernel, icount=0, script="memory")
    with pytest.raises(
        NotReachedError, match=r"(?s)never comes to nowhere; it printed: .*KiB free"
    ):
        instructions_to(config, "nowhere", 0xC0000010)


def test_wrong_count_is_refused():
    row = measure_boot.ReadRow(sectors_per_read=127, reads=16, sectors=SECTORS, instructions=1)
    with pytest.raises(MeasurementError, match="127 sectors per call: 17 calls for 2048 sectors"):
        measure_boot.check_counts([row])


# ---- the tick tax --------------------------------------------------------------------------------


@pytest.mark.slow
def test_loss_is_proportional_to_the_rate(ticks):
    """On both processors, with the same instructions a tick, until nothing is left."""
    table = rows(ticks["ticks.csv"])
    for processor in measure_ticks.PROCESSORS:
        mine = [row for row in table if row["processor"] == processor.name and int(row["hz"])]
        line = [row for row in mine if float(row["loss_percent"]) < 99]
        assert len(line) >= 8
        hertz, loss = ([float(row[name]) for row in line] for name in ("hz", "loss_percent"))
        assert slope(hertz, loss) == pytest.approx(1, abs=0.01)
        assert 40 < measure_ticks.cost_of_tick(points(table, processor)) < 200


def points(table: list[dict[str, str]], processor: measure_ticks.Processor) -> list:
    """The rows of a processor, as the module has them."""
    kinds = (str, int, int, int, int, float, float)
    mine = [row for row in table if row["processor"] == processor.name]
    return [
        measure_ticks.TickRow(*(kind(cell) for kind, cell in zip(kinds, row.values(), strict=True)))
        for row in mine
    ]


@pytest.mark.slow
def test_a_slow_processor_drowns_in_ticks(ticks):
    """At 20000 Hz no work is done any more, and ticks are lost; elsewhere each of them arrives."""
    for row in rows(ticks["ticks.csv"]):
        if row["hz"] == "0":
            assert row["ticks"] == "0"
        elif (row["processor"], row["hz"]) == ("1 MIPS", "20000"):
            assert float(row["loss_percent"]) > 99
            assert int(row["ticks"]) < 0.9 * float(row["programmed"])
        elif int(row["hz"]) < 10000:
            assert int(row["ticks"]) == pytest.approx(float(row["programmed"]), abs=1.5)


@pytest.mark.slow
def test_round_trips(ticks):
    """icount sees instructions: the ring makes no difference, what a handler does makes one."""
    table = {row["kind"]: int(row["instructions"]) for row in rows(ticks["roundtrips.csv"])}
    assert table["int3, ring 0"] == table["int3, ring 3"]
    assert table["page fault, ring 0"] == table["page fault, ring 3"]
    assert table["int3, ring 0"] < table["page fault, ring 0"] < table["timer tick, ring 0"] < 200


@pytest.mark.slow
def test_slides_show_the_tick_tax(ticks):
    (shown,) = on_slides("lesson2_roundtrips")
    measured = [int(row["instructions"]) for row in rows(ticks["roundtrips.csv"])]
    assert shown == pytest.approx(measured, rel=0.1)
    table = rows(ticks["ticks.csv"])
    for name, losses in zip(("1 MIPS", "1000 MIPS"), on_slides("lesson2_ticks"), strict=True):
        lost = [float(row["loss_percent"]) for row in table if row["processor"] == name]
        assert losses == pytest.approx(lost[1:], rel=0.1)


@pytest.mark.slow
def test_tick_tax_is_the_same_twice(ticks, tmp_path):
    """With WHOLE=yes all of it; else what takes a second: the slow processor, and the traps."""
    if WHOLE:
        assert measured(2, tmp_path) == ticks
    slow = measure_ticks.PROCESSORS[1]
    assert measure_ticks.sweep(built(2), slow) == points(rows(ticks["ticks.csv"]), slow)
    trips = {row["kind"]: int(row["instructions"]) for row in rows(ticks["roundtrips.csv"])}
    assert measure_ticks.round_trips(built(2)).items() < trips.items()


def test_commands_refuse_what_they_cannot_do(tmp_path):
    kernel = built(2) / "kernel.elf"
    script = "ticktax 5 10; ticktax 100000 10; ticktax x 1; probe int3; roundtrip; probe int3"
    result = run(Config(boot="direct", kernel=kernel, script=script)).check(1)
    assert result.serial.count("ticktax: 0 Hz (no timer), or 18 to 65536") == 3
    probes = [line for line in result.serial.splitlines() if line.startswith("probe int3: ")]
    assert "vector 13, error code 0x1a" in probes[0]
    assert probes[0].partition("address")[0] == probes[1].partition("address")[0]


# ---- tables --------------------------------------------------------------------------------------


def test_csv_has_a_head_and_unix_line_ends(tmp_path):
    write_csv(tmp_path / "t.csv", [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
    assert (tmp_path / "t.csv").read_bytes() == b"a,b\n1,x\n2,y\n"


def test_what_goes_wrong_is_one_line(tmp_path):
    """No kernel there, as before the first build."""
    (tmp_path / "lesson2").mkdir()
    command = [sys.executable, "-m", "labs.lesson2.measure", "--build", tmp_path / "lesson2"]
    done = subprocess.run(
        [*command, "--out", tmp_path / "out", "--predict", "1 2 3 4"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("make measure: kernel: ")
    assert done.stderr.count("\n") == 1


# ---- lesson 3 -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return measured_once(3, tmp_path_factory)


def test_slides_show_the_price_of_a_call(calls) -> None:
    table = {(row["form"], row["tracing"]): row for row in rows(calls["null_calls.csv"])}
    for form, shown in zip(("int 0x80", "sysenter"), on_slides("lesson3_calls"), strict=True):
        measured = [int(table[form, how]["instructions"]) for how in ("off", "ring", "printk")]
        assert shown == pytest.approx(measured, rel=0.1)
    copies = {int(row["bytes"]): int(row["instructions"]) for row in rows(calls["copies.csv"])}
    (plot,) = (plot for plot in draw.figures() if plot["name"] == "lesson3_copies")
    measured = [copies[count] for count in plot["x"]]
    assert plot["curve"][0]["y"] == pytest.approx(measured, rel=0.1)


def test_null_calls_have_their_order(calls) -> None:
    """In instructions SYSENTER is dearer than INT 0x80, by the model it is cheaper; the ring is
    dearer than nothing, and printk than all."""
    table = {(row["form"], row["tracing"]): row for row in rows(calls["null_calls.csv"])}
    assert len(table) == 12
    quiet = {form: int(table[form, "off"]["instructions"]) for form, _ in table}
    cycles = {form: int(table[form, "off"]["cycles"]) for form, _ in table}
    assert quiet["function"] < 10 < quiet["int 0x80"] <= 80 < quiet["sysenter"] <= 100
    assert cycles["sysenter"] < cycles["int 0x80"]
    assert len({table["function", mode]["instructions"] for mode in ("off", "ring", "printk")}) == 1
    for form in ("int 0x80", "sysenter", "shared page"):
        modes = [int(table[form, mode]["instructions"]) for mode in ("off", "ring", "printk")]
        assert modes[0] + 100 < modes[1] < modes[2] / 4


def test_bytes_cost_a_quarter(calls) -> None:
    """An instruction a word, and a little for each page: the price is right to two per cent."""
    table = [
        measure_calls.Copy(int(row["bytes"]), int(row["instructions"]))
        for row in rows(calls["copies.csv"])
    ]
    assert [row.bytes for row in table] == [0, *(1 << i for i in range(17))]
    price = measure_calls.price_of(table)
    assert 0.249 < price.byte < 0.251
    said = " ".join((ROOT / "labs/lesson3/README.md").read_text(encoding="utf-8").split())
    assert "Each page after the first costs one or two hundred" in said
    assert 50 < price.page < 250  # the compiler chooses
    assert table[0].instructions < price.call < 400
    for row in table[1:]:
        assert price.of(row.bytes) == pytest.approx(row.instructions, rel=0.02)


def test_calls_have_a_picture(calls) -> None:
    """That figures come out twice is tried with lesson 2's, and for each lesson by the grader."""
    assert ElementTree.fromstring(calls["calls.svg"]).tag.endswith("svg")


# ---- the picture of predictions -----------------------------------------------------------------


def test_predictions_have_one_scale():
    """How far off is the same for large figures and small ones; what is beyond has its arrow."""
    cases = {"right": (2048, 2048), "three": (6144, 2048), "small": (0.3, 0.1), "none": (5, 0),
             "nothing": (0, 0), "far": (1, 1e6), "below": (-3, 3)}  # fmt: skip
    questions = [Question(key, "How much?", "instructions") for key in cases]
    predicted, results = ({key: pair[at] for key, pair in cases.items()} for at in (0, 1))
    figure = plot_predictions(questions, predicted, results)
    assert flaws(figure) == []
    assert "1,000,000" in [text.get_text() for text in figure.axes[0].texts]
    marks = [line for line in figure.axes[0].lines if line.get_marker() != "None"]
    assert [(round(float(mark.get_xdata()[0]), 6), mark.get_marker()) for mark in marks] == [
        (1, "o"), (3, "o"), (3, "o"), (100, ">"), (1, "o"), (0.01, "<"), (0.01, "<")
    ]  # fmt: skip
