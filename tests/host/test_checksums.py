"""CRC-32C, compared with one in Python: of all lengths, and with zeros."""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path

import pytest

from tests.storage.journal import crc32c

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "fs/jbd2/checksum.c"


@pytest.fixture(scope="module")
def checksums(tmp_path_factory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("library") / "checksum.so"
    words = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*words, f"-I{ROOT}", str(SOURCE), "-o", str(library)], check=True)
    found = ctypes.CDLL(str(library))
    found.crc32c.argtypes = [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t]
    found.crc32c_zeros.argtypes = [ctypes.c_uint32, ctypes.c_size_t]
    found.crc32c.restype = found.crc32c_zeros.restype = ctypes.c_uint32
    return found


def test_of_all_lengths_and_places(checksums):
    """The answer to 123456789 is in every table of CRCs."""
    assert checksums.crc32c(0xFFFFFFFF, b"123456789", 9) ^ 0xFFFFFFFF == 0xE3069283
    data = random.Random(2010).randbytes(600)
    for start in range(4):
        for length in (*range(40), 255, 256, 257, 511, 512, 513):
            part = data[start : start + length]
            assert checksums.crc32c(7, part, length) == crc32c(7, part), (start, length)


@pytest.mark.parametrize("used", [0, 1, 8, 60, 255, 256, 257, 1000, 4095])
def test_a_block_that_ends_in_zeros(checksums, used):
    """Of the block as a whole, and of a part whose zeros are no whole number of words."""
    block = (b"\x01" * used).ljust(4096, b"\0")
    for length in (4096, 4093):
        assert checksums.crc32c(9, block, length) == crc32c(9, block[:length]), length


@pytest.mark.parametrize("count", [0, 1, 2, 3, 255, 4096, 5000])
def test_zeros_alone(checksums, count):
    assert checksums.crc32c_zeros(0x12345678, count) == crc32c(0x12345678, bytes(count))
