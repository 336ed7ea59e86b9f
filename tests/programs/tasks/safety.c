/* Calls that make something safe, calls that drop what is in memory, and a full disk. */
#define _GNU_SOURCE
#include "tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FOLDERS 64 /* that one call makes, to fill the disk */

static const char *drop_what = "3";

static void sync_file(uint32_t file)
{
	bool is_data = one_in(3);
	int opened = open(path_of(file), O_RDWR);

	if (opened < 0)
		return wrong("open of file %u: %s", file, strerror(errno));
	struct record *record = begin(is_data ? FDATASYNC : FSYNC, file, 0, 0);

	if (end(record, is_data ? fdatasync(opened) : fsync(opened)) < 0)
		wrong("fsync of file %u: %s", file, strerror(errno));
	close(opened);
}

void do_fsync(void)
{
	sync_file(some_file(true));
}

void do_sync(void)
{
	int opened = open("/mnt", O_RDONLY);
	struct record *record = begin(SYNC, 0, 0, 0);
	long done = 0;

	if (one_in(2))
		sync();
	else
		done = syncfs(opened);
	if (end(record, done) < 0)
		wrong("syncfs: %s", strerror(errno));
	close(opened);
}

void do_directory(void)
{
	uint32_t which = below(2);
	int opened = open(which ? "/mnt/d1" : "/mnt/d0", O_RDONLY | O_DIRECTORY);
	struct record *record = begin(SYNC_DIRECTORY, which, 0, 0);

	if (end(record, fsync(opened)) < 0)
		wrong("fsync of directory %u: %s", which, strerror(errno));
	close(opened);
}

void do_drop(void)
{
	int opened = open("/proc/sys/vm/drop_caches", O_WRONLY);
	struct record *record = begin(DROP, 0, 0, 0);

	end(record, write(opened, drop_what, 1));
	close(opened);
}

/* A file that is forgotten between a change and the fsync. What has new times only in memory is not
 * forgotten; calls on names and sizes store them. */
void do_evicted(void)
{
	static void (*const change[])(void) = { do_create, do_rename, do_link, do_resize,
						do_range };

	change[below(5)]();
	const struct record *latest = &together->records[me->number][(me->records - 1) % RECORDS];
	uint32_t file = latest->file < FILES ? latest->file : OWN(me->number);

	do_drop();
	if (path_of(file))
		sync_file(file);
}

/* Names take the room that is left. Nobody is promised that they stay. */
void do_fill(void)
{
	char path[40];
	uint32_t made = 0;

	if (!is_full)
		return;
	struct record *record = begin(FILL, 0, 0, 0);

	for (bool has_room = true; has_room && made < MOST_FOLDERS; made += has_room) {
		snprintf(path, sizeof(path), "/mnt/full%u.%u", me->number, made);
		has_room = mkdir(path, 0755) == 0;
		if (!has_room && errno != ENOSPC)
			wrong("mkdir: %s", strerror(errno));
	}
	end(record, (long)made);
	if (one_in(2))
		sync_file(some_file(true));
	while (made > 0) {
		snprintf(path, sizeof(path), "/mnt/full%u.%u", me->number, --made);
		if (rmdir(path) != 0)
			wrong("rmdir: %s", strerror(errno));
	}
}
