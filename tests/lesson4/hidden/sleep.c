/*
 * Exercise 4.0: a shell's sleep, in milliseconds, fewer than 1000.
 */
#include "tests/lesson4/programs/family.h"

int run(int count, char **words)
{
	uint32_t milliseconds = 0;

	for (const char *digit = count > 1 ? words[1] : ""; *digit; digit++)
		milliseconds = milliseconds * 10 + (*digit - '0');

	const uint32_t time[2] = { 0, milliseconds * 1000000 };

	return call(CALL_NANOSLEEP, (uintptr_t)time, 0, 0);
}
