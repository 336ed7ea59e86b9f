/*
 * Random inputs for fuzz.c, without a fuzzer: `fuzz SEED COUNT [FIRST]`. With FIRST, only from that
 * input on; FIRST and a count of 1 are one input again. When one ends the program, its number was
 * printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernel/lib/random.h"
#include "tests/host/ext/shim.h"
#include "tests/host/fuzz/fuzz.h"

#define LENGTH_MAX  160u
#define SECONDS_MAX 60

/* Half of the bytes are extremes: zeros, ones, and small numbers. */
static uint8_t random_byte(struct random *random)
{
	static const uint8_t extremes[] = { 0x00, 0xFF, 0x7F, 0x80, 0x01, 0x02, 0x03, 0x0C };

	if (random_below(random, 2) == 0)
		return (uint8_t)random_next(random);
	return extremes[random_below(random, sizeof(extremes))];
}

static size_t put_patch(struct random *random, uint8_t *at)
{
	uint8_t length = (uint8_t)random_below(random, random_below(random, 3) == 0 ? 16 : 4);

	at[0] = length;
	for (unsigned i = 1; i < 5; i++)
		at[i] = (uint8_t)random_next(random);
	for (unsigned i = 0; i <= length; i++)
		at[5 + i] = random_byte(random);
	return 6u + length;
}

static size_t put_call(struct random *random, uint8_t *at)
{
	at[0] = (uint8_t)(0x80 | random_next(random));
	at[1] = (uint8_t)random_next(random);
	at[2] = (uint8_t)random_next(random);
	return 3;
}

static size_t make_input(struct random *random, uint8_t *bytes)
{
	uint64_t patches = 1 + random_below(random, 4), calls = random_below(random, 12);
	size_t length = 0;

	while (patches-- > 0)
		length += put_patch(random, bytes + length);
	while (calls-- > 0)
		length += put_call(random, bytes + length);
	return length;
}

int main(int count, char **arguments)
{
	uint64_t seed, inputs, first;

	if (count < 3)
		fail("usage: fuzz SEED COUNT [FIRST]");
	seed = strtoull(arguments[1], NULL, 0);
	inputs = strtoull(arguments[2], NULL, 0);
	first = count > 3 ? strtoull(arguments[3], NULL, 0) : 0;
	LLVMFuzzerInitialize(&count, &arguments);
	for (uint64_t i = first; i < first + inputs; i++) {
		struct random random = { seed * 1000003 + i };
		uint8_t bytes[LENGTH_MAX];

		fprintf(stdout, "input %ju\n", i);
		fflush(stdout);
		alarm(SECONDS_MAX);
		LLVMFuzzerTestOneInput(bytes, make_input(&random, bytes));
	}
	return 0;
}
