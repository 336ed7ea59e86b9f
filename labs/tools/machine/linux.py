"""Debian's Linux for the i386 as a second kernel for the same machine, with its own drivers for IDE
disks and its own ext2, ext3 and ext4: what ours is compared with.

    result = run(linux_machine(folder, "mount /dev/hdb /mnt; ls /mnt", [Drive(image, 1)]))

The kernel and its modules come from Debian's package (labs/tools/guest/package.py), busybox too. A
script for our kernel runs here as it is: the drives have our names besides Linux's own.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from labs.tools.guest.initramfs import Entry, archive, folder, regular
from labs.tools.guest.package import (
    Package,
    PackageError,
    cache_directory,
    fetch,
    newest_dependency,
)
from labs.tools.guest.package import run as run_tool
from labs.tools.guest.programs import BUSYBOX, COMMAND, busybox_entries
from labs.tools.machine.linux_kernel import unpacked
from labs.tools.machine.qemu_command import Config, Drive

PACKAGE = "linux-image-686"
WORDS = (
    "console=ttyS0 quiet panic=-1"
    " cryptomgr.notests noisapnp initcall_blacklist=load_system_certificate_list"
)
"""The kernel's command line: a panic ends the machine, and what takes two thirds of the boot is not
done: Linux's tests of its ciphers, a search for cards of 1993, and a signature's check."""

IN_REAL_TIME = "no_timer_check"
"""Else Linux panics when a busy host lets the first ticks of its timer come late."""

WANTED = (
    *("crc32c_generic", "crct10dif_generic", "crc64_rocksoft_generic"),
    *("ata_piix", "sd_mod", "ext4"),
)
"""Modules to load, after those that they name. The first three are asked for by what they compute,
which modprobe knows."""

NEEDS = re.compile(rb"\0depends=([^\0]*)\0")
FIRST_PROCESS = """\
#!/bin/sh
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
for each in /modules/*; do insmod $each; done
for disk in {disks}; do
	until set -- /sys/bus/pci/devices/*/${{disk%=*}}/*/block/sd*; [ -b "/dev/${{1##*/}}" ]; do
		usleep 10000
	done
	ln -s ${{1##*/}} /dev/${{disk#*=}}
done
echo "from the host"
sh /{command}
echo "status: $?"
poweroff -f
"""
DONE = re.compile(r"^status: (\d+)$", re.MULTILINE)


def linux_package() -> Package:
    """Debian's kernel for the i386 without PAE. Raises PackageError."""
    return fetch(newest_dependency(PACKAGE, "linux-image-6"))


def linux_kernel(package: Package) -> Path:
    """The kernel itself, for QEMU's -kernel, without its compression. Raises PackageError."""
    path = cache_directory() / f"unpacked-{package.name}-{package.version}"
    if not path.exists():
        packed = f"boot/vmlinuz-{package.name.removeprefix('linux-image-')}"
        with tempfile.TemporaryDirectory(dir=cache_directory()) as name:
            unfinished = Path(name, "kernel")
            image = package.extract(packed, Path(name, "packed")).read_bytes()
            unfinished.write_bytes(unpacked(image))
            unfinished.replace(path)
    return path


def linux_modules(package: Package) -> list[Path]:
    """The modules for disks and their file systems, in an order in which they can be loaded.
    Raises PackageError."""
    place = cache_directory() / f"modules-{package.name}-{package.version}"
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=cache_directory()) as name:
            top, chosen = Path(name, "all"), Path(name, "chosen")
            run_tool(package.name, ["dpkg-deb", "-x", str(package.path), str(top)])
            files = {path.stem.replace("-", "_"): path for path in top.rglob("*.ko")}
            chosen.mkdir()
            for number, module in enumerate(in_order(package, files)):
                shutil.copyfile(module, chosen / f"{number:02}-{module.name}")
            try:
                chosen.rename(place)
            except OSError as error:
                if not place.exists():  # else another process was faster
                    raise PackageError(f"no place to keep modules: {error}") from error
    return sorted(place.iterdir())


def in_order(package: Package, files: dict[str, Path]) -> list[Path]:
    """WANTED and what they need, each after its needs, out of all modules by name."""
    order: list[Path] = []

    def add(name: str) -> None:
        if name not in files:
            raise PackageError(f"{package.name} {package.version} has no module {name}")
        needs = NEEDS.search(files[name].read_bytes())
        for need in needs[1].decode().split(",") if needs and needs[1] else ():
            add(need.replace("-", "_"))
        if files[name] not in order:
            order.append(files[name])

    for name in WANTED:
        add(name)
    return order


def linux_machine(
    directory: Path,
    script: str,
    drives: Sequence[Drive] = (),
    entries: Iterable[Entry] = (),
    **fields: object,
) -> Config:
    """A machine that runs a script in Linux, with busybox and `entries`, and then ends; said_by
    finds what it said. The initramfs is written to `directory`. `fields` are those of Config.
    Raises PackageError."""
    package = linux_package()
    with tempfile.TemporaryDirectory() as name:
        box = fetch(BUSYBOX).extract("bin/busybox", Path(name, "busybox")).read_bytes()
    disks = " ".join(
        f"ata{drive.unit // 2 + 1}/host*/target*:0:{drive.unit % 2}={drive.name}"
        for drive in drives
    )
    first = FIRST_PROCESS.format(disks=disks, command=COMMAND)
    modules = [
        regular(f"modules/{path.name}", path.read_bytes()) for path in linux_modules(package)
    ]
    files = [
        *busybox_entries(box, ()),
        *(folder("dev"), folder("proc"), folder("sys"), folder("tmp")),
        *(regular("init", first.encode()), regular(COMMAND, script.encode() + b"\n", 0o644)),
        *modules,
        *entries,
    ]
    initramfs = directory / "linux-initramfs"
    initramfs.write_bytes(archive(files))
    return Config(
        boot="direct",
        kernel=linux_kernel(package),
        command_line=f"{WORDS} {IN_REAL_TIME}",
        extra=("-initrd", str(initramfs)),
        drives=tuple(drives),
        debug_exit=True,
        screen=False,
        **fields,
    )


def said_by(serial: str) -> tuple[str, int | None]:
    """What the script said, and its status; None when it did not come to its end."""
    said = serial.replace("\r\n", "\n").partition("from the host\n")[2]
    done = list(DONE.finditer(said))
    return (said[: done[-1].start()], int(done[-1][1])) if done else (said, None)
