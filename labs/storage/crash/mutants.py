"""Mutants of the library: each has lost one of the things that make it safe, and must be caught."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labs.storage.crash.building import build, copy_library

Change = tuple[str, str, str]  # a file, a text that is in it once, and what takes its place


@dataclass(frozen=True)
class Mutant:
    """What is changed, and where it shows: without checksums where those would find it, too."""

    what: str
    changes: tuple[Change, ...]
    variants: tuple[str, ...] = ("ext4",)
    workloads: tuple[str, ...] = ("saving", "log", "many-files", "database")


COMMIT, LOG, REVOKE = "fs/jbd2/commit.c", "fs/jbd2/log.c", "fs/jbd2/revoke.c"
WRITE, CHANGE, RECOVER = "fs/ext/write.c", "fs/ext/change.c", "fs/jbd2/recover.c"

WRITE_OUT, BARRIER = "journal_write_out(journal)", "journal_barrier(journal)"
LAST = ("add_commit_block(journal)", WRITE_OUT, f"{BARRIER};")


def steps(*calls: str) -> str:
    """Steps of a commit as the source has them, one a line."""
    return "".join(f"\t\t       ?: {call}\n" for call in calls)


FIRST_BARRIER = steps(WRITE_OUT, BARRIER, LAST[0])
STEPS = "\treturn error\n" + steps(
    "journal_add_revokes(journal)", "add_copies(journal)", WRITE_OUT, BARRIER, *LAST
)
COMMIT_FIRST = """	uint32_t begin = journal->head, left = journal->free, end;
	uint32_t size = journal_size(journal, journal->changed, journal->revoked.count);

	while (!error && --size > 0) {
		journal->head = journal_after(journal, journal->head);
		journal->free--;
	}
	error = error
		?: add_commit_block(journal)
		?: journal_write_out(journal)
		?: journal_barrier(journal);
	end = journal->head;
	journal->head = begin;
	journal->free = left;
	error = error ?: journal_add_revokes(journal) ?: add_copies(journal);
	journal->head = end;
	journal->free--;
	return error ?: journal_write_out(journal) ?: journal_barrier(journal);
"""
LAST_BARRIER = steps(*LAST)
# Contents are written when the transaction is safe, and not before.
LATE_DATA = """#include <stdlib.h>
#include <string.h>

static struct late {
	struct ext_fs *fs;
	uint64_t physical;
	uint32_t skip, length;
	uint8_t *data;
} late[512];
static unsigned late_count;

int write_late(void);

static int keep_for_later(struct ext_fs *fs, uint64_t physical, uint32_t skip,
	const uint8_t *data, uint32_t length)
{
	uint8_t *copy = memcpy(malloc(length), data, length);

	late[late_count++] = (struct late){ fs, physical, skip, length, copy };
	return 0;
}

int write_late(void)
{
	for (unsigned i = 0; i < late_count; i++) {
		write_new(late[i].fs, late[i].physical, late[i].skip, late[i].data, late[i].length);
		free(late[i].data);
	}
	late_count = 0;
	return 0;
}

/* Writes into a hole or unwritten blocks. Returns the bytes written,"""

MUTANTS: dict[str, Mutant] = {
    "no-barrier": Mutant(
        "the drive is never asked to flush",
        (
            (
                LOG,
                "\treturn journal->place.no_barriers ? 0 : block_flush(journal->place.device);",
                "	return journal->place.no_barriers ? 0 : 0;",
            ),
        ),
    ),
    "no-first-barrier": Mutant(
        "no flush between the copies and the commit block",
        ((COMMIT, FIRST_BARRIER, FIRST_BARRIER.replace("journal_barrier(journal)", "0")),),
        variants=("ext3", "ext4-plain"),
    ),
    "no-last-barrier": Mutant(
        "no flush after the commit block",
        ((COMMIT, LAST_BARRIER, LAST_BARRIER.replace("journal_barrier(journal)", "0")),),
    ),
    "commit-first": Mutant(
        "the commit block is written before what it commits",
        ((COMMIT, STEPS, COMMIT_FIRST),),
        variants=("ext3", "ext4-plain"),
    ),
    "no-revoke": Mutant(
        "freed blocks are not revoked",
        ((COMMIT, "?: journal_add_revokes(journal)", "?: 0"),),
        workloads=("full",),
    ),
    "no-escape": Mutant(
        "copies that begin like the journal's own blocks are written as they are",
        (
            (
                COMMIT,
                "	return first_word(block->data) == big32(JOURNAL_MAGIC);",
                "	return first_word(block->data) == big32(JOURNAL_MAGIC) && false;",
            ),
        ),
        workloads=("escaped",),
    ),
    "no-unescape": Mutant(
        "replay leaves the zeros that escaping has put there",
        ((RECOVER, "	if (tag->flags & TAG_ESCAPED)\n", "	if (false)\n"),),
        workloads=("escaped",),
    ),
    "late-data": Mutant(
        "contents are written after the metadata that makes them a file's",
        (
            (
                WRITE,
                "	error = write_new(fs, run.physical, skip, data, length)",
                "	error = keep_for_later(fs, run.physical, skip, data, length)",
            ),
            (
                WRITE,
                "/* Writes into a hole or unwritten blocks. Returns the bytes written,",
                LATE_DATA,
            ),
            (
                CHANGE,
                "	return fs->journal ? journal_commit(fs->journal) : write_all(fs);",
                "	int write_late(void);\n"
                "\terror = fs->journal ? journal_commit(fs->journal) : write_all(fs);\n"
                "	return error ? error : write_late();",
            ),
        ),
    ),
    "no-checkpoint-barrier": Mutant(
        "the log is declared empty before its blocks are in their places",
        (
            (
                COMMIT,
                "	int error = bcache_write_all(journal->place.device)\n"
                "			?: journal_barrier(journal)\n",
                "	int error = bcache_write_all(journal->place.device)\n",
            ),
        ),
        workloads=("sessions", "wrapped"),
    ),
    "no-replay-barrier": Mutant(
        "recovery declares the log empty before its blocks are in their places",
        (
            (
                RECOVER,
                "	int error = journal_barrier(journal)\n"
                "			?: journal_write_super(journal, 0, next)",
                "	int error = journal_write_super(journal, 0, next)",
            ),
        ),
    ),
    "reuse-at-once": Mutant(
        "blocks that the open transaction freed are given to other files",
        (
            (
                "fs/ext/allocate.c",
                "	note_pending(fs, group, index, count);\n",
                "	(void)note_pending;\n",
            ),
        ),
        workloads=("full", "saving", "long-files"),
    ),
    "attributes-in-place": Mutant(
        "a block of attributes is written to its place, and not through the journal",
        (
            (
                "fs/ext/attributes_change.c",
                "\t\treturn ext_change(inode->fs, old);",
                "\t\tbcache_mark_dirty(old);\n\t\treturn 0;",
            ),
        ),
        workloads=("attributes",),
    ),
    "attributes-not-revoked": Mutant(
        "a freed block of attributes is not revoked",
        (
            (
                "fs/ext/attributes_change.c",
                "\t\terror = ext_blocks_free(inode, block, 1, true);\n\tif (!error)\n"
                "\t\tinode->attributes = 0;",
                "\t\terror = ext_blocks_free(inode, block, 1, false);\n\tif (!error)\n"
                "\t\tinode->attributes = 0;",
            ),
        ),
        workloads=("full-of-attributes",),
    ),
    "no-orphans": Mutant(
        "a mount does not free what was deleted while it was open",
        (
            (
                "fs/ext/mount_write.c",
                "	while (fs->super.s_last_orphan != 0 && !error) {",
                "	while (fs->super.s_last_orphan != 0 && !error && false) {",
            ),
        ),
        workloads=("orphans",),
    ),
}


def build_mutant(name: str, place: Path) -> Path:
    """Compiles the program with a mutant. Raises ValueError when a text is not there once."""
    root = copy_library(place)
    for file, old, new in MUTANTS[name].changes:
        path = root / file
        text = path.read_text()
        if text.count(old) != 1:
            raise ValueError(f"{name}: {file} has its text {text.count(old)} times")
        path.write_text(text.replace(old, new))
    return build(root)
