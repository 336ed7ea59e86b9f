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

int main(int count, char **words)
{
	int file = open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
	int direct = open(words[1], O_RDWR | O_DIRECT);
	uint8_t *map = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	state = strtoul(words[2], NULL, 10);
	if (count < 4 || file < 0 || direct < 0 || map == MAP_FAILED)
		return perror("agree"), 1;
	for (unsigned rounds = strtoul(words[3], NULL, 10); rounds > 0; rounds--) {
		uint32_t offset = below(MOST), length = 1 + below(below(2) ? 200 : 40000);

		if (length > MOST - offset)
			length = MOST - offset;
		uint32_t sector = offset & -512u, sectors = (length + 511) & -512u;

		if (sectors > MOST - sector)
			sectors = MOST - sector;
		switch (below(9)) {
		case 0:
		case 1: /* write */
			for (uint32_t i = 0; i < length; i++)
				expected[offset + i] = below(256);
			if (pwrite(file, expected + offset, length, offset) != (int)length)
				return perror("agree: write"), 1;
			grow(offset + length);
			break;
		case 2: /* a shared area, below the end */
			if (offset >= size)
				break;
			if (length > size - offset)
				length = size - offset;
			for (uint32_t i = 0; i < length; i++)
				map[offset + i] = expected[offset + i] = below(256);
			break;
		case 3: /* read */
			check(pread(file, seen, length, offset), offset, length, "read");
			break;
		case 4: /* look */
			for (uint32_t i = offset; i < size && i < offset + length; i++)
				if (map[i] != expected[i])
					fail("area", i);
			break;
		case 5: /* direct write */
			for (uint32_t i = 0; i < sectors; i++)
				seen[i] = expected[sector + i] = below(256);
			if (pwrite(direct, seen, sectors, sector) != (int)sectors)
				return perror("agree: direct write"), 1;
			grow(sector + sectors);
			break;
		case 6: /* direct read */
			check(pread(direct, seen, sectors, sector), sector, sectors, "direct read");
			break;
		case 7: /* another size */
			if (ftruncate(file, offset) != 0)
				return perror("agree: truncate"), 1;
			memset(expected + offset, 0, MOST - offset);
			size = offset;
			break;
		case 8: /* a hole, or write-back */
			if (below(3) == 0 && fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
						       offset, length) == 0) {
				for (uint32_t i = 0; i < length && offset + i < MOST; i++)
					expected[offset + i] = 0;
				break;
			}
			if (below(2) ? fsync(file) : msync(map, MOST, MS_SYNC))
				return perror("agree: sync"), 1;
		}
		struct stat status;

		if (fstat(file, &status) != 0 || status.st_size != size)
			return printf("agree: size %ld, not %u\n", (long)status.st_size, size), 1;
	}
	printf("agree: ok\n");
	return 0;
}
