/*
 * The kernel after lesson 1: it was loaded, it prints, and it knows its memory.
 *
 * Each step needs those before it:
 *
 *	serial_initialize	nothing: the first thing that can say what goes wrong
 *	vga_initialize		a console before it, for what it prints itself
 *	boot_info_read		a console: it panics without a memory map
 *	memory_map_initialize	the boot loader's ranges
 *	early_initialize	the map in order: from here on page_alloc works
 *	prompt			all of it
 *
 * Interrupts are disabled from the first instruction on; there is one flow of control.
 */
#include "drivers/console/serial.h"
#include "drivers/console/vga.h"
#include "kernel/lib/startup.h"
#include "kernel/report/printk.h"
#include "labs/prompt.h"
#include "mm/early.h"
#include "mm/memory_map.h"

/* Nothing can wake a sleeping processor yet: poll again at once. */
static void idle(void)
{
}

void kmain(uint32_t magic, uint32_t information)
{
	serial_initialize();
	vga_initialize();
	printk("\nApprentice: an i386 kernel to learn from\n");

	boot_info_read(magic, information);
	memory_map_initialize();
	memory_map_print();
	printk("boot: loaded by %s\n", boot_info.loader);
	early_initialize();

	startup_run_all();
	prompt(serial_get, idle);
}
