/* The end of a run. */
#pragma once

#include <stdint.h>

/* Exit statuses, 0 to 63. Commands and tests use 0 (all went well) to 61. */
#define EXIT_SUCCESS	 0
#define EXIT_FAILURE	 1
#define EXIT_BOOT_FAILED 62 /* the boot loader gave up */
#define EXIT_PANIC	 63

/* The status of a run that has ended; before that, all ones. The host reads it from guest memory.
 */
extern uint32_t machine_exit_status;

/*
 * Ends the run. QEMU's exit device (isa-debug-exit at port 0xf4) makes QEMU exit with
 * 2 * (0x10 + status) + 1; without it QEMU's machine is powered off; a machine that has neither
 * stops.
 */
void machine_exit(uint32_t status) __attribute__((noreturn));
