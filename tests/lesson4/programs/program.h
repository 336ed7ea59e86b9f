/* What programs of the tests share: Linux's system calls, without a C library. */
#pragma once

#include <stdint.h>

enum {
	CALL_EXIT = 1,
	CALL_FORK = 2,
	CALL_READ = 3,
	CALL_WRITE = 4,
	CALL_CLOSE = 6,
	CALL_WAITPID = 7,
	CALL_GETPID = 20,
	CALL_KILL = 37,
	CALL_PIPE = 42,
	CALL_TIMES = 43,
	CALL_GETPPID = 64,
	CALL_WAIT4 = 114,
	CALL_CLONE = 120,
	CALL_SCHED_YIELD = 158,
	CALL_NANOSLEEP = 162,
	CALL_PRCTL = 172,
	CALL_SIGACTION = 174,
	CALL_VFORK = 190,
	CALL_EXIT_GROUP = 252,
};

static inline int32_t call(uint32_t number, uint32_t a, uint32_t b, uint32_t c)
{
	int32_t result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory");
	return result;
}

static inline int32_t call5(uint32_t number, uint32_t a, uint32_t b, uint32_t c, uint32_t d,
			    uint32_t e)
{
	int32_t result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory");
	return result;
}

/* Prints a word, a blank, and a number with a sign, as one line and by one call. */
void say(const char *word, int32_t number);

/* A decimal number. */
uint32_t number_of(const char *text);

/* The program. */
int run(int count, char **words);
