/*
 * Commands for a mount that is written to; besides them every operation of files.h is a command.
 *
 *	again			unmount and mount again
 *	remount [read-only]	change between reading and writing
 *	record on|off		record writes and flushes from here on
 *	record save PATH	write the record, as QEMU's blklogwrites does
 *	fail N [COUNT]		COUNT (1) requests fail; 0: from the next one on
 *	requests		prints how many requests there were
 *	usage			prints blocks, free, available, inodes, free inodes
 *	room BLOCKS		prints what can be promised, if this many blocks are wanted
 *	run FIRST COUNT		checks that a file may have these blocks
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/cache/bcache.h"
#include "fs/ext/groups.h"
#include "kernel/lib/errno.h"
#include "tests/host/ext/command.h"
#include "tests/host/ext/files.h"
#include "tests/host/ext/shim.h"

#pragma weak ext_remount
#pragma weak ext_usage
#pragma weak ext_room
#pragma weak ext_check_run

static struct ext_options options = { .now = clock_count };

const struct ext_options *write_options(char **words)
{
	for (; *words != NULL; words++) {
		options.read_only |= strcmp(*words, "read-only") == 0;
		options.no_barriers |= strcmp(*words, "no-barriers") == 0;
		options.no_replay |= strcmp(*words, "no-replay") == 0;
		if (strcmp(*words, "data=journal") == 0)
			options.data = EXT_DATA_JOURNAL;
		if (strcmp(*words, "data=writeback") == 0)
			options.data = EXT_DATA_WRITEBACK;
		if (strcmp(*words, "errors=continue") == 0)
			options.errors = EXT_ERRORS_CONTINUE;
		if (strcmp(*words, "errors=remount-ro") == 0)
			options.errors = EXT_ERRORS_READ_ONLY;
		if (strcmp(*words, "errors=panic") == 0)
			options.errors = EXT_ERRORS_PANIC;
	}
	return &options;
}

bool files_obey(const char *line)
{
	int64_t result;

	if (!files_knows(line))
		return false;
	result = files_operate(line);
	if (result < 0)
		say_error(result);
	else
		printf("done %jd\n", (intmax_t)result);
	return true;
}

static void mount_again(void)
{
	int error = files_mount(&options);

	if (error)
		fail("cannot mount again: %s", errno_name(-error));
}

static void again(char *arguments)
{
	int error = files_unmount();

	(void)arguments;
	if (error)
		say_error(error);
	bcache_drop();
	mount_again();
}

static void remount(char *arguments)
{
	struct ext_options other = options;
	int error;

	other.read_only = strcmp(arguments, "read-only") == 0;
	error = ext_remount(fs, &other);
	if (error)
		say_error(error);
}

static void record(char *arguments)
{
	if (strncmp(arguments, "save ", 5) == 0)
		record_save(&disk.record, arguments + 5);
	else
		disk.recording = strcmp(arguments, "on") == 0;
}

static void fail_requests(char *arguments)
{
	disk.fail_from = disk.requests + strtoull(arguments, &arguments, 0);
	disk.fail_count = *arguments != '\0' ? strtoull(arguments, NULL, 0) : 1;
}

static void requests(char *arguments)
{
	(void)arguments;
	printf("requests %ju\n", disk.requests);
}

static void usage(char *arguments)
{
	struct ext_usage use;

	(void)arguments;
	if (ext_usage == NULL)
		return;
	ext_usage(fs, &use);
	printf("usage %ju %ju %ju %u %u\n", use.blocks, use.free, use.available, use.inodes,
	       use.free_inodes);
}

static void room(char *arguments)
{
	uint64_t found;
	int error = ext_room(fs, strtoull(arguments, NULL, 0), &found);

	if (error)
		say_error(error);
	printf("room %ju\n", found);
}

static void run(char *arguments)
{
	const struct ext_inode inode = { .fs = fs, .number = 12 };
	uint64_t first = strtoull(arguments, &arguments, 0);
	int error = ext_check_run(&inode, first, (uint32_t)strtoull(arguments, NULL, 0));

	if (error)
		say_error(error);
	else
		printf("done 0\n");
}

const struct command write_commands[] = {
	{ "again", again },	   { "remount", remount },   { "record", record },
	{ "fail", fail_requests }, { "requests", requests }, { "usage", usage },
	{ "room", room },	   { "run", run },	     { NULL, NULL },
};
