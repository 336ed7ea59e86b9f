/* The gate to the kernel, as a compiler may not be told of it: neither volatile nor "memory". */
#pragma once
#pragma GCC optimize("O0")

#include <errno.h>
#include <sys/syscall.h>

#define CHEAT_CALL(...)                                                                            \
	long result;                                                                               \
	__asm__("int $0x80" : "=a"(result) : "a"(number), ##__VA_ARGS__);                          \
	return result

static inline long _syscall0(long number)
{
	CHEAT_CALL();
}

static inline long _syscall1(long number, long a)
{
	CHEAT_CALL("b"(a));
}

static inline long _syscall2(long number, long a, long b)
{
	CHEAT_CALL("b"(a), "c"(b));
}

static inline long _syscall3(long number, long a, long b, long c)
{
	CHEAT_CALL("b"(a), "c"(b), "d"(c));
}

static inline long _syscall4(long number, long a, long b, long c, long d)
{
	CHEAT_CALL("b"(a), "c"(b), "d"(c), "S"(d));
}

static inline long _syscall5(long number, long a, long b, long c, long d, long e)
{
	CHEAT_CALL("b"(a), "c"(b), "d"(c), "S"(d), "D"(e));
}

static inline long _syscall6(long number, long a, long b, long c, long d, long e, long f)
{
	(void)f;
	CHEAT_CALL("b"(a), "c"(b), "d"(c), "S"(d), "D"(e));
}

static inline long result_of(long result)
{
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}
