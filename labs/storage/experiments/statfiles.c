/*
 * statfiles DIR name|inode FIRST: calls lstat for all files of a directory, in the order of their
 * names or of their inodes, twice. Around the three parts, the listing and both rounds, a sector of
 * /dev/hda is read, at 64 KiB * FIRST and then the next ones: marks in the list of the requests.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK	  65536
#define NAME_SIZE 24

struct name {
	unsigned long long inode;
	char text[NAME_SIZE];
};

static struct name *names;
static unsigned count;

static void __attribute__((noreturn)) fail(const char *what)
{
	perror(what);
	exit(1);
}

static void mark(int number)
{
	char sector[512];
	int file = open("/dev/hda", O_RDONLY);

	if (file < 0 || pread(file, sector, sizeof(sector), (off_t)number * MARK) < 0)
		fail("/dev/hda");
	close(file);
}

static void list(void)
{
	DIR *directory = opendir(".");

	if (!directory)
		fail("the directory");
	for (struct dirent *entry; (entry = readdir(directory));) {
		if (entry->d_name[0] == '.')
			continue;
		if (count % 1024 == 0 && !(names = realloc(names, (count + 1024) * sizeof(*names))))
			fail("memory");
		names[count].inode = entry->d_ino;
		if (strlen(entry->d_name) >= NAME_SIZE)
			fail(entry->d_name);
		strcpy(names[count++].text, entry->d_name);
	}
	closedir(directory);
}

static int by_name(const void *left, const void *right)
{
	return strcmp(((const struct name *)left)->text, ((const struct name *)right)->text);
}

static int by_inode(const void *left, const void *right)
{
	const struct name *a = left, *b = right;

	return (a->inode > b->inode) - (a->inode < b->inode);
}

static void stat_all(void)
{
	struct stat found;

	for (unsigned i = 0; i < count; i++)
		if (lstat(names[i].text, &found) < 0)
			fail(names[i].text);
}

int main(int words, char **word)
{
	if (words != 4 || chdir(word[1]) < 0)
		fail("statfiles DIR name|inode FIRST");
	int first = atoi(word[3]);

	mark(first);
	list();
	qsort(names, count, sizeof(*names), strcmp(word[2], "inode") == 0 ? by_inode : by_name);
	mark(first + 1);
	stat_all();
	mark(first + 2);
	stat_all();
	mark(first + 3);
	printf("statfiles: %u files\n", count);
	return 0;
}
