/*
 * A ring of the latest disk requests: record n is at ring[n % TRACE_RECORDS].
 *
 * Printing each request would change the times that are measured, by milliseconds for a line.
 * Storing 32 bytes takes less than a microsecond. The host reads the ring out of the guest's memory
 * after the run. Any context: the place and the contents are taken with interrupts disabled.
 */
#include "drivers/disk/trace.h"

#include "kernel/cpu/interrupts.h"
#include "kernel/cpu/io.h"

struct trace trace;
uint16_t trace_pause_port;

/* total counts on; the remainder is the place, and overwrites the oldest record. */
void trace_add(const struct trace_record *record)
{
	bool enabled = interrupts_disable();

	trace.ring[trace.total++ % TRACE_RECORDS] = *record;
	if (trace_pause_port && trace.total % (TRACE_RECORDS / 2) == 0)
		out8(trace_pause_port, TRACE_PAUSE);
	interrupts_restore(enabled);
}
