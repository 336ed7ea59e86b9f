/* A disk whose requests are questions. */
#include "tests/storage/host/asked_disk.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/host/ext/shim.h"
#include "tests/storage/host/asked.h"

#define PIECE (32u << 10) /* bytes of a "with" */

static int result_in(const char *line)
{
	if (*line == '\n')
		fail("too many requests");
	return atoi(line);
}

static int read_outside(uint64_t lba, unsigned count, void *buffer)
{
	const char *line = ask("read %ju %u", lba, count);

	if (*line != '+')
		return result_in(line);
	take_hex(buffer, (size_t)count * SECTOR_SIZE, line + 1);
	return 0;
}

static int write_outside(uint64_t lba, unsigned count, const void *buffer)
{
	size_t size = (size_t)count * SECTOR_SIZE, at = 0;
	char word[64];

	for (; size - at > PIECE; at += PIECE)
		ask_with("with", (const char *)buffer + at, PIECE);
	snprintf(word, sizeof(word), "write %ju %u", lba, count);
	return result_in(ask_with(word, (const char *)buffer + at, size - at));
}

static int flush_outside(void)
{
	return result_in(ask("flush"));
}

void disk_is_outside(void)
{
	static const struct disk_elsewhere outside = { read_outside, write_outside, flush_outside };

	disk.elsewhere = &outside;
}
