/* The kernel below fs/, for the host: a disk image in memory, pages from malloc, printk to stdout.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/disk/block.h"

#define NO_SECTOR UINT64_MAX

/* The one disk. The image is mapped privately: a change in memory never reaches the file. */
struct disk {
	struct block_device device;
	uint8_t *bytes;
	uint64_t bad_sector; /* a read that touches it fails with EIO; NO_SECTOR: none */
	uint64_t limit;	     /* reads at or behind this sector end the program */
	uint64_t budget;     /* requests left before the program ends */
	bool trace;	     /* print every request */
	uint8_t *touched;    /* for each sector: read, and not as data; NULL: not wanted */
};

extern struct disk disk;

/* Whether printk reaches stdout. */
extern bool console_on;

/* Pages that page_alloc gave out and did not get back. */
extern size_t pages_in_use;

/* Opens an image as device `name`. Ends the program with a message when that fails. */
void disk_open(const char *path, const char *name);

/* Ends the program: the code under test did what it must never do. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
