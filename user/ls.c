/* ls [-a] [-l] [PATH ...]: lists directories, by name. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool all, wide;

static int complain(const char *path)
{
	fprintf(stderr, "ls: %s: %s\n", path, strerror(errno));
	return 1;
}

static char type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'l';
	case S_IFCHR:
		return 'c';
	case S_IFBLK:
		return 'b';
	case S_IFIFO:
		return 'p';
	default:
		return '-';
	}
}

static void print_mode(mode_t mode)
{
	putchar(type_of(mode));
	for (int bit = 8; bit >= 0; bit--)
		putchar(mode >> bit & 1 ? "xwr"[bit % 3] : '-');
}

static void print_target(const char *path)
{
	char target[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof(target));

	if (length >= 0)
		printf(" -> %.*s", (int)length, target);
}

static int show(const char *path, const char *name)
{
	struct stat status;

	if (!wide) {
		puts(name);
		return 0;
	}
	if (lstat(path, &status) < 0)
		return complain(path);
	print_mode(status.st_mode);
	printf(" %3u %4u %4u %9llu ", status.st_nlink, status.st_uid, status.st_gid,
	       (unsigned long long)status.st_size);
	fputs(name, stdout);
	if (S_ISLNK(status.st_mode))
		print_target(path);
	putchar('\n');
	return 0;
}

static int compare(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The names in a directory, sorted, with a NULL after the last; NULL after a complaint. */
static char **read_names(const char *path)
{
	DIR *directory = opendir(path);
	char **names = NULL;
	size_t count = 0;

	if (!directory)
		return NULL;
	for (struct dirent *entry; (entry = readdir(directory));) {
		if (entry->d_name[0] == '.' && !all)
			continue;
		if (count % 64 == 0)
			names = realloc(names, (count + 65) * sizeof(*names));
		names[count++] = strdup(entry->d_name);
	}
	closedir(directory);
	if (!names)
		return calloc(1, sizeof(*names));
	qsort(names, count, sizeof(*names), compare);
	names[count] = NULL;
	return names;
}

static int list(const char *path)
{
	char **names = read_names(path);
	int failed = 0;

	if (!names)
		return errno == ENOTDIR ? show(path, path) : complain(path);
	for (char **name = names; *name; name++) {
		char full[PATH_MAX];

		snprintf(full, sizeof(full), "%s/%s", path, *name);
		failed |= show(full, *name);
		free(*name);
	}
	free(names);
	return failed;
}

int main(int count, char **arguments)
{
	int option, failed = 0;

	while ((option = getopt(count, arguments, "al")) != -1) {
		if (option == '?')
			return 2;
		*(option == 'a' ? &all : &wide) = true;
	}
	if (optind == count)
		return list(".");
	for (int i = optind; i < count; i++) {
		if (count - optind > 1)
			printf("%s%s:\n", i > optind ? "\n" : "", arguments[i]);
		failed |= list(arguments[i]);
	}
	return failed;
}
