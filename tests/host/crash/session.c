/* A session: a mount and operations, recorded. */
#include "tests/host/crash/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/cache/bcache.h"
#include "kernel/lib/errno.h"
#include "tests/host/crash/judge.h"
#include "tests/host/ext/files.h"

#define ENTRIES_MAX (1u << 16) /* of a record */
#define BYTES_MAX   (160u << 20)

#define JOURNAL_INODE 8u
#define LOG_MAGIC     0x98393bc0u /* c0 3b 39 98 */
#define LOG_TYPE_LAST 0x05000000u /* a revoke block, big-endian */

static bool problem(struct session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool problem(struct session *session, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(session->problem, PROBLEM_SIZE, format, arguments);
	va_end(arguments);
	return false;
}

/* The record gets all of its room now: it must not move, since a parent reads it. */
struct session *session_make(struct arena *arena, const struct script *script)
{
	struct session *session = arena_take(arena, sizeof(*session));
	struct disk_record *record = &session->record;

	session->arena = arena;
	session->script = script;
	session->ends = arena_take(arena, (script->count + 1) * sizeof(*session->ends));
	session->durable = arena_take(arena, script->count + 1);
	session->trees = arena_take(arena, (script->count + 1) * sizeof(*session->trees));
	record->room = ENTRIES_MAX;
	record->entries = arena_take_raw(arena, ENTRIES_MAX * sizeof(*record->entries));
	record->size = BYTES_MAX;
	record->bytes = arena_take_raw(arena, BYTES_MAX);
	return session;
}

/* The disk's record is the session's as long as requests are made. */
static void note_requests(struct session *session)
{
	session->record = disk.record;
	session->ends[session->done] = disk.record.count;
}

/* Where the journal is. It has one piece in the laboratory's images. */
static bool find_log(struct session *session)
{
	uint32_t sectors = session->block_size / SECTOR_SIZE;
	struct ext_mapping mapping;
	struct ext_inode inode;

	if (ext_inode_read(fs, JOURNAL_INODE, &inode) != 0 || ext_map(&inode, 0, &mapping) != 0)
		return problem(session, "the image has no journal");
	session->log_first = mapping.physical * sectors;
	session->log_end = (mapping.physical + mapping.length) * sectors;
	return true;
}

/* What is in the log begins like one of its own blocks only if it is one. */
static bool check_log(struct session *session)
{
	const struct disk_record *record = &session->record;

	for (size_t i = 0; i < record->count; i++) {
		const struct disk_entry *entry = &record->entries[i];

		if (entry->lba < session->log_first || entry->lba >= session->log_end)
			continue;
		for (uint32_t at = 0; at < entry->sectors * SECTOR_SIZE;
		     at += session->block_size) {
			uint32_t words[2];

			memcpy(words, record->bytes + entry->data + at, sizeof(words));
			if (words[0] == LOG_MAGIC &&
			    (words[1] == 0 || words[1] & 0xffffff || words[1] > LOG_TYPE_LAST))
				return problem(session,
					       "request %zu puts a block into the log that begins "
					       "like the log's own, and is not escaped",
					       i);
		}
	}
	return true;
}

bool session_begin(struct session *session, const struct ext_options *options)
{
	int error;

	disk.record = session->record;
	disk.recording = true;
	error = files_mount(options);
	note_requests(session);
	if (error)
		return problem(session, "mount: %s", errno_name(-error));
	session->block_size = ext_summary(fs)->block_size;
	if (!find_log(session))
		return false;
	session->trees[0] = tree_read(session->arena, session->problem);
	return session->trees[0] != NULL;
}

static bool begins_with(const char *line, const char *word)
{
	size_t length = strlen(word);

	return strncmp(line, word, length) == 0 && (line[length] == ' ' || line[length] == '\0');
}

/* After it all that was done before is safe. */
static bool promises(const char *line)
{
	return begins_with(line, "fsync") || begins_with(line, "fdatasync") ||
	       begins_with(line, "sync") || begins_with(line, "again");
}

static int64_t mount_again(const struct ext_options *options)
{
	int error = files_unmount();

	bcache_drop();
	return error ? error : files_mount(options);
}

/* An operation has ended: the tree that it makes. Returns the result that it should have had. */
static int64_t note_operation(struct session *session, const char *line, int64_t given)
{
	const struct model *before = session->trees[session->done];
	struct model *after;
	int64_t wanted;

	after = model_operate(session->arena, before, line, session->block_size, given, &wanted);
	model_sort(after);
	session->done++;
	session->durable[session->done] = promises(line) && given >= 0;
	session->trees[session->done] = after;
	return wanted;
}

static bool operate(struct session *session, const char *line, const struct ext_options *options)
{
	bool again = begins_with(line, "again");
	int64_t given = again ? mount_again(options) : files_operate(line);
	int64_t wanted = note_operation(session, line, given);

	note_requests(session);
	if (given != wanted)
		return problem(session, "%s: result %s%jd, not %jd", line,
			       given < 0 ? errno_name((int)-given) : "", (intmax_t)given,
			       (intmax_t)wanted);
	return true;
}

bool session_operate(struct session *session, const struct ext_options *options)
{
	struct model *tree;

	for (uint32_t i = 0; i < session->script->count; i++)
		if (!operate(session, session->script->lines[i], options))
			return false;
	tree = tree_read(session->arena, session->problem);
	return check_log(session) && tree != NULL &&
	       trees_equal(tree, session->trees[session->done], session->problem);
}

bool session_load(struct session *session, const struct ext_options *options, const char *log)
{
	const struct script *script = session->script;

	if (!session_begin(session, options))
		return false;
	session->record.count = session->record.used = 0;
	record_load(&session->record, log);
	session->ends[0] = 0;
	for (uint32_t i = 0; i < script->count; i++) {
		char *line;
		uint64_t end = strtoull(script->lines[i], &line, 10);

		if (end < session->ends[i] || end > session->record.count || *line != ' ')
			return problem(session, "'%s': no number of requests", script->lines[i]);
		if (note_operation(session, line + 1, 0) < 0)
			return problem(session, "%s: cannot be", line + 1);
		session->ends[i + 1] = end;
	}
	return true;
}

bool session_end(struct session *session)
{
	int error = files_unmount();

	note_requests(session);
	return error ? problem(session, "unmount: %s", errno_name(-error)) : true;
}
