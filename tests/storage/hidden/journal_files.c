/*
 * Exercise S5: works on the file system of hdb, and says what is safe.
 *
 *	write COUNT FIRST	files /fFIRST and so on, each with fsync, then "safe NUMBER";
 *				meanwhile directories and names come and go
 *	read			mounts, which replays, and unmounts
 */
#include "tests/lesson4/programs/program.h"

#define OPEN_WRITE 01101 /* O_WRONLY | O_CREAT | O_TRUNC */
#define BYTES	   3000u

enum {
	CALL_OPEN = 5,
	CALL_UNLINK = 10,
	CALL_MOUNT = 21,
	CALL_RENAME = 38,
	CALL_MKDIR = 39,
	CALL_RMDIR = 40,
	CALL_UMOUNT = 52,
	CALL_FSYNC = 118,
};

static char path[16], other[16], directory[16];
static uint32_t data[BYTES / 4];

static void name(char *out, char kind, uint32_t number)
{
	const char start[] = "/mnt/";

	for (int i = 0; i < 5; i++)
		*out++ = start[i];
	*out++ = kind;
	for (uint32_t digit = 1000; digit > 0; digit /= 10)
		*out++ = (char)('0' + number / digit % 10);
	*out = 0;
}

static void must(const char *what, int32_t result)
{
	if (result < 0) {
		say(what, result);
		call(CALL_EXIT, 1, 0, 0);
	}
}

static void mount(void)
{
	call(CALL_MKDIR, (uintptr_t)"/mnt", 0755, 0);
	must("mount",
	     call5(CALL_MOUNT, (uintptr_t)"/dev/hdb", (uintptr_t)"/mnt", (uintptr_t)"ext4", 0, 0));
}

static void write_file(uint32_t number)
{
	int32_t file;

	name(path, 'f', number);
	for (uint32_t i = 0; i < BYTES / 4; i++)
		data[i] = number;
	must("open", file = call(CALL_OPEN, (uintptr_t)path, OPEN_WRITE, 0644));
	must("write", call(CALL_WRITE, file, (uintptr_t)data, BYTES));
	must("fsync", call(CALL_FSYNC, file, 0, 0));
	call(CALL_CLOSE, file, 0, 0);
	say("safe", (int32_t)number);
}

/* What is not made safe: it is there as a whole, or not. */
static void disturb(uint32_t number)
{
	name(directory, 'd', number);
	must("mkdir", call(CALL_MKDIR, (uintptr_t)directory, 0755, 0));
	if (number % 3 == 0)
		must("rmdir", call(CALL_RMDIR, (uintptr_t)directory, 0, 0));
	name(other, 'r', number);
	must("create", call(CALL_CLOSE, call(CALL_OPEN, (uintptr_t)other, OPEN_WRITE, 0644), 0, 0));
	name(path, 's', number);
	must("rename", call(CALL_RENAME, (uintptr_t)other, (uintptr_t)path, 0));
	if (number % 2 == 0)
		must("unlink", call(CALL_UNLINK, (uintptr_t)path, 0, 0));
}

int run(int count, char **words)
{
	mount();
	if (words[1][0] == 'w' && count == 4)
		for (uint32_t i = 0, first = number_of(words[3]); i < number_of(words[2]); i++) {
			disturb(first + i);
			write_file(first + i);
		}
	must("umount", call(CALL_UMOUNT, (uintptr_t)"/mnt", 0, 0));
	say("unmounted", 0);
	return 0;
}
