/*
 * A block of metadata cannot be written, and another program's fsync, or the kernel's timer, is the
 * one that tries: each file that depends on it is told once, and safe when an fsync succeeds.
 * other_hands FOLDER fsync|timer NUMBER: FOLDER has "a", which has an attribute, "other" and a
 * directory "d". Each of the two pauses is for the host, which makes the drive fail, and mends it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SIZE 1024

static void say(const char *what, int result)
{
	printf("%s: %s\n", what, result < 0 ? strerror(errno) : "ok");
	fflush(stdout);
}

static void pause_for_host(const char *what)
{
	char line[16];

	say(what, 0);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

/* The file and its map, its attribute, and a name; the contents go to the drive at once. */
static void change(int file, int folder, const char *number)
{
	static char block[SIZE];

	memset(block, *number, sizeof(block));
	if (pwrite(file, block, SIZE, lseek(file, 0, SEEK_END)) != SIZE ||
	    fsetxattr(file, "user.a", block, 10, 0) || openat(folder, number, O_CREAT, 0600) < 0)
		say("change", -1);
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
}

static void commit_elsewhere(const char *how)
{
	if (strcmp(how, "timer") == 0) {
		sleep(12);
	} else if (fork() == 0) {
		int file = open("other", O_RDWR);

		write(file, how, 1);
		say("other", fsync(file));
		_exit(0);
	}
	wait(NULL);
}

int main(int count, char **words)
{
	if (count != 4 || chdir(words[1]))
		return 2;
	int one = open("a", O_RDWR), two = open("a", O_RDONLY), folder = open("d", O_RDONLY);
	int whole = open(".", O_RDONLY), again = open(".", O_RDONLY);
	int caches = open("/proc/sys/vm/drop_caches", O_WRONLY);

	pause_for_host("ready");
	change(one, folder, words[3]);
	commit_elsewhere(words[2]);
	write(caches, "3", 1);
	pause_for_host("tried");
	say("one", fsync(one));
	say("one again", fsync(one));
	say("two", fdatasync(two));
	say("two again", fsync(two));
	say("folder", fsync(folder));
	say("folder again", fsync(folder));
	say("late", fsync(open("a", O_RDONLY)));
	say("syncfs", syncfs(whole));
	say("syncfs again", syncfs(whole));
	say("another syncfs", syncfs(again));
	puts("all");
	return 0;
}
