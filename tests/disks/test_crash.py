"""The crash laboratory: its reader of logs, its judge, and what it says of the library."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from labs.storage.crash.building import ROOT, VARIANTS, build, make_image, variant_named
from labs.storage.crash.laboratory import Laboratory, show_state
from labs.storage.crash.log import FLUSH, Entry, Layout, LogError, read_log, write_log
from labs.storage.crash.mutants import MUTANTS, build_mutant
from labs.storage.crash.workloads import named, pattern
from labs.tools.machine.bounded import run_within
from tests.support.building import WHOLE

SECTOR = 512


# ---- logs ---------------------------------------------------------------------------------------


def test_log_of_qemu_is_read(tmp_path):
    """QEMU's own tool writes through blklogwrites: what it wrote and flushed is in the log."""
    disk, log = tmp_path / "disk.img", tmp_path / "log"
    for path in (disk, log):
        path.write_bytes(bytes(1 << 20 if path == disk else 0))
    options = (
        f"driver=blklogwrites,file.driver=file,file.filename={disk},log.driver=file,"
        f"log.filename={log},log-super-update-interval=1,log-sector-size=512"
    )
    commands = ["write -P 0x11 0 4096", "flush", "write -P 0x22 8192 512", "write -P 0x33 0 512"]
    words = [word for command in commands for word in ("-c", command)]
    run_within(
        ["qemu-io", *words, "--image-opts", options], capture_output=True, seconds=60, check=True
    )
    entries = [entry for entry in read_log(log) if entry.data or entry.flushes]
    writes = [(entry.sector, entry.data) for entry in entries if entry.data]
    assert writes == [(0, b"\x11" * 4096), (16, b"\x22" * 512), (0, b"\x33" * 512)]
    flushes = [number for number, entry in enumerate(entries) if entry.flushes]
    assert 1 in flushes
    again = bytearray(1 << 20)
    for entry in entries:
        again[entry.sector * SECTOR : entry.sector * SECTOR + len(entry.data)] = entry.data
    assert bytes(again) == disk.read_bytes()


def test_log_is_checked(tmp_path):
    log = tmp_path / "log"
    entries = [Entry(5, b"a" * SECTOR, 0), Entry(0, b"", FLUSH)]
    write_log(log, entries)
    assert list(read_log(log)) == entries
    log.write_bytes(log.read_bytes()[: 3 * SECTOR])
    with pytest.raises(LogError, match="ends at entry 1 of 2"):
        list(read_log(log))
    log.write_bytes(bytes(SECTOR))
    with pytest.raises(LogError, match="no log of writes"):
        list(read_log(log))


def test_blocks_are_named(tmp_path):
    """By their place in the image, by the journal's own words, or by what is in them."""
    layout = Layout(make_image(tmp_path / "a.img", VARIANTS["ext4"]))
    journal = min(layout.journal)

    def name(block: int, data: bytes) -> str:
        return layout.name(Entry(block * 2, data.ljust(1024, b"\0"), 0))

    commit = struct.pack(">3I", 0xC03B3998, 2, 7)
    assert (
        name(journal + 5, commit) == f"journal: commit block of transaction 7 (block {journal + 5})"
    )
    assert name(journal + 6, b"x" * 1024).startswith("journal: a copy of a block")
    assert name(1, b"x" * 1024) == "the superblock (block 1)"
    tables = [place for place in layout.places if "inode table" in place[2]]
    assert name(tables[0][0], b"x" * 1024).startswith("the inode table of group 0")
    free = 16000
    assert name(free, pattern(1024, 9)) == f"data of write 9, from byte 0 on (block {free})"
    assert name(free, b"\x0a\xf3").startswith("an extent block")
    assert name(free, b"").startswith("zeros")
    assert layout.name(Entry(0, b"", FLUSH)) == "flush"


# ---- the library --------------------------------------------------------------------------------

SAMPLE = (
    "saving",
    "orphans",
    "full",
    "create.fsync",
    "rename-over.none+unlink-below.fdatasync",
    "punch.none+append-much.sync",
    "rename-directory.sync+rename-up.none",
    "truncate.none+write-far.fsync",
    "link.fsync+unlink.none",
    "symlink-long.none+rmdir.sync",
)
TWO_LINES = 2
SEEDS = (2010, 1, 2)
"""Which states a sample has. One mutant shows only in few of them."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("variant", ["ext4", "ext4-4096", "ext3", "ext4-new", "ext4-plain"])
def test_power_cuts_lose_nothing(tmp_path, variant):
    """A sample of `make crash`: cuts at each request, and with a part of what was in the cache."""
    laboratory = Laboratory(build(), tmp_path, seed=7, share=3)
    figures = laboratory.run([variant], 0, workloads=[named(name) for name in SAMPLE])
    assert not figures.violations and not figures.wrong
    assert figures.workloads == len(SAMPLE) and figures.states > 150
    assert all(count > 0 for name, count in figures.counts.items() if name != "wrong")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_power_cuts_with_the_sanitizers(tmp_path):
    laboratory = Laboratory(build(sanitize=True), tmp_path, seed=8, share=50)
    figures = laboratory.run(["ext4"], 0, workloads=[named(name) for name in SAMPLE])
    assert not figures.violations


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_fits_the_source(name):
    for file, old, new in MUTANTS[name].changes:
        assert (ROOT / file).read_text().count(old) == 1, f"{file}: {old}"
        assert old != new


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(tmp_path, name):
    """And what was found can be had again by its name, and is told in words."""
    mutant = MUTANTS[name]
    program = build_mutant(name, tmp_path / "mutant")
    for seed in SEEDS:
        laboratory = Laboratory(program, tmp_path, seed=seed, limit=1)
        workloads = [named(each) for each in mutant.workloads]
        figures = laboratory.run(mutant.variants, 0, first_only=True, workloads=workloads)
        if figures.violations:
            break
    assert figures.violations, mutant.what
    name = figures.violations[0].name
    if name.endswith(":no cut") and not WHOLE:
        return  # all states are tried again
    again = tmp_path / "again"
    again.mkdir()
    assert show_state(program, again, name) == 1


@pytest.mark.slow
def test_state_is_told_in_words(tmp_path, capsys):
    assert show_state(build(), tmp_path, "ext4:saving:8-7") == 0
    said = capsys.readouterr().out
    assert "operation 2: write /text 0 3000 500" in said
    assert "the power is cut after 8 of" in said
    assert "request 7: journal: commit block of transaction" in said and ": missing" in said


@pytest.mark.slow
def test_log_of_another_machine_is_judged(tmp_path):
    """Requests that were recorded elsewhere, and how many there were after each operation."""
    variant, workload = variant_named("ext4"), named("saving")
    laboratory = Laboratory(build(), tmp_path, seed=7, share=3)
    log = tmp_path / "log"
    program = laboratory.start(variant, workload, save=log)
    program.run(workload)
    lines = zip(program.ends[1:], workload.lines, strict=True)
    marked = replace(workload, lines=tuple(b"%d %s" % (end, line) for end, line in lines))
    program.close()

    def judge() -> int:
        program = laboratory.start(variant, marked, log=log, weak="yes", second=0)
        counts, violations = program.run(marked)
        program.close()
        assert counts[2] > TWO_LINES
        return len(violations)

    assert judge() == 0
    entries = list(read_log(log))
    write_log(log, [entry if not entry.flushes else Entry(0, b"", FLUSH) for entry in entries])
    assert judge() == 0
    lost = [Entry(e.sector, bytes(len(e.data)), e.flags) if e.sector > 300 else e for e in entries]
    write_log(log, lost)
    assert judge() > 0
