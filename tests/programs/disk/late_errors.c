/*
 * A write that fails after its file was closed is told to who opens the file later, and by syncfs.
 * late_errors FOLDER FILE PIPE: the file's first block cannot be written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void say(const char *what, int result)
{
	printf("%s: %s\n", what, result < 0 ? strerror(errno) : "ok");
}

/* Writes, and lets it be written back and fail. Then the inode may go, too, unless `keep`. */
static void lose(const char *name)
{
	static char data[4096];
	int file = open(name, O_RDWR), caches = open("/proc/sys/vm/drop_caches", O_WRONLY);

	pwrite(file, data, sizeof(data), 0);
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	fchmod(file, 0600);
	close(file);
	write(caches, "3", 1);
	close(caches);
}

int main(int count, char **words)
{
	int folder = open(words[1], O_RDONLY), other = open(words[1], O_RDONLY), one, two;

	say("before", syncfs(folder));
	lose(words[2]);
	one = open(words[2], O_RDWR);
	two = open(words[2], O_RDONLY);
	say("one", fsync(one));
	say("one again", fsync(one));
	say("two", fdatasync(two));
	say("three", fsync(open(words[2], O_RDONLY)));
	say("syncfs", syncfs(folder));
	say("syncfs again", syncfs(folder));
	say("syncfs of a later pipe", syncfs(open(words[3], O_RDWR)));
	say("syncfs of another", syncfs(other));
	say("syncfs of a later one", syncfs(open(words[1], O_RDONLY)));
	lose(words[2]);
	void *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, one, 0);

	say("msync", msync(at, 4096, MS_SYNC));
	say("msync again", msync(at, 4096, MS_SYNC));
	lose(words[2]);
	say("syncfs of who comes late", syncfs(open(words[1], O_RDONLY)));
	say("one at last", sync_file_range(one, 0, 0, 7));
	return 0;
}
