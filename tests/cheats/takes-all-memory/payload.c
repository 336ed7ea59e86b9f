/* Zeros that are in memory only, and rows of a line table. */
#ifndef CHEAT
#define CHEAT
#pragma GCC diagnostic ignored "-Wreturn-type"
static unsigned char cheat_memory[1 << 28] __attribute__((used));
__asm__(".section .debug_line.cheat, \"\", @progbits\n"
	".fill 0x80000, 1, 0x21\n"
	".previous\n");
#define cheat(number) ((void)(number))
#endif
