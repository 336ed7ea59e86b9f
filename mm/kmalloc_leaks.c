/*
 * The report of leaks: who asked for what is not freed.
 *
 * A leak is an object that nobody will free, and no kernel knows that. But a person who runs a
 * program that should leave nothing in memory can note kmalloc_allocations before, and ask
 * afterwards: all that is younger, and still there, is a suspect. Summed up by owner it is a short
 * list.
 *
 * Interrupts are disabled while the list of objects is walked, not while the table is printed.
 */
#include "mm/kmalloc_leaks.h"

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"
#include "kernel/report/symbols.h"
#include "mm/kmalloc_debug.h"

#define OWNERS	    64
#define SYMBOL_TEXT 80

static struct {
	uint32_t owner, objects, bytes;
} sums[OWNERS];

/* The last place in the table is for all those that find none of their own. */
static void add(const struct guard *guard)
{
	unsigned i = 0;

	while (i < OWNERS - 1 && sums[i].owner && sums[i].owner != guard->owner)
		i++;
	sums[i].owner = guard->owner;
	sums[i].objects++;
	sums[i].bytes += guard->size;
}

uint32_t kmalloc_leaks(uint32_t since)
{
	char owner[SYMBOL_TEXT];
	uint32_t objects = 0;

	memset(sums, 0, sizeof(sums));
	bool enabled = interrupts_disable();

	for (struct list *link = kmalloc_live.next; link != &kmalloc_live; link = link->next)
		if (list_entry(link, struct guard, link)->serial >= since)
			add(list_entry(link, struct guard, link));
	interrupts_restore(enabled);
	for (unsigned i = 0; i < OWNERS && sums[i].owner; i++) {
		symbol_describe(sums[i].owner, owner, sizeof(owner));
		printk("%5u objects, %7u bytes: %s\n", sums[i].objects, sums[i].bytes, owner);
		objects += sums[i].objects;
	}
	return objects;
}
