/*
 * storage_bench: what operations on drives and files cost, for `make bench STORAGE=1`.
 *
 *	storage_bench RAW EXTENTS POINTERS FOLDER [reads]
 *
 * RAW is a drive, EXTENTS and POINTERS are large files, FOLDER is on a file system to write to.
 * With a fifth word it only reads. Each row is marked at both ends by an instruction that nothing
 * else uses; a plugin of QEMU counts the instructions between (labs/bench/count.c), so that waiting
 * costs nothing. A line for each row:
 *
 *	row NAME OPERATIONS requests REQUESTS idle MICROSECONDS of MICROSECONDS
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	 4096u
#define FILES	 10000u
#define READS	 1000u
#define SYNCS	 100u
#define SPACE	 (24u << 20) /* bytes of a drive or file that are read */
#define CHUNK	 (64u << 10)
#define SECOND_S 1000000.0

static uint8_t buffer[CHUNK] __attribute__((aligned(4096)));
static const char *raw, *extents, *pointers, *folder;
static uint64_t state;

static uint32_t below(uint32_t limit)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % limit;
}

static void must(int is_good, const char *what)
{
	if (is_good)
		return;
	perror(what);
	exit(1);
}

static void mark(void)
{
	__asm__ volatile("xchg %%bx, %%bx" : : : "memory");
}

/* Requests that all drives have completed, of /proc/diskstats; partitions and other devices are
 * zero. */
static unsigned long requests(void)
{
	FILE *file = fopen("/proc/diskstats", "r");
	unsigned long sum = 0, reads, writes;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*d %*d %*s %lu %*u %*u %*u %lu", &reads, &writes) == 2)
			sum += reads + writes;
	if (file)
		fclose(file);
	return sum;
}

static void times(double *all, double *idle)
{
	FILE *file = fopen("/proc/uptime", "r");

	must(file && fscanf(file, "%lf %lf", all, idle) == 2, "/proc/uptime");
	fclose(file);
}

/* FOLDER/file-00042, with few instructions: they count. */
static char *path_of(uint32_t number)
{
	static char path[256];
	static size_t end;

	if (end == 0)
		end = (size_t)snprintf(path, sizeof(path), "%s/file-00000", folder);
	for (size_t at = end; at > end - 5; number /= 10)
		path[--at] = (char)('0' + number % 10);
	return path;
}

static void measure(const char *name, uint32_t (*run)(void))
{
	double all[2], idle[2];
	unsigned long before = requests();

	times(&all[0], &idle[0]);
	mark();
	uint32_t done = run();

	mark();
	times(&all[1], &idle[1]);
	printf("row %s %u requests %lu idle %.0f of %.0f\n", name, done, requests() - before,
	       (idle[1] - idle[0]) * SECOND_S, (all[1] - all[0]) * SECOND_S);
	fflush(stdout);
}

/* --- reading --- */

/* Random places, the same ones each time. */
static uint32_t direct(const char *path, uint32_t length)
{
	int file = open(path, O_RDONLY | O_DIRECT);

	must(file >= 0, path);
	state = 2010;
	for (uint32_t i = 0; i < READS; i++) {
		uint32_t place = below(SPACE / length) * length;

		must(pread(file, buffer, length, place) == (ssize_t)length, path);
	}
	close(file);
	return READS;
}

static uint32_t raw_512(void)
{
	return direct(raw, 512);
}

static uint32_t raw_4096(void)
{
	return direct(raw, PAGE);
}

static uint32_t extents_512(void)
{
	return direct(extents, 512);
}

static uint32_t extents_4096(void)
{
	return direct(extents, PAGE);
}

static uint32_t pointers_512(void)
{
	return direct(pointers, 512);
}

static uint32_t pointers_4096(void)
{
	return direct(pointers, PAGE);
}

static uint32_t sequential(const char *path)
{
	int file = open(path, O_RDONLY);

	for (uint32_t done = 0; done < SPACE / 2; done += CHUNK)
		must(read(file, buffer, CHUNK) == CHUNK, path);
	close(file);
	return SPACE / 2 / PAGE;
}

static uint32_t read_sequential(void)
{
	return sequential(extents);
}

/* All of it is in the cache now. */
static uint32_t read_cached(void)
{
	int file = open(extents, O_RDONLY);

	state = 2010;
	for (uint32_t i = 0; i < READS; i++)
		must(pread(file, buffer, PAGE, below(256) * PAGE) == PAGE, extents);
	close(file);
	return READS;
}

static void drop_caches(void)
{
	int file = open("/proc/sys/vm/drop_caches", O_WRONLY);

	sync();
	must(file >= 0 && write(file, "3", 1) == 1, "drop_caches");
	close(file);
}

/* --- writing --- */

static uint32_t write_sequential(void)
{
	int file = open(path_of(FILES), O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (uint32_t done = 0; done < SPACE / 2; done += CHUNK)
		must(write(file, buffer, CHUNK) == CHUNK, "write");
	must(fsync(file) == 0, "fsync");
	close(file);
	return SPACE / 2 / PAGE;
}

static uint32_t write_and_sync(void)
{
	int file = open(path_of(FILES + 1), O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (uint32_t i = 0; i < SYNCS; i++)
		must(write(file, buffer, PAGE) == PAGE && fsync(file) == 0, "write and fsync");
	close(file);
	return SYNCS;
}

static uint32_t create_files(void)
{
	for (uint32_t i = 0; i < FILES; i++) {
		int file = open(path_of(i), O_RDWR | O_CREAT | O_EXCL, 0644);

		must(file >= 0, "create");
		close(file);
	}
	return FILES;
}

static uint32_t stat_files(void)
{
	struct stat status;

	for (uint32_t i = 0; i < FILES; i++)
		must(stat(path_of(i), &status) == 0, "stat");
	return FILES;
}

static uint32_t unlink_files(void)
{
	for (uint32_t i = 0; i < FILES; i++)
		must(unlink(path_of(i)) == 0, "unlink");
	return FILES;
}

int main(int count, char **words)
{
	if (count < 5)
		return 2;
	raw = words[1], extents = words[2], pointers = words[3], folder = words[4];
	raw_512(), extents_512(), pointers_512();
	measure("raw_512", raw_512);
	measure("extents_512", extents_512);
	measure("pointers_512", pointers_512);
	measure("raw_4096", raw_4096);
	measure("extents_4096", extents_4096);
	measure("pointers_4096", pointers_4096);
	drop_caches();
	measure("read", read_sequential);
	if (count > 5)
		return 0;
	read_cached();
	measure("cached", read_cached);
	measure("write", write_sequential);
	write_and_sync();
	measure("write_sync", write_and_sync);
	measure("create", create_files);
	stat_files();
	measure("stat", stat_files);
	measure("unlink", unlink_files);
	return 0;
}
