/*
 * Commands about memory that only experiments need.
 *
 *	account		pages that are free and in slabs, objects and allocations of kmalloc
 *	leaks 1200	objects that are not freed, by owner, without the first 1,200 allocations
 *	shrink		empties the quarantine, and gives the pages of empty slabs back
 *	fail 17		the 17th request for memory from now on fails; alone: how many are to go;
 *			until `fail 0` no memory is given back when none is free
 */

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/number.h"
#include "kernel/lib/string.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "kernel/report/symbols.h"
#include "mm/kmalloc.h"
#include "mm/kmalloc_debug.h"
#include "mm/page_alloc.h"
#include "mm/slab.h"
#include "mm/zones.h"

#define OWNERS	    64
#define SYMBOL_TEXT 80

/* The number that is a command's first word; `otherwise` without one. */
static uint32_t number_of(int count, char **words, uint32_t otherwise)
{
	uint64_t number = otherwise;

	if (count > 1 && !number_parse(words[1], &number))
		printk("%s: %s is not a number\n", words[0], words[1]);
	return number;
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
	printk("account: %u pages free, %u in slabs; ", page_free_count(), slabs);
	printk("%u objects, %u allocations so far\n", objects, kmalloc_allocations);
	return 0;
}

/*
 * A leak is an object that nobody will free, and no kernel knows that. But a person who runs a
 * program that should leave nothing in memory can note the number of allocations before: all that
 * is younger afterwards is a suspect. Summed up by owner it is a short list.
 */
static struct {
	uint32_t owner, objects, bytes;
} sums[OWNERS];

/* The last place in the table is for all those that find none of their own. */
static void add_to_owner(const struct guard *guard)
{
	unsigned i = 0;

	while (i < OWNERS - 1 && sums[i].owner && sums[i].owner != guard->owner)
		i++;
	sums[i].owner = guard->owner;
	sums[i].objects++;
	sums[i].bytes += guard->size;
}

static int run_leaks(int count, char **words)
{
	uint32_t since = number_of(count, words, 0), objects = 0;
	char owner[SYMBOL_TEXT];

	memset(sums, 0, sizeof(sums));
	bool enabled = interrupts_disable();

	for (struct list *link = kmalloc_live.next; link != &kmalloc_live; link = link->next)
		if (list_entry(link, struct guard, link)->serial >= since)
			add_to_owner(list_entry(link, struct guard, link));
	interrupts_restore(enabled);
	for (unsigned i = 0; i < OWNERS && sums[i].owner; i++) {
		symbol_describe(sums[i].owner, owner, sizeof(owner));
		printk("%5u objects, %7u bytes: %s\n", sums[i].objects, sums[i].bytes, owner);
		objects += sums[i].objects;
	}
	printk("leaks: %u objects\n", objects);
	return 0;
}

static int run_shrink(int count, char **words)
{
	if (page_reclaim)
		page_reclaim();
	for (unsigned i = 0; i < KMALLOC_QUARANTINE; i++)
		kfree(kmalloc(0));
	for (struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		slab_shrink(list_entry(link, struct slab_cache, link));
	return run_account(0, words);
}

/* What is to fail must not succeed a moment later: meanwhile nothing is given back. */
static int run_fail(int count, char **words)
{
	static bool (*reclaim)(void);

	reclaim = page_reclaim ? page_reclaim : reclaim;
	allocation_fails_in = number_of(count, words, allocation_fails_in);
	page_reclaim = allocation_fails_in > 0 ? NULL : reclaim;
	printk("fail: %u requests to go\n", allocation_fails_in);
	return 0;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "account", "", "who has how much memory", 0, run_account },
	{ "leaks", "[ALLOCATIONS]", "objects that are not freed, by owner", 0, run_leaks },
	{ "shrink", "", "gives back what need not be kept", 0, run_shrink },
	{ "fail", "[N]", "the Nth request for memory fails", 0, run_fail },
};
