"""Classroom 50's runner starts this in a student's checkout, and reads result.json there.

It runs in the student's own repository, where students can read it: it has the template and its
visible tests, no solution and no hidden test. The files that have points are copied into a
fresh template, and make grade's tests run on that. The hidden tests are the instructor's:
make grade-class, on what was collected.
"""

import datetime
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

LESSON, FILES = "@LESSON@", json.loads("""@FILES@""")
LARGEST = 256 << 10
HERE = Path(os.environ.get("CLASSROOM50_BUNDLE_DIR") or Path(__file__).parent)


def copied(checkout: Path, tree: Path) -> None:
    """Copies what has points, but no link and nothing that is too large."""
    for path in FILES:
        place = checkout / path
        is_plain = place.resolve() == checkout.resolve() / path and place.is_file()
        if is_plain and place.stat().st_size <= LARGEST:
            shutil.copyfile(place, tree / path)
        elif (tree / path).exists():
            print(f"{path} is missing, a link, or too large: the template's is taken")


def points(tree: Path) -> list:
    """The exercises of the template, graded by its visible tests."""
    subprocess.run(["make", "-s", "setup-test"], cwd=tree, check=True)
    command = [".venv/bin/python", "visible.py", LESSON]
    done = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def committed(checkout: Path) -> str:
    """When the commit was made, in UTC."""
    command = ["git", "show", "-s", "--format=%ct", "HEAD"]
    done = subprocess.run(command, cwd=checkout, stdout=subprocess.PIPE, check=True, text=True)
    when = datetime.datetime.fromtimestamp(int(done.stdout), datetime.UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def main() -> int:
    """Writes result.json and release-body.md."""
    checkout = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name)
        with tarfile.open(HERE / "template.tar.gz") as archive:
            archive.extractall(tree)
        copied(checkout, tree)
        tests = points(tree)
    given = os.environ
    result = {
        "schema": "classroom50/result/v1",
        "classroom": given["CLASSROOM"],
        "assignment": given["ASSIGNMENT"],
        "assignment_type": given.get("MODE") or "individual",
        "owner": given["USERNAME"],
        "submission": given["SUBMISSION_TAG"],
        "commit": given["COMMIT_URL"],
        "release": given["RELEASE_URL"],
        "review": given.get("REVIEW_URL") or given["COMMIT_URL"],
        "datetime": committed(checkout),
        "score": sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }
    (checkout / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    rows = [f"| {t['test-name']} | {t['score']} of {t['max-score']} |" for t in tests]
    words = ["| exercise (visible tests) | points |", "|---|---|", *rows]
    (checkout / "release-body.md").write_text("\n".join(words) + "\n")
    return 0


def guarded(command: Callable[[], int]) -> int:
    """Runs it; what goes wrong is a line. The course's own tools are not there yet."""
    try:
        return command()
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        print(f"autograder: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(guarded(main))
