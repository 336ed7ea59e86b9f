/*
 * The kernel after lesson 2: it survives every exception, and time passes.
 *
 * What is new, and why in this order:
 *
 *	trap_initialize		as early as it can: now an exception is a report, not a reset
 *	pic_initialize		before any IRQ is unmasked: IRQ n becomes vector 32 + n
 *	time_initialize		the clock, measured with interrupts disabled
 *	pit_initialize		unmasks IRQ 0, and keyboard_initialize IRQ 1: the handlers exist
 *	interrupts_enable	last: from the next instruction on handlers run at any time
 *
 * While nobody types, the processor halts until the next interrupt.
 */
#include "drivers/console/keyboard.h"
#include "drivers/clock/pic.h"
#include "drivers/clock/pit.h"
#include "drivers/console/serial.h"
#include "drivers/console/vga.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/lib/startup.h"
#include "kernel/report/printk.h"
#include "kernel/cpu/trap.h"
#include "labs/prompt.h"
#include "mm/early.h"
#include "mm/memory_map.h"

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
	early_initialize();

	pic_initialize();
	time_initialize(pit_measure_tsc_khz());
	pit_initialize(TICKS_PER_SECOND);
	keyboard_initialize();
	interrupts_enable();
	printk("time: the processor counts at %u kHz, the timer ticks at %u Hz\n", time_tsc_khz(),
	       TICKS_PER_SECOND);

	startup_run_all();
	prompt(keyboard_or_serial_get, wait_for_interrupt);
}
