"""What a person would complain of in a picture: text that leaves it, lies on other text or on a
curve, a legend that covers the curves, and marks that the upper rim cuts off."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from labs.storage.pages import plotting

SLACK = 1.5  # pixels that boxes may share: a box is larger than its letters


def flaws(figure: Figure) -> list[str]:
    """One line for each flaw; none for a good picture."""
    canvas = FigureCanvasAgg(figure)
    with plotting():
        figure.draw_without_rendering()
    boxes = [(each.get_text().replace("\n", " / "), each.get_window_extent(canvas.get_renderer()))
             for each in texts_of(figure)]  # fmt: skip
    whole = Bbox(figure.bbox.get_points()).padded(SLACK)
    found = [f"'{text}' leaves the picture" for text, box in boxes if not inside(box, whole)]
    found += [f"'{one}' lies on '{other}'"
              for (one, first), (other, second) in combinations(boxes, 2)
              if shared(first, second)]  # fmt: skip
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend and shared(legend.get_window_extent(), axes.get_window_extent()):
            found.append(f"the legend of '{axes.get_ylabel()}' covers its picture")
        if any(is_cut(line, axes) for line in axes.lines):
            found.append(f"a mark of '{axes.get_ylabel()}' is cut off")
        for text in axes.texts:
            box = text.get_window_extent()
            if text.get_text() and any(goes_through(line, box) for line in axes.lines):
                found.append(f"a curve goes through '{text.get_text()}'")
    return found


def goes_through(curve: Line2D, box: Bbox) -> bool:
    """Whether its line or one of its markers does."""
    path = curve.get_transform().transform_path(curve.get_path())
    if curve.get_linestyle() != "None" and path.intersects_bbox(box, filled=False):
        return True
    around = box.padded(curve.get_markersize() / 2 * curve.figure.dpi / 72)
    return curve.get_marker() != "None" and any(around.contains(*at) for at in path.vertices)


def is_cut(curve: Line2D, axes: Axes) -> bool:
    """Whether one of its marks is in the picture, and a quarter of it is above."""
    if curve.get_marker() == "None" or not curve.get_clip_on():
        return False
    box = axes.get_window_extent()
    inner = box.y1 - curve.get_markersize() / 4 * axes.figure.dpi / 72  # a quarter is missing
    path = curve.get_transform().transform_path(curve.get_path())
    return any(box.x0 <= x <= box.x1 and inner < y <= box.y1 + SLACK for x, y in path.vertices)


def inside(box: Bbox, whole: Bbox) -> bool:
    """Whether all of a box is."""
    return bool(whole.x0 <= box.x0 and box.x1 <= whole.x1
                and whole.y0 <= box.y0 and box.y1 <= whole.y1)  # fmt: skip


def shared(one: Bbox, other: Bbox) -> bool:
    """Whether they share more than their rims."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(width > SLACK and height > SLACK)


def texts_of(figure: Figure) -> Iterator[Text]:
    """All that is written, without ticks beyond an axis."""
    beyond = {id(each) for axes in figure.axes for each in hidden_ticks(axes)}
    for each in figure.findobj(Text):
        if each.get_visible() and each.get_text().strip() and id(each) not in beyond:
            yield each


def hidden_ticks(axes: Axes) -> Iterator[Text]:
    """Labels that are not drawn: of ticks that an axis does not show."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        rim = 1e-9 * (high - low)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            is_shown = low - rim <= tick.get_loc() <= high + rim
            if not (is_shown and axis.get_visible()):
                yield from (tick.label1, tick.label2)
