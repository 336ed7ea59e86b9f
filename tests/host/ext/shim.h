/*
 * The kernel below fs/, for the host: a disk image in memory, pages from malloc, printk to stdout.
 *
 * The disk counts its requests and can fail one of them. It can record every write and flush, in
 * order: what a power cut may leave is computed from such a record (labs/storage/crash), and it can
 * be saved in the format of QEMU's blklogwrites.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/disk/block.h"

#define NO_SECTOR UINT64_MAX

/* Who sees what is written. */
enum disk_mode {
	DISK_READ_ONLY, /* a write ends the program */
	DISK_PRIVATE,	/* the program alone: the file keeps its contents */
	DISK_SHARED,	/* the file gets it */
};

/* One write, or one flush (no sectors), of a record. */
struct disk_entry {
	uint64_t lba;
	uint32_t sectors;
	size_t data; /* where its contents begin in the record's bytes */
};

struct disk_record {
	struct disk_entry *entries;
	size_t count, room;
	uint8_t *bytes;
	size_t used, size;
};

/* A disk that is not in the program: its requests, which return 0 or an error. */
struct disk_elsewhere {
	int (*read)(uint64_t lba, unsigned count, void *buffer);
	int (*write)(uint64_t lba, unsigned count, const void *buffer);
	int (*flush)(void);
};

/* The one disk. */
struct disk {
	struct block_device device;
	uint8_t *bytes;
	const struct disk_elsewhere *elsewhere; /* NULL: it is in bytes */
	enum disk_mode mode;
	uint64_t bad_sector; /* a request that touches it fails with EIO; NO_SECTOR: none */
	uint64_t limit;	     /* requests at or behind this sector end the program */
	uint64_t budget;     /* requests left before the program ends */
	uint64_t requests;   /* since the program began: reads, writes and flushes */
	uint64_t fail_from;  /* requests from this one on fail with EIO, counted from 0 */
	uint64_t fail_count; /* this many of them; 0: none */
	bool trace;	     /* print every request */
	bool recording;	     /* add writes and flushes to the record */
	struct disk_record record;
	void (*yield)(void); /* lets other tasks run; NULL: there are none */
	uint8_t *touched;    /* for each sector: read, and not as data; NULL: not wanted */
};

extern struct disk disk;

/* Whether printk reaches stdout. */
extern bool console_on;

/* Pages that page_alloc gave out and did not get back. */
extern size_t pages_in_use;

/* Objects of kmalloc and of pools, likewise. */
extern size_t objects_in_use;

/* A clock that counts: each call is a millisecond later, from the year 2010 on. In ns since 1970.
 */
uint64_t clock_count(void);

/* Opens an image as device `name`. Ends the program with a message when that fails. */
void disk_open(const char *path, const char *name, enum disk_mode mode);

/* Adds a write (or, with no sectors, a flush) to a record. */
void record_add(struct disk_record *record, uint64_t lba, uint32_t sectors, const void *data);

/* Writes a record as a log of dm-log-writes, which is also the format of QEMU's blklogwrites. Ends
 * the program with a message when that fails. */
void record_save(const struct disk_record *record, const char *path);

/* Adds what such a log has, with sectors of 512 bytes. A flush that is part of a write comes before
 * it. Ends the program with a message when that fails. */
void record_load(struct disk_record *record, const char *path);

/* Where fail writes its message, too: 1024 bytes that another process sees. NULL: nowhere. */
extern char *fail_text;

/* Ends the program: the code under test did what it must never do. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
