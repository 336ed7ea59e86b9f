"""QEMU's command line, known in one place: a description of a machine becomes arguments."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

EXIT_PORT = 0xF4  # kernel/cpu/machine.h
UNIT_NAMES = ("hda", "hdb", "hdc", "hdd")
SECTOR_SIZE = 512
MEMORY_RANGE = range(16, 1025)
# With a thread for each processor QEMU 7.2 loses one of 10,000 single steps: its gdb stub says that
# the step was made, and nothing has been executed.
ONE_THREAD = "tcg,thread=single"
RTC_BASE = "2026-01-01"
FW_CFG_PREFIX = "opt/org.apprentice/"
IMAGE_DRIVE = re.compile(r"if=none,id=(cd|hd.),(.*)")  # the card does without blkreplay

# Enough to say which drive was asked for which sectors: the task file, the command, and where
# QEMU itself then looks. The command's event is ide_exec_cmd in QEMU 7.2, ide_bus_exec_cmd later.
TRACE_EVENTS = ("ide_ioport_write", "ide_*exec_cmd", "ide_sector_read", "ide_dma_cb")


AT_ONCE: list[str] = []
"""Options of a boot disk or CD whose reads end before they are waited for. Tests set them, where
they work: without them the BIOS asks again and again, and the busier the host, the longer."""


class ConfigError(ValueError):
    """A machine that cannot be built; the message names the field and the remedy."""


@dataclass(frozen=True)
class DiskError:
    """An error that the drive reports whenever a request covers the sector `lba`; whenever it is to
    flush its cache."""

    operation: Literal["read", "write", "flush"]
    lba: int = -1
    errno: int = errno.EIO


@dataclass(frozen=True)
class Drive:
    """An IDE drive: unit 0 is hda. What the guest writes is dropped, unless `writable`.

    `path` is a file, or an address that QEMU knows ("nbd+unix:///?socket=..."). `options` are
    further options of -drive, such as "throttling.iops-total=100". `log` is an empty file that gets
    all writes and flushes, in their order, as dm-log-writes has them.
    """

    path: Path | str
    unit: int
    format: str = "raw"
    errors: tuple[DiskError, ...] = ()
    writable: bool = False
    options: tuple[str, ...] = ()
    log: Path | None = None
    discards: bool = True
    """The drive has TRIM."""

    @property
    def name(self) -> str:
        """The drive's name in the guest and in every result: hda to hdd."""
        return UNIT_NAMES[self.unit]

    @property
    def is_file(self) -> bool:
        """Whether `path` names a file of this host."""
        return "://" not in str(self.path)


@dataclass(frozen=True)
class Config:
    """A machine and its limits. All times are seconds, `memory` is in MiB.

    boot: "disk" starts hda (`image`, or a drive with unit 0), "card" the memory card `image`, whose
    size is a power of two, "grub" the CD `image`, "direct" hands the ELF file `kernel` to QEMU. In
    the other ways `kernel` serves for its symbols. An IDE drive of QEMU answers when the host has
    the data, the card at once: booting from it takes the same instructions each time.
    icount: each instruction takes 2**icount ns of guest time; None is plain, asynchronous TCG.
    clock: the date and time of the guest's clock at power-on, in UTC, as QEMU's -rtc has them.
    skip_idle: with icount, guest time jumps to the next timer whenever the processor is halted; not
    in a machine with `drives`, nor in one to talk to.
    initramfs: a cpio archive with the guest's first files. settings: further names and texts that
    the kernel can ask for, such as ("cmd", "ls").
    guest_limit: guest seconds; wall_limit: a backstop in real seconds; output_limit: bytes on the
    serial line. trace: collect the disk requests.
    screen: a VGA card. Without one, QEMU takes a tenth of the time for a line of output.
    variables: kernel variables to read when the run has ended (Result.variables).
    debug_exit: add isa-debug-exit, which ends QEMU at once, without statistics and memory to read.
    record: a file for QEMU's record of this run; replay: such a file, which QEMU runs once more,
    from its beginning or from the snapshot that `replay_from` names.
    """

    boot: Literal["disk", "card", "grub", "direct"] = "disk"
    kernel: Path | None = None
    image: Path | None = None
    memory: int = 64
    drives: tuple[Drive, ...] = ()
    icount: int | None = 3
    clock: str = RTC_BASE
    skip_idle: bool = True
    seed: int | None = None
    script: str | None = None
    initramfs: Path | None = None
    settings: tuple[tuple[str, str], ...] = ()
    command_line: str | None = None
    guest_limit: float = 60
    wall_limit: float = 600
    output_limit: int = 4 << 20
    screen: bool = True
    trace: bool = False
    variables: tuple[str, ...] = ()
    debug_exit: bool = False
    record: Path | None = None
    replay: Path | None = None
    replay_from: str = ""
    extra: tuple[str, ...] = ()
    qemu: str = "qemu-system-i386"

    def all_drives(self) -> tuple[Drive, ...]:
        """The IDE disks by unit, the boot disk included."""
        drives = list(self.drives)
        if self.boot == "disk" and self.image:
            drives.append(Drive(self.image, 0))
        return tuple(sorted(drives, key=lambda drive: drive.unit))


def qemu_command(config: Config, directory: Path, channels: Sequence[str]) -> list[str]:
    """Returns the argument list that starts `config`.

    `channels` says where serial line and monitor go, such as ["-serial", "mon:stdio"]. Files that
    QEMU needs for this run (script, overlays) are written to `directory`, which must outlive QEMU.
    Raises ConfigError when the machine cannot be built.
    """
    check_config(config)
    return [
        config.qemu,
        *("-machine", "pc", "-nodefaults", "-no-user-config", "-display", "none"),
        *("-vga", "std" if config.screen else "none"),
        *("-accel", ONE_THREAD),
        *("-m", str(config.memory), "-rtc", f"base={config.clock},clock=vm"),
        *clock_arguments(config),
        *end_arguments(config),
        *fw_cfg_arguments(config, directory),
        *image_arguments(config, directory),
        *trace_arguments(config, directory),
        *channels,
        *config.extra,
    ]


def clock_arguments(config: Config) -> list[str]:
    """Guest time that counts instructions. sleep=off never waits for the host's clock."""
    if config.icount is None:
        return []
    log = config.record or config.replay
    if log:  # QEMU 7.2 hangs when it records a disk's requests without sleep
        how = "record" if config.record else "replay"
        start = f",rrsnapshot={config.replay_from}" if config.replay_from else ""
        return ["-icount", f"shift={config.icount},rr={how},rrfile={quoted(log)}{start}"]
    return ["-icount", f"shift={config.icount},sleep={'off' if config.skip_idle else 'on'}"]


def end_arguments(config: Config) -> list[str]:
    """How the machine ends.

    With -no-shutdown and -no-reboot (QEMU 7.2: reboot becomes shutdown, shutdown becomes pause) the
    guest stops after power-off and after a triple fault, and can be looked at.
    isa-debug-exit calls exit() in QEMU 7.2; newer ones take the way of a shutdown, so -no-shutdown
    must not be given with it.
    """
    if config.debug_exit:
        return ["-no-reboot", "-device", f"isa-debug-exit,iobase={EXIT_PORT:#x},iosize=4"]
    return ["-no-reboot", "-no-shutdown"]


def fw_cfg_arguments(config: Config, directory: Path) -> list[str]:
    """Seed, script, settings and files, which reach the kernel in each way of booting."""
    arguments = []
    if config.seed is not None:
        arguments += ["-fw_cfg", f"name={FW_CFG_PREFIX}seed,string={config.seed}"]
    script = () if config.script is None else (("script", config.script),)
    for name, text in (*script, *config.settings):
        path = directory / name
        path.write_text(text)
        arguments += ["-fw_cfg", f"name={FW_CFG_PREFIX}{name},file={quoted(path)}"]
    if config.initramfs:
        check_file("initramfs", config.initramfs)
        path = quoted(config.initramfs)
        arguments += ["-fw_cfg", f"name={FW_CFG_PREFIX}initramfs,file={path}"]
    return arguments


def image_arguments(config: Config, directory: Path) -> list[str]:
    """What the machine starts from, and its disks."""
    arguments = [*boot_arguments(config), *all_drive_arguments(config, directory)]
    return recordable(arguments) if config.record or config.replay else arguments


def boot_arguments(config: Config) -> list[str]:
    """The kernel or the CD. A boot disk is a drive like any other and needs nothing here."""
    if config.boot == "direct":
        append = ["-append", config.command_line] if config.command_line else []
        return ["-kernel", str(config.kernel), *append]
    if config.boot == "card":
        drive = f"if=none,id=card,format=raw,snapshot=on,file={quoted(config.image)}"
        return ["-drive", drive, "-device", "sdhci-pci", "-device", "sd-card,drive=card"]
    if config.boot == "grub":
        unit = free_unit(config)
        drive = f"if=none,id=cd,media=cdrom,readonly=on,format=raw,file={quoted(config.image)}"
        how = [] if config.record or config.replay else AT_ONCE
        drive = ",".join([drive, *how])
        return ["-drive", drive, "-device", f"ide-cd,drive=cd,{bus(unit)},bootindex=0"]
    return []


def all_drive_arguments(config: Config, directory: Path) -> list[str]:
    """The disks, by unit."""
    each = (drive_arguments(config, drive, directory) for drive in config.all_drives())
    return list(chain.from_iterable(each))


def recordable(arguments: Sequence[str]) -> list[str]:
    """Puts blkreplay before each image, so that a record holds when its requests are done."""
    changed = []
    for each in arguments:
        found = IMAGE_DRIVE.match(each)
        changed.append(f"if=none,id={found[1]}-image,{found[2]}" if found else each)
        if found:
            layer = f"driver=blkreplay,if=none,image={found[1]}-image,id={found[1]}"
            changed += ["-drive", layer]
    return changed


def drive_arguments(config: Config, drive: Drive, directory: Path) -> list[str]:
    """One disk. Errors are reported to the guest; QEMU's default would pause it on some of them."""
    cache = "writeback" if drive.log else "unsafe"  # which drops flushes
    options = ["if=none", f"id={drive.name}", f"cache={cache}", *drive.options]
    options += error_options(drive, directory) if drive.errors else file_options(drive)
    boot = ",bootindex=0" if config.boot == "disk" and drive.unit == 0 else ""
    is_plain = boot and not (drive.errors or drive.log or drive.options)
    options += AT_ONCE if is_plain and not (config.record or config.replay) else []
    device = f"ide-hd,drive={drive.name},{bus(drive.unit)},rerror=report,werror=report{boot}"
    device += "" if drive.discards else ",discard_granularity=0"
    return ["-drive", ",".join(options), "-device", device]


def file_options(drive: Drive) -> list[str]:
    """A plain image. IDE has no read-only disk, so a protected one gets a throw-away layer."""
    if drive.log:
        log = f"log.driver=file,log.filename={quoted(drive.log)}"
        layer = f"driver=blklogwrites,file.driver=file,file.filename={quoted(drive.path)}"
        return [layer, log, "log-super-update-interval=1,log-sector-size=512"]
    protection = "off" if drive.writable else "on"
    return [f"format={drive.format}", f"file={quoted(drive.path)}", f"snapshot={protection}"]


def error_options(drive: Drive, directory: Path) -> list[str]:
    """An image through blkdebug. snapshot=on would put its layer above blkdebug and swallow write
    errors, so the layer of a protected image is made here, below it."""
    path, image_format = drive.path, drive.format
    if not drive.writable:
        path, image_format = overlay(drive, directory), "qcow2"
    options = ["driver=blkdebug", f"image.driver={image_format}"]
    options.append(f"image.file.filename={quoted(path)}")
    for index, error in enumerate(drive.errors):
        rule = f"inject-error.{index}."
        options += [f"{rule}event=none", f"{rule}iotype={error.operation}"]
        options += [f"{rule}sector={error.lba}"] * (error.lba >= 0)
        options += [f"{rule}errno={error.errno}"]
    return options


def overlay(drive: Drive, directory: Path) -> Path:
    """Creates an empty copy-on-write layer over the drive's image."""
    path = directory / f"{drive.name}.qcow2"
    base = str(Path(drive.path).absolute()) if drive.is_file else str(drive.path)
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", drive.format, "-b", base, str(path)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise ConfigError(f"{drive.name}: no layer over {base}: {made.stderr.strip()}")
    return path


def memory_arguments(config: Config, descriptor: int) -> list[str]:
    """Memory that is a file of the host, which QEMU inherits: another process sees it, too."""
    path = f"mem-path=/proc/self/fd/{descriptor}"
    backend = f"memory-backend-file,id=ram,size={config.memory}M,{path},share=on"
    return ["-machine", "memory-backend=ram", "-object", backend]


def trace_arguments(config: Config, directory: Path) -> list[str]:
    """The disk requests, as lines in `directory`/trace."""
    if not config.trace:
        return []
    events = [argument for event in TRACE_EVENTS for argument in ("-trace", event)]
    return ["-D", str(directory / "trace"), *events]


def bus(unit: int) -> str:
    """Where a unit is plugged in: two channels with a master and a slave each."""
    return f"bus=ide.{unit // 2},unit={unit % 2}"


def free_unit(config: Config) -> int:
    """The first unit without a disk."""
    taken = {drive.unit for drive in config.drives}
    for unit in range(len(UNIT_NAMES)):
        if unit not in taken:
            return unit
    raise ConfigError("boot='grub' needs one of the four IDE units for the CD; leave one free")


def quoted(path: Path | str | None) -> str:
    """A value inside one of QEMU's option strings, where a comma is written twice."""
    return str(path).replace(",", ",,")


def check_config(config: Config) -> None:
    """Raises ConfigError with the first thing that is wrong with `config`."""
    if shutil.which(config.qemu) is None:
        raise ConfigError(f"{config.qemu} is not installed (try: make doctor)")
    if config.memory not in MEMORY_RANGE:
        low, high = MEMORY_RANGE[0], MEMORY_RANGE[-1]
        raise ConfigError(f"memory={config.memory}: the kernel runs with {low} to {high} MiB")
    if config.icount is not None and config.icount not in range(11):
        raise ConfigError(f"icount={config.icount}: a shift from 0 to 10, or None for plain TCG")
    if (config.record or config.replay) and config.icount is None:
        raise ConfigError("a record is counted in instructions: give icount a shift")
    if config.command_line and config.boot != "direct":
        raise ConfigError("command_line reaches the kernel only with boot='direct'; use script")
    check_boot(config)
    check_drives(config.all_drives())


def check_boot(config: Config) -> None:
    """There is something to start, and it can be read."""
    if config.boot == "direct":
        check_file("kernel", config.kernel)
    elif config.boot in ("card", "grub"):
        check_file("image", config.image)
    elif config.boot != "disk":
        raise ConfigError(f"boot={config.boot!r}: one of 'disk', 'card', 'grub', 'direct'")
    elif not any(drive.unit == 0 for drive in config.all_drives()):
        raise ConfigError("boot='disk' needs an image, or a drive with unit 0")


def check_drives(drives: Sequence[Drive]) -> None:
    """Each unit is used once, and each image can be read (and written, where it must be)."""
    units = [drive.unit for drive in drives]
    for drive in drives:
        if drive.unit not in range(len(UNIT_NAMES)):
            raise ConfigError(f"{drive.path}: unit={drive.unit}, but IDE has the units 0 to 3")
        if units.count(drive.unit) > 1:
            raise ConfigError(f"two drives are {drive.name}; a boot image is hda")
        if drive.is_file:
            check_file(drive.name, drive.path, os.R_OK | (os.W_OK if drive.writable else 0))


def check_file(role: str, path: Path | str | None, access: int = os.R_OK) -> None:
    """The file is named, exists, and allows `access` (os.R_OK, os.W_OK)."""
    if path is None:
        raise ConfigError(f"{role}: no file is given")
    if not Path(path).exists():
        raise ConfigError(f"{role}: {path} does not exist (is it built?)")
    if not Path(path).is_file():
        raise ConfigError(f"{role}: {path} is a folder or a device, not a file")
    if not os.access(path, access):
        raise ConfigError(f"{role}: {path} cannot be opened: permission denied")
