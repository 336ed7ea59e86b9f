/* Looks up the function that holds an address. */
#include "kernel/report/symbols.h"

#include "kernel/lib/format.h"

extern const char text_start[], text_end[];

/* EXERCISE 1.6 (the backtrace, part 2): from an address to a name. The table is sorted by address,
   and has hundreds of entries: halve it until one is left. The answer is the last symbol at or
   below the address; NULL for an address outside the code (text_start up to text_end), and when
   there is none, be it that the table is empty. */
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

uintptr_t symbol_start(uintptr_t address)
{
	const struct symbol *symbol = find(address);

	return symbol ? symbol->address : 0;
}

int symbol_describe(uintptr_t address, char *buffer, size_t size)
{
	const struct symbol *symbol = find(address);

	if (!symbol)
		return snprintk(buffer, size, "0x%08lx", (unsigned long)address);
	return snprintk(buffer, size, "0x%08lx %s+0x%lx", (unsigned long)address, symbol->name,
			(unsigned long)(address - symbol->address));
}
