/*
 * full work FOLDER WAY SEED LOG: fills a disk with data that write() accepts, and with something
 * else that wants blocks, until there are none; then fsync of each file must succeed. LOG, on
 * another file system, has what was accepted. full check FOLDER LOG: is it there?
 *
 * A page's contents follow from its place, and each is written once. Prints a line for each:
 *
 *	WAY: 110 pages, 14 of mkdir, 6 blocks left, 0 fsyncs failed
 *	lost: 0 of 110 pages
 */
#include "full.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

static struct full full;

uint32_t full_random(uint32_t below)
{
	full.seed = full.seed * 1103515245 + 12345;
	return (full.seed >> 8) % below;
}

void full_path(char *path, const char *name, int number)
{
	snprintf(path, PATH_LENGTH, "%s/%s%d", full.folder, name, number);
}

void full_contents(uint8_t *page, int file, uint64_t offset)
{
	uint32_t value = (uint32_t)(offset / PAGE) * 2654435761u + (uint32_t)file + 1;

	for (int i = 0; i < PAGE; i += 4, value = value * 69069 + 1)
		memcpy(page + i, &value, 4);
}

/* Other tasks' lines come in between: each is one append. */
void full_accept(int file, uint64_t offset, int length)
{
	struct accepted accepted = { file, length, offset };

	if (write(full.log, &accepted, sizeof(accepted)) != sizeof(accepted))
		exit(3);
}

int full_write(int file, uint64_t offset)
{
	uint8_t page[PAGE];

	full_contents(page, file, offset);
	ssize_t moved = pwrite(full.files[file], page, PAGE, (off_t)offset);

	if (moved > 0)
		full_accept(file, offset, (int)moved);
	return moved == PAGE;
}

static struct statvfs usage(void)
{
	struct statvfs found;

	if (statvfs(full.folder, &found) != 0)
		exit(4);
	return found;
}

/* A file of all that is free, but for so many blocks. */
static void fill_but(uint64_t blocks)
{
	static uint8_t zeros[16 * PAGE];
	struct statvfs found = usage();
	char path[PATH_LENGTH];
	uint64_t left = found.f_bfree > blocks ? (found.f_bfree - blocks) * found.f_bsize : 0;

	full_path(path, "fill", 0);
	int file = open(path, O_RDWR | O_CREAT, 0644);

	while (left > 0) {
		size_t now = left < sizeof(zeros) ? left : sizeof(zeros);

		if (write(file, zeros, now) != (ssize_t)now)
			break;
		left -= now;
	}
	fsync(file);
	close(file);
}

/* Some dirty pages; then what wants blocks, in a task of its own or not; then more pages, until
 * none is accepted. */
static int fill_up(const struct way *way)
{
	uint32_t pages = full_random(2 * LEFT) * (uint32_t)usage().f_bsize / PAGE, wanted = 0;
	pid_t other = 0;

	for (uint32_t i = 0; i < pages; i++)
		full_write((int)(i % FILES), way->place(i));
	if (way->beside)
		other = fork();
	if (!way->beside || other == 0)
		while (wanted < MOST && way->want(wanted))
			wanted++;
	if (way->beside && other == 0)
		_exit(0);
	for (uint32_t i = pages, failed = 0; i < MOST && failed < FILES; i++)
		failed = full_write((int)(i % FILES), way->place(i)) ? 0 : failed + 1;
	if (way->beside)
		waitpid(other, NULL, 0);
	return (int)wanted;
}

static int work(const char *name, const char *log)
{
	const struct way *way = full_way(name);
	char path[PATH_LENGTH];
	int failed = 0;

	if (!way)
		return 2;
	for (const char *letter = name; *letter; letter++) /* each way has other numbers */
		full.seed = full.seed * 31 + (uint8_t)*letter;
	full.log = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
	fill_but(LEFT + full_random(LEFT));
	for (int i = 0; i < FILES; i++) {
		full_path(path, "file", i);
		full.files[i] = open(path, O_RDWR | O_CREAT, 0644);
	}
	if (way->begin)
		way->begin();
	sync();
	int wanted = fill_up(way);

	for (int i = 0; i < FILES; i++)
		failed += fsync(full.files[i]) != 0;
	printf("%s: %d pages, %d others, %d blocks left, %d fsyncs failed\n", name,
	       (int)(lseek(full.log, 0, SEEK_END) / (off_t)sizeof(struct accepted)), wanted,
	       (int)usage().f_bfree, failed);
	return 0;
}

static int check(const char *log)
{
	FILE *lines = fopen(log, "r");
	struct accepted accepted;
	uint8_t page[PAGE], there[PAGE];
	char path[PATH_LENGTH];
	int lost = 0, count = 0;

	while (lines && fread(&accepted, sizeof(accepted), 1, lines) == 1) {
		full_path(path, "file", accepted.file);
		int file = open(path, O_RDONLY);

		full_contents(page, accepted.file, accepted.offset);
		lost += pread(file, there, (size_t)accepted.length, (off_t)accepted.offset) !=
			    accepted.length ||
			memcmp(page, there, (size_t)accepted.length) != 0;
		count++;
		close(file);
	}
	printf("lost: %d of %d pages\n", lost, count);
	return 0;
}

int main(int count, char **words)
{
	full.folder = count > 3 ? words[2] : "";
	if (count == 6 && strcmp(words[1], "work") == 0) {
		full.seed = (uint32_t)atoi(words[4]) * 2654435761u;
		return work(words[3], words[5]);
	}
	if (count == 4 && strcmp(words[1], "check") == 0)
		return check(words[3]);
	fprintf(stderr, "full work FOLDER WAY SEED LOG; full check FOLDER LOG\n");
	return 2;
}

struct full *full_state(void)
{
	return &full;
}
