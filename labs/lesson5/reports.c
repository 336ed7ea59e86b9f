/*
 * Commands about memory that only experiments need.
 *
 *	account		pages that are free and in slabs, objects and allocations of kmalloc
 *	leaks 1200	objects that are not freed, by owner, without the first 1,200 allocations
 *	shrink		empties the quarantine, and gives the pages of empty slabs back
 *	fail 17		the 17th request for memory from now on fails; alone: how many are to go
 */
#include <stdint.h>

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/number.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "mm/kmalloc.h"
#include "mm/kmalloc_debug.h"
#include "mm/kmalloc_leaks.h"
#include "mm/page_alloc.h"
#include "mm/slab.h"
#include "mm/zones.h"

/* The number that is a command's first word, if there is one. */
static uint32_t number_of(int count, char **words, uint32_t otherwise)
{
	uint64_t number;

	if (count < 2)
		return otherwise;
	if (number_parse(words[1], &number))
		return number;
	printk("%s: %s is not a number\n", words[0], words[1]);
	return otherwise;
}

static int run_account(int count, char **words)
{
	uint32_t slabs = 0, objects = 0;
	bool enabled = interrupts_disable();

	for (struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		slabs += list_entry(link, struct slab_cache, link)->slabs;
	for (struct list *link = kmalloc_live.next; link != &kmalloc_live; link = link->next)
		objects++;
	interrupts_restore(enabled);
	printk("account: %u pages free, %u in slabs; %u objects, %u allocations so far\n",
	       page_free_count(), slabs, objects, kmalloc_allocations);
	return 0;
}

static int run_leaks(int count, char **words)
{
	printk("leaks: %u objects\n", kmalloc_leaks(number_of(count, words, 0)));
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

static int run_fail(int count, char **words)
{
	allocation_fails_in = number_of(count, words, allocation_fails_in);
	printk("fail: %u requests to go\n", allocation_fails_in);
	return 0;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "account", "", "who has how much memory", 0, run_account },
	{ "leaks", "[ALLOCATIONS]", "objects that are not freed, by owner", 0, run_leaks },
	{ "shrink", "", "gives back what need not be kept", 0, run_shrink },
	{ "fail", "[N]", "the Nth request for memory fails", 0, run_fail },
};
