/* Calls on names: each has one task that changes it, in a directory that two tasks have together.
 */
#define _GNU_SOURCE
#include "tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names of records: 100 for what is no name. */
#define NO_NAME 100u

static const char *path_of_name(unsigned task, uint32_t name, char *path)
{
	snprintf(path, 40, "/mnt/d%u/%un%u", task % 2, task, name);
	return path;
}

const char *path_of(uint32_t file)
{
	static char path[40];

	if (file < SHARED + TASKS) {
		bool is_shared = file < SHARED;

		snprintf(path, sizeof(path), is_shared ? "/mnt/s%u" : "/mnt/p%u",
			 is_shared ? file : file - SHARED);
		return file < SHARED + task_count ? path : NULL;
	}
	unsigned task = owner_of(file, 0);

	for (uint32_t i = 0; i < NAMES; i++)
		if (together->tasks[task].names[i] == file)
			return path_of_name(task, i, path);
	return NULL;
}

uint32_t some_file(bool any)
{
	uint32_t slot = SLOT(me->number, below(SLOTS));

	switch (below(4)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return any ? OWN(below(task_count)) : OWN(me->number);
	}
	return path_of(slot) ? slot : OWN(me->number);
}

/* Any of this task's names that is free, or has a file, or a directory; else NO_NAME. */
static uint32_t name_with(bool (*fits)(uint8_t))
{
	uint32_t first = below(NAMES);

	for (uint32_t i = 0; i < NAMES; i++)
		if (fits(me->names[(first + i) % NAMES]))
			return (first + i) % NAMES;
	return NO_NAME;
}

static bool is_free(uint8_t file)
{
	return file == NO_FILE;
}

static bool is_file(uint8_t file)
{
	return file < FILES;
}

static bool is_directory(uint8_t file)
{
	return file == A_DIRECTORY;
}

/* A call on names has returned: only a full disk may refuse it. */
static bool worked(struct record *record, long result, const char *what)
{
	if (end(record, result) >= 0)
		return true;
	if (errno != ENOSPC)
		wrong("%s: %s", what, strerror(errno));
	return false;
}

void do_create(void)
{
	uint32_t name = name_with(is_free), slot = 0;
	struct stat status;
	char path[40];

	while (slot < SLOTS && path_of(SLOT(me->number, slot)))
		slot++;
	if (name == NO_NAME || slot == SLOTS)
		return;
	uint32_t file = SLOT(me->number, slot);
	struct record *record = begin(CREATE, file, name, NO_NAME);
	int opened = open(path_of_name(me->number, name, path), O_RDWR | O_CREAT | O_EXCL, 0644);

	if (!worked(record, opened, "creat"))
		return;
	fstat(opened, &status);
	record->inode = (uint32_t)status.st_ino;
	close(opened);
	memset(&together->files[file], 0, sizeof(struct file));
	me->names[name] = (uint8_t)file;
}

void do_link(void)
{
	uint32_t from = name_with(is_file), to = name_with(is_free);
	char old[40], new[40];

	if (from == NO_NAME || to == NO_NAME)
		return;
	struct record *record = begin(LINK, me->names[from], from, to);

	path_of_name(me->number, from, old);
	if (worked(record, link(old, path_of_name(me->number, to, new)), "link"))
		me->names[to] = me->names[from];
}

void do_rename(void)
{
	uint32_t from = name_with(is_file), to = name_with(one_in(2) ? is_free : is_file);
	char old[40], new[40];

	if (from == NO_NAME || to == NO_NAME || me->names[from] == me->names[to])
		return;
	struct record *record = begin(RENAME, me->names[from], from, to);

	path_of_name(me->number, from, old);
	if (!worked(record, rename(old, path_of_name(me->number, to, new)), "rename"))
		return;
	me->names[to] = me->names[from];
	me->names[from] = NO_FILE;
}

void do_unlink(void)
{
	uint32_t name = name_with(is_file);
	char path[40];

	if (name == NO_NAME)
		return;
	struct record *record = begin(UNLINK, me->names[name], name, NO_NAME);

	if (worked(record, unlink(path_of_name(me->number, name, path)), "unlink"))
		me->names[name] = NO_FILE;
}

void do_mkdir(void)
{
	uint32_t name = name_with(is_free);
	struct stat status;
	char path[40];

	if (name == NO_NAME)
		return;
	struct record *record = begin(MKDIR, A_DIRECTORY, name, NO_NAME);

	if (!worked(record, mkdir(path_of_name(me->number, name, path), 0755), "mkdir"))
		return;
	stat(path, &status);
	record->inode = (uint32_t)status.st_ino;
	me->names[name] = A_DIRECTORY;
}

void do_rmdir(void)
{
	uint32_t name = name_with(is_directory);
	char path[40];

	if (name == NO_NAME)
		return;
	struct record *record = begin(RMDIR, A_DIRECTORY, name, NO_NAME);

	if (worked(record, rmdir(path_of_name(me->number, name, path)), "rmdir"))
		me->names[name] = NO_FILE;
}
