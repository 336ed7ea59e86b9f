/* A ring of the latest disk requests. */
#include "drivers/disk/trace.h"

#include "kernel/cpu/interrupts.h"

struct trace trace;

void trace_add(const struct trace_record *record)
{
	bool enabled = interrupts_disable();

	trace.ring[trace.total++ % TRACE_RECORDS] = *record;
	interrupts_restore(enabled);
}
