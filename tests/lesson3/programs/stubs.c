/* The stubs of user/libc/syscall.h, as functions that a test calls from outside: one a number of
 * arguments, and some that are hard for a compiler that has not been told everything. */
#include "user/libc/syscall.h"

#define LIVE 10 /* values that are needed behind a call: more than there are registers */

int errno;
volatile long values[LIVE];

void _start(void);
long call0(long number);
long call1(long number, long a);
long call2(long number, long a, long b);
long call3(long number, long a, long b, long c);
long call4(long number, long a, long b, long c, long d);
long call5(long number, long a, long b, long c, long d, long e);
long call6(long number, long a, long b, long c, long d, long e, long f);
long between(long number, long a, long b, long c, long d, long e, long f);
long call_of_a_result(long number, long a);
long in_a_loop(long number, long last);
long receive(long number);
long send(long number, long word);
void unused(long number);
long judge(long result);

void _start(void)
{
	for (;;)
		;
}

long call0(long number)
{
	return _syscall0(number);
}

long call1(long number, long a)
{
	return _syscall1(number, a);
}

long call2(long number, long a, long b)
{
	return _syscall2(number, a, b);
}

long call3(long number, long a, long b, long c)
{
	return _syscall3(number, a, b, c);
}

long call4(long number, long a, long b, long c, long d)
{
	return _syscall4(number, a, b, c, d);
}

long call5(long number, long a, long b, long c, long d, long e)
{
	return _syscall5(number, a, b, c, d, e);
}

long call6(long number, long a, long b, long c, long d, long e, long f)
{
	return _syscall6(number, a, b, c, d, e, f);
}

/* Two calls amid values that live across them; counts what has changed. */
long between(long number, long a, long b, long c, long d, long e, long f)
{
	long kept[LIVE], changed = 0;

	for (int i = 0; i < LIVE; i++)
		kept[i] = values[i];
	long first = _syscall6(number, a, b, c, d, e, f);
	long second = _syscall5(number, e, d, c, b, a);

	for (int i = 0; i < LIVE; i++)
		changed += kept[i] != values[i];
	return changed * 1000 + (first != second);
}

/* The first call's result is at once where the second one has an argument. */
long call_of_a_result(long number, long a)
{
	return _syscall1(number, _syscall3(number, a, 0, 0));
}

/* Three calls in a loop, of which the first argument alone changes: a compiler keeps in registers
 * what a call leaves alone. */
long in_a_loop(long number, long last)
{
	long sum = 0;

	for (int i = 0; i < 3; i++)
		sum += _syscall6(number, i, 2, 3, 4, 5, last);
	return sum;
}

/* The sum of two words that only the call can have written. */
long receive(long number)
{
	long buffer[2] = { 0, 0 };

	_syscall3(number, 0, (long)buffer, sizeof(buffer));
	return buffer[0] + buffer[1];
}

/* The same by each of the stubs, the buffer first. */
#define RECEIVE(name, call)                                                                        \
	long name(long number);                                                                    \
	long name(long number)                                                                     \
	{                                                                                          \
		long buffer[2] = { 0, 0 };                                                         \
		call;                                                                              \
		return buffer[0] + buffer[1];                                                      \
	}

long received[2];
long receive0(long number);

/* The stub without arguments: a signal's handler may run meanwhile, or a child of vfork. */
long receive0(long number)
{
	received[0] = received[1] = 0;
	_syscall0(number);
	return received[0] + received[1];
}

RECEIVE(receive1, _syscall1(number, (long)buffer))
RECEIVE(receive2, _syscall2(number, (long)buffer, 0))
RECEIVE(receive3, _syscall3(number, (long)buffer, 0, 0))
RECEIVE(receive4, _syscall4(number, (long)buffer, 0, 0, 0))
RECEIVE(receive5, _syscall5(number, (long)buffer, 0, 0, 0, 0))
RECEIVE(receive6, _syscall6(number, (long)buffer, 0, 0, 0, 0, 0))

/* Two words, of which only the call knows. */
long send(long number, long word)
{
	long buffer[2] = { word, ~word };

	return _syscall2(number, (long)buffer, sizeof(buffer));
}

/* Nobody looks at the result of any stub. */
void unused(long number)
{
	_syscall0(number);
	_syscall1(number, 1);
	_syscall2(number, 2, 0);
	_syscall3(number, 3, 0, 0);
	_syscall4(number, 4, 0, 0, 0);
	_syscall5(number, 5, 0, 0, 0, 0);
	_syscall6(number, 6, 0, 0, 0, 0, 0);
}

/* The result of each stub is the next call's first argument: where the compiler would like it. */
#define HAND_ON(name, call)                                                                        \
	long name(long number);                                                                    \
	long name(long number)                                                                     \
	{                                                                                          \
		return _syscall1(number, call);                                                    \
	}

HAND_ON(hand_on0, _syscall0(number))
HAND_ON(hand_on1, _syscall1(number, 1))
HAND_ON(hand_on2, _syscall2(number, 1, 2))
HAND_ON(hand_on3, _syscall3(number, 1, 2, 3))
HAND_ON(hand_on4, _syscall4(number, 1, 2, 3, 4))
HAND_ON(hand_on5, _syscall5(number, 1, 2, 3, 4, 5))
HAND_ON(hand_on6, _syscall6(number, 1, 2, 3, 4, 5, 6))

long judge(long result)
{
	return result_of(result);
}
