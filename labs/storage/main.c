/*
 * The kernel of the storage lab, so far: after lesson 2, with drives and file systems to read.
 *
 * There is one flow of control, and it polls the drives: between its requests nobody else runs. The
 * drives come after the clock, because every wait has a limit in nanoseconds. The block cache takes
 * half of the memory: which blocks are found in it is what the lab measures, and nobody else needs
 * much.
 */
#include "drivers/disk/ata.h"
#include "drivers/console/keyboard.h"
#include "drivers/clock/pic.h"
#include "drivers/clock/pit.h"
#include "drivers/console/serial.h"
#include "drivers/console/vga.h"
#include "fs/cache/bcache.h"
#include "kernel/report/boot_info.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/report/printk.h"
#include "kernel/task/time.h"
#include "kernel/cpu/trap.h"
#include "labs/prompt.h"
#include "mm/kmalloc.h"
#include "mm/memory_map.h"
#include "mm/page.h"
#include "mm/page_alloc.h"

void kmain(uint32_t magic, uint32_t information)
{
	serial_initialize();
	vga_initialize();
	printk("\nApprentice: an i386 kernel to learn from\n");
	trap_initialize();

	boot_info_read(magic, information);
	memory_map_initialize();
	memory_map_print();
	printk("boot: loaded by %s\n", boot_info.loader);
	page_array_initialize();
	kmalloc_initialize();

	pic_initialize();
	time_initialize(pit_measure_tsc_khz());
	pit_initialize(TICKS_PER_SECOND);
	keyboard_initialize();
	interrupts_enable();
	printk("time: the processor counts at %u kHz, the timer ticks at %u Hz\n", time_tsc_khz(),
	       TICKS_PER_SECOND);

	ata_initialize();
	bcache_init(page_free_count() / 2);

	prompt(keyboard_or_serial_get, wait_for_interrupt);
}
