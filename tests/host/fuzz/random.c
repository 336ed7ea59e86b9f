/*
 * Inputs for fuzz.c without a fuzzer: random ones, or those in files.
 *
 *	fuzz random SEED COUNT [FIRST]
 *	fuzz files PATH...
 *
 * The number or path of each is printed before it is tried: the last one ended the program. With
 * FIRST and a count of 1 it is tried again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/lib/random.h"
#include "tests/host/ext/shim.h"
#include "tests/host/fuzz/fuzz.h"

#define FILE_MAX    4096u
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

static void run_random(uint64_t seed, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++) {
		struct random random = { seed * 1000003 + i };
		uint8_t bytes[LENGTH_MAX];

		printf("input %ju\n", i);
		fflush(stdout);
		alarm(SECONDS_MAX);
		LLVMFuzzerTestOneInput(bytes, make_input(&random, bytes));
	}
}

static void run_file(const char *path)
{
	static uint8_t bytes[FILE_MAX];
	FILE *file = fopen(path, "rb");
	size_t length = file != NULL ? fread(bytes, 1, sizeof(bytes), file) : 0;

	if (file == NULL)
		fail("cannot read %s", path);
	fclose(file);
	printf("input %s\n", path);
	fflush(stdout);
	alarm(SECONDS_MAX);
	LLVMFuzzerTestOneInput(bytes, length);
}

int main(int count, char **arguments)
{
	bool files = count > 2 && strcmp(arguments[1], "files") == 0;

	if (!files && (count < 4 || strcmp(arguments[1], "random") != 0))
		fail("usage: fuzz random SEED COUNT [FIRST] | fuzz files PATH...");
	LLVMFuzzerInitialize(&count, &arguments);
	for (int i = 2; files && i < count; i++)
		run_file(arguments[i]);
	if (!files)
		run_random(strtoull(arguments[2], NULL, 0),
			   count > 4 ? strtoull(arguments[4], NULL, 0) : 0,
			   strtoull(arguments[3], NULL, 0));
	return 0;
}
