/*
 * The kernel after lesson 6: a program gets a page of memory when it first touches it.
 *
 *	kmain		brings everything up, creates the first task, and becomes the idle task
 *	first task	runs programs: labs/lesson4/first_task.c
 *	idle task	halts while no other task can run
 *
 * Tasks exist before interrupts are enabled, because the tick already charges one. Everything that
 * may sleep (files, programs) happens in the first task: kmain itself must never sleep, because the
 * idle task has no other to run in its place.
 */
#include "drivers/console/keyboard.h"
#include "drivers/clock/pic.h"
#include "drivers/clock/pit.h"
#include "drivers/console/serial.h"
#include "drivers/console/vga.h"
#include "drivers/qemu/settings.h"
#include "fs/root.h"
#include "fs/tty/tty.h"
#include "kernel/report/panic.h"
#include "kernel/lib/startup.h"
#include "kernel/report/printk.h"
#include "kernel/task/sched.h"
#include "kernel/process/page_fault.h"
#include "kernel/process/signal_actions.h"
#include "kernel/syscall/gate.h"
#include "kernel/syscall/sysenter.h"
#include "labs/lesson4/first_task.h"
#include "mm/kmalloc.h"
#include "mm/kmalloc_debug.h"
#include "mm/memory_map.h"
#include "mm/page.h"
#include "mm/reclaim.h"
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
	page_array_initialize();
	kmalloc_initialize();
	if (setting_number("kmalloc_debug", 0))
		kmalloc_debug_enable();

	pic_initialize();
	time_initialize(pit_measure_tsc_khz());
	tasks_initialize();
	pit_initialize(TICKS_PER_SECOND);
	keyboard_initialize();
	interrupts_enable();
	printk("time: the processor counts at %u kHz, the timer ticks at %u Hz\n", time_tsc_khz(),
	       TICKS_PER_SECOND);

	user_copy_initialize();
	page_fault_initialize();
	reclaim_initialize();
	syscall_initialize();
	sysenter_initialize();
	space_share(shared_page);
	syscall_register_tables();
	root_initialize();
	tty_initialize(signal_send_group);
	startup_run_all();
	root_unpack();

	if (!kthread_create("first", first_task, NULL))
		panic("no memory for the first task");
	sched_idle();
}
