/* The end of a run. */
#pragma once

#include <stdint.h>

#include "kernel/lib/optional.h"

/* Exit statuses, 0 to 63. Commands and tests use 0 (all went well) to 61. */
#define EXIT_SUCCESS	 0
#define EXIT_FAILURE	 1
#define EXIT_BOOT_FAILED 62 /* the boot loader gave up */
#define EXIT_PANIC	 63

/* What machine_exit writes, and where to. */
#define EXIT_PORT      0xf4
#define EXIT_FIRST     0x10   /* so that QEMU's exit codes differ from its own */
#define POWER_PORT     0x604  /* PM1a control, of QEMU's PIIX4 as SeaBIOS places it */
#define POWER_SOFT_OFF 0x2000 /* sleep enable with sleep type 0: ACPI 1.0, 4.7.3.2 */

/* The status of a run that has ended; before that, all ones. The host reads it from guest memory.
 */
extern uint32_t machine_exit_status;

/* Called first by machine_exit, unless the kernel has panicked: files are written back. */
void machine_before_exit(void) OPTIONAL;

/*
 * Ends the run. QEMU's exit device (isa-debug-exit at EXIT_PORT) makes QEMU exit with
 * 2 * (EXIT_FIRST + status) + 1; without it QEMU's machine is powered off; a machine that has
 * neither stops. A status beyond EXIT_PANIC, a shell's 127 for instance, becomes EXIT_FAILURE.
 */
void machine_exit(uint32_t status) __attribute__((noreturn));
