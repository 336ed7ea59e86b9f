/*
 * The boot loader's report, copied to the kernel's own memory.
 *
 * Multiboot 0.6.96, section 3.3: EBX points to a structure whose `flags` say which of its fields
 * are valid. Every pointer in it is a physical address, in memory that the map itself calls
 * available: the first page_alloc may hand it out. So kmain calls boot_info_read early, before
 * there is an allocator, and nobody else looks at the loader's memory. It must be below 896 MiB,
 * where the kernel sees physical memory.
 *
 * An entry of the memory map begins with its size, which does not count itself:
 *
 *	offset	0	4		12		20	24
 *		size 20	base		length		type	size of the next ...
 */
#include "kernel/report/boot_info.h"

#include "kernel/lib/format.h"
#include "kernel/lib/multiboot.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/report/panic.h"

struct boot_info boot_info;

/* Ranges that do not fit into the table are dropped: a PC's BIOS describes about ten. */
static void add_range(uint64_t base, uint64_t length, uint32_t type)
{
	if (boot_info.range_count < BOOT_MEMORY_RANGES)
		boot_info.ranges[boot_info.range_count++] =
		    (struct boot_memory_range){ base, length, type };
}

/* EXERCISE 1.5 (the memory map): what the boot loader says about memory; kernel/lib/multiboot.h has
   the structures.
   With the bit MULTIBOOT_MEMORY_MAP in flags there is a map: mmap_length bytes at mmap_addr, a
   physical address (direct_map). Call add_range for each entry with its type, in the map's order:
   reserved ranges matter as well.
   Without it there may be MULTIBOOT_MEMORY: then mem_upper KiB of available memory begin at 1 MiB.
   An entry counts if the whole structure, size included, is inside the map, whatever its size says.
   The next one begins size + 4 bytes further, even if size is below 20. When that is past the end
   of the map, the walk is over.
   Pitfalls: entries may be longer than the structure. A size near 2^32 wraps, and leads back.
   mem_upper KiB may be 4 GiB or more. Sorting and cutting is the work of mm/memory_map.c. */
/* SOLUTION 1.5 { */
static void read_memory_map(const struct multiboot_info *information)
{
	uintptr_t at = (uintptr_t)direct_map(information->mmap_addr);
	uintptr_t end = at + information->mmap_length;

	while (at + sizeof(struct multiboot_mmap_entry) <= end) {
		const struct multiboot_mmap_entry *entry = (const void *)at;

		add_range(entry->base, entry->length, entry->type);
		if (entry->size > end - at - sizeof(entry->size))
			return; /* a wrong size could wrap, and lead back to this entry for ever */
		at += entry->size + sizeof(entry->size);
	}
}

static void read_ranges(const struct multiboot_info *information)
{
	if (information->flags & MULTIBOOT_MEMORY_MAP)
		read_memory_map(information);
	else if (information->flags & MULTIBOOT_MEMORY)
		add_range(0x100000, (uint64_t)information->mem_upper * 1024,
			  MULTIBOOT_MEMORY_AVAILABLE);
}
/* } SOLUTION 1.5 */

/* Panics rather than guesses: without a map there is no memory to work with. */
void boot_info_read(uint32_t magic, uint32_t address)
{
	const struct multiboot_info *information = direct_map(address);

	if (magic != MULTIBOOT_BOOTLOADER_MAGIC)
		panic("EAX was 0x%08x at the entry: no Multiboot loader started this kernel",
		      magic);
	if (information->flags & MULTIBOOT_LOADER_NAME)
		snprintk(boot_info.loader, sizeof(boot_info.loader), "%s",
			 (const char *)direct_map(information->boot_loader_name));
	read_ranges(information);
	if (boot_info.range_count == 0)
		panic("the boot loader %s describes no memory", boot_info.loader);
}
