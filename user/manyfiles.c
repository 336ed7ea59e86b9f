/*
 * manyfiles create DIR COUNT [SEED]	makes this many empty files with random names
 * manyfiles remove DIR directory|inode	removes all files of a directory, in the order in which it
 *					lists them, or by the numbers of their inodes
 *
 * A directory with a hash tree lists names by their hash. The files were made in another order, and
 * so their inodes are in another order, too: that is the whole difference between the two.
 *
 * Exit status: 0; 1 when a call failed; 2 for wrong arguments. On Linux, too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/lib/random.h"

#define NAME_SIZE 20

struct name {
	unsigned long long inode;
	char text[NAME_SIZE];
};

struct names {
	struct name *all;
	unsigned count;
};

static void fail(const char *what)
{
	fprintf(stderr, "manyfiles: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void usage(void)
{
	fputs("usage: manyfiles create DIR COUNT [SEED], or manyfiles remove DIR directory|inode\n",
	      stderr);
	exit(2);
}

/* A whole number; ends the program for anything else. */
static unsigned long long number(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end)
		usage();
	return value;
}

static void create(unsigned count, unsigned long long seed)
{
	struct random random = { seed };
	char name[NAME_SIZE];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%016llx", (unsigned long long)random_next(&random));
		int file = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);

		if (file < 0)
			fail(name);
		close(file);
	}
}

static void add(struct names *names, const struct dirent *entry)
{
	if (strlen(entry->d_name) >= NAME_SIZE) {
		errno = ENAMETOOLONG;
		fail(entry->d_name);
	}
	if (names->count % 1024 == 0)
		names->all = realloc(names->all, (names->count + 1024) * sizeof(*names->all));
	if (!names->all)
		fail("memory");
	struct name *name = &names->all[names->count++];

	name->inode = entry->d_ino;
	strcpy(name->text, entry->d_name);
}

static int by_inode(const void *left, const void *right)
{
	const struct name *a = left, *b = right;

	return (a->inode > b->inode) - (a->inode < b->inode);
}

static void delete (int is_sorted)
{
	struct names names = { NULL, 0 };
	DIR *directory = opendir(".");

	if (!directory)
		fail("the directory");
	for (struct dirent *entry; (entry = readdir(directory));)
		if (entry->d_name[0] != '.')
			add(&names, entry);
	closedir(directory);
	if (is_sorted && names.count > 0)
		qsort(names.all, names.count, sizeof(*names.all), by_inode);
	for (unsigned i = 0; i < names.count; i++)
		if (unlink(names.all[i].text) < 0)
			fail(names.all[i].text);
	free(names.all);
}

int main(int count, char **arguments)
{
	if (count < 4 || count > 5)
		usage();
	int is_create = strcmp(arguments[1], "create") == 0;
	int is_remove = strcmp(arguments[1], "remove") == 0 && count == 4;
	int is_sorted = strcmp(arguments[3], "inode") == 0;

	if (!is_create && (!is_remove || (!is_sorted && strcmp(arguments[3], "directory") != 0)))
		usage();
	unsigned long long files = is_create ? number(arguments[3]) : 0;
	unsigned long long seed = count == 5 ? number(arguments[4]) : 21;

	if (chdir(arguments[2]) < 0)
		fail(arguments[2]);
	if (is_create)
		create((unsigned)files, seed);
	else
		delete (is_sorted);
	return 0;
}
