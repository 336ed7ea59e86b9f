/*
 * The commands that lesson 5 adds.
 *
 *	audit		do the allocators contradict themselves? Then the status is 1. And who has
 * what: pages that are free and in slabs, objects of kmalloc's, allocations so far fail 17
 *	the 17th request for memory from now on fails; without a number: how many are still to go
 */
#include <stdint.h>

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/number.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "mm/audit.h"
#include "mm/kmalloc_debug.h"
#include "mm/page_alloc.h"
#include "mm/slab.h"
#include "mm/zones.h"

static int run_audit(int count, char **words)
{
	uint32_t slabs = 0, objects = 0;
	bool enabled = interrupts_disable();
	uint32_t contradictions = memory_audit();

	kmalloc_debug_check();
	for (struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		slabs += list_entry(link, struct slab_cache, link)->slabs;
	for (struct list *link = kmalloc_live.next; link != &kmalloc_live; link = link->next)
		objects++;
	interrupts_restore(enabled);
	printk("audit: %u contradictions; pages: %u free, %u in slabs; %u objects of %u\n",
	       contradictions, page_free_count(), slabs, objects, kmalloc_allocations);
	return contradictions > 0;
}

static int run_fail(int count, char **words)
{
	uint64_t number = allocation_fails_in;

	if (count > 1 && !number_parse(words[1], &number)) {
		printk("fail: %s is not a number\n", words[1]);
		return 1;
	}
	allocation_fails_in = number;
	printk("fail: %u requests to go\n", allocation_fails_in);
	return 0;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "audit", "", "do the allocators contradict themselves?", 0, run_audit },
	{ "fail", "[N]", "the Nth request for memory fails", 0, run_fail },
};
