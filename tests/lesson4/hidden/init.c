/*
 * Exercise 4.5: the machine's first program ends, with a status that the test puts into its file.
 */
#include "tests/lesson4/programs/family.h"

static volatile uint32_t status = 0x5ec4e75a;

int run(int count, char **words)
{
	int32_t child = fork();

	(void)count;
	(void)words;
	if (child == 0)
		leave(9);
	wait_for(child, 0, 0);
	return status;
}
