/*
 * errors FILE BAD: FILE is a block device whose sector BAD can be neither read nor written. The
 * error reaches the program that asked for it, and nobody else; one line a promise.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE   4096
#define SECTOR 512

static int number;

static void ok(int good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

static int fails(long result, int reason)
{
	return result == -1 && errno == reason;
}

/* How a child ends that reads a byte of the page. */
static int signal_of_reader(volatile char *page)
{
	int status;

	if (fork() == 0)
		_exit(page[0] & 0);
	wait(&status);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(int count, char **words)
{
	int file = open(words[1], O_RDWR), other = open(words[1], O_RDWR);
	int direct = open(words[1], O_RDWR | O_DIRECT);
	off_t bad = atol(words[2]) * SECTOR, page = bad & -(off_t)PAGE;
	void *buffer = NULL;

	if (count != 3 || posix_memalign(&buffer, PAGE, 2 * PAGE))
		return 2;
	char *shown = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, page);

	ok(fails(pread(direct, buffer, SECTOR, bad), EIO), "a direct read of it: EIO");
	ok(pread(direct, buffer, SECTOR, bad + SECTOR) == SECTOR, "of its neighbour: none");
	ok(fails(pread(file, buffer, 10, bad), EIO), "a read of it: EIO");
	ok(pread(file, buffer, PAGE, page - PAGE) == PAGE, "of the page before: none");
	ok(pread(file, buffer, PAGE, page + PAGE) == PAGE, "of the page after: none");
	ok(pread(file, buffer, 2 * PAGE, page - PAGE) == PAGE, "a read ends before it");
	ok(signal_of_reader(shown) == SIGBUS, "in a mapping: SIGBUS");
	ok(fails(pwrite(direct, buffer, SECTOR, bad), EIO), "a direct write of it: EIO");
	ok(pwrite(direct, buffer, SECTOR, bad + SECTOR) == SECTOR, "of its neighbour: none");
	ok(pwrite(file, buffer, PAGE, page) == PAGE, "a write into memory: none");
	ok(fails(fsync(file), EIO), "fsync: EIO");
	ok(fsync(file) == 0, "told once");
	ok(fails(fsync(other), EIO), "and once to the other who has it open");
	ok(pwrite(file, "after", 5, 0) == 5 && fsync(file) == 0, "the rest goes on");
	printf("1..%d\n", number);
	return 0;
}
