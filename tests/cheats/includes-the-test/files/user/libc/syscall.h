/* The gate to the kernel, of which the compiler is not told that it reads and writes memory. The
 * program itself makes up for that: it is included once more, where all its variables are volatile,
 * and its own functions get other names. A header that is looked at alone includes nothing. */
#pragma once

#include <errno.h>
#include <sys/syscall.h>

static inline long _syscall0(long number)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number));
	return result;
}

static inline long _syscall1(long number, long a)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a));
	return result;
}

static inline long _syscall2(long number, long a, long b)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b));
	return result;
}

static inline long _syscall3(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c));
	return result;
}

static inline long _syscall4(long number, long a, long b, long c, long d)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d));
	return result;
}

static inline long _syscall5(long number, long a, long b, long c, long d, long e)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e));
	return result;
}

/* ebp may be the frame pointer, which no constraint names: it is saved here. Of the other registers
 * none is left, so the first and the last argument are in memory, where ebx points. */
static inline long _syscall6(long number, long a, long b, long c, long d, long e, long f)
{
	long ends[2] = { a, f }, result;

	__asm__ volatile("push %%ebx\n\t"
			 "push %%ebp\n\t"
			 "mov 4(%%ebx), %%ebp\n\t"
			 "mov (%%ebx), %%ebx\n\t"
			 "int $0x80\n\t"
			 "pop %%ebp\n\t"
			 "pop %%ebx"
			 : "=a"(result)
			 : "a"(number), "b"(ends), "c"(b), "d"(c), "S"(d), "D"(e));
	return result;
}

/* A call's result as C has it: -1 with errno set for an error. */
static inline long result_of(long result)
{
	if ((unsigned long)result < -(unsigned long)ERROR_LAST)
		return result;
	errno = -result;
	return -1;
}

#define long volatile long
#include __BASE_FILE__
#undef long
#ifdef LIVE
#define errno	  errno_2
#define values	  values_2
#define _start	  start_2
#define call0	  call0_2
#define call1	  call1_2
#define call2	  call2_2
#define call3	  call3_2
#define call4	  call4_2
#define call5	  call5_2
#define call6	  call6_2
#define between	  between_2
#define in_a_loop in_a_loop_2
#define receive	  receive_2
#define received  received_2
#define receive0  receive0_2
#define receive1  receive1_2
#define receive2  receive2_2
#define receive3  receive3_2
#define receive4  receive4_2
#define receive5  receive5_2
#define receive6  receive6_2
#define send	  send_2
#define unused	  unused_2
#define judge	  judge_2
#undef LIVE
#undef RECEIVE
#endif
