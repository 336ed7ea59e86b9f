/*
 * The kernel after lesson 3: it runs programs made for Linux, one at a time.
 *
 * What is new after lesson 2's part, and what it needs:
 *
 *	user_copy_initialize	traps: faults in copies become results
 *	fpu_initialize		programs use SSE
 *	syscall_initialize	traps: the gate of INT 0x80
 *	sysenter_initialize	syscall_initialize; the page that programs call
 *	syscall_register_tables	the tables that the linker has collected
 *	task_single_initialize	the one task, pid 1
 *	root_initialize		memory, and a task to open files for: / from the initramfs
 *
 * The monitor comes last and is kept until the machine ends. There is no scheduler: a program that
 * waits halts the processor.
 */
#include "drivers/console/keyboard.h"
#include "drivers/clock/pic.h"
#include "drivers/clock/pit.h"
#include "drivers/console/serial.h"
#include "drivers/console/vga.h"
#include "fs/root.h"
#include "fs/tty/tty.h"
#include "kernel/lib/startup.h"
#include "kernel/report/printk.h"
#include "kernel/syscall/gate.h"
#include "kernel/syscall/sysenter.h"
#include "kernel/process/signal.h"
#include "kernel/process/single.h"
#include "labs/prompt.h"
#include "mm/early.h"
#include "mm/memory_map.h"
#include "mm/space.h"

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

	user_copy_initialize();
	fpu_initialize();
	syscall_initialize();
	sysenter_initialize();
	space_share(shared_page);
	syscall_register_tables();
	task_single_initialize();
	root_initialize();
	tty_initialize(signal_send_group);
	startup_run_all();
	root_unpack();

	tty_listen(false); /* the prompt reads what is typed, until a program takes the terminal */
	prompt(keyboard_or_serial_get, wait_for_interrupt);
}
