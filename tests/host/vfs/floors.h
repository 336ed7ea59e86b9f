/* What is below fs/vfs and fs/disk in the program of faults: a root directory with a drive and a
 * place to mount it on, and files without a page cache. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The root: "/disk" is the drive, "/mnt" an empty directory. Runs the start-up functions. */
void floors_begin(void);

/* How many references the root, the drive and the directory have, beyond one each. */
uint32_t floors_references(void);

/* Which read of the drive fails, counted from 1; 0: none. With `damage` not 0 it succeeds, and some
 * bytes are wrong, which ones this number says. */
void floors_fault(uint32_t read, uint32_t damage);

/* What fails besides the write or flush that does. */
enum write_fault {
	NO_OTHER,
	ALL_LATER,
	AFTER_PROMISE, /* all after the next promise: the drive stays as it is at that moment */
	BAD_SECTORS,   /* each later write that touches one of its sectors */
};

/* Which write or flush fails, counted from 1; 0: none. */
void floors_write_fault(uint32_t write, enum write_fault fault);

/* A call has returned that makes something safe. */
void floors_promised(void);

/* Reads of the drive until now, and writes and flushes. */
uint32_t floors_reads(void);
uint32_t floors_writes(void);
