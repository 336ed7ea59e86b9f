"""A task's open files, out of the kernel's memory: what they are, and what they are called."""

from __future__ import annotations

import stat
from typing import NamedTuple

import gdb

from labs.tools.debugging.gdb.commands import Refusal
from labs.tools.debugging.gdb.kernel_data import (
    KERNEL_BASE,
    optional,
    pointer,
    structure,
    text_at,
    walk_links,
    words_from,
)
from labs.tools.debugging.gdb.processor import read_linear, symbol_at
from labs.tools.debugging.gdb.tasks import Task

DESCRIPTORS_AT_MOST = 1024  # FILES_MAX
ENTRIES_AT_MOST = 8192
DEPTH_AT_MOST = 32
DEVICES_AT_MOST = 64
UNKNOWN = "?"

KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
    stat.S_IFIFO: "pipe",
}


class Entry(NamedTuple):
    """A descriptor: its number, its struct file, and whether exec closes it."""

    descriptor: int
    file: gdb.Value
    closes: bool


def open_files(task: Task) -> tuple[list[Entry], str]:
    """A task's descriptors by number, and what is wrong with their table. Raises Refusal where
    there are no files in this lesson."""
    address = task.files
    if not address:
        return [], ""
    files = structure("files", address)
    number = int(files["count"])
    slots = words_from(pointer(files["slots"]), min(number, DESCRIPTORS_AT_MOST))
    if number > DESCRIPTORS_AT_MOST or not slots:
        return [], f"the table at {address:#010x} is none (any more): {number} descriptors"
    found, damages = [], []
    for descriptor, file in enumerate(slots):
        if file and not is_readable(file):
            damages.append(f"descriptor {descriptor} leads to {file:#010x}, which is not a file")
        elif file:
            closes = int(files["close_on_exec"][descriptor // 32]) >> descriptor % 32 & 1
            found.append(Entry(descriptor, structure("file", file), bool(closes)))
    return found, "\n".join(damages)


def is_readable(address: int) -> bool:
    """Whether there can be a struct file, with its operations, and its inode if it has one."""
    try:
        file = structure("file", address)
        places = [address, pointer(file["ops"]), pointer(file["inode"]) or address]
        return all(place >= KERNEL_BASE and bool(read_linear(place, 16)) for place in places)
    except gdb.MemoryError:
        return False


def operations_of(file: gdb.Value) -> int:
    """The table of what the file can do."""
    return pointer(file["ops"])


def inode_of(file: gdb.Value) -> gdb.Value | None:
    """The struct inode of an open file; None for a pipe, a device or a file of a kernel without
    file systems (fs/root.c)."""
    address = pointer(file["inode"])
    return structure("inode", address) if address else None


def kind_of(file: gdb.Value) -> str:
    """What an open file is."""
    inode = inode_of(file)
    if inode is not None:
        mode = int(inode["mode"])
        return KINDS.get(stat.S_IFMT(mode), f"mode {mode:o}")
    if is_pipe(file):
        return KINDS[stat.S_IFIFO]
    return KINDS[stat.S_IFCHR if device_with(operations_of(file)) else stat.S_IFREG]


def is_pipe(file: gdb.Value) -> bool:
    """Whether it is one end of a pipe."""
    return symbol_at(operations_of(file)) == "pipe_ops" and pointer(file["private"]) != 0


def describe(file: gdb.Value) -> str:
    """A file's path, its device, or what is in its pipe."""
    inode = inode_of(file)
    path = path_of_file(file) if inode is not None else path_in_root(file)
    if is_pipe(file):
        return f"{path} {pipe_words(pointer(file['private']))}".lstrip()
    if inode is None:
        return path
    if kind_of(file).endswith("device"):
        return f"{path or device_name(int(inode['device']))} ({device_numbers(inode)})"
    if path:
        return path
    number = f"inode {int(inode['number'])} of file system {int(inode['filesystem'])}"
    return number + (", without a name" if int(inode["links"]) == 0 else "")


def device_numbers(inode: gdb.Value) -> str:
    """Major and minor number."""
    device = int(inode["device"])
    return f"{device >> 8}, {device & 0xFF}"


def devices() -> list[gdb.Value]:
    """All that are registered."""
    first = optional("devices", "fs/devices.c")
    places = walk_links(pointer(first), "device", "next", DEVICES_AT_MOST).places if first else []
    return [structure("device", address) for address in places]


def device_name(number: int) -> str:
    """The name under which a device is registered."""
    names = [each["name"] for each in devices() if int(each["number"]) == number]
    return text_at(pointer(names[0])) if names else UNKNOWN


def device_with(operations: int) -> str:
    """The path of the device with these operations, or ""."""
    names = [each["name"] for each in devices() if pointer(each["ops"]) == operations]
    return "/dev/" + text_at(pointer(names[0])) if names else ""


def path_in_root(file: gdb.Value) -> str:
    """The name of a device, or of a file of fs/root.c."""
    if symbol_at(operations_of(file)) == "root_ops":
        return "/" + text_at(pointer(structure("ram_file", pointer(file["private"]))["name"]))
    return device_with(operations_of(file))


def pipe_words(address: int) -> str:
    """What a pipe holds, and who has it open."""
    try:
        pipe = structure("pipe", address)
        filled = int(pipe["written"]) - int(pipe["read"])
        ends = [f"{int(pipe[side])} {side}" for side in ("readers", "writers")]
        return f"pipe {address:#010x}: {filled} bytes in it, {', '.join(ends)}"
    except (gdb.error, Refusal):
        return f"pipe {address:#010x}"


# ---- paths --------------------------------------------------------------------------------------


def path_of_file(file: gdb.Value) -> str:
    """The path by which a file was opened, if it still has its name in the memory file system; ""
    otherwise."""
    return climbed(pointer(file["inode"]), pointer(file["directory"]))


def path_of_directory(file: int) -> str:
    """The path of a working directory, an open file; "" for one that has been removed, and where it
    is not in the memory file system."""
    if not file:
        return "/"
    directory = pointer(structure("file", file)["inode"])
    return climbed(directory, parent_of(directory)) if is_own_directory(directory) else ""


def climbed(inode: int, directory: int) -> str:
    """The path of an inode in this directory. A directory's own link leads from there to the root,
    which is above itself."""
    root, names = optional("root", "fs/vfs/path.c"), []
    while len(names) < DEPTH_AT_MOST and directory != inode:
        name = next((name for name, entry in entries_of(directory) if entry == inode), "")
        if not name:
            return ""
        names.append(name)
        inode, directory = directory, parent_of(directory)
    is_whole = root is not None and inode == directory == pointer(root)
    return "".join(f"/{name}" for name in reversed(names)) or "/" if is_whole else ""


def parent_of(directory: int) -> int:
    """The directory above one of the memory file system."""
    return pointer(structure("ramfs_inode", directory)["directory"]["parent"])


def is_own_directory(address: int) -> bool:
    """Whether an inode is a directory of the memory file system (fs/ram/ramfs.c)."""
    try:
        inode = structure("inode", address)
        operations = symbol_at(pointer(inode["ops"])) or ""
        return stat.S_ISDIR(int(inode["mode"])) and operations.startswith("ramfs")
    except gdb.MemoryError:
        return False


def entries_of(directory: int) -> list[tuple[str, int]]:
    """Names in a directory of the memory file system, and their inodes."""
    if not is_own_directory(directory):
        return []
    first = pointer(structure("ramfs_inode", directory)["directory"]["first"])
    chain = walk_links(first, "ramfs_entry", "next", ENTRIES_AT_MOST)
    return [entry_at(address) for address in chain.places]


def entry_at(address: int) -> tuple[str, int]:
    """A directory entry: its name and its inode."""
    entry = structure("ramfs_entry", address)
    start = int(entry["text"].address)
    name = read_linear(start, int(entry["length"])).decode(errors="replace")
    return name, pointer(entry["inode"])
