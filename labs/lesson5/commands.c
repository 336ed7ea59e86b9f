/* The command that lesson 5 adds: `audit`, whose status is 1 if it finds contradictions. */
#include "kernel/cpu/interrupts.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "mm/audit.h"
#include "mm/kmalloc_debug.h"
#include "mm/page_alloc.h"

static int run_audit(int count, char **words)
{
	bool enabled = interrupts_disable();
	uint32_t contradictions = memory_audit();

	kmalloc_debug_check();
	interrupts_restore(enabled);
	printk("audit: %u contradictions, %u pages free\n", contradictions, page_free_count());
	return contradictions > 0;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "audit", "", "do the allocators contradict themselves?", 0, run_audit },
};
