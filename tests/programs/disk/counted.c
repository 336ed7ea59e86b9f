/*
 * counted: what getrusage and /proc tell of a file's pages, read from a disk and written. One line
 * a promise.
 *
 *	counted PATH	a new file, on a disk
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE  4096
#define PAGES 256
#define BLOCK 512

static int number;
static char bytes[PAGES * PAGE] __attribute__((aligned(PAGE)));

static void ok(int good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

static struct rusage used(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage;
}

static long number_of(const char *path, const char *word)
{
	FILE *file = fopen(path, "r");
	char line[200];
	long value = -1;

	while (file && value < 0 && fgets(line, sizeof(line), file))
		if (strncmp(line, word, strlen(word)) == 0)
			value = atol(line + strlen(word));
	if (file)
		fclose(file);
	return value;
}

static int near(long value, long wanted)
{
	return value >= wanted && value < wanted + wanted / 8;
}

int main(int count, char **words)
{
	int file = open(words[count - 1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	int direct = open(words[count - 1], O_RDWR | O_DIRECT);
	long major = number_of("/proc/vmstat", "pgmajfault ");
	struct rusage before = used();

	memset(bytes, 'a', sizeof(bytes));
	ok(write(file, bytes, sizeof(bytes)) == sizeof(bytes) && write(file, bytes, 1) == 1 &&
	       near(used().ru_oublock - before.ru_oublock, sizeof(bytes) / BLOCK),
	   "what is written, when it becomes dirty");
	fsync(file);
	ok(number_of("/proc/meminfo", "Cached:") >= PAGES * PAGE / 1024, "it is cached");
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	char *mapped = mmap(NULL, sizeof(bytes), PROT_READ, MAP_SHARED, file, 0);

	before = used();
	for (unsigned page = 0; page < PAGES; page++)
		(void)((volatile char *)mapped)[page * PAGE];
	struct rusage after = used();
	long faults = after.ru_majflt - before.ru_majflt;

	ok(near(after.ru_inblock - before.ru_inblock, sizeof(bytes) / BLOCK) && faults > 0 &&
	       faults <= PAGES && number_of("/proc/vmstat", "pgmajfault ") - major >= faults,
	   "faults that read it");
	before = used();
	ok(pread(direct, bytes, sizeof(bytes), 0) == sizeof(bytes) &&
	       pwrite(direct, bytes, sizeof(bytes), 0) == sizeof(bytes) &&
	       near(used().ru_inblock - before.ru_inblock, sizeof(bytes) / BLOCK) &&
	       near(used().ru_oublock - before.ru_oublock, sizeof(bytes) / BLOCK) &&
	       used().ru_majflt == before.ru_majflt,
	   "past the cache");
	printf("1..%d\n", number);
	return 0;
}
