/*
 * The end of a run: tell QEMU, or power off, or stop.
 *
 * Three ways in this order, because nothing says which machine this is: where a device is missing,
 * the write goes to a port that nothing decodes. The status is stored in memory first, where the
 * host can read it whichever way works. Any context; never returns.
 */
#include "kernel/cpu/machine.h"

#include "kernel/cpu/io.h"

uint32_t machine_exit_status = 0xffffffff;

void machine_exit(uint32_t status)
{
	if (machine_before_exit && status != EXIT_PANIC)
		machine_before_exit();
	status = status <= EXIT_PANIC ? status : EXIT_FAILURE;
	machine_exit_status = status;
	out8(EXIT_PORT, EXIT_FIRST + status);
	out16(POWER_PORT, POWER_SOFT_OFF);
	for (;;)
		__asm__ volatile("cli; hlt");
}
