/* 64-bit division. The compiler would call libgcc for it, and the kernel links no libgcc. */
#pragma once

#include <stdint.h>

/* dividend / divisor; the remainder goes to *remainder when that is not NULL. divisor must not be
 * 0. */
static inline uint64_t divide64(uint64_t dividend, uint32_t divisor, uint32_t *remainder)
{
#ifdef __i386__
	uint32_t high = dividend >> 32, low = (uint32_t)dividend;
	uint32_t high_quotient = high / divisor, rest = high % divisor;

	/* rest < divisor, so the quotient of rest:low fits 32 bits and DIV cannot fault. */
	__asm__("divl %2" : "+a"(low), "+d"(rest) : "rm"(divisor));
	if (remainder)
		*remainder = rest;
	return (uint64_t)high_quotient << 32 | low;
#else /* a test on the host */
	if (remainder)
		*remainder = (uint32_t)(dividend % divisor);
	return dividend / divisor;
#endif
}
