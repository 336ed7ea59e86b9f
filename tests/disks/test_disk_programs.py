"""Debian's own programs on an ext4 that the storage lab's kernel has mounted, with few files.
`python -m tests.support.disk_programs` takes 5,000."""

from __future__ import annotations

import pytest

from labs.tools.guest.package import PackageError
from tests.host.ext.images import make_image
from tests.support import disk_programs
from tests.support.building import make

FILES = 20


@pytest.mark.slow
@pytest.mark.timeout(disk_programs.LIMIT)
def test_programs_work_on_a_disk(tmp_path):
    """cp -a, tar, find, dd, rsync, git and sqlite3: they agree with themselves, and this machine's
    e2fsprogs, git and sqlite3, and Debian's Linux, find what they wrote."""
    make("LESSON=storage", "image-direct", "user-programs")
    image = make_image(tmp_path / "disk", disk_programs.size_for(FILES), "-t ext4")
    try:
        said = disk_programs.run_programs(image, FILES)
        assert disk_programs.judge(image, said, tmp_path / "dump") > 3 * FILES
        disk_programs.ask_linux(image, tmp_path)
    except PackageError as error:
        pytest.skip(f"no programs to run: {error}")
