/* 64-bit division. The compiler calls these by name where others have libgcc for it. */
#include <stdint.h>

uint64_t __udivmoddi4(uint64_t dividend, uint64_t divisor, uint64_t *remainder);
int64_t __divmoddi4(int64_t dividend, int64_t divisor, int64_t *remainder);
uint64_t __udivdi3(uint64_t dividend, uint64_t divisor);
uint64_t __umoddi3(uint64_t dividend, uint64_t divisor);
int64_t __divdi3(int64_t dividend, int64_t divisor);
int64_t __moddi3(int64_t dividend, int64_t divisor);

/* By a divisor of 32 bits: two steps of long division, in digits of 32 bits. */
static uint64_t divide_short(uint64_t dividend, uint32_t divisor, uint64_t *remainder)
{
	uint32_t high = dividend >> 32, low = dividend;
	uint32_t quotient = high / divisor, rest = high % divisor;

	/* rest < divisor, so that the quotient of rest:low has 32 bits and DIV does not fault. */
	__asm__("divl %2" : "+a"(low), "+d"(rest) : "rm"(divisor));
	*remainder = rest;
	return (uint64_t)quotient << 32 | low;
}

/* Binary long division: the quotient by a divisor of 2^32 or more has at most 32 bits. */
static uint64_t divide_long(uint64_t dividend, uint64_t divisor, uint64_t *remainder)
{
	uint64_t quotient = 0;

	for (int bit = __builtin_clz(divisor >> 32); bit >= 0; bit--) {
		quotient *= 2;
		if (dividend >= divisor << bit) {
			dividend -= divisor << bit;
			quotient |= 1;
		}
	}
	*remainder = dividend;
	return quotient;
}

uint64_t __udivmoddi4(uint64_t dividend, uint64_t divisor, uint64_t *remainder)
{
	if (divisor >> 32 == 0)
		return divide_short(dividend, divisor, remainder);
	return divide_long(dividend, divisor, remainder);
}

uint64_t __udivdi3(uint64_t dividend, uint64_t divisor)
{
	uint64_t remainder;

	return __udivmoddi4(dividend, divisor, &remainder);
}

uint64_t __umoddi3(uint64_t dividend, uint64_t divisor)
{
	uint64_t remainder;

	__udivmoddi4(dividend, divisor, &remainder);
	return remainder;
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

/* The quotient is cut towards zero, so the remainder has the dividend's sign. */
int64_t __divmoddi4(int64_t dividend, int64_t divisor, int64_t *remainder)
{
	uint64_t rest;
	uint64_t quotient = __udivmoddi4(magnitude(dividend), magnitude(divisor), &rest);

	*remainder = dividend < 0 ? -rest : rest;
	return (dividend < 0) != (divisor < 0) ? -quotient : quotient;
}

int64_t __divdi3(int64_t dividend, int64_t divisor)
{
	int64_t remainder;

	return __divmoddi4(dividend, divisor, &remainder);
}

int64_t __moddi3(int64_t dividend, int64_t divisor)
{
	int64_t remainder;

	__divmoddi4(dividend, divisor, &remainder);
	return remainder;
}
