/*
 * Two tasks ask at the same time for the same change to be safe, by each of the calls that promise
 * it. together FOLDER ROUNDS [KINDS], or together DEVICE ROUNDS.
 *
 * One letter on the console for each event, which the host puts in order with what the drive does:
 * { and one for the kind before the change, + when the call of one of the tasks has returned 0,
 * ~ when it has failed, } after both.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 20480
#define STEP 2048

enum {
	FSYNC,
	FDATASYNC,
	SYNC_OPEN,
	DATA_SYNC_OPEN,
	MSYNC,
	SYNC,
	SYNCFS,
	RANGE,
	FOLDER,
	EVICTED,
	BESIDE, /* sync, while another task writes back: small blocks, each in a piece of its own */
	KINDS
};

static char data[SIZE];
static int folder;

static void say(char letter)
{
	write(1, &letter, 1);
}

/* Leaves a file that is written, and has its times stored, to be read from the disk again. */
static int evict(const char *name, int file)
{
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	fchmod(file, 0600);
	close(file);
	int caches = open("/proc/sys/vm/drop_caches", O_WRONLY);

	write(caches, "3", 1);
	close(caches);
	return openat(folder, name, O_RDWR);
}

/* What has happened before the two tasks. Returns the file, or the directory, that they use. */
static int change(const char *name, int kind)
{
	int file = openat(folder, name, O_RDWR | O_CREAT, 0644);

	if (kind == FOLDER)
		return folder;
	if (kind == MSYNC)
		ftruncate(file, SIZE);
	for (int at = 0; kind == BESIDE && at < SIZE; at += STEP)
		pwrite(file, data, 1, at);
	if (kind != BESIDE && kind != MSYNC)
		write(file, data, SIZE);
	if (kind == MSYNC)
		memset(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), 1, SIZE);
	return kind == EVICTED ? evict(name, file) : file;
}

static int make_safe(const char *name, int kind, int file)
{
	int flags = kind == SYNC_OPEN ? O_SYNC : O_DSYNC;
	char *at;

	switch (kind) {
	case FDATASYNC:
		return fdatasync(file);
	case SYNC_OPEN:
	case DATA_SYNC_OPEN:
		return pwrite(openat(folder, name, O_RDWR | flags), data, 1, 0) != 1;
	case MSYNC:
		at = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, file, 0);
		return msync(at, SIZE, MS_SYNC);
	case SYNC:
	case BESIDE:
		sync();
		return 0;
	case SYNCFS:
		return syncfs(file);
	case RANGE:
		return sync_file_range(file, 0, 0, 7);
	}
	return fsync(file);
}

static void one_round(const char *name, int kind)
{
	say('{');
	say((char)('A' + kind));
	int file = folder < 0 ? open(name, O_RDWR) : change(name, kind);

	if (folder < 0)
		write(file, data, SIZE);
	for (int task = 0; task < 2; task++) {
		if (fork() == 0) {
			if (kind == BESIDE && task == 0)
				_exit(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED));
			say(make_safe(name, kind, file) == 0 ? '+' : '~');
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	if (file != folder)
		close(file);
	say('}');
}

int main(int count, char **words)
{
	int kinds = count > 3 ? atoi(words[3]) : KINDS;
	struct stat info;
	char name[32];

	stat(words[1], &info);
	folder = S_ISDIR(info.st_mode) ? open(words[1], O_RDONLY | O_DIRECTORY) : -1;
	printf("judge %s\n", words[1]);
	fflush(stdout);
	for (int round = 0; round < atoi(words[2]); round++)
		for (int kind = 0; kind < (folder < 0 ? 1 : kinds); kind++) {
			snprintf(name, sizeof(name), "f%d.%d", kind, round);
			one_round(folder < 0 ? words[1] : name, kind);
		}
	printf("\n");
	return 0;
}
