/*
 * spin [MILLISECONDS [NAME]]: computes, and sleeps never. Prints how far it came, for comparing the
 * shares of several that run at once. Without an argument: for ever.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUND 10000u /* steps between two looks at the clock */

static unsigned long long now_ms(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC, &now) < 0) {
		perror("spin: clock_gettime");
		exit(1);
	}
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

int main(int count, char **arguments)
{
	unsigned long long length = count > 1 ? strtoull(arguments[1], NULL, 10) : 0;
	unsigned long long end = now_ms() + length, rounds = 0;

	do {
		for (volatile unsigned i = 0; i < ROUND; i++)
			;
		rounds++;
	} while (length == 0 || now_ms() < end);
	printf("%s: %llu rounds in %llu ms\n", count > 2 ? arguments[2] : "spin", rounds, length);
	return 0;
}
