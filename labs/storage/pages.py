"""The storage lab's pages: text, tables and plots become one HTML file that needs nothing else, a
version for the terminal, and the figures as JSON and CSV.

    page = Page("x3", "When is the mapping hot?", "映射何时变热?")
    page.text("Question", "问题", "...")
    page.plot(figure, "requests per read")
    page.table("Measured", ["reads", "requests"], rows)
    page.write(directory, {"rows": rows})       # x3.html, x3.json, x3-1.csv, x3-1.svg
    page.show()                                 # at the terminal

A plot is as wide as a phone: several pictures are put one below the other. Labels are in English
and in Chinese (`both`). Where all other texts of a page are translated (chinese.py), there is the
page in Chinese, too: x3.zh_CN.html. The same figures give the same files.
"""

from __future__ import annotations

import csv
import html
import io
import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from labs.storage.chinese import in_chinese
from labs.tools.course.measurement import STYLE

WIDTH_INCHES = 4.8  # at 72 points an inch this is a phone's width
HEIGHT_INCHES = 3.3
TERMINAL_WIDTH, TEXT_WIDTH = 100, 80
PHONE_COLUMNS = 3  # of a table that fits 390 pixels
ROOM = 1.05  # how much higher than its values a plot is
PAGE_COLUMNS = 6  # of one that is not set closely
NOISE = 1e-9  # no figure of the lab is as small: it is 0, and what arithmetic has left
FONTS = ["sans-serif", "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Micro Hei",
         "Microsoft YaHei", "PingFang SC"]  # fmt: skip
STYLE_HERE = {**STYLE, "font.family": FONTS, "axes.titlesize": 10}
CHECKED = "Checked"
PREDICTED = "your prediction 你的预测"
MARKERS = "osD^v<>P"  # curves that are one upon the other can be told apart, on paper, too
LEGEND_SIZE, LEGEND_INCHES = 8, 4.15  # points; the width that there is for a legend
HEAD = """<!doctype html>
<html lang="{language}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 "DejaVu Sans", "Noto Sans CJK SC", "Microsoft YaHei", "PingFang SC",
        sans-serif; max-width: 46em; margin: 1em auto; padding: 0 1em; }}
svg {{ width: 100%; height: auto; max-width: 40em; }}
table {{ border-collapse: collapse; font-size: 14px; display: block; overflow-x: auto; }}
td, th {{ padding: .2em .7em; border-bottom: 1px solid #ccc; text-align: right; }}
td:first-child, th:first-child {{ text-align: left; min-width: 9em; }}
.many td, .many th {{ padding: .2em .4em; }}
.many td:first-child, .many th:first-child {{ min-width: 5em; }}
table:not(.wide) td:last-child {{ white-space: nowrap; }}
figure {{ margin: 1em 0; }} figcaption {{ color: #555; font-size: 14px; }}
@media (max-width: 30em) {{
  .wide, .wide tbody {{ display: block; }}
  .wide tr {{ display: block; border-bottom: 2px solid #ccc; padding: .3em 0; }}
  .wide tr:first-child {{ display: none; }}
  .wide td {{ display: flex; justify-content: space-between; border: 0; padding: .1em 0;
             text-align: right; }}
  .wide td::before {{ content: attr(data-column); color: #555; text-align: left; }}
  .wide td:first-child {{ font-weight: bold; }}
  .wide td:empty {{ display: none; }}
}}
@media print {{ body {{ max-width: none; }} figure {{ break-inside: avoid; }} }}
</style>
"""


def both(english: str, chinese: str) -> str:
    """A label in both languages, the second on a line of its own."""
    return f"{english}\n{chinese}"


@contextmanager
def plotting() -> Iterator[None]:
    """The style of the plots. Where this machine has no Chinese font, the reader's has one."""
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    with matplotlib.rc_context(STYLE_HERE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Glyph.*")
        yield


def pictures(rows: int = 1, height: float = HEIGHT_INCHES) -> tuple[Figure, Any]:
    """A figure with this many pictures, one below the other; one Axes, or an array of them. Use it
    inside `plotting`."""
    figure = Figure(figsize=(WIDTH_INCHES, height * rows), layout="constrained")
    return figure, figure.subplots(rows, 1)


def curves(axes: Axes, rows: Sequence[Mapping[str, Any]], x: str, y: str, by: str) -> None:
    """A curve for each value of `by`, in the order in which they come."""
    for number, name in enumerate(dict.fromkeys(row[by] for row in rows)):
        mine = [row for row in rows if row[by] == name]
        axes.plot([row[x] for row in mine], [row[y] for row in mine], "-",
                  marker=MARKERS[number % len(MARKERS)], fillstyle="none" if number % 2 else "full",
                  markersize=4 + number, linewidth=1.2, label=str(name))  # fmt: skip


def legend(axes: Axes) -> None:
    """What the curves are, above the picture, so that it covers none: in as many columns as are
    wide enough. Call it last; a title must be elsewhere."""
    names = axes.get_legend_handles_labels()[1]
    inches = 0.45 + LEGEND_SIZE / 72 * 0.53 * max(map(cell_len, names))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), fontsize=LEGEND_SIZE, columnspacing=1,
                ncols=max(1, min(len(names), int(LEGEND_INCHES / inches))))  # fmt: skip


def label(axes: Axes, x: tuple[str, str], y: tuple[str, str]) -> None:
    """Names both axes in both languages."""
    axes.set_xlabel(both(*x))
    axes.set_ylabel(both(*y))


def ticks(axes: Axes, x: Sequence[float] = (), y: Sequence[float] = ()) -> None:
    """Only these ticks, as plain numbers: for logarithmic axes over little more than a decade."""
    axes.minorticks_off()
    if x:
        axes.set_xticks(x, [f"{each:g}" for each in x])
    if y:
        axes.set_yticks(y, [f"{each:g}" for each in y])


def size_ticks(axes: Axes, sizes: Sequence[int]) -> None:
    """Ticks of a logarithmic axis at sizes in bytes, as 512, 4K, 2M."""
    axes.minorticks_off()
    axes.set_xticks(sizes, [short_size(each) for each in sizes])


def short_size(size: int) -> str:
    """512, 4K, 2M."""
    for shift, letter in ((20, "M"), (10, "K")):
        if size >> shift:
            return f"{size >> shift}{letter}"
    return str(size)


def mark_prediction(axes: Axes, value: float | None, is_vertical: bool = False) -> None:
    """Draws what a person expected, if anything, as a line through the plot, in a colour that no
    curve has."""
    if value is not None:
        line = axes.axvline if is_vertical else axes.axhline
        line(value, color="#c000c0", linestyle="--", linewidth=1, label=PREDICTED)


def leave_room(axes: Axes) -> None:
    """Above the largest value of an axis from 0: a mark at the rim would be cut in half."""
    low, high = axes.get_ylim()
    most = axes.dataLim.y1
    if axes.get_yscale() == "linear" and low <= 0 and most <= high < ROOM * most:
        axes.set_ylim(low, ROOM * most)


def svg_of(figure: Figure) -> str:
    """A plot as SVG, the same text for the same figures."""
    text = io.StringIO()
    with plotting():
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def shown(value: object) -> str:
    """A cell: numbers with as many digits as say something."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:,.4g}" if abs(value) > NOISE else "0"


def cell(column: str, value: object) -> str:
    """A value in its column: a margin has two digits that say something."""
    if column.startswith("±") and isinstance(value, float) and NOISE <= abs(value) < 100:
        return f"{value:.2g}"
    return shown(value)


def table_of(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table as HTML. On a phone each row of a wide one becomes a list, with the columns' names:
    the last column, which often decides, would be out of sight."""
    head = "".join(f"<th>{html.escape(each)}</th>" if each else "<td></td>" for each in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-column="{html.escape(column)}">{html.escape(cell)}</td>'
            for column, cell in zip(columns, row, strict=True)
        )
        + "</tr>"
        for row in cells
    )
    kinds = "wide" * (len(columns) > PHONE_COLUMNS) + " many" * (len(columns) > PAGE_COLUMNS)
    kind = f' class="{kinds}"' if kinds else ""
    return f"<table{kind}><tr>{head}</tr>{body}</table>"


@dataclass(frozen=True)
class Text:
    """A heading with paragraphs."""

    heading: str
    chinese: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Plot:
    """A picture."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Cells:
    """A table; the first column is words."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def lines_of(part: Text | Plot | Cells, is_chinese: bool) -> Iterator[str]:
    """A part of a page as HTML."""

    def said(text: str) -> str:
        return (in_chinese(text) if is_chinese else None) or text

    if isinstance(part, Text):
        heading = part.chinese if is_chinese else f"{part.heading} {part.chinese}"
        yield f"<h2>{html.escape(heading)}</h2>"
        yield from (f"<p>{html.escape(said(each))}</p>" for each in part.paragraphs)
    elif isinstance(part, Plot):
        caption = html.escape(said(part.caption))
        picture = part.svg[part.svg.index("<svg") :]
        picture = picture.replace("<svg", f'<svg role="img" aria-label="{caption}"', 1)
        yield f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"
    else:
        cells = [
            [said(cell(column, value)) for column, value in zip(part.columns, row, strict=True)]
            for row in part.rows
        ]
        table = table_of([said(each) for each in part.columns], cells)
        yield f"<h3>{html.escape(said(part.caption))}</h3>{table}"


class Page:
    """A page under construction: its parts appear in the order in which they are added."""

    def __init__(self, name: str, title: str, chinese: str) -> None:
        self.name, self.title, self.chinese = name, title, chinese
        self._parts: list[Text | Plot | Cells] = []

    def text(self, heading: str, chinese: str, *paragraphs: str) -> None:
        """A heading with paragraphs, however their lines are broken."""
        joined = tuple(" ".join(each.split()) for each in paragraphs)
        self._parts.append(Text(heading, chinese, joined))

    def plot(self, figure: Figure, caption: str) -> None:
        """A plot; at the terminal its file is named."""
        for axes in figure.axes:
            leave_room(axes)
        self._parts.append(Plot(svg_of(figure), caption))

    def table(self, caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table; the first column is words."""
        self._parts.append(Cells(caption, columns, rows))

    def checked(self, statements: Mapping[str, bool]) -> None:
        """A table of what must hold, by what it says."""
        rows = [(said, "holds" if holds else "DOES NOT HOLD") for said, holds in statements.items()]
        self.table(CHECKED, ["statement", ""], rows)

    @property
    def _plots(self) -> list[Plot]:
        return [part for part in self._parts if isinstance(part, Plot)]

    @property
    def _tables(self) -> list[Cells]:
        return [part for part in self._parts if isinstance(part, Cells)]

    def untranslated(self) -> list[str]:
        """The texts that are not there in Chinese. Cells may be names, and what is checked is
        sentences."""
        texts: list[str] = []
        for part in self._parts:
            if isinstance(part, Text):
                texts += part.paragraphs
            elif isinstance(part, Plot):
                texts.append(part.caption)
            else:
                texts += [part.caption, *filter(None, part.columns)]
                if part.caption == CHECKED:
                    texts += [str(row[0]) for row in part.rows]
        return [each for each in texts if in_chinese(each) is None]

    def html(self, is_chinese: bool = False, other: str = "") -> str:
        """The page, with a link to the same in the other language, if there is one."""
        number, colon, _ = self.title.partition(": ")
        title = f"{number if colon else ''}{colon}{self.chinese}" if is_chinese else self.title
        second = "" if other else f"<br><small>{html.escape(self.chinese)}</small>"
        lines = [f"<h1>{html.escape(title)}{second}</h1>"]
        if other:
            lines.append(f'<p><a href="{other}">{"English" if is_chinese else "中文"}</a></p>')
        for part in self._parts:
            lines += lines_of(part, is_chinese)
        head = HEAD.format(title=html.escape(title), language="zh-CN" if is_chinese else "en")
        return f"{head}<main>\n" + "\n".join(lines) + "\n</main>\n"

    def show(self, console: Console | None = None) -> None:
        """Prints the page."""
        console = console or Console()
        console.width = min(TERMINAL_WIDTH, console.width) if console.is_terminal else 100
        for part in self._plain():
            console.print(part, markup=False, highlight=False, emoji=False)

    def _plain(self) -> Iterator[str | Table]:
        yield f"{self.title}\n{self.chinese}\n"
        plots = 0
        for part in self._parts:
            if isinstance(part, Text):
                filled = "\n".join(fill(each, TEXT_WIDTH) for each in part.paragraphs)
                yield f"{part.heading} {part.chinese}\n{filled}\n"
            elif isinstance(part, Plot):
                plots += 1
                yield f"plot {self.name}-{plots}.svg: {part.caption}\n"
            else:
                table = Table(box=box.ASCII, pad_edge=False)
                for number, column in enumerate(part.columns):
                    table.add_column(column, justify="right" if number else "left")
                for row in part.rows:
                    table.add_row(*map(cell, part.columns, row))
                yield fill(part.caption, TERMINAL_WIDTH)
                yield table
                yield ""

    def write(self, directory: Path, figures: Mapping[str, Any]) -> Path:
        """Writes NAME.html, NAME.json with `figures`, and each plot and table by its number; and
        NAME.zh_CN.html, if all of it is translated. Returns the page's path."""
        directory.mkdir(parents=True, exist_ok=True)
        for number, plot in enumerate(self._plots, 1):
            (directory / f"{self.name}-{number}.svg").write_text(plot.svg)
        for number, table in enumerate(self._tables, 1):
            with (directory / f"{self.name}-{number}.csv").open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([table.columns, *table.rows])
        said = json.dumps(figures, indent=1, sort_keys=True, ensure_ascii=False)
        (directory / f"{self.name}.json").write_text(said + "\n")
        path, chinese = (directory / f"{self.name}{kind}.html" for kind in ("", ".zh_CN"))
        chinese.unlink(missing_ok=True)
        if has_chinese := not self.untranslated():
            chinese.write_text(self.html(is_chinese=True, other=path.name))
        path.write_text(self.html(other=chinese.name if has_chinese else ""))
        return path
