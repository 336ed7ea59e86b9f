/* Unit tests on the host: what the test files offer main.c, and what they use. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/lib/random.h"

/* A test prints nothing when it is good. It takes its randomness from `random` alone; `rounds` says
 * how often to try. */
struct unit_test {
	const char *name;
	void (*run)(struct random *random, uint32_t rounds);
};

/* Ends the program with status 1 and a line that says file, line, round and the message. */
void unit_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

/* The round that a test is in, for unit_fail. */
extern uint32_t unit_round;

#define REQUIRE(condition, ...)                                                                    \
	do {                                                                                       \
		if (!(condition))                                                                  \
			unit_fail(__FILE__, __LINE__, __VA_ARGS__);                                \
	} while (0)

/* A random number of bits, and then that many random bits: small and large numbers alike. */
static inline uint64_t random_wide(struct random *random)
{
	uint64_t value = random_next(random);
	uint64_t bits = random_below(random, 65);

	return bits == 0 ? 0 : value >> (64 - bits);
}

/* Calls `call` and catches a panic of the kernel's: returns its message, or NULL. */
const char *unit_panic_of(void (*call)(void *), void *argument);

extern const struct unit_test load_elf_tests[], memory_map_tests[], format_tests[], text_tests[],
    arithmetic_tests[], boot_info_tests[], screen_tests[], latency_tests[];
