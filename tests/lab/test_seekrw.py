"""user/seekrw.c, built as for the course's kernel and run on this machine: on files with stamps, on
files with holes, and on what it must refuse."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import resource
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from labs.storage.disks import DRIVES, Experiment, image_path, make_disks
from labs.storage.workload import random_offsets
from labs.tools.machine.bounded import run_within

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-I.", "-static")
SECTOR = 512
MASK = (1 << 64) - 1
STAMP_MAGIC = 0x504D4154534F4950
NOBODY = 65534
Seekrw = Callable[..., subprocess.CompletedProcess]

# What a kernel has to know for it: section "random reader" of the course's list of system calls.
# The last line is what the C library asks at the start and goes on without.
SYSTEM_CALLS = {
    *("execve", "open", "openat", "pread64", "pwrite64", "ioctl", "write", "exit", "exit_group"),
    *(
        "read",
        "close",
        "_llseek",
        "stat64",
        "fstat64",
        "statx",
        "clock_gettime",
        "clock_gettime64",
        "brk",
        "mmap2",
        "munmap",
    ),
    *("set_thread_area", "mprotect"),
    *("set_tid_address", "set_robust_list", "rseq", "ugetrlimit", "readlink", "getrandom"),
}


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, static, for the i386; skips where none can be built or run."""
    if platform.machine() not in ("x86_64", "i686", "i586", "i386"):
        pytest.skip(f"a {platform.machine()} does not run i386 programs")
    compiler = shutil.which("i686-linux-gnu-gcc")
    command = [compiler] if compiler else ["gcc", "-m32"]
    path = tmp_path_factory.mktemp("user") / "seekrw"
    command += [*FLAGS, "-Werror", "user/seekrw.c", "-o", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode and not compiler:
        pytest.skip("no compiler here links a static i386 program")
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="session")
def seekrw(program: Path) -> Seekrw:
    """Runs the program with arguments; keywords are those of subprocess.run."""

    def run(*arguments: object, **keywords: object) -> subprocess.CompletedProcess:
        command = [str(program), *map(str, arguments)]
        return run_within(
            command, capture_output=True, text=True, check=False, seconds=60, **keywords
        )

    return run


def values(seekrw: Seekrw, *arguments: object) -> dict:
    """The result as JSON; the run must be good."""
    done = seekrw(*arguments, "-j")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---- stamps, as labs/storage/stamp.h has them ---------------------------------------------------


def split_mix_64(seed: int) -> Iterator[int]:
    """Steele, Lea and Flood's generator, from their paper."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        yield mixed ^ (mixed >> 31)


def offsets(seed: int, size: int, length: int, count: int) -> list[int]:
    """Byte offsets of `count` operations of `length` bytes each, in `size` bytes."""
    places = size // length
    mask = (1 << (places - 1).bit_length()) - 1
    numbers = (number & mask for number in split_mix_64(seed))
    return [length * place for place in islice((n for n in numbers if n < places), count)]


def stamped(drive: str, lba: int, offset: int) -> bytes:
    """A sector of 512 bytes."""
    noise = islice(split_mix_64(ord(drive) << 56 | lba), 60)
    return struct.pack("<64Q", STAMP_MAGIC, ord(drive), lba, offset, *noise)


def make_stamped(path: Path, size: int, places: list[int], drive: str = "b") -> Path:
    """A sparse file of `size` bytes with stamps at these byte offsets."""
    with path.open("wb") as file:
        file.truncate(size)
        for offset in places:
            file.seek(offset)
            file.write(stamped(drive, offset // SECTOR, offset))
    return path


def data_ranges(path: Path) -> Iterator[tuple[int, int]]:
    """First and last byte (the latter not included) of what is no hole, as the host stores it."""
    with path.open("rb") as file:
        end = 0
        while True:
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError as error:
                assert error.errno == errno.ENXIO
                return
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            yield start, end


def stamps_in(path: Path) -> dict[int, bytes]:
    """Every sector that is not zero, by its byte offset."""
    found = {}
    with path.open("rb") as file:
        for start, end in data_ranges(path):
            for offset in range(start - start % SECTOR, end, SECTOR):
                file.seek(offset)
                if any(sector := file.read(SECTOR)):
                    found[offset] = sector
    return found


# ---- what it reads ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2010, MASK])
def test_reads_where_the_sequence_says(seekrw, tmp_path, seed):
    """Only the sectors of the sequence carry stamps, so any other read would be wrong."""
    size = 3_000_001 * SECTOR + 17
    places = offsets(seed, size, SECTOR, 500)
    assert places == list(random_offsets(seed, size, 500))
    path = make_stamped(tmp_path / "file", size, places)
    measured = values(seekrw, "-f", path, "-a", 500, "-s", seed, "-c")
    assert measured["wrong"] == 0
    assert (measured["reads"], measured["writes"]) == (500, 0)
    assert measured["size"] == size


def test_every_sector_of_the_sequence_is_read(seekrw, tmp_path):
    """Each stamp that is missing is noticed."""
    size = 1 << 30
    places = offsets(5, size, SECTOR, 200)
    path = make_stamped(tmp_path / "file", size, places[1::2])
    done = seekrw("-f", path, "-a", 200, "-s", 5, "-c", "-j")
    assert done.returncode == 1
    assert json.loads(done.stdout)["wrong"] == 100
    assert done.stderr == f"seekrw: {path}: the sector at offset {places[0]} carries no stamp\n"


def test_the_labs_own_disk(seekrw, build, tmp_path):
    """hdb.img, as labs/storage/disks.py makes it, at a ten-thousandth of its size."""
    experiment = Experiment(scale=10_000, reads=200, seed=77)
    make_disks(tmp_path, experiment, build("build/host/lab-file"))
    image = image_path(tmp_path, DRIVES[0])
    assert values(seekrw, "-f", image, "-a", 200, "-s", 77, "-c")["wrong"] == 0
    wrong = seekrw("-f", image, "-a", 200, "-s", 78, "-c")
    assert wrong.returncode == 1


@pytest.mark.parametrize(
    ("sector", "words"),
    [
        (stamped("b", 8, 0), "is that of offset 0 of drive b"),
        (stamped("c", 8, 4096), "is that of offset 4096 of drive c"),
        (stamped("b", 8, 4096)[:-1] + b"?", "is damaged after its stamp"),
        (b"\xff" * SECTOR, "carries no stamp"),
    ],
)
def test_wrong_sectors_are_described(seekrw, tmp_path, sector, words):
    """A file of nine sectors, of which only the last is wrong; it is read sooner or later."""
    path = tmp_path / "file"
    good = b"".join(stamped("b", lba, lba * SECTOR) for lba in range(8))
    path.write_bytes(good + sector)
    done = seekrw("-f", path, "-a", 200, "-c", "-j")
    assert done.returncode == 1
    assert done.stderr == f"seekrw: {path}: the sector at offset 4096 {words}\n"
    wrong = sum(offset == 4096 for offset in offsets(1, 9 * SECTOR, SECTOR, 200))
    assert json.loads(done.stdout)["wrong"] == wrong


def test_the_lba_of_a_file_is_believed(seekrw, tmp_path):
    """Where the file system put a sector is not for the program to know."""
    path = tmp_path / "file"
    path.write_bytes(b"".join(stamped("d", 1000 + i, i * SECTOR) for i in range(16)))
    assert values(seekrw, "-f", path, "-c", "-D", "d")["wrong"] == 0


# ---- what it writes -----------------------------------------------------------------------------


@pytest.mark.parametrize("length", [SECTOR, 4096, 65536])
def test_writes_where_the_sequence_says(seekrw, tmp_path, length):
    """On a sparse file of 4 TiB: offsets need 43 bits, and reach the last of them."""
    size, path = 1 << 42, tmp_path / "file"
    with path.open("wb") as file:
        try:
            file.truncate(size)
        except OSError as error:
            pytest.skip(f"no files of 4 TiB here: {error.strerror}")
    measured = values(seekrw, "-f", path, "-a", 64, "-l", length, "-w", 100, "-c", "-s", 9)
    assert (measured["reads"], measured["writes"]) == (0, 64)
    places = offsets(9, size, length, 64)
    assert max(places) > 1 << 41
    expected = {
        offset: stamped("b", offset // SECTOR, offset)
        for place in places
        for offset in range(place, place + length, SECTOR)
    }
    assert stamps_in(path) == expected
    assert values(seekrw, "-f", path, "-a", 64, "-l", length, "-c", "-s", 9)["wrong"] == 0


@pytest.mark.parametrize("percent", [0, 1, 30, 99])
def test_the_mix(seekrw, tmp_path, percent):
    """This many of a hundred write, whatever the mix at the same offsets."""
    path = make_stamped(tmp_path / "file", 1 << 20, [])
    count = 200_000
    measured = values(seekrw, "-f", path, "-a", count, "-w", percent)
    assert measured["reads"] + measured["writes"] == count
    assert abs(measured["writes"] * 100 / count - percent) <= (0.5 if percent else 0)
    written = set(stamps_in(path))
    assert written <= set(offsets(1, 1 << 20, SECTOR, count))
    assert bool(written) == (percent > 0)


def test_reading_does_not_write(seekrw, tmp_path):
    path = make_stamped(tmp_path / "file", 1 << 20, offsets(1, 1 << 20, SECTOR, 100))
    before = path.read_bytes()
    path.chmod(0o444)
    values(seekrw, "-f", path, "-a", 100, "-r", "-c")
    assert path.read_bytes() == before


# ---- what it says -------------------------------------------------------------------------------


def test_the_published_summary(seekrw, tmp_path):
    """Its first line is that of 2010."""
    path = make_stamped(tmp_path / "file", 1 << 20, [])
    done = seekrw("-f", path, "-a", 10, "-r")
    first, second, third, *_ = done.stdout.splitlines()
    assert re.fullmatch(r"real time: 0 minutes \d+ seconds \d{1,6} usec", first)
    words = "10 reads and 0 writes of 512 bytes, through the page cache; operations a second: "
    assert re.fullmatch(rf"{words}\d+\.\d\d", second)
    assert re.search(r"50\.0 %: \d+, 90\.0 %: \d+, 99\.0 %: \d+, 99\.9 %: \d+, all: \d+$", third)
    assert done.stderr == ""  # progress is for terminals


def test_percentiles(seekrw, tmp_path):
    """They ascend, the last is the longest, and all operations fit into the time."""
    path = make_stamped(tmp_path / 'fi"le', 1 << 20, [])
    measured = values(seekrw, "-f", path, "-a", 5000, "-l", 777)
    assert measured["file"] == str(path)
    ns = list(measured["percentiles_ns"].values())
    assert list(measured["percentiles_ns"]) == ["50.0", "90.0", "99.0", "99.9", "100.0"]
    assert ns[0] > 0 and ns == sorted(ns)
    assert 0.5 * 5000 * ns[0] * 0.97 <= measured["ns"]


def test_direct(seekrw, tmp_path):
    """A request an operation, where the device's counters are known and nobody else reads."""
    size = 1 << 24
    path = make_stamped(tmp_path / "file", size, range(0, size, SECTOR))
    done = seekrw("-f", path, "-a", 100, "-l", 4096, "-d", "-c")
    if "no direct I/O" in done.stderr:
        pytest.skip("the file system of the temporary directory has no direct I/O")
    assert "4096 bytes, direct; " in done.stdout
    measured = values(seekrw, "-f", path, "-a", 100, "-l", 4096, "-d", "-c")
    assert (measured["wrong"], measured["direct"]) == (0, True)
    assert measured["requests"] is None or measured["requests"]["reads"] >= 100
    assert values(seekrw, "-f", path, "-a", 100, "-l", 4096, "-d", "-c", "-w", 50)["wrong"] == 0


def test_mapped(seekrw, tmp_path):
    """The same reads and writes, of pages that are mapped; a record may cross two pages."""
    size = 1 << 24
    path = make_stamped(tmp_path / "file", size, range(0, size, SECTOR))
    for arguments in (["-w", 50, "-c"], ["-c"], ["-l", 1536, "-c"]):
        measured = values(seekrw, "-f", path, "--mmap", *arguments)
        assert (measured["wrong"], measured["mmap"]) == (0, True)
    assert "512 bytes, mapped; " in seekrw("-f", path, "--mmap").stdout


# ---- what it refuses ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "which file? Say -f FILE"),
        (("-f",), "-f wants an argument"),
        (("-x",), "there is no option -x"),
        (("-f", "F", "more"), "'more' belongs to no option"),
        (("-f", "F", "-a", "0"), "-a wants a whole number from 1 to 100000000, not '0'"),
        (("-f", "F", "-a", "100000001"), "-a wants a whole number from 1 to 100000000, not"),
        (("-f", "F", "-a", "1k"), "-a wants a whole number from 1 to 100000000, not '1k'"),
        (("-f", "F", "-a", "-1"), "-a wants a whole number from 1 to 100000000, not '-1'"),
        (("-f", "F", "-a", ""), "-a wants a whole number from 1 to 100000000, not ''"),
        (("-f", "F", "-l", "0"), "-l wants a whole number from 1 to 1073741824, not '0'"),
        (("-f", "F", "-s", str(1 << 64)), "-s wants a whole number from 0 to"),
        (("-f", "F", "-w", "101"), "-w wants a whole number from 0 to 100, not '101'"),
        (("-f", "F", "-D", "hdb"), "-D wants the last letter of a drive's name, not 'hdb'"),
        (("-f", "F", "-r", "-w", "1"), "-r and -w exclude each other"),
        (("-f", "F", "-d", "--mmap"), "-d and --mmap exclude each other"),
        (("-f", "F", "-d", "-l", "1000"), "with -d the length must be a multiple of 512, and 1000"),
        (("-f", "F", "-c", "-l", "513"), "with -c the length must be a multiple of 512, and 513"),
    ],
)
def test_wrong_options(seekrw, arguments, message):
    done = seekrw(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"seekrw: {message}")
    assert done.stdout == ""


def refused(done: subprocess.CompletedProcess) -> str:
    """What a run that failed says."""
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("seekrw: ") and done.stderr.count("\n") == 1
    return done.stderr[len("seekrw: ") : -1]


def test_a_file_that_is_too_short(seekrw, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 511)
    message = f"{path} has 511 bytes, too few for an operation of 512"
    assert refused(seekrw("-f", path)) == message
    assert values(seekrw, "-f", path, "-l", 511)["reads"] == 1000


def test_what_is_no_file(seekrw, tmp_path):
    missing = tmp_path / "missing"
    message = f"{missing} cannot be opened for reading: No such file or directory"
    assert refused(seekrw("-f", missing)) == message
    assert refused(seekrw("-f", tmp_path)) == f"{tmp_path} is neither a file nor a block device"
    message = f"{tmp_path} cannot be opened for reading and writing: Is a directory"
    assert refused(seekrw("-f", tmp_path, "-w", 1)) == message
    assert refused(seekrw("-f", "/dev/null")) == "/dev/null is neither a file nor a block device"


def test_writing_what_is_read_only(program):
    """As another user where this is the one that may do everything."""
    as_nobody = {"user": NOBODY} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as name:  # tmp_path lies where only its owner may go
        Path(name).chmod(0o755)
        path = make_stamped(Path(name) / "file", 1 << 20, [])
        path.chmod(0o444)
        command = [shutil.copy(program, name), "-f", path]
        keywords = {"capture_output": True, "text": True, **as_nobody}
        writing = subprocess.run([*command, "-w", "10"], check=False, **keywords)
        reading = subprocess.run(command, check=False, **keywords)
    message = f"{path} cannot be opened for reading and writing: Permission denied"
    assert refused(writing) == message
    assert reading.returncode == 0


def test_too_little_memory(seekrw, tmp_path):
    path = make_stamped(tmp_path / "file", 1 << 30, [])

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20))

    message = f"there is not enough memory for a buffer of {1 << 28} bytes"
    assert refused(seekrw("-f", path, "-l", 1 << 28, preexec_fn=limit)) == message


def test_no_room_to_write(seekrw, tmp_path):
    """A limit on the size of files stands for a full disk."""
    path = make_stamped(tmp_path / "file", 1 << 20, [])

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (SECTOR, SECTOR))

    # Python ignores the signal that comes with the error, and leaves it so for its children.
    done = seekrw("-f", path, "-w", 100, preexec_fn=limit, restore_signals=False)
    first = offsets(1, 1 << 20, SECTOR, 1)[0]
    assert refused(done) == f"{path}: writing at offset {first}: File too large"


def test_less_than_asked_for(seekrw):
    """A file that claims 4096 bytes and has fewer: an error, never a good figure."""
    path = Path("/sys/kernel/uevent_seqnum")
    if not path.is_file() or path.stat().st_size != 4096:
        pytest.skip(f"{path} is not there")
    message = refused(seekrw("-f", path, "-l", 4096))
    assert re.fullmatch(rf"{path}: reading at offset 0: only \d+ of 4096 bytes", message)


# ---- what it asks of the kernel ------------------------------------------------------------------


def test_few_system_calls(program, tmp_path):
    """With strace, where there is one that may be used."""
    if not shutil.which("strace"):
        pytest.skip("no strace")
    path = make_stamped(tmp_path / "file", 1 << 20, [])
    log = tmp_path / "log"
    command = ["strace", "-o", log, program, "-f", path, "-a", "5", "-w", "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"strace does not work here: {done.stderr.strip()}")
    calls = re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE)
    assert set(calls) <= SYSTEM_CALLS
    assert calls.count("pread64") + calls.count("pwrite64") == 5
    first = min(calls.index("pread64"), calls.index("pwrite64"))
    timed = {"pread64", "pwrite64", "clock_gettime", "clock_gettime64"}
    assert set(calls[first : first + 5]) <= timed
