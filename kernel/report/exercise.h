/*
 * An unfinished exercise: prints its number, and ends the run. It relies on nothing that may be an
 * exercise itself: not on printk, and not on paging.
 */
#pragma once

#if __STDC_HOSTED__ /* in a test's program, on the host */

static inline void __attribute__((noreturn)) exercise_missing(const char *number)
{
	__builtin_printf("exercise %s is not written yet (labs/%s%.*s/README.md)\n", number,
			 *number == 'S' ? "storage" : "lesson", *number != 'S', number);
	__builtin_exit(1);
}

#else

#include "kernel/cpu/io.h"
#include "kernel/cpu/machine.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/cpu/pc.h"

#define EXERCISE_LAST_LINE  (TEXT_SCREEN + (TEXT_LINES - 1) * TEXT_COLUMNS * 2)
#define EXERCISE_COLOURS    0x4f00 /* white on red */
#define EXERCISE_PAUSE_PORT 0x80   /* the BIOS's progress codes: nothing else uses it */

/* Gives the serial port the time that a byte takes, 87 us: a read of EXERCISE_PAUSE_PORT takes
 * about 1 us. (A driver asks the port instead, and that is exercise 1.3.) */
static inline void exercise_put_serial(char character)
{
	out8(SERIAL_PORT, character);
	for (unsigned pause = 0; pause < 100; pause++)
		in8(EXERCISE_PAUSE_PORT);
}

/* The last line of the screen. Once CR0 says that paging is on, it is 3 GiB higher. */
static inline volatile uint16_t *exercise_screen(void)
{
	uint32_t cr0;

	__asm__ volatile("movl %%cr0, %0" : "=r"(cr0));
	return (volatile uint16_t *)(EXERCISE_LAST_LINE + (cr0 >> 31) * KERNEL_BASE);
}

static inline void __attribute__((noreturn)) exercise_missing(const char *number)
{
	const char lesson[] = { *number, '\0' };
	const char *const parts[] = { "\r\nexercise ",
				      number,
				      " is not written yet (labs/",
				      *number == 'S' ? "storage" : "lesson",
				      *number == 'S' ? "" : lesson,
				      "/README.md)\r\n" };
	volatile uint16_t *cell = exercise_screen();

	__asm__ volatile("cli");
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (const char *at = parts[i]; *at; at++) {
			exercise_put_serial(*at);
			if (*at >= ' ')
				*cell++ = EXERCISE_COLOURS | (uint8_t)*at;
		}
	machine_exit(EXIT_PANIC);
}

#endif
