/* A ring of the latest disk requests. The host reads it out of guest memory and compares it with
 * what the emulated disk saw. It may read while the kernel runs: then the machine is paused at each
 * half of the ring, so that no record is replaced before it was read. */
#pragma once

#include <stdint.h>

#define TRACE_RECORDS 16384u /* a power of two */

struct trace_record {
	uint64_t start_ns;
	uint64_t lba;
	uint64_t duration_ns; /* of the whole request: a drive that is late takes seconds */
	uint16_t sectors;
	int16_t result;	 /* 0 or a negative errno */
	char drive;	 /* the last letter of the drive's name */
	char operation;	 /* 'R', 'W', 'F', 'D': read, write, flush, discard */
	uint8_t purpose; /* enum block_purpose */
	uint8_t padding;
};

struct trace {
	uint32_t total; /* records since boot; record n is at ring[n % TRACE_RECORDS] */
	struct trace_record ring[TRACE_RECORDS];
};

extern struct trace trace;

/* The port of a device that pauses the machine when TRACE_PAUSE is written to it (QEMU's pvpanic,
 * docs/specs/pvpanic.txt); 0: nobody reads meanwhile. */
extern uint16_t trace_pause_port;

#define TRACE_PAUSE 1u

/* Adds a record, which replaces the oldest one. Any context; does not sleep. */
void trace_add(const struct trace_record *record);
