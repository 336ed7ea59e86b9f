/* The kernel of the storage lab, so far: it brings the machine up, and runs a script or talks to a person. */
#include "drivers/ata.h"
#include "drivers/pic.h"
#include "drivers/pit.h"
#include "drivers/serial.h"
#include "drivers/settings.h"
#include "drivers/vga.h"
#include "fs/bcache.h"
#include "kernel/boot_info.h"
#include "kernel/interrupts.h"
#include "kernel/machine.h"
#include "kernel/monitor.h"
#include "kernel/panic.h"
#include "kernel/printk.h"
#include "kernel/time.h"
#include "kernel/trap.h"
#include "labs/storage/lab.h"
#include "mm/early.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"
#include "tests/kernel/selftest.h"

#define TICKS_PER_SECOND 100
#define SCRIPT_ORDER	 5 /* 128 KiB */
#define CACHE_BLOCKS	 2048u

void kmain(uint32_t magic, uint32_t information);

static void start_consoles(void)
{
	serial_initialize();
	vga_initialize();
	printk("\nApprentice: an i386 kernel to learn from\n");
}

static void start_memory(uint32_t magic, uint32_t information)
{
	boot_info_read(magic, information);
	memory_map_initialize();
	memory_map_print();
	printk("boot: loaded by %s\n", boot_info.loader);
	early_initialize();
}

static void start_clock(void)
{
	pic_initialize();
	time_initialize(pit_measure_tsc_khz());
	pit_initialize(TICKS_PER_SECOND);
	interrupts_enable();
	printk("time: the processor counts at %u kHz, the timer ticks at %u Hz\n", time_tsc_khz(),
	       TICKS_PER_SECOND);
}

/* Metadata may take a quarter of the memory, up to CACHE_BLOCKS. */
static void start_disks(void)
{
	uint32_t quarter = page_free_count() / 4;

	ata_initialize();
	bcache_init(quarter < CACHE_BLOCKS ? quarter : CACHE_BLOCKS);
}

static char get_character(void)
{
	int character;

	while ((character = serial_get()) < 0)
		wait_for_interrupt(); /* the timer's, at the latest */
	return character;
}

/* Runs the host's script, if there is one, and ends the machine with its status. */
static void run_script(void)
{
	uint32_t size = PAGE_SIZE << SCRIPT_ORDER;
	char *script = page_alloc(SCRIPT_ORDER);

	if (!script)
		panic("no memory for the script");
	int length = setting_read("script", script, size);

	if (length < 0) {
		page_free(script, SCRIPT_ORDER);
		return;
	}
	if ((uint32_t)length >= size)
		panic("the script has %d bytes; %u is the limit", length, size - 1);
	machine_exit(monitor_script(script));
}

void kmain(uint32_t magic, uint32_t information)
{
	start_consoles();
	trap_initialize();
	start_memory(magic, information);
	start_clock();
	start_disks();
	monitor_initialize();
	inspect_commands_register();
	measure_commands_register();
	crash_commands_register();
	selftest_commands_register();
	run_script();
	printk("Type help for the commands, exit to leave.\n");
	monitor_converse(get_character);
}
