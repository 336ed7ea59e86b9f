"""The pictures of X1's report: times, places, latencies, parts, hits."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs.storage.disk_model import SECTOR_BYTES
from labs.storage.pages import PREDICTED, both, legend, pictures, plotting
from labs.storage.published import mark
from labs.storage.report import PUBLISHED, Figures, by_name
from labs.tools.course.measurement import write_columns

DIRECT = {"ext3": "ext3 direct", "ext4": "ext4 direct", "raw": "raw direct"}
COLORS = {"ext3": "C0", "ext4": "C2", "raw": "C1"}
POINTS = 1000
"""Of a line."""
WINDOW_S = 3.0
"""Of the model's time, in the picture of places: more make one spot of it."""
PARTS = (
    ("seek_ms", "seek 寻道", "C0"),
    ("rotation_ms", "rotation 旋转", "C1"),
    ("transfer_ms", "transfer 传输", "C2"),
    ("overhead_ms", "overhead 开销", "C7"),
)
POINTER_BLOCK_BYTES = 1025 * 4096
"""What a pointer block is for, with itself."""


def family(name: str) -> str:
    """ext3, ext4 or raw."""
    return name.split()[0]


def plot_times(figures: Sequence[Figures], predicted: Mapping[str, float]) -> Figure:
    """Bars of the time of a read, and of the sectors of a request, with those of 2010."""
    with plotting():
        figure, (times, sectors) = pictures(2, 2.6)
        names = [each.name for each in figures]
        colors = [COLORS[family(name)] for name in names]
        for axes, values, then in (
            (times, [f.ms_per_read for f in figures], lambda p: p.ms_per_read),
            (sectors, [f.sectors_per_request for f in figures], lambda p: p.sectors_per_request),
        ):
            axes.barh(names, values, color=colors, alpha=0.75)
            for row, value in enumerate(values):
                write_columns(axes, row, f"{value:.2f}", points=36)
            mark(axes, [then(p) for p in PUBLISHED.values()], list(PUBLISHED), is_computed=True)
            axes.invert_yaxis()
            axes.grid(visible=False, axis="y")
        draw_prediction(times, figures, predicted)
        times.set_xlabel(both("ms for a read (disk model)", "每次读的毫秒数 (磁盘模型)"))
        sectors.set_xlabel(both("sectors of 512 bytes in a request", "每个请求的扇区数 (512 字节)"))
        legend(times)
    return figure


def draw_prediction(axes: Axes, figures: Sequence[Figures], predicted: Mapping[str, float]) -> None:
    """What a person expected: this many times the raw drive's time."""
    base = by_name(figures)["raw direct"].ms_per_read
    if predicted:
        axes.plot(
            [predicted[key] * base for key in predicted], [DIRECT[key] for key in predicted],
            "X", color="#c000c0", markersize=7, linestyle="none", label=PREDICTED,
        )  # fmt: skip


def plot_places(figures: Sequence[Figures]) -> Figure:
    """Where the arm was, and when: three devices side by side."""
    rows = by_name(figures)
    with plotting():
        figure = Figure(figsize=(4.8, 3.6), layout="constrained")
        panels = figure.subplots(1, 3, sharex=True, sharey=True)  # the same time in each
        for axes, (key, name) in zip(panels, DIRECT.items(), strict=True):
            draw_places(axes, rows[name])
            axes.set_title(key)
        panels[0].set_ylabel(both("place on the drive, GB", "盘上位置, GB"))
        panels[1].set_xlabel(both("time, s (disk model)", "时间, 秒 (磁盘模型)"))
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=8
        )
    return figure


def draw_places(axes: Axes, row: Figures) -> None:
    """A dot for each request of the first seconds."""
    ends = list(accumulate(access.total_ms / 1000 for access in row.accesses))
    shown = bisect(ends, WINDOW_S)
    for kind, dot, size, fill, label in (
        ("mapping", "C3s", 5, "none", "mapping block 映射块"),
        ("data", "C0.", 3, "full", "data 数据"),
    ):
        chosen = [i for i, each in enumerate(row.kinds[:shown]) if each == kind]
        axes.plot(
            [ends[i] for i in chosen],
            [row.requests[i].lba * SECTOR_BYTES / 1e9 for i in chosen],
            dot, markersize=size, markeredgewidth=0.6, fillstyle=fill, label=label,
        )  # fmt: skip


def plot_latencies(figures: Sequence[Figures], predicted: Mapping[str, float]) -> Figure:
    """How many reads took how long."""
    rows = by_name(figures)
    with plotting():
        figure, axes = pictures()
        for key, name in DIRECT.items():
            row = rows[name]
            shares = [1 / len(row.latencies_ms)] * len(row.latencies_ms)
            axes.hist(
                row.latencies_ms, bins=range(46), weights=[100 * share for share in shares],
                histtype="step", color=COLORS[key], linewidth=1.4, label=name,
            )  # fmt: skip
            if key in predicted:
                axes.axvline(
                    predicted[key] * rows["raw direct"].ms_per_read, color=COLORS[key],
                    linestyle="--", linewidth=1, label=f"predicted mean 预测均值: {key}",
                )  # fmt: skip
        axes.set_xlabel(both("ms for a read, with its mapping blocks", "每次读的毫秒数 (含映射块)"))
        axes.set_ylabel(both("% of the reads", "读的百分比"))
        legend(axes)
    return figure


def plot_parts(figures: Sequence[Figures]) -> Figure:
    """Where the time of a read went."""
    with plotting():
        figure, axes = pictures()
        left = [0.0] * len(figures)
        for attribute, label, color in PARTS:
            widths = [getattr(each.per_read, attribute) for each in figures]
            axes.barh([each.name for each in figures], widths, left=left, color=color, label=label)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(both("ms for a read (disk model)", "每次读的毫秒数 (磁盘模型)"))
        legend(axes)
    return figure


def plot_hits(figures: Sequence[Figures], drive_bytes: int) -> Figure:
    """How many reads had found their mapping blocks in memory, as the run went on; the line is
    chance: with N pointer blocks, read i finds its own with probability 1 - (1 - 1/N)^i."""
    rows = by_name(figures)
    with plotting():
        figure, axes = pictures()
        for name, style, width in (("ext3 buffered", "-", 5), ("ext3 direct", "-", 1.2)):
            hits = list(hits_over_time(rows[name]))
            step = max(1, len(hits) // POINTS)
            at = range(1, len(hits) + 1)[::step]
            axes.plot(at, hits[::step], style, color="C0", linewidth=width,
                      alpha=0.3 if width > 2 else 1, label=name)  # fmt: skip
        reads, blocks = rows["ext3 direct"].reads, drive_bytes / POINTER_BLOCK_BYTES
        missed = accumulate((1 - 1 / blocks) ** i for i in range(reads))
        theory = [100 * (1 - total / i) for i, total in enumerate(missed, 1)]
        step = max(1, reads // POINTS)
        at = range(1, reads + 1)[::step]
        axes.plot(at, theory[::step], "k--", linewidth=1, label="chance 概率")
        axes.set(xscale="log", xlim=(1, 10 * reads), ylim=(0, 100))
        axes.set_xlabel(
            both("reads so far (the axis goes on: draw)", "已完成的读 (坐标轴留有余地)")
        )
        axes.set_ylabel(both("% that found their pointer block", "指针块命中率, %"))
        legend(axes)
    return figure


def hits_over_time(row: Figures) -> Iterator[float]:
    """In percent of the reads so far, which asked for data."""
    hits = reads = 0
    last = "data"
    for kind in row.kinds:
        if kind == "data":
            reads += 1
            hits += last == "data"
            yield 100 * hits / reads
        last = kind
