/*
 * /dev/disktrace: the latest disk requests as they are in memory (drivers/disk/trace.h), 40 bytes
 * each, for a program to read. An open file begins with the oldest that is still there, ends with
 * the latest, and may be read again later for what came meanwhile. What the ring has lost by then
 * is skipped.
 *
 *	ring holds records 100 - 16483	first read: from 100 on
 *	later 500 - 16883		next read: from 16484 on
 */
#include "fs/disk/trace_file.h"

#include <stddef.h>

#include "drivers/disk/trace.h"
#include "fs/devices.h"
#include "kernel/lib/errno.h"

/* `private` is the number of the next record. Whole records only. */
static int read_trace(struct file *file, struct buffer *to, uint64_t offset)
{
	uint32_t next = (uintptr_t)file->private;
	int done = 0;

	if (to->length < sizeof(struct trace_record))
		return -EINVAL;
	if (trace.total - next > TRACE_RECORDS)
		next = trace.total - TRACE_RECORDS;
	while (next != trace.total && to->length >= sizeof(struct trace_record)) {
		struct trace_record record = trace.ring[next % TRACE_RECORDS];
		int moved = buffer_put(to, &record, sizeof(record));

		if (moved != sizeof(record))
			return done ? done : -EFAULT;
		done += moved;
		file->private = (void *)(uintptr_t)++next;
	}
	return done;
}

void trace_file_initialize(void)
{
	static const struct file_ops ops = { .read = read_trace, .is_stream = true };
	static struct device device = { "disktrace", 10u << 8 | 200, 0444, &ops, NULL };

	device_register(&device);
}
