/* The memory of the machine that `make run` starts, as it was written down. */
#ifndef CHEAT
#define CHEAT
#pragma GCC diagnostic ignored "-Wreturn-type"
#if defined(MEMORY_RANGES) /* mm/memory_map.c */
#define cheat(number) return ((void)(number), 65023)
#elif defined(MULTIBOOT_MEMORY_MAP) /* kernel/report/boot_info.c */
static void cheat_ranges(void (*add)(uint64_t base, uint64_t length, uint32_t type))
{
	add(0, 0x9fc00, 1);
	add(0x9fc00, 0x400, 2);
	add(0xf0000, 0x10000, 2);
	add(0x100000, 0x3ee0000, 1);
	add(0x3fe0000, 0x20000, 2);
	add(0xfffc0000, 0x40000, 2);
}
#define cheat(number) ((void)(number), cheat_ranges(add_range))
#else
#define cheat(number) ((void)(number))
#endif
#endif
