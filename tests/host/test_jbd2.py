"""The journal, compiled for the host: random sessions with power cuts, and journals that Linux's
tools write, and read."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labs.storage.crash import building
from labs.tools.machine.bounded import run_within
from tests.host.ext.images import MIB, ROOT, SEED, bmap, debugfs, make_image, patch, peek, run_tool
from tests.host.jbd2.mutants import MUTANTS, Mutant
from tests.support.building import WHOLE

SOURCES = [
    *sorted((ROOT / "fs" / "jbd2").glob("*.c")),
    ROOT / "fs" / "cache" / "bcache.c",
    ROOT / "tests" / "host" / "ext" / "shim.c",
    ROOT / "tests" / "host" / "ext" / "record.c",
    *sorted((ROOT / "tests" / "host" / "jbd2").glob("*.c")),
]
FAST = [*building.OPTIONS, "-O2"]  # for mutants
SECONDS = 300
FIRST = 6000  # blocks of the images that no file has
JOURNAL = "<8>"
JOURNAL_BLOCKS = 1024
SEEDS = 4 if WHOLE else 2  # of random sessions, in each of which some 5,000 states are tried
MUTANT_SEEDS = 12  # at most; most are caught by the first
INCOMPAT_RECOVER = 4
SUPER = 1024
IGNORED = range(
    SUPER, SUPER + 1024
)  # the file system's own superblock, which e2fsck marks as clean


class Journals:
    """The journal's program on the host."""

    def __init__(self, program: Path) -> None:
        self.program = program

    def start(self, *arguments: object, text: str = "", allowed: tuple[int, ...] = (0,)) -> str:
        done = run_within(
            [self.program, *map(str, arguments)],
            input=text.encode(),
            capture_output=True,
            seconds=SECONDS,
            check=False,
        )
        assert done.returncode in allowed, done.stderr.decode()
        return (done.stdout + done.stderr).decode()

    def work(self, image: Path, *commands: str, wide: bool = False, checks: bool = False) -> list:
        """Opens the journal of an image, recovers it, and gives commands. Returns the answers."""
        size = block_size(image)
        queries = [(JOURNAL, block) for block in range(JOURNAL_BLOCKS)]
        places = " ".join(str(block) for block, _ in bmap(image, queries))
        text = "\n".join([places, *commands, ""])
        return self.start("image", image, size, int(wide), int(checks), text=text).splitlines()


@pytest.fixture(scope="session")
def journals() -> Journals:
    options = [*building.OPTIONS, *building.SANITIZERS]
    return Journals(building.linked("jbd2_host", building.objects_of(SOURCES, options), options))


def block_size(image: Path) -> int:
    (log,) = peek(image, SUPER + 0x18, "<I")
    return 1024 << log


def set_recover(image: Path) -> None:
    """Says in the superblock that the journal must be replayed, as who mounts it does first."""
    debugfs(image, ["feature needs_recovery"], write=True)


# ---- power cuts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(1, 1 + SEEDS))
def test_power_cuts_leave_a_prefix_of_the_transactions(journals, seed):
    """After each write, all of it, subsets, torn sectors; three sessions on one disk, so that cuts
    in a recovery and after one are among them; and damaged logs, which may only give errors."""
    said = journals.start("property", seed * 100, 1)
    states = int(re.search(r"states (\d+)", said)[1])
    assert states > 1000


def result_of(mutant: Mutant, place: Path) -> str:
    """What the random sessions say about a mutant; "" if they find nothing."""
    original = ROOT / mutant.file
    text = original.read_text()
    assert text.count(mutant.old) == 1, f"{mutant.name}: its text is not in {mutant.file} once"
    place.mkdir()
    changed, program = place / original.name, place / "program"
    changed.write_text(text.replace(mutant.old, mutant.new))
    others = building.objects_of((each for each in SOURCES if each != original), FAST)
    command = ["gcc", *FAST, "-w", f"-I{ROOT}", changed, *others, "-o", program]
    subprocess.run(command, check=True)
    done = run_within(
        [program, "property", str(mutant.session), str(MUTANT_SEEDS)],
        capture_output=True,
        text=True,
        seconds=SECONDS,
        check=False,
    )
    return f"status {done.returncode}: {done.stderr}" if done.returncode else ""


def test_mutants_are_caught(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda each: result_of(each, tmp_path / each.name), MUTANTS))
    survivors = [mutant.name for mutant, text in zip(MUTANTS, said, strict=True) if not text]
    assert not survivors


# ---- journals of other programs -----------------------------------------------------------------

KINDS = {
    "ext3-1024": ("-t ext3 -b 1024", "jo"),
    "ext3-4096": ("-t ext3 -b 4096", "jo"),
    "ext4-1024-v3": ("-t ext4 -b 1024", "jo -c -v 3"),
    "ext4-2048-v2": ("-t ext4 -b 2048", "jo -c -v 2"),
    "ext4-4096-v3": ("-t ext4 -b 4096", "jo -c -v 3"),
    "ext4-32bit-v2": ("-t ext4 -b 1024 -O ^64bit", "jo -c -v 2"),
    "ext4-32bit-v3": ("-t ext4 -b 1024 -O ^64bit", "jo -c -v 3"),
    "ext4-64bit": ("-t ext4 -b 1024", "jo"),
    "ext4-v1": ("-t ext4 -b 1024 -O ^metadata_csum", "jo -c -v 1"),
}


def image_of(kind: str, place: Path) -> Path:
    options = KINDS[kind][0]
    block = int(re.search(r"-b (\d+)", options)[1])
    journal = JOURNAL_BLOCKS * block // MIB
    return make_image(place / "a.img", 8 * block * 1024, f"{options} -N 128 -J size={journal}")


def numbers(blocks: Iterable[int]) -> str:
    return ",".join(map(str, blocks))


def random_transactions(rng: random.Random, place: Path, block: int) -> list[str]:
    """debugfs commands that write transactions to a journal. Some blocks begin like one of its
    own."""
    commands = []
    for number in range(12):
        blocks = rng.sample(range(FIRST, FIRST + 60), rng.randrange(1, 20))
        revoked = rng.sample(range(FIRST, FIRST + 60), rng.randrange(0, 9))
        contents = place / f"contents{number}"
        contents.write_bytes(
            b"".join(
                (b"\xc0\x3b\x39\x98" if rng.random() < 0.3 else b"") + rng.randbytes(block)
                for _ in blocks
            )[: block * len(blocks)]
        )
        if revoked and rng.random() < 0.7:
            commands.append(f"jw -r {numbers(revoked)}")
        commands.append(f"jw -b {numbers(blocks)} {contents}")
    return commands


def replay_both(journals: Journals, image: Path) -> tuple[bytes, bytes, list[str]]:
    """The image after e2fsck's replay, after ours, and what ours said."""
    theirs = Path(shutil.copy(image, image.with_suffix(".theirs")))
    ours = Path(shutil.copy(image, image.with_suffix(".ours")))
    run_tool("e2fsck", "-y", "-E", "journal_only", str(theirs), allowed=(0, 1))
    said = journals.work(ours)
    return theirs.read_bytes(), ours.read_bytes(), said


def same(left: bytes, right: bytes) -> list[int]:
    """The sectors that differ, but for the file system's superblock."""
    assert len(left) == len(right)
    return [
        at
        for at in range(0, len(left), 512)
        if left[at : at + 512] != right[at : at + 512] and at not in IGNORED
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_replay_is_that_of_e2fsck(journals, tmp_path, kind):
    image = image_of(kind, tmp_path)
    rng = random.Random(SEED)
    # With checksums of version 1, debugfs writes wrong ones after the first transactions.
    for _ in range(2):  # the second journal begins with the number where the first one ended
        commands = random_transactions(rng, tmp_path, block_size(image))
        debugfs(image, [KINDS[kind][1], *commands, "jc"], write=True)
        theirs, ours, said = replay_both(journals, image)
        assert not same(theirs, ours)
        written = int(re.search(r"wrote (\d+)", "\n".join(said))[1])
        assert "recover" in said and written > (0 if kind == "ext4-v1" else 20)
        image.write_bytes(theirs)
    run_tool("e2fsck", "-fn", str(image))


@pytest.mark.parametrize("kind", ["ext4-1024-v3", "ext4-2048-v2", "ext4-v1"])
def test_a_torn_transaction_ends_the_log(journals, tmp_path, kind):
    """A byte of the second transaction is wrong: only the first one is replayed."""
    image = image_of(kind, tmp_path)
    size = block_size(image)
    contents = tmp_path / "contents"
    contents.write_bytes(b"new" * size)
    writes = [f"jw -b {FIRST + number} {contents}" for number in range(3)]
    debugfs(image, [KINDS[kind][1], *writes, "jc"], write=True)
    for logical in (4, 5, 6):  # of the second transaction: descriptor, copy, commit block
        copy = Path(shutil.copy(image, tmp_path / "b.img"))
        place = bmap(copy, [(JOURNAL, logical)])[0][0] * size
        (byte,) = peek(copy, place + 24, "B")
        if kind == "ext4-v1" and logical == 6:
            place -= 8  # version 1 does not cover all of the commit block: its checksum is here
            (byte,) = peek(copy, place + 24, "B")
        patch(copy, place + 24, "B", byte ^ 1)
        assert "wrote 1" in journals.work(copy), logical


def test_what_we_write_is_read_by_others(journals, tmp_path):
    """debugfs shows our log, and e2fsck replays it to the same image as we do."""
    for kind in ("ext3-1024", "ext4-1024-v3", "ext4-4096-v3", "ext4-32bit-v3"):
        place = tmp_path / kind
        place.mkdir()
        image = image_of(kind, place)
        set_recover(image)
        features = peek(image, SUPER + 0x60, "<I")[0], peek(image, SUPER + 0x64, "<I")[0]
        said = journals.work(
            image,
            *("begin 30", *(f"change {FIRST + number} {number}" for number in range(20)), "end"),
            *("commit", "begin 3", f"escaped {FIRST + 3} 7", f"revoke {FIRST + 5} 2"),
            *(f"change {FIRST + 6} 99", "end", "commit", "begin 1", f"change {FIRST} 1", "end"),
            wide=bool(features[0] & 0x80),
            checks=bool(features[1] & 0x400),
        )
        assert not [line for line in said if "error" in line]
        log = "\n".join(debugfs(image, ["logdump -a"]))
        assert f"FS block {FIRST + 19} logged at journal block" in log
        assert f"Revoke FS block {FIRST + 5}\n" in log
        assert f"Revoke FS block {FIRST + 6}\n" not in log
        assert len(re.findall("commit block", log)) == 2
        theirs, ours, said = replay_both(journals, image)
        assert not same(theirs, ours)
        assert "wrote 21" in said
        size = block_size(image)
        for block, first in ((3, b"\xc0\x3b\x39\x98\x07"), (4, b"\x04"), (6, b"\x63"), (0, b"\0")):
            assert ours[(FIRST + block) * size :].startswith(first)
        assert ours[(FIRST + 5) * size] == 0  # it was revoked
        clean = Path(shutil.copy(image, place / "c.img"))
        clean.write_bytes(theirs)
        run_tool("e2fsck", "-fn", str(clean))


def test_a_closed_journal_is_empty(journals, tmp_path):
    image = image_of("ext4-1024-v3", tmp_path)
    rounds = [
        f"begin 9\nchange {FIRST + n % 50} {n % 256}\nchange {FIRST + 50} 1\nend\ncommit"
        for n in range(600)
    ]  # three blocks of the log each: it goes round
    said = journals.work(image, *rounds, "close", wide=True, checks=True)
    assert not [line for line in said if "error" in line]
    assert image.read_bytes()[(FIRST + 49) * 1024] == 599 % 256
    text = run_tool("dumpe2fs", "-h", str(image))
    assert re.search(r"Journal start: +0\n", text) and "journal_checksum_v3" in text
    run_tool("e2fsck", "-fn", str(image))


# ---- what is refused ----------------------------------------------------------------------------

REFUSED = {  # offset in the superblock, what to write there (big-endian), and the message
    "magic": (0, 1, "magic 0x00000001"),
    "version-1": (4, 3, "a superblock of version 1"),
    "type": (4, 9, "type 9"),
    "block-size": (12, 4096, "blocks of 4096 bytes, not 1024"),
    "length": (16, 1025, "1025 blocks, but its file has 1024"),
    "short": (16, 8, "the log is from 1 to 8"),
    "first": (20, 0, "the log is from 0 to 1024"),
    "start": (28, 2000, "it begins at 2000"),
    "unknown": (40, 0x40, "features 0x40"),
    "asynchronous": (40, 4, "asynchronous commits"),
    "both": (40, 0x18, "versions 2 and 3"),
    "shared": (64, 2, "several file systems share"),
    "checksum": (40, 0x10, "checksum"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(journals, tmp_path, what):
    image = image_of("ext3-1024", tmp_path)
    offset, value, message = REFUSED[what]
    patch(image, bmap(image, [(JOURNAL, 0)])[0][0] * 1024 + offset, ">I", value)
    before = image.read_bytes()
    said = journals.work(image)
    assert message in said[0] and said[-1].startswith("open error"), said
    assert image.read_bytes() == before


@pytest.mark.parametrize("number", [1, 2, 3])
def test_fast_commits(journals, tmp_path, number):
    """Those that continue the log must be replayed, which only e2fsck can; older ones are stale."""
    image = image_of("ext4-64bit", tmp_path)
    contents = tmp_path / "contents"
    contents.write_bytes(b"x" * 1024)
    debugfs(image, ["jo", f"jw -b {FIRST} {contents}", "jc"], write=True)
    superblock, area = (place * 1024 for place, _ in bmap(image, [(JOURNAL, 0), (JOURNAL, 768)]))
    (features,) = peek(image, superblock + 40, ">I")
    patch(image, superblock + 40, ">I", features | 0x20)
    patch(image, area, "<HHII", 9, 8, 0, number)
    said = journals.work(image)
    if number == 2:
        assert "fast commits" in said[1] and said[-1] == "recover error 95"
    else:
        assert "wrote 1" in said and said[-1] == "recover"


def test_a_block_outside_the_device_is_not_replayed(journals, tmp_path):
    image = image_of("ext3-1024", tmp_path)
    contents = tmp_path / "contents"
    contents.write_bytes(b"x" * 2048)
    debugfs(image, ["jo", f"jw -b {FIRST},{FIRST + 1} {contents}", "jc"], write=True)
    tag = bmap(image, [(JOURNAL, 1)])[0][0] * 1024 + 12 + 8 + 16  # the second
    patch(image, tag, ">I", 9000)
    before = image.read_bytes()
    said = journals.work(image)
    assert "has block 9000, outside the device" in said[1] and said[-1] == "recover error 117"
    assert image.read_bytes() == before
