/*
 * What fills the blanks of a handout: says which exercise is not written yet, and ends the run.
 * It relies on nothing that may be an exercise itself: not on printk, and not on paging.
 */
#pragma once

#if __STDC_HOSTED__ /* in a test's program, on the host */

static inline void __attribute__((noreturn)) exercise_missing(const char *number)
{
	__builtin_printf("exercise %s is not written yet (labs/lesson%c/README.md)\n", number,
			 *number);
	__builtin_exit(1);
}

#else

#include <stdint.h>

#include "kernel/cpu/io.h"
#include "kernel/cpu/machine.h"

#define EXERCISE_SERIAL	     0x3f8
#define EXERCISE_LINE_STATUS (EXERCISE_SERIAL + 5)
#define EXERCISE_CAN_SEND    0x20
#define EXERCISE_LAST_LINE   (0xb8000 + 24 * 80 * 2) /* of the VGA's text, a physical address */
#define EXERCISE_COLOURS     0x4f00		     /* white on red */

static inline void exercise_put_serial(char character)
{
	for (unsigned tries = 0; tries < 100000; tries++)
		if (in8(EXERCISE_LINE_STATUS) & EXERCISE_CAN_SEND)
			break;
	out8(EXERCISE_SERIAL, character);
}

/* The last line of the screen. Once CR0 says that paging is on, it is 3 GiB higher. */
static inline volatile uint16_t *exercise_screen(void)
{
	uint32_t cr0;

	__asm__ volatile("movl %%cr0, %0" : "=r"(cr0));
	return (volatile uint16_t *)(EXERCISE_LAST_LINE + (cr0 >> 31) * 0xc0000000);
}

static inline void __attribute__((noreturn)) exercise_missing(const char *number)
{
	const char lesson[] = { *number, '\0' };
	const char *const parts[] = { "\r\n", "exercise ",
				      number, " is not written yet (labs/lesson",
				      lesson, "/README.md)",
				      "\r\n" };
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
