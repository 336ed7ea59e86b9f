"""Mistakes in the journal: the random sessions must find each (tests/host/test_jbd2.py)."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One change of one file."""

    name: str
    file: str
    old: str  # is in the file once
    new: str
    session: int = 1  # the first of the random sessions that are tried: one that finds it soon


COMMIT = "fs/jbd2/commit.c"
CHANGE = "fs/jbd2/change.c"
LOG = "fs/jbd2/log.c"
OPEN = "fs/jbd2/open.c"
RECOVER = "fs/jbd2/recover.c"
REVOKE = "fs/jbd2/revoke.c"

STEP = "\t\t       ?: "
BARRIER = STEP + "journal_barrier(journal)\n"
AFTER = "return block + 1 == journal->end ? journal->first : block + 1;"
ADD_COMMIT = STEP + "add_commit_block(journal)\n"
WRITE_OUT = STEP + "journal_write_out(journal)\n"
ADD_COPIES = STEP + "add_copies(journal)\n"
WRITE_ALL = "int error = bcache_write_all(journal->place.device)\n"
MOVE_TAIL = "\t\t\t?: journal_write_super(journal, start, journal->sequence)\n"
LAST_BARRIER = "journal_barrier(journal);"
COVERS = "return record && !sequence_is_before(record->sequence, sequence);"

MUTANTS = [
    Mutant("no-flush-before-commit", COMMIT, BARRIER + ADD_COMMIT, ADD_COMMIT, 3),
    Mutant(
        "no-flush-after-commit",
        COMMIT,
        ADD_COMMIT + WRITE_OUT + STEP + LAST_BARRIER,
        ADD_COMMIT + WRITE_OUT + STEP + "0;",
    ),
    Mutant(
        "commit-before-copies",
        COMMIT,
        ADD_COPIES + WRITE_OUT + BARRIER + ADD_COMMIT,
        ADD_COMMIT + WRITE_OUT + BARRIER + ADD_COPIES,
    ),
    Mutant("superblock-says-empty", COMMIT, "if (!journal->is_marked)", "if (0)"),
    Mutant("no-revoke", COMMIT, STEP + "journal_add_revokes(journal)", STEP + "0"),
    Mutant("revokes-ignored", RECOVER, "if (revoke_covers(", "if (0 && revoke_covers("),
    Mutant(
        "revoke-not-cancelled",
        CHANGE,
        "\trevoke_remove(&journal->revoked, block->block);\n",
        "",
    ),
    Mutant("revoke-for-ever", REVOKE, COVERS, "return record || sequence == 0;"),
    Mutant(
        "no-escaping",
        COMMIT,
        "return first_word(block->data) == big32(JOURNAL_MAGIC);",
        "return 0 * first_word(block->data);",
        3,
    ),
    Mutant("escape-stays", RECOVER, "if (tag->flags & TAG_ESCAPED)", "if (0)"),
    Mutant(
        "tail-before-checkpoint",
        COMMIT,
        WRITE_ALL,
        "int error = journal_write_super(journal, start, journal->sequence)\n"
        "?: bcache_write_all(journal->place.device)\n",
    ),
    Mutant(
        "no-flush-of-checkpoint",
        COMMIT,
        "\t\t\t?: journal_barrier(journal)\n" + MOVE_TAIL,
        MOVE_TAIL,
    ),
    Mutant("no-flush-of-tail", COMMIT, MOVE_TAIL + "\t\t\t?: " + LAST_BARRIER, MOVE_TAIL + ";", 3),
    Mutant("wrap-to-superblock", LOG, AFTER, AFTER.replace("first :", "first - 1 :")),
    Mutant("wrap-too-late", LOG, AFTER, AFTER.replace("block + 1 ==", "block =="), 7),
    Mutant(
        "no-room-kept",
        LOG,
        "\tjournal->free--;\n",
        "",
    ),
    Mutant(
        "held-written",
        COMMIT,
        "\tint error = write_transaction(journal);\n",
        "\tjournal_release_all(journal, false), bcache_write_all(journal->place.device);\n"
        "\tint error = write_transaction(journal);\n",
    ),
    Mutant(
        "hold-forgotten",
        CHANGE,
        "\tblock->transaction = journal;\n\tjournal->changed++;\n",
        "\tjournal->changed++;\n",
    ),
    Mutant("abort-forgotten", LOG, "\tjournal->is_aborted = true;\n", "", 5),
    Mutant(
        "read-ahead-written",
        OPEN,
        "\tjournal->buffered = 0; /* what was read ahead must",
        "\t/* what was read ahead must",
    ),
    Mutant(
        "recovery-not-flushed",
        RECOVER,
        "int error = journal_barrier(journal)\n",
        "int error = 0\n",
    ),
]
