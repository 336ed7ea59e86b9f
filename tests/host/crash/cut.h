/*
 * A power cut: which of a record's requests reached the disk.
 *
 *	17		the first 17 requests, and none after them
 *	17-14,15	but for requests 14 and 15 (counted from 0), which were in the drive's cache
 *	17-14~16:2+3	of request 16 only sectors 2, 3 and 4
 *
 * What was written before the last flush is on the disk whatever is said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/random.h"
#include "tests/host/ext/shim.h"

#define MISSING_MAX 1024u
#define NOT_TORN    UINT32_MAX

struct cut {
	uint32_t position;
	uint32_t missing_count;
	uint32_t missing[MISSING_MAX];
	uint32_t torn; /* a request, or NOT_TORN */
	uint32_t torn_first, torn_count;
};

/* Where the epoch begins that is open at a position: after the last flush before it. */
uint32_t cut_epoch(const struct disk_record *record, uint32_t position);

/* A cut at a position with a random part of the epoch's writes missing. Returns false when none
 * could be. */
bool cut_subset(struct cut *cut, const struct disk_record *record, uint32_t position,
		struct random *random);

/* The same, or with nothing missing; and of one write only some sectors. */
bool cut_torn(struct cut *cut, const struct disk_record *record, uint32_t position,
	      struct random *random);

/* Writes what reached the disk since request `from`, which is not after the epoch's begin. */
void cut_apply(const struct cut *cut, const struct disk_record *record, uint32_t from);

/* Text of at most `size` bytes; and back: returns what follows it, or NULL. */
void cut_print(const struct cut *cut, char *text, size_t size);
const char *cut_parse(struct cut *cut, const char *text);
