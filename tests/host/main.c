/*
 * Unit tests of the kernel's pure functions, compiled for the host.
 *   units                      prints the tests' names
 *   units NAME SEED ROUNDS     runs a test; prints nothing, or what is wrong, with status 1
 *   units random SEED COUNT [BOUND]   prints random_next's numbers, or random_below's
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "tests/host/unit.h"

static const struct unit_test *const files[] = {
	load_elf_tests,	  memory_map_tests, format_tests, text_tests,
	arithmetic_tests, boot_info_tests,  screen_tests, latency_tests,
};

uint32_t unit_round;
static uint64_t seed;

static jmp_buf panic_return;
static char panic_message[256];

/* --- what the kernel's functions call --- */

void panic(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintk(panic_message, sizeof(panic_message), format, arguments);
	va_end(arguments);
	longjmp(panic_return, 1);
}

void printk(const char *format, ...)
{
	char line[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintk(line, sizeof(line), format, arguments);
	va_end(arguments);
	fputs(line, stdout);
}

/* --- what the tests call --- */

void unit_fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	printf("%s:%d: seed %" PRIu64 ", round %u: ", file, line, seed, unit_round);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	exit(EXIT_FAILURE);
}

const char *unit_panic_of(void (*call)(void *), void *argument)
{
	if (setjmp(panic_return))
		return panic_message;
	call(argument);
	return NULL;
}

/* --- the command line --- */

static void list(void)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		for (const struct unit_test *test = files[i]; test->name; test++)
			puts(test->name);
}

static const struct unit_test *find(const char *name)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		for (const struct unit_test *test = files[i]; test->name; test++)
			if (strcmp(test->name, name) == 0)
				return test;
	return NULL;
}

static void print_random(struct random random, uint64_t count, uint64_t bound)
{
	while (count--)
		printf("%" PRIu64 "\n",
		       bound ? random_below(&random, bound) : random_next(&random));
}

int main(int count, char **arguments)
{
	if (count < 4) {
		list();
		return EXIT_SUCCESS;
	}
	struct random random = { strtoull(arguments[2], NULL, 0) };
	uint64_t rounds = strtoull(arguments[3], NULL, 0);
	const struct unit_test *test = find(arguments[1]);

	seed = random.state;
	if (strcmp(arguments[1], "random") == 0)
		print_random(random, rounds, count > 4 ? strtoull(arguments[4], NULL, 0) : 0);
	else if (test)
		test->run(&random, rounds);
	else
		REQUIRE(false, "there is no test %s", arguments[1]);
	return EXIT_SUCCESS;
}
