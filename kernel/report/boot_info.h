/* The boot loader's report, copied before its memory is used for anything else. */
#pragma once

#include <stdint.h>

#define BOOT_MEMORY_RANGES 64

struct boot_memory_range {
	uint64_t base;
	uint64_t length;
	uint32_t type; /* MULTIBOOT_MEMORY_AVAILABLE or something that is not memory */
};

struct boot_info {
	char loader[32];
	uint32_t range_count;
	struct boot_memory_range ranges[BOOT_MEMORY_RANGES]; /* as reported; more are dropped */
};

extern struct boot_info boot_info;

/*
 * Copies the Multiboot information at this physical address. Panics, with the reason, when magic is
 * not a Multiboot loader's or when no memory is described.
 */
void boot_info_read(uint32_t magic, uint32_t information);

/* The kernel's first C function; boot/entry.asm calls it once, with what the boot loader passed.
 * Each lesson has its own, in its main.c. */
void kmain(uint32_t magic, uint32_t information);
