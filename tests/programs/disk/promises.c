/*
 * promises FOLDER ROUNDS: on a nearly full disk some processes write files through the cache,
 * others past it, and others allocate. What write() has taken is on the disk after fsync, whoever
 * else wanted the same blocks. Each writer through the cache says how many rounds were not so.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS	 2 /* of each kind */
#define PAGE	 4096
#define DIRECT	 (8 * PAGE)
#define SEGMENTS 64

/* Fills the file until the disk is full, with contents that nobody else writes. */
static off_t fill(int file, char *page)
{
	off_t size = 0;
	ssize_t moved = 1;

	for (int i = 0; i < SEGMENTS && moved > 0; i++) {
		memset(page, 'a' + i % 26, PAGE);
		moved = write(file, page, PAGE);
		size += moved > 0 ? moved : 0;
	}
	return size;
}

static int is_there(int file, char *page, off_t size)
{
	for (off_t at = 0; at < size; at += PAGE)
		if (pread(file, page, PAGE, at) <= 0 || page[0] != 'a' + at / PAGE % 26)
			return 0;
	return 1;
}

static void through_cache(int file, int rounds, char *memory)
{
	int lost = 0;

	while (rounds-- > 0) {
		off_t size = fill(file, memory);

		if (fsync(file) != 0 || !is_there(file, memory, size))
			lost++;
		ftruncate(file, 0);
		lseek(file, 0, SEEK_SET);
		fsync(file);
	}
	printf("lost: %d\n", lost);
}

static void past_cache(int file, int rounds, char *memory)
{
	while (rounds-- > 0) {
		while (write(file, memory, DIRECT) > 0)
			;
		ftruncate(file, 0);
		lseek(file, 0, SEEK_SET);
	}
}

static void allocate(int file, int rounds, char *memory)
{
	(void)memory;
	while (rounds-- > 0) {
		for (off_t at = 0; fallocate(file, 0, at, DIRECT) == 0; at += DIRECT)
			;
		ftruncate(file, 0);
	}
}

static void begin(const char *folder, int number, int flags, int rounds,
		  void (*work)(int, int, char *))
{
	char path[100];
	void *memory;

	if (fork() != 0)
		return;
	snprintf(path, sizeof(path), "%s/%d", folder, number);
	if (posix_memalign(&memory, PAGE, DIRECT) != 0)
		exit(1);
	work(open(path, O_RDWR | O_CREAT | O_TRUNC | flags, 0644), rounds, memory);
	exit(0);
}

int main(int count, char **words)
{
	int rounds = count == 3 ? atoi(words[2]) : 1;

	for (int i = 0; i < WRITERS; i++) {
		begin(words[1], 3 * i, 0, rounds, through_cache);
		begin(words[1], 3 * i + 1, O_DIRECT, rounds, past_cache);
		begin(words[1], 3 * i + 2, 0, rounds, allocate);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
