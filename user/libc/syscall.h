/*
 * The gate to the kernel, as Linux's i386 has it: the number in eax; arguments in ebx, ecx, edx,
 * esi, edi, ebp; the result in eax. The kernel preserves every other register.
 *
 * They are inline, so the compiler must be told what it cannot see: that a call reads and writes
 * memory which only an argument points to ("memory").
 */
#pragma once

#include <errno.h>
#include <sys/syscall.h>

/* EXERCISE 3.2 (the user's side): C functions around INT 0x80.
   1. _syscall0 to _syscall5: the compiler puts the number and the arguments into their registers,
   and finds the result in eax: that is what constraints are for.
   2. It cannot see that a call reads and writes memory: tell it.
   3. _syscall6: the sixth argument goes into ebp, and the compiler may use that as its frame
   pointer. No constraint names it: preserve it yourself. Afterwards all registers but eax are as
   before. A signal's handler may make a call in the middle of this one: no static variable.
   4. result_of: what a C function gives its caller. -4095 to -1 are errors: errno gets the
   positive number, and the result is -1. Every other result stays as it is, and so does errno. */
/* SOLUTION 3.2 { */
static inline long _syscall0(long number)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number) : "memory");
	return result;
}

static inline long _syscall1(long number, long a)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a) : "memory");
	return result;
}

static inline long _syscall2(long number, long a, long b)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b) : "memory");
	return result;
}

static inline long _syscall3(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory");
	return result;
}

static inline long _syscall4(long number, long a, long b, long c, long d)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d)
			 : "memory");
	return result;
}

static inline long _syscall5(long number, long a, long b, long c, long d, long e)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory");
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
			 : "a"(number), "b"(ends), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory");
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
/* } SOLUTION 3.2 */
