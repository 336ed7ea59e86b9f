/* Damages the image in memory, again and again, and uses the file system on what is left. */
#pragma once

#include <stdint.h>

/*
 * Makes `count` seeded mutations, one at a time, of bytes [start, start + length) of the image;
 * with length 0, of whatever the driver reads that is not data. Prints how often each result
 * occurred. Ends the program at a read outside the file system, at a result that is none of the
 * documented ones, at a lost page, and when a mutation takes more than a bounded number
 * of requests or a few seconds.
 */
void mutate(uint64_t seed, unsigned count, uint64_t start, uint64_t length);
