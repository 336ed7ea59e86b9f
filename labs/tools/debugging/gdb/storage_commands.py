"""Commands about the storage half: queues of drives, cached blocks, mounts, the journal."""

from __future__ import annotations

from collections import Counter

import gdb

from labs.tools.debugging.gdb.commands import Refusal, command, count, table, variable
from labs.tools.debugging.gdb.kernel_data import (
    WORD,
    container,
    enumerator,
    noted,
    pointer,
    structure,
    text,
    text_at,
    walk_links,
    walk_ring,
)
from labs.tools.debugging.gdb.storage import (
    BCACHE,
    PURPOSES,
    Ext,
    cached_blocks,
    copy_of,
    device_name,
    devices,
    ext_mounts,
    find_device,
    find_ext,
)

WAITING_AT_MOST = 4096
HELD_AT_MOST = 1 << 20
PAGE = 4096
SHOWN = 64  # numbers of blocks in one list
OPERATIONS = {"R": "read", "W": "write", "F": "flush", "D": "discard"}


# ---- drives -------------------------------------------------------------------------------------


@command("requests", "[DRIVE]")
def requests(drive: str = "") -> str:
    """The queue of each drive, or of one: the transfer it works on, and requests that wait."""
    found = devices()
    chosen = [find_device(drive)] if drive else found.places
    parts = [
        queue_text(each) for each in chosen if pointer(structure("block_device", each)["queue"])
    ]
    if not parts:
        raise Refusal(f"{drive} is a partition: ask for its drive" if drive else "no drives")
    return noted("\n".join(parts), "" if drive else found.damage)


def queue_text(device: int) -> str:
    """One queue."""
    address = pointer(structure("block_device", device)["queue"])
    queue = copy_of("block_queue", address)
    order = enumerator(queue["order"], "BLOCK_").replace("_", "-")
    pending = int(queue["pending"])
    lines = [f"{device_name(device)}: {pending} requests have not ended, order {order}"]
    if pointer(queue["transfer"]):
        lines.append(f"  the drive works on: {transfer_words(pointer(queue['transfer']))}")
    waiting = walk_ring(structure("block_queue", address)["waiting"], WAITING_AT_MOST)
    rows = [request_row(container(link, "block_request", "in_queue")) for link in waiting.places]
    if rows:
        heads = ("waits", "operation", "LBA", "sectors", "for", "device")
        lines.append(table(heads, rows))
    return noted("\n".join(lines), waiting.damage)


def transfer_words(address: int) -> str:
    """What the driver was asked for."""
    transfer = copy_of("block_transfer", address)
    sectors = int(transfer["count"])
    if not sectors:
        return "flush"
    if transfer["is_discard"]:
        return f"discard of {sectors} ranges"
    words = "write" if transfer["is_write"] else "read"
    forced = " (forced)" if transfer["is_forced"] else ""
    pieces = int(transfer["piece_count"])
    return f"{words}{forced} of {sectors} sectors at LBA {int(transfer['lba'])}, {pieces} requests"


def request_row(address: int) -> tuple[object, ...]:
    """One request, as cells of a table."""
    request = copy_of("block_request", address)
    operation = OPERATIONS.get(chr(int(request["operation"]) & 0xFF), "?")
    forced = " (forced)" if request["is_forced"] else ""
    purpose = int(request["purpose"])
    return (
        f"{address:#010x}",
        operation + forced,
        int(request["lba"]),
        int(request["count"]),
        PURPOSES[purpose] if purpose < len(PURPOSES) else purpose,
        device_name(pointer(request["device"])),
    )


# ---- cached blocks ------------------------------------------------------------------------------


@command("buffers", "[COUNT] [DRIVE|dirty|held]")
def buffers(wanted: str = "20", which: str = "") -> str:
    """The cached blocks of metadata, the one used last first: of a drive, or of a state."""
    if which not in ("", "dirty", "held"):
        find_device(which)
    found, states = cached_blocks(), Counter()
    rows = []
    for address in found.places:
        cells = buffer_row(address)
        states.update(cells[3].split(", ")[:1])
        if which in ("", cells[0]) or which in cells[3]:
            rows.append(cells)
    heads = ("drive", "block", "bytes", "state", "for", "uses", "data")
    shown = rows[: count(wanted)]
    lines = [table(heads, shown)] if shown else []
    if len(rows) > len(shown):
        lines.append(f"... and {len(rows) - len(shown)} more")
    most = int(variable("buffers_most", BCACHE))
    kinds = ", ".join(f"{states[name]} {name}" for name in sorted(states)) or "none is in use"
    lines.append(f"{len(found.places)} of at most {most} buffers: {kinds}")
    return noted("\n".join(lines), found.damage)


def buffer_row(address: int) -> tuple[object, ...]:
    """One cached block, as cells of a table. What a transaction holds is dirty, too."""
    block = copy_of("cached_block", address)
    purpose = int(block["purpose"])
    if not pointer(block["device"]):
        state = "empty"
    elif pointer(block["transaction"]):
        state = "held, dirty" if block["is_dirty"] else "held"
    else:
        state = "dirty" if block["is_dirty"] else "clean"
    return (
        device_name(pointer(block["device"])),
        int(block["block"]),
        int(block["size"]),
        state + transfer_of(block),
        PURPOSES[purpose] if purpose < len(PURPOSES) else purpose,
        int(block["references"]),
        f"{pointer(block['data']):#010x}",
    )


def transfer_of(block: gdb.Value) -> str:
    """Which task reads or writes it now."""
    owner = pointer(block["transfer"]["owner"])
    return f", in transfer by task {int(structure('task', owner)['pid'])}" if owner else ""


# ---- mounts -------------------------------------------------------------------------------------


@command("mounts")
def mounts() -> str:
    """What is mounted where, with what options; and of ext file systems their state."""
    array = variable("mounts", "fs/vfs/mounts.c")
    rows = []
    for index in range(array.type.range()[1] + 1):
        mount = array[index]
        if pointer(mount["type"]) and pointer(mount["root"]):
            rows.append(mount_row(mount))
    lines = [table(("source", "path", "type", "options", "root"), rows)] if rows else []
    try:
        for each in ext_mounts():
            lines.append(ext_line(each))
    except Refusal as reason:
        lines.append(str(reason))
    return "\n".join(lines) or "Nothing is mounted yet."


def mount_row(mount: gdb.Value) -> tuple[object, ...]:
    """One mount, as cells of a table."""
    names = {"read_only": "ro", "no_access_time": "noatime", "synchronous": "sync"}
    words = [word for name, word in names.items() if mount["options"][name]]
    words = words if words[:1] == ["ro"] else ["rw", *words]
    own = text(mount["text"])  # what only the file system knows: data=, errors=, barrier=
    root = structure("inode", pointer(mount["root"]))
    return (
        text(mount["source"]),
        text(mount["path"]) or "/",
        text_at(pointer(mount["type"]["type"])),
        ",".join([*words, *([own] if own else [])]),
        f"inode {int(root['number'])}",
    )


def ext_line(each: Ext) -> str:
    """What the library knows of a mount."""
    fs = each.fs
    kind = text_at(pointer(fs["summary"]["type"]))
    words = ["may be written" if fs["writable"] else "read-only"]
    words += ["contradictions were found"] if fs["failed"] else []
    words.append("has a journal" if each.journal else "no journal")
    free = int(fs["super"]["s_free_blocks_count_lo"])
    free |= int(fs["super"]["s_free_blocks_count_hi"]) << 32
    return (
        f"{each.name}: {kind}, {int(fs['summary']['blocks'])} blocks of {each.block_size} bytes, "
        f"{free} free; {', '.join(words)}"
    )


# ---- the journal --------------------------------------------------------------------------------


@command("journal", "[DRIVE]")
def journal(drive: str = "") -> str:
    """A journal: the log's head, tail and room, the open transaction's blocks, revoked blocks."""
    ext = find_ext(drive)
    if not ext.journal:
        raise Refusal(f"{ext.name} has no journal")
    each = copy_of("journal", ext.journal)
    held = walk_ring(structure("journal", ext.journal)["held"], HELD_AT_MOST)
    blocks = [
        int(copy_of("cached_block", container(link, "cached_block", "held"))["block"])
        for link in held.places
    ]
    revoked, damage = revoked_blocks(each["revoked"])
    changes = int(each["depth"])
    lines = [
        f"{ext.name}: the log is blocks {int(each['first'])} to {int(each['end']) - 1} of the "
        f"journal, of {int(each['place']['block_size'])} bytes",
        log_words(each),
        f"transaction {int(each['sequence'])} is open: {int(each['changed'])} changed blocks, "
        f"{changes} changes in progress",
        *([f"  held: {numbers(blocks)}"] if blocks else []),
        *([f"  revoked: {numbers(revoked)}"] if revoked else []),
        *state_words(each),
    ]
    if len(blocks) != int(each["changed"]) and not held.damage:
        lines.append(f"But its list has {len(blocks)} blocks.")
    return noted(noted("\n".join(lines), held.damage), damage)


def log_words(each: gdb.Value) -> str:
    """Where the log begins and ends: free blocks are from the head on."""
    first, end, head, free = (int(each[name]) for name in ("first", "end", "head", "free"))
    size = end - first
    if free > size or not first <= head < end:
        return f"head {head}, {free} blocks free: damaged, these are not in the log"
    if free == size:
        return f"head {head}, {free} blocks free: recovery needs none of the log"
    tail = first + (head - first + free) % size
    return f"head {head}, tail {tail}: {free} blocks are free, {size - free} are not"


def state_words(each: gdb.Value) -> list[str]:
    """What else there is to say."""
    begin, number = super_words(each)
    lines = [f"superblock: the log begins at block {begin} with transaction {number}"]
    if not begin:
        lines = [f"superblock: the log is empty, transaction {number} comes next"]
    if each["needs_recovery"]:
        lines.append("it must be replayed first")
    if each["is_aborted"]:
        lines.append("aborted after an error of the drive: nothing is written any more")
    return lines


def super_words(each: gdb.Value) -> tuple[int, int]:
    """s_start and s_sequence, as the disk has them: big-endian."""
    block = copy_of("journal_super", pointer(each["super"]))
    return tuple(
        int.from_bytes(int(block[name]).to_bytes(4, "little"), "big")
        for name in ("s_start", "s_sequence")
    )


def revoked_blocks(revoked: gdb.Value) -> tuple[list[int], str]:
    """The records of a struct revoke_table, and what is wrong with it."""
    wanted, found = int(revoked["count"]), []
    if not wanted:
        return [], ""
    table_of = revoked["buckets"]
    for index in range(PAGE // WORD):
        chain = walk_links(pointer(table_of[index]), "revoked", "next", HELD_AT_MOST)
        found += [int(structure("revoked", at)["block"]) for at in chain.places]
        if chain.damage:
            return sorted(found), f"revoked blocks: {chain.damage}"
    words = f"But {wanted} are counted." if wanted != len(found) else ""
    return sorted(found), words


def numbers(blocks: list[int]) -> str:
    """Some numbers of blocks."""
    rest = f" ... and {len(blocks) - SHOWN} more" if len(blocks) > SHOWN else ""
    return " ".join(map(str, blocks[:SHOWN])) + rest
