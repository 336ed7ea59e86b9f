/* The kernel's own symbol table: from an address to "function+offset". */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct symbol {
	uintptr_t address;
	const char *name;
};

/* The functions, sorted by address; the build makes the table from the first link of the kernel. */
extern const struct symbol symbols[];
extern const uint32_t symbol_count;

/* The start of the function that holds an address, or 0. */
uintptr_t symbol_start(uintptr_t address);

/* Writes "0xc0101234 kmain+0x24", or the bare address when it is in no function. Returns the
 * length of the text, as snprintk. */
int symbol_describe(uintptr_t address, char *buffer, size_t size);
