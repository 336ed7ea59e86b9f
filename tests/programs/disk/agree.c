/* One file by mmap, read, write, pread and O_DIRECT, at random: all see the same bytes, which are
 * also in an array. Says "agree: ok", or where they differ. agree FILE SEED ROUNDS */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST (300 * 1024)

static uint8_t expected[MOST], seen[MOST + 4096] __attribute__((aligned(4096)));
static uint32_t size;
static uint64_t state;

static uint32_t below(uint32_t limit)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % limit;
}

static void fail(const char *what, uint32_t at)
{
	printf("agree: %s differs at %u of %u\n", what, at, size);
	exit(1);
}

static void check(int got, uint32_t offset, uint32_t length, const char *what)
{
	uint32_t there = offset >= size ? 0 : size - offset < length ? size - offset : length;

	if (got != (int)there) {
		printf("agree: %s of %u at %u gave %d, not %u\n", what, length, offset, got, there);
		exit(1);
	}
	for (uint32_t i = 0; i < there; i++)
		if (seen[i] != expected[offset + i])
			fail(what, offset + i);
}

static void grow(uint32_t end)
{
	if (end > size)
		size = end;
}

static int file, direct;
static uint8_t *map;

static void must(int is_done, const char *what)
{
	if (is_done)
		return;
	perror(what);
	exit(1);
}

static void fill(uint8_t *to, uint32_t offset, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		to[i] = expected[offset + i] = below(256);
}

static void write_some(uint32_t offset, uint32_t length)
{
	fill(expected + offset, offset, length);
	must(pwrite(file, expected + offset, length, offset) == (int)length, "agree: write");
	grow(offset + length);
}

/* Below the end only: there is nothing after it. */
static void write_area(uint32_t offset, uint32_t length)
{
	if (offset < size)
		fill(map + offset, offset, length < size - offset ? length : size - offset);
}

static void read_some(uint32_t offset, uint32_t length)
{
	check(pread(file, seen, length, offset), offset, length, "read");
}

static void read_area(uint32_t offset, uint32_t length)
{
	for (uint32_t i = offset; i < size && i < offset + length; i++)
		if (map[i] != expected[i])
			fail("area", i);
}

static void write_direct(uint32_t offset, uint32_t length)
{
	offset &= -512u;
	length = (length + 511) & -512u;
	length = length < MOST - offset ? length : MOST - offset;
	fill(seen, offset, length);
	must(pwrite(direct, seen, length, offset) == (int)length, "agree: direct write");
	grow(offset + length);
}

static void read_direct(uint32_t offset, uint32_t length)
{
	offset &= -512u;
	length = (length + 511) & -512u;
	length = length < MOST - offset ? length : MOST - offset;
	check(pread(direct, seen, length, offset), offset, length, "direct read");
}

static void change_size(uint32_t offset, uint32_t length)
{
	(void)length;
	must(ftruncate(file, offset) == 0, "agree: truncate");
	memset(expected + offset, 0, MOST - offset);
	size = offset;
}

/* ext2 and ext3 may refuse. */
static void punch(uint32_t offset, uint32_t length)
{
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	if (below(3) == 0 && fallocate(file, mode, offset, length) == 0)
		memset(expected + offset, 0, length);
}

static void save(uint32_t offset, uint32_t length)
{
	(void)offset, (void)length;
	must((below(2) ? fsync(file) : msync(map, MOST, MS_SYNC)) == 0, "agree: sync");
}

int main(int count, char **words)
{
	void (*const works[])(uint32_t, uint32_t) = {
		write_some,   write_some,  write_area,	read_some, read_area,
		write_direct, read_direct, change_size, punch,	   save,
	};
	struct stat status;

	if (count < 4)
		return 2;
	file = open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
	direct = open(words[1], O_RDWR | O_DIRECT);
	must(file >= 0 && direct >= 0, "agree: open");
	map = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	must(map != MAP_FAILED, "agree: mmap");
	state = strtoul(words[2], NULL, 10);
	for (unsigned rounds = strtoul(words[3], NULL, 10); rounds > 0; rounds--) {
		uint32_t offset = below(MOST), length = 1 + below(below(2) ? 200 : 40000);

		works[below(sizeof(works) / sizeof(works[0]))](
		    offset, length < MOST - offset ? length : MOST - offset);
		must(fstat(file, &status) == 0, "agree: fstat");
		if (status.st_size != size)
			return printf("agree: size %ld, not %u\n", (long)status.st_size, size), 1;
	}
	printf("agree: ok\n");
	return 0;
}
