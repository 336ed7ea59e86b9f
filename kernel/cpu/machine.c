/*
 * The end of a run: tell QEMU, or power off, or stop.
 *
 * Three ways in this order, because nothing says which machine this is: each one that does not
 * exist is a write to a port that nobody decodes. The status is stored in memory first, where the
 * host can read it whichever way works. Any context, even before there is a stack of our own; never
 * returns.
 */
#include "kernel/cpu/machine.h"

#include "kernel/cpu/io.h"

#define DEBUG_EXIT_PORT	 0xf4
#define DEBUG_EXIT_FIRST 0x10	/* so that the exit codes differ from QEMU's own */
#define PM1A_CONTROL	 0x604	/* of QEMU's PIIX4, as SeaBIOS places it */
#define SLEEP_ENABLE	 0x2000 /* with sleep type 0, "soft off": ACPI 1.0, 4.7.3.2 */

uint32_t machine_exit_status = 0xffffffff;

void machine_exit(uint32_t status)
{
	machine_exit_status = status;
	out8(DEBUG_EXIT_PORT, DEBUG_EXIT_FIRST + status);
	out16(PM1A_CONTROL, SLEEP_ENABLE);
	for (;;)
		__asm__ volatile("cli; hlt");
}
