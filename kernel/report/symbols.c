/*
 * Looks up the function that holds an address.
 *
 * The kernel carries its own table of functions. The build links the kernel twice: `nm` lists the
 * first link, the list becomes a C array, and the second link contains it. The array comes after
 * all code, so the addresses stay the same:
 *
 *	index	address		name
 *	0	0xc0101000	higher_half
 *	1	0xc0101020	kmain		0xc0101034 is kmain+0x14: the last one not above it
 *	2	0xc01010d0	prompt
 *
 * A size is not stored: a function ends where the next one begins. An address in the padding
 * between two functions is therefore shown as part of the first of them.
 *
 * Read-only data: may be called from any context, in a panic too.
 */
#include "kernel/report/symbols.h"

#include "kernel/lib/format.h"

extern const char text_start[], text_end[];

/* EXERCISE 1.6 (the backtrace, part 2): from an address to a name: the last symbol at or below the
   address, or NULL if there is none, or if the address is not in the code (text_start up to
   text_end). The table is sorted by address and grows with each lesson: looking at all of its
   entries takes too long.
   Pitfalls: an empty table; an address below the first symbol; an address that is a symbol's
   own. */
/* SOLUTION 1.6 { */
/* The last symbol at or below address, or NULL. */
static const struct symbol *find(uintptr_t address)
{
	uint32_t low = 0, high = symbol_count;

	if (address < (uintptr_t)text_start || address >= (uintptr_t)text_end)
		return NULL;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 ? NULL : &symbols[low - 1];
}
/* } SOLUTION 1.6 */

/* 0 is the address of no function: the kernel's code is above 3 GiB. */
uintptr_t symbol_start(uintptr_t address)
{
	const struct symbol *symbol = find(address);

	return symbol ? symbol->address : 0;
}

/* snprintk rather than printk: the text becomes part of a line, by way of %pS. */
int symbol_describe(uintptr_t address, char *buffer, size_t size)
{
	const struct symbol *symbol = find(address);

	if (!symbol)
		return snprintk(buffer, size, "0x%08lx", (unsigned long)address);
	return snprintk(buffer, size, "0x%08lx %s+0x%lx", (unsigned long)address, symbol->name,
			(unsigned long)(address - symbol->address));
}
