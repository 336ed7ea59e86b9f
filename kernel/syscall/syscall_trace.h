/*
 * A ring of the latest system calls, of all tasks. Programs read it as /proc/syscalls; a debugger
 * and the host read it out of memory.
 */
#pragma once

#include "kernel/syscall/syscall.h"

#define SYSCALL_TRACE_RECORDS 1024u /* a power of two */
#define SYSCALL_TRACE_TEXT    24    /* bytes of a string that are kept */

struct syscall_record {
	uint64_t start; /* the TSC at the entry */
	uint32_t ticks; /* TSC cycles until the result, at most 2^32 - 1 */
	int32_t pid;
	uint32_t number;
	uint32_t arguments[6];
	int result;
	uint32_t sequence;	       /* counts the calls since boot */
	uint32_t finished;	       /* 0: no result yet; exit never has one */
	char text[SYSCALL_TRACE_TEXT]; /* the first string among the arguments; may be cut */
	const struct syscall *call;    /* its name, and how to show its arguments; may be NULL */
};

struct syscall_trace {
	uint32_t total; /* records begun since boot; record n is at ring[n % RECORDS] */
	struct syscall_record ring[SYSCALL_TRACE_RECORDS];
};

extern struct syscall_trace syscall_trace;

/* Set: calls are recorded. Clear: nothing is written. */
extern volatile bool syscall_trace_on;

/* Begins a record of the call in the frame; `call` is NULL if there is no such call. Returns the
 * record's sequence number. */
uint32_t syscall_trace_begin(const struct trap_frame *frame, const struct syscall *call);

/* Gives the record its result, unless another one has taken its place. */
void syscall_trace_end(uint32_t sequence, int result);

/*
 * Copies up to count records from number *next on, the oldest first, and moves *next past them.
 * What has been overwritten is skipped and added to *lost. Returns how many were copied, all of
 * them whole.
 */
uint32_t syscall_trace_read(uint32_t *next, struct syscall_record *records, uint32_t count,
			    uint32_t *lost);

/* Writes a record as a line, "12 write(1, 0x8051000, 5) = 5", to text of this size. Returns its
 * length, as snprintk does. */
int syscall_trace_format(const struct syscall_record *record, char *text, size_t size);
