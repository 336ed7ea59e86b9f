/*
 * races WAY PATH: two tasks and one file, where one of them sleeps in the middle. Says how often
 * the outcome was none that either order of the two could have.
 *
 *	cut FILE	read, while another task cuts the file: bytes of it, or its end
 *	punch FILE	a hole, while another task stores through memory beside it, in the same page
 *	beside FILE	the same with a write with O_DIRECT
 *	direct DRIVE	a write whose bytes are not in memory yet, and one with O_DIRECT to the
 *			other half of the page
 *	stream DRIVE	bytes of a stream whose reader, or whose sender, waits for its page
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE   4096
#define HALF   (PAGE / 2)
#define BLOCK  1024
#define ROUNDS 40

/* What the two tasks share. */
static volatile struct {
	int begun, ended, stored;
} *shared;

static char *memory(size_t bytes)
{
	void *made;

	return posix_memalign(&made, PAGE, bytes) ? NULL : made;
}

static int all(const char *bytes, int value, int count)
{
	while (count-- > 0)
		if (*bytes++ != (char)value)
			return 0;
	return 1;
}

static int cut(const char *path)
{
	char *bytes = memory(16 * PAGE);
	int wrong = 0;

	for (int i = 0; i < ROUNDS; i++) {
		int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);

		memset(bytes, 'x', 16 * PAGE);
		write(file, bytes, 16 * PAGE);
		fsync(file);
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
		shared->begun = 0;
		if (fork() == 0) {
			while (!shared->begun)
				;
			_exit(ftruncate(file, i % 2 ? 0 : 2 * PAGE + 100) != 0);
		}
		shared->begun = 1;
		ssize_t moved = pread(file, bytes, PAGE, 2 * PAGE);

		wrong += moved != 0 && moved != PAGE && moved != 100;
		wait(NULL);
		close(file);
	}
	return wrong;
}

/* Each byte is stored once: one that is lost stays so. */
static void store(volatile char *page)
{
	while (!shared->ended && shared->stored < BLOCK) {
		page[shared->stored] = 's';
		shared->stored++;
		for (volatile int i = 0; i < 300; i++)
			;
	}
	_exit(0);
}

/* The pages after the first are dirty, too, and no neighbours: to write them takes a while. */
static int change_beside(const char *path, int value)
{
	char *bytes = memory(16 * PAGE), *written = memory(15 * PAGE);
	int wrong = 0;

	memset(written, value, 15 * PAGE);
	for (int i = 0; i < ROUNDS; i++) {
		int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);

		int past = open(path, O_RDWR | O_DIRECT);

		memset(bytes, 'o', 16 * PAGE);
		write(file, bytes, 16 * PAGE);
		fsync(file);
		char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

		for (int at = 0; at < 16; at += 2)
			pwrite(file, "o", 1, at * PAGE);
		shared->ended = shared->stored = 0;
		if (fork() == 0)
			store(page);
		if (value)
			pwrite(past, written, 15 * PAGE, BLOCK);
		else
			fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, BLOCK,
				  15 * PAGE);
		shared->ended = 1;
		wait(NULL);
		munmap(page, PAGE);
		fsync(file);
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
		pread(file, bytes, 16 * PAGE, 0);
		int stored = shared->stored;

		wrong += !all(bytes, 's', stored) || !all(bytes + stored, 'o', BLOCK - stored) ||
			 !all(bytes + BLOCK, value, 15 * PAGE);
		close(file);
		close(past);
	}
	return wrong;
}

static int punch(const char *path)
{
	return change_beside(path, 0);
}

static int beside(const char *path)
{
	return change_beside(path, 'd');
}

/* Sources are in the second half of the drive, each in a page that is not in memory. */
static int direct(const char *path)
{
	int file = open(path, O_RDWR), past = open(path, O_RDWR | O_DIRECT), wrong = 0;
	char *bytes = memory(PAGE);

	for (int i = 0; i < ROUNDS; i++) {
		off_t at = i * PAGE, from = (4 * i + 1024) * PAGE;

		memset(bytes, 'b', PAGE);
		pwrite(past, bytes, PAGE, from);
		ioctl(file, BLKFLSBUF, 0);
		char *source = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, from);

		pread(file, bytes, PAGE, at);
		shared->begun = 0;
		if (fork() == 0) {
			shared->begun = 1;
			_exit(pwrite(file, source, HALF, at) != HALF);
		}
		while (!shared->begun)
			;
		memset(bytes, 'd', HALF);
		wrong += pwrite(past, bytes, HALF, at + HALF) != HALF;
		wait(NULL);
		fsync(file);
		munmap(source, PAGE);
		pread(past, bytes, PAGE, at);
		wrong += !all(bytes, 'b', HALF) || !all(bytes + HALF, 'd', HALF);
	}
	return wrong;
}

/* Five bytes are there. The child waits for its page, in even rounds to read them, in odd ones to
 * send more from it; meanwhile the parent sends more, or reads. */
static int stream(const char *path)
{
	int file = open(path, O_RDWR), wrong = 0, ends[2];
	char bytes[PAGE];

	for (int i = 0; i < ROUNDS; i++) {
		ioctl(file, BLKFLSBUF, 0);
		char *page =
		    mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 4 * i * PAGE);

		socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
		write(ends[0], "first", 5);
		shared->begun = shared->stored = 0;
		if (fork() == 0) {
			shared->begun = 1;
			if (i % 2)
				_exit(write(ends[0], page, 5) != 5);
			shared->stored = read(ends[1], page, PAGE);
			_exit(0);
		}
		while (!shared->begun)
			;
		ssize_t moved = i % 2 ? read(ends[1], bytes, PAGE) : 0, more = 0;

		wrong += i % 2 == 0 && write(ends[0], "later", 5) != 5;
		wait(NULL);
		moved += shared->stored;
		if (moved < 10)
			more = recv(ends[1], bytes, PAGE, MSG_DONTWAIT);
		wrong += moved + more != 10;
		munmap(page, PAGE);
		close(ends[0]);
		close(ends[1]);
	}
	return wrong;
}

int main(int count, char **words)
{
	int (*way)(const char *) = count != 3			     ? NULL
				   : strcmp(words[1], "cut") == 0    ? cut
				   : strcmp(words[1], "punch") == 0  ? punch
				   : strcmp(words[1], "beside") == 0 ? beside
				   : strcmp(words[1], "stream") == 0 ? stream
								     : direct;

	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!way)
		return 1;
	printf("%s: %d of %d wrong\n", words[1], way(words[2]), ROUNDS);
	return 0;
}
