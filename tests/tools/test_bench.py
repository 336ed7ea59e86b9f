"""The benchmark against Linux: what the programs count here and there, the table that is kept, and
the package that Linux comes from."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from labs.bench import bench, shares
from labs.bench.shares import WEIGHTS, SharesError
from labs.bench.table import (
    GLIBC,
    OPERATIONS,
    SMALL,
    START,
    STOP,
    age_of,
    over_budget,
    replace_table,
    sides_of,
    table,
)
from labs.tools.guest import package
from labs.tools.guest.package import PackageError

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = [ROOT / "build/bench" / GLIBC, ROOT / "build/user/bin" / SMALL]
SHARES = ROOT / "build/user/bin/shares"
KERNEL = ROOT / "build/lesson6/kernel.elf"
QUANTUM = 20 / 4000
"""A quantum's part of the time in which the shares are measured."""
KEYS = {(operation.program, operation.row) for operation in OPERATIONS}
TABLE_GLIBC_MINOR = 36  # exec of a static program costs three times as much with 2.41
STALE = 0.1
"""How far a kept figure may be from what is measured, for the kernel changes a little each day."""


@pytest.fixture(scope="session")
def programs(build):
    """The programs; our kernels are built with them."""
    build("bench-files")
    return PROGRAMS


@pytest.fixture(scope="session")
def ours(programs):
    return bench.measure_ours(KERNEL, programs)


@pytest.fixture(scope="session")
def linux(programs):
    """Linux's figures, measured now. The same kernel, programs and emulator count the same as when
    the table was written: they are not run again."""
    try:
        kernel, peer = bench.linux_kernel()
    except PackageError as error:
        pytest.skip(f"no Linux to compare with: {error}")
    kept = bench.README.read_text()
    if bench.origin(peer, [*programs, SHARES]).strip() in kept:
        pytest.skip("the table is of this Linux, these programs and this QEMU")
    return peer, bench.measure_linux(kernel, programs)


def glibc_minor() -> int:
    """The second number of the version of the C library that static programs get."""
    command = ["i686-linux-gnu-gcc", "-E", "-dM", "-include", "features.h", "-x", "c", "/dev/null"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(re.search(r"#define __GLIBC_MINOR__ (\d+)", said)[1])


@pytest.fixture(scope="session")
def kept():
    """Ours and Linux's figures in the table of the repository."""
    if glibc_minor() != TABLE_GLIBC_MINOR:
        pytest.skip(f"the table's programs have glibc 2.{TABLE_GLIBC_MINOR}, Debian 12's")
    return sides_of(bench.README.read_text())


def stale(kept, measured):
    """Which kept figures are not those of today."""
    return {
        key: (kept[key], measured[key])
        for key in KEYS
        if not kept[key] or abs(measured[key] / kept[key] - 1) > STALE
    }


# ---- both kernels -------------------------------------------------------------------------------


def test_no_kernel_does_with_less_than_the_processor_needs(ours):
    least = {(each.program, each.row): each.least for each in OPERATIONS}
    assert [key for key, figure in ours.items() if figure <= least.get(key, 0)] == []


def test_a_table_tells_when_it_is_older_than_the_kernel(tmp_path):
    """Commits of other files do not make it old."""

    def commit(name: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(path.read_text() + "more\n" if path.exists() else "new\n")
        words = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]
        for command in (["add", "."], words):
            subprocess.run(["git", "-C", tmp_path, *command], check=True)

    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    table_file = tmp_path / "bench/TABLE.md"
    commit("mm/area.c")
    commit("bench/TABLE.md")
    commit("tests/test_area.py")
    assert age_of(table_file) == ""
    commit("mm/area.c")
    commit("kernel/exit.c")
    assert age_of(table_file) == "TABLE.md is older than the kernel: 2 commits have changed it."


@pytest.mark.slow
def test_within_the_budgets(ours, kept):
    """Linux's figures are those of the table."""
    assert set(ours) >= KEYS
    assert over_budget(ours, kept[1]) == []


@pytest.mark.slow
def test_the_table_is_of_this_kernel(ours, kept):
    assert stale(kept[0], ours) == {}, "make bench writes the table anew"


@pytest.mark.slow
def test_our_figures_repeat_themselves(ours, programs):
    assert bench.measure_ours(KERNEL, programs) == ours


def test_calls_that_are_missing(programs):
    """The kernel of lesson 3 has one process and no pipes: it leaves out what needs more."""
    found = bench.measure_ours(ROOT / "build/lesson3/kernel.elf", programs[:1])
    missing = {"sched_yield", "pipe_one", "pipe_two", "fork_exit", "fork_exec", "fork_touch"}
    assert {row for (_, row), figure in found.items() if figure is None} == missing
    assert found[GLIBC, "getpid_int80"] > 0 and found[GLIBC, "mmap_touch"] > 0


@pytest.mark.slow
@pytest.mark.timeout(bench.WALL_SECONDS)
def test_linux_as_in_the_table(linux, kept):
    peer, figures = linux
    assert set(figures) >= KEYS
    if peer.sha256 in bench.README.read_text():
        assert stale(kept[1], figures) == {}


# ---- shares of the processor --------------------------------------------------------------------


@pytest.fixture(scope="session")
def our_shares(programs):
    return bench.shares_ours(KERNEL, SHARES)


@pytest.mark.slow
def test_equal_tasks_get_equal_shares(our_shares):
    assert {name: each.jain for name, each in our_shares.items() if each.jain < 0.99} == {}


@pytest.mark.slow
def test_shares_of_the_fair_class_are_within_a_quantum(our_shares):
    wanted = [each / sum(WEIGHTS) for each in WEIGHTS]
    assert our_shares["fair"].parts == pytest.approx(wanted, abs=QUANTUM)


@pytest.mark.slow
def test_a_sleeper_need_not_wait(our_shares):
    """Round robin lets it wait for all others; the other two do not, in the mean."""
    late = {name: each.delay[0] / 1000 for name, each in our_shares.items()}
    assert late["rr"] > 50 and late["mlfq"] < 10 and late["fair"] < 10, late


def test_the_table_has_all_classes():
    text = bench.README.read_text()
    assert shares.HEAD in text
    assert [title for title in shares.TITLES.values() if f"\n| {title} |" not in text] == []


def test_shares_that_are_missing():
    output = "shares rr equal 1 2\r\nshares rr delay 5 6\r\nshares: fork: no\r\n"
    with pytest.raises(SharesError, match=r"(?s)no shares of rr;.*fork: no"):
        shares.shares_of(output, ["rr"])
    found = shares.shares_of(f"{output}shares rr nice 3 1\n", ["rr"])["rr"]
    assert (found.jain, found.parts, found.delay) == (0.9, [0.75, 0.25], (5, 6))


# ---- the table ----------------------------------------------------------------------------------


def some_figures(first):
    """A side whose figures are one higher from row to row."""
    return {(each.program, each.row): first + i for i, each in enumerate(OPERATIONS)}


def test_a_table_can_be_read_again():
    ours, linux = some_figures(1_000), some_figures(2_000_000)
    ours[GLIBC, "fork_exit"] = None
    assert sides_of(table(ours, linux)) == (ours, linux)
    assert sides_of(table(ours, {})) == (ours, {})


def test_ratio_and_budget_are_in_the_table():
    ours, linux = some_figures(50), some_figures(200)
    assert "| getpid, `int 0x80` | 200 | 50 | 0.25 | at most 80 | 11 |\n" in table(ours, linux)
    assert "| getpid, `sysenter` | - | 51 |  | below Linux | 20 |\n" in table(ours, {})


def test_what_is_over_its_budget():
    cheap, linux = dict.fromkeys(KEYS, 10), dict.fromkeys(KEYS, 300)
    assert over_budget(cheap, linux) == []
    dear = {**cheap, (GLIBC, "getpid_int80"): 81, (GLIBC, "getpid_sysenter"): 300}
    dear[GLIBC, "pipe_two"] = None
    assert over_budget(dear, linux) == [
        "getpid, `int 0x80`: 81 instructions, 80 are the most",
        "getpid, `sysenter`: 300 instructions, 299 are the most",
        "pipe round trip of 1 B, two processes: the kernel has no such call",
    ]


def test_only_the_table_is_replaced():
    assert replace_table(f"a\n{START}\nold\n{STOP}\nb\n", "new") == (
        f"a\n{START}\n\nnew\n{STOP}\nb\n"
    )
    with pytest.raises(ValueError, match="no place for the table"):
        replace_table("nothing", "new")


# ---- what a machine prints ----------------------------------------------------------------------


def test_figures():
    output = "noise\r\nbench a 12 from 3 to 45\r\nbench b none\r\nother a 6 from 6 to 6\r\nend\r\n"
    found = {("bench", "a"): 12, ("bench", "b"): None, ("other", "a"): 6}
    assert bench.figures(output) == found


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("bench a 1 from 1 to 1\npanic: no more\n", "not come to their end.*panic: no more"),
        ("bench a error 12\nend\n", "bench: a failed with error 12"),
        ("", "not come to their end"),
    ],
)
def test_a_run_that_failed(output, cause):
    with pytest.raises(bench.BenchError, match=f"(?s){cause}"):
        bench.figures(output)


# ---- packages -----------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and a mirror that is not there."""
    monkeypatch.setenv("PACKAGES", str(tmp_path))
    monkeypatch.setenv("MIRROR", "http://127.0.0.1:9/debian")
    return tmp_path


@pytest.fixture
def kept_package(cache):
    """A package of our own in the cache, as if it had been fetched."""
    content = cache / "content"
    (content / "DEBIAN").mkdir(parents=True)
    control = "Package: tiny\nVersion: 1:2.0\nArchitecture: i386\nMaintainer: x\nDescription: x\n"
    (content / "DEBIAN/control").write_text(control)
    (content / "file").write_text("what is in it")
    path = cache / "tiny_1%3a2.0_i386.deb"
    subprocess.run(["dpkg-deb", "-b", content, path], check=True, capture_output=True)
    found = package.describe("tiny", path)
    path.with_suffix(".sha256").write_text(found.sha256)
    return found


def test_the_mirror_is_the_machines_own(monkeypatch):
    shown = "Debian|Debian-Security|http://a/security/\nOther|Other|http://b/\n"
    shown += "Debian|Debian|http://c/\n"
    monkeypatch.setattr(package, "run", lambda *_: shown)
    assert package.mirror_of_machine("tiny") == "http://c/"
    monkeypatch.setattr(package, "run", lambda *_: "Other|Other|http://b/\n")
    with pytest.raises(package.PackageError, match=r"tiny: apt .* has no mirror of Debian"):
        package.mirror_of_machine("tiny")


def test_a_kept_package_needs_no_network(kept_package, tmp_path):
    found = package.fetch("tiny")
    assert (found, found.version) == (kept_package, "1:2.0")
    assert found.extract("file", tmp_path / "out/file").read_text() == "what is in it"
    with pytest.raises(PackageError, match=r"tiny 1:2\.0 has no file none"):
        found.extract("none", tmp_path / "none")


def test_a_changed_package_is_not_used(kept_package):
    with kept_package.path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(PackageError, match=r"^tiny"):
        package.fetch("tiny")


def test_no_network(cache):
    """The cause is named, and nothing is left that looks like a package."""
    with pytest.raises(PackageError, match=r"^linux-image-686") as raised:
        bench.linux_kernel()
    assert "127.0.0.1" in str(raised.value) or "apt-get" in str(raised.value)
    assert list(cache.glob("*.deb")) == []


def test_without_linux_the_table_stays(cache, monkeypatch, capsys):
    ours = some_figures(1)
    monkeypatch.setattr(bench, "measure_ours", lambda *_: ours)
    monkeypatch.setattr(bench, "shares_ours", lambda *_: {})
    before = bench.README.read_text()
    assert bench.compare(ROOT / "kernel.elf", PROGRAMS, SHARES) == 0
    shown = capsys.readouterr()
    assert sides_of(shown.out) == (ours, {})
    assert "Linux was not measured, and the tables are as they were: linux-image-686" in shown.err
    assert bench.README.read_text() == before
