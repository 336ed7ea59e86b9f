"""`make lab X=3`: runs an experiment, and writes and prints its page.

    python -m labs.storage.experiments 3 --build build/storage [--predict 0.9] [--out build/lab]

X=list prints which there are.
"""

from __future__ import annotations

import sys
from pathlib import Path

from labs.storage.disks import DiskError
from labs.storage.experiments.base import Where, page_of
from labs.storage.experiments.family import ALL, experiment
from labs.storage.experiments.guest import ExperimentError
from labs.tools.course.measurement import MeasurementError, predictions
from labs.tools.machine.command import Options
from labs.tools.machine.patience import told
from labs.tools.machine.run import guarded


def listed() -> str:
    """One line for each experiment."""
    return "\n".join(f"X={number:<3} {experiment(number).ABOUT.title}" for number in ALL)


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = Options("make lab")
    parser.add_argument("number", help="which experiment, or list")
    parser.add_argument("--build", type=Path, required=True, help="where the kernel was built")
    parser.add_argument("--out", type=Path, default=Path("build/lab"))
    parser.add_argument("--predict", default="", help="your prediction")
    parser.add_argument("--small", action="store_true", help="as the tests run it")
    options = parser.parse_args()
    name = options.number.lower().removeprefix("x")
    if not name.isdecimal() or int(name) not in ALL:
        print(listed())
        return 0 if name == "list" else 2
    chosen = experiment(int(name))
    ask = chosen.ABOUT.ask
    try:
        predicted = predictions([ask], options.predict)[ask.key]
        with told(lambda: f"make lab: {chosen.ABOUT.title}"):
            data = chosen.measure(Where(options.build, options.small))
    except (DiskError, ExperimentError, MeasurementError) as error:
        print(f"make lab: {error}", file=sys.stderr)
        return 1
    page = page_of(chosen, data, predicted)
    path = page.write(options.out, {"predicted": predicted, **data})
    page.show()
    print(f"The page is {path}; next to it are its plots, tables and figures.")
    return 0 if all(chosen.checks(data).values()) else 1


if __name__ == "__main__":
    sys.exit(guarded("make lab", main))
