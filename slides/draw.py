"""Draws the decks' measured plots: `make slides PLOTS=yes`.

slides/figures.toml has the figures, as `make measure` or a handout's experiment gave them, and the
labels, each in both languages. A plot is slides/plots/NAME.svg; Sphinx takes NAME.zh_CN.svg for the
Chinese deck. The same figures give the same file.
"""

from __future__ import annotations

import tomllib
import warnings
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs.tools.course.measurement import new_plot, save_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).resolve().parent
FIGURES, PLOTS = HERE / "figures.toml", HERE / "plots"
LANGUAGES = {"en": ".svg", "zh_CN": ".zh_CN.svg"}
SIZE, FONT = (9.6, 3.6), 11  # inches, points: 17 pixels on a slide where the plot has 400


def figures() -> list[dict[str, Any]]:
    """The plots of figures.toml. Each has a name, a kind (lines or bars), x (numbers, or
    words of both languages), labels of the axes, and its curves: a label and numbers."""
    return tomllib.loads(FIGURES.read_text(encoding="utf-8"))["plot"]


def words(label: Any, language: str) -> str:
    """A label in a language; one that is a string is the same in all."""
    return label if isinstance(label, str) else label[language]


def draw(plot: dict[str, Any], language: str, path: Path) -> None:
    """Writes a plot as SVG."""
    import matplotlib

    with warnings.catch_warnings(), new_plot(*SIZE) as figure:
        # A viewer has the glyphs; those that lay out the picture here may have none.
        warnings.filterwarnings("ignore", message="Glyph")
        matplotlib.rcParams["font.size"] = FONT
        axes = figure.subplots()
        for axis in plot.get("log", ""):
            axes.set(**{f"{axis}scale": "log"})
            numbers = axes.xaxis if axis == "x" else axes.yaxis
            # A power of 10 has small letters.
            numbers.set_major_formatter(lambda n, _: f"{n:,.10g}")
        DRAWN[plot["kind"]](axes, plot, language)
        axes.set(xlabel=words(plot["x_label"], language), ylabel=words(plot["y_label"], language))
        if len(plot["curve"]) > 1:
            axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        save_plot(figure, path)


def draw_lines(axes: Axes, plot: dict[str, Any], language: str) -> None:
    """Curves over numbers; `log` names the axes that are logarithmic."""
    for curve in plot["curve"]:
        x = plot["x"][: len(curve["y"])]
        axes.plot(x, curve["y"], "o-", label=words(curve["label"], language))
    if "x" in plot.get("log", ""):
        axes.set_xticks(plot["x"], [f"{x:,}" for x in plot["x"]])
        axes.minorticks_off()


def draw_bars(axes: Axes, plot: dict[str, Any], language: str) -> None:
    """A group of bars for each word of x, a bar for each curve."""
    width = 0.8 / len(plot["curve"])
    for number, curve in enumerate(plot["curve"]):
        places = [place + number * width for place in range(len(curve["y"]))]
        bars = axes.bar(places, curve["y"], width, label=words(curve["label"], language))
        axes.bar_label(bars, [f"{y:,}" for y in curve["y"]])
    middle = (len(plot["curve"]) - 1) * width / 2
    ticks = [place + middle for place in range(len(plot["x"]))]
    axes.set_xticks(ticks, [words(x, language) for x in plot["x"]])
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.15)


DRAWN = {"lines": draw_lines, "bars": draw_bars}


def main() -> None:
    """Draws all plots."""
    PLOTS.mkdir(exist_ok=True)
    for plot, (language, end) in product(figures(), LANGUAGES.items()):
        draw(plot, language, PLOTS / (plot["name"] + end))


if __name__ == "__main__":
    main()
