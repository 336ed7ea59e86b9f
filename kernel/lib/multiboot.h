/* The Multiboot 1 information structure, version 0.6.96, section 3.3. */
#pragma once

#include <stdint.h>

#define MULTIBOOT_BOOTLOADER_MAGIC 0x2badb002u /* in EAX at the kernel's entry */

/* Which members of the structure are valid. */
#define MULTIBOOT_MEMORY      (1u << 0)
#define MULTIBOOT_MEMORY_MAP  (1u << 6)
#define MULTIBOOT_LOADER_NAME (1u << 9)

struct multiboot_info {
	uint32_t flags;
	uint32_t mem_lower; /* KiB from 0 */
	uint32_t mem_upper; /* KiB from 1 MiB up to the first hole */
	uint32_t boot_device;
	uint32_t cmdline; /* addresses are physical */
	uint32_t mods_count;
	uint32_t mods_addr;
	uint32_t syms[4];
	uint32_t mmap_length; /* bytes */
	uint32_t mmap_addr;
	uint32_t drives_length;
	uint32_t drives_addr;
	uint32_t config_table;
	uint32_t boot_loader_name;
};

#define MULTIBOOT_MEMORY_AVAILABLE 1u

/* An entry of the memory map. The next one is size + 4 bytes further: size does not count itself.
 */
struct multiboot_mmap_entry {
	uint32_t size;
	uint64_t base;
	uint64_t length;
	uint32_t type; /* as INT 15h, E820 gives it: 1 is memory, everything else is not */
} __attribute__((packed));
