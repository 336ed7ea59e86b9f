/*
 * What was written is read, also while it is on its way to the disk and no longer in the cache.
 * stale FILE ROUNDS: one task writes back, another forgets the pages and reads. One byte of every
 * second small block is written, so that a page goes to the disk in several requests.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 65536
#define STEP 2048

static char data[SIZE] __attribute__((aligned(4096)));

/* Reads all of the file. Returns how many bytes are not `wanted`. */
static int read_again(const char *name, int flags, char wanted)
{
	int file = open(name, O_RDONLY | flags), wrong = 0;

	pread(file, data, SIZE, 0);
	for (int at = 0; at < SIZE; at += STEP)
		wrong += data[at] != wanted;
	close(file);
	return wrong;
}

static void forget_pages(void)
{
	int caches = open("/proc/sys/vm/drop_caches", O_WRONLY);

	write(caches, "1", 1);
	close(caches);
}

int main(int count, char **words)
{
	int file = open(words[1], O_RDWR | O_CREAT, 0644), cached = 0, direct = 0;

	for (int round = 1; round <= atoi(words[2]); round++) {
		if (round % 4 == 0)
			ftruncate(file, round % 8 == 0 ? 0 : SIZE / 2 + 100);
		for (int at = 0; at < SIZE; at += STEP)
			pwrite(file, &(char){ round }, 1, at);
		if (fork() == 0)
			_exit(fsync(file));
		for (int turn = 0; turn < 3; turn++) {
			sched_yield();
			forget_pages();
			cached += read_again(words[1], 0, round);
			direct += read_again(words[1], O_DIRECT, round);
		}
		wait(NULL);
		cached += read_again(words[1], 0, round);
	}
	printf("%s: %d stale, %d past the cache\n", words[1], cached, direct);
	return 0;
}
