"""sqlite3 and git of Debian in our kernel, and the power goes: what was committed is there.

    .venv/bin/python -m labs.storage.crash.programs --cuts 200 --seed 2010

Both run once, and all that they write is recorded (guest.py). Each cut is judged on the host, by
e2fsck, and by this machine's sqlite3 and git.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from labs.storage.crash.building import make_image, variant_named
from labs.storage.crash.guest import GuestError, Recording, dump_state, record
from labs.tools.guest.package import PackageError
from labs.tools.machine.bounded import run_within
from labs.tools.machine.command import in_a_line

Content = Callable[[Path, int], str]
"""Says what is wrong with files after a cut with this many marks before it; "" if nothing is."""

MODES = {"delete": "extra", "truncate": "full", "persist": "full", "wal": "full"}
"""Ways in which sqlite3 keeps its journal, and what of `synchronous` makes each commit safe."""
ROWS = 6  # of a transaction


def sqlite_script(transactions: int) -> str:
    """Transactions in each mode, each with a mark after its commit. sqlite3 runs dd itself, and
    copies the write-ahead log into the database after every few of them."""
    text = ""
    for turn, (mode, synchronous) in enumerate(MODES.items()):
        lines = [f"pragma journal_mode = {mode}; pragma synchronous = {synchronous};"]
        lines += ["pragma wal_autocheckpoint = 12;"]
        lines += ["create table t(i integer, j integer, x text); create index u on t(x);"]
        for number in range(transactions):
            rows = ", ".join(f"({number}, {j}, hex(randomblob(200)))" for j in range(ROWS))
            lines += [f"begin; insert into t values {rows};"]
            lines += [f"update t set x = hex(randomblob(90)) where i = {number // 2}; commit;"]
            lines += [f".system mark {turn * transactions + number}"]
        text += f"sqlite3 {mode}.db <<'end'\n" + "\n".join(lines) + "\nend\n"
    return f"export -f mark; ln -sf bash /bin/sh\n{text}"


def judge_sqlite(folder: Path, passed: int, each: int) -> str:
    """What is wrong with the databases after a cut with so many marks before it; "" if nothing is:
    they are whole, and have all rows of each transaction that was committed, and of no more than
    one besides."""
    for turn, mode in enumerate(MODES):
        committed = min(max(passed - turn * each, 0), each)
        path = folder / f"{mode}.db"
        if not path.exists():
            if committed:
                return f"{mode}: the database is missing, with {committed} transactions"
            continue
        with closing(sqlite3.connect(path)) as base:
            said = base.execute("pragma integrity_check").fetchall()
            if said != [("ok",)]:
                return f"{mode}: {said[:3]}"
            tables = base.execute("select count(*) from sqlite_master").fetchone()[0]
            query = "select i, count(*) from t group by i order by i"
            found = base.execute(query).fetchall() if tables else []
        if found != [(number, ROWS) for number in range(len(found))]:
            return f"{mode}: transactions with other rows: {found}"
        if not committed <= len(found) <= committed + 1:
            return f"{mode}: {len(found)} transactions, and {committed} were committed"
    return ""


def git_script(commits: int) -> str:
    """Commits of a few files each, with a mark after each. git init syncs no HEAD."""
    text = """git config --global user.name A; git config --global user.email a@example.org
git config --global gc.auto 0; git config --global core.fsync all
git init -q -b main repository; sync; cd repository
"""
    for number in range(commits):
        text += f"""mkdir d{number}; for i in 1 2 3; do echo {number} $i > d{number}/f$i; done
echo {number} > changed; git add -A; git commit -q -m "commit {number}"; mark {number}
"""
    return text


def judge_git(folder: Path, passed: int) -> str:
    """What is wrong with the repository after a cut with so many marks before it. git makes objects
    safe, and the new name of a branch's file one commit later: it syncs no directory."""
    place = folder / "repository"
    command = ["git", "-c", "safe.directory=*", "-C", str(place)]

    def git(*words: str) -> tuple[int, str]:
        done = run_within([*command, *words], 60, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    if passed == 0:
        return ""
    status, said = git("fsck", "--full", "--strict", "--no-reflogs", "--no-progress")
    if status:
        return f"git fsck: {said}"
    status, said = git("log", "--format=%s", "main")
    found = said.splitlines()[::-1]
    if passed > 1 and status:
        return f"git log: {said}"
    if not status and found != [f"commit {number}" for number in range(len(found))]:
        return f"other commits: {found}"
    least = passed - 1
    return "" if status or least <= len(found) <= passed + 1 else f"{found}: {passed} were made"


def judge(
    recording: Recording, cut: tuple[int, frozenset[int]], place: Path, content: Content
) -> str:
    """What is wrong with the state that a cut leaves, for e2fsck, or for `content`, which judges
    the files; "" if nothing is."""
    position, missing = cut
    with tempfile.TemporaryDirectory(dir=place) as name:
        image, folder = Path(name, "image"), Path(name, "files")
        image.write_bytes(recording.state(position, missing))
        folder.mkdir()
        try:
            dump_state(image, folder)
            wrong = content(folder, recording.passed(position))
        except (RuntimeError, sqlite3.Error) as error:
            wrong = str(error)
    return wrong and f"cut after {position} requests, without {sorted(missing)}: {wrong}"


def recorded(what: str, place: Path, transactions: int) -> tuple[Recording, Content]:
    """Records sqlite3 or git, with so many transactions (in each mode) or commits. Returns what is
    for the judge, too. Raises GuestError, PackageError."""
    image = make_image(place / f"{what}.img", variant_named("ext4"))
    if what == "sqlite3":
        script, content = sqlite_script(transactions), partial(judge_sqlite, each=transactions)
        marks = transactions * len(MODES)
    else:
        script, content, marks = git_script(transactions), judge_git, transactions
    recording = record(image, script, place, [what])
    if len(recording.marks) != marks:
        raise GuestError(f"{what}: {len(recording.marks)} marks, not {marks}")
    return recording, content


def wrong_states(
    recording: Recording, content: Content, place: Path, cuts: int, seed: int
) -> Iterator[str]:
    """Judges this many cuts: a line for each that is wrong."""
    for cut in recording.cuts(cuts, seed):
        wrong = judge(recording, cut, place, content)
        if wrong:
            yield wrong


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="labs.storage.crash.programs", description=__doc__)
    parser.add_argument("--cuts", type=int, default=200, help="of each program")
    parser.add_argument("--transactions", type=int, default=12, help="in each mode of sqlite3")
    parser.add_argument("--only", choices=["sqlite3", "git"])
    parser.add_argument("--seed", type=int, default=2010)
    options = parser.parse_args()
    bad = 0
    for what in (options.only,) if options.only else ("sqlite3", "git"):
        with tempfile.TemporaryDirectory(prefix="crash-") as name:
            try:
                every = recorded(what, Path(name), options.transactions)
                found = list(wrong_states(*every, Path(name), options.cuts, options.seed))
            except (GuestError, PackageError) as error:
                print(f"{what}: {error}", file=sys.stderr)
                return 1
        print(*found, f"{what}: {options.cuts} power cuts, {len(found)} wrong", sep="\n")
        bad += len(found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(in_a_line("crash.programs", main))
