/*
 * The commands `leaks` and `shrink`: what is not freed, and what need not be kept.
 *
 *	leaks 1200	objects of kmalloc's that are not freed, by owner, without the first 1,200
 *			allocations (audit says how many there are)
 *	shrink		what was freed leaves the quarantine, and the pages of all empty slabs are
 * given back
 */
#include <stdint.h>

#include "kernel/lib/number.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "mm/kmalloc.h"
#include "mm/kmalloc_debug.h"
#include "mm/kmalloc_leaks.h"
#include "mm/slab.h"

static int run_leaks(int count, char **words)
{
	uint64_t since = 0;

	if (count > 1 && !number_parse(words[1], &since)) {
		printk("leaks: %s is not a number\n", words[1]);
		return 1;
	}
	printk("leaks: %u objects\n", kmalloc_leaks(since));
	return 0;
}

static int run_shrink(int count, char **words)
{
	uint32_t pages = 0;

	for (unsigned i = 0; i < KMALLOC_QUARANTINE; i++)
		kfree(kmalloc(0));
	for (struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		pages += slab_shrink(list_entry(link, struct slab_cache, link));
	printk("shrink: %u pages\n", pages);
	return 0;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "leaks", "[ALLOCATIONS]", "objects that are not freed, by owner", 0, run_leaks },
	{ "shrink", "", "gives back what need not be kept", 0, run_shrink },
};
