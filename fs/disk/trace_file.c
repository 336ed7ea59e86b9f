/*
 * /dev/disktrace: the latest disk requests as they are in memory (drivers/disk/trace.h), 32 bytes
 * each, for a program to read. Record n since boot is at byte 32 n of the file. What the ring has
 * lost is skipped, and so an open file begins with the oldest that is still there; at its end it
 * may be read again later for what came meanwhile.
 *
 *	ring holds records 100 - 16483	first read: from byte 3200 on
 *	later 500 - 16883		next read: from record 16484 on
 */
#include "fs/disk/trace_file.h"

#include "drivers/disk/trace.h"
#include "fs/devices.h"
#include "kernel/lib/divide.h"

#define RECORD ((uint32_t)sizeof(struct trace_record))

static int read_trace(struct file *file, struct buffer *to, uint64_t offset)
{
	uint32_t first = trace.total > TRACE_RECORDS ? trace.total - TRACE_RECORDS : 0;
	int done = 0, moved = 1;

	if (offset < (uint64_t)first * RECORD)
		file->offset = offset = (uint64_t)first * RECORD;
	while (moved > 0 && to->length > 0 && offset < (uint64_t)trace.total * RECORD) {
		uint32_t skip, number = divide64(offset, RECORD, &skip);
		struct trace_record record = trace.ring[number % TRACE_RECORDS];

		moved = buffer_put(to, (uint8_t *)&record + skip, RECORD - skip);
		done += moved > 0 ? moved : 0;
		offset += moved;
	}
	return done || moved > 0 ? done : moved;
}

void trace_file_initialize(void)
{
	static const struct file_ops ops = { .read = read_trace };
	static struct device device = { "disktrace", 10u << 8 | 200, 0444, &ops, NULL };

	device_register(&device);
}
