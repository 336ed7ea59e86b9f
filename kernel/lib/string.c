/*
 * Memory and string functions, as the C standard defines them (C11, 7.24).
 *
 * GCC emits calls of memcpy, memmove, memset and memcmp by itself, to copy a structure or to zero
 * an array, in freestanding code too: these four must exist.
 *
 * memcpy and memset are fast: one string instruction moves four bytes at a time, and another one
 * the last bytes, three at most. REP MOVS and REP STOS go up as long as the direction flag is
 * clear. C code may rely on that: every entry into the kernel clears the flag.
 */
#include "kernel/lib/string.h"

#include <stdint.h>

/* The inputs are outputs, too, because the instructions count them up and down. */
void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
	void *start = to;
	size_t words = length / 4;

	length %= 4;
	__asm__ volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
	return start;
}

/*
 * An overlap is harmless as long as no byte is overwritten before it is read. Going up, memcpy
 * reads each word before it writes to a lower place, so moving down is a plain copy:
 *
 *	source	      | b c d e f g |		to = from - 1: the write to a word's place
 *	target	    | b c d e f g |		spoils only bytes that were read already
 *
 * Moving up by less than the length begins at the end.
 */
void *memmove(void *to, const void *from, size_t length)
{
	uint8_t *target = to;
	const uint8_t *source = from;

	if (target <= source || target >= source + length)
		return memcpy(to, from, length);
	while (length--)
		target[length] = source[length];
	return to;
}

/* `four` is the byte four times: 0x2a becomes 0x2a2a2a2a. */
void *memset(void *to, int byte, size_t length)
{
	void *start = to;
	size_t words = length / 4;
	uint32_t four = (uint8_t)byte * 0x01010101u;

	length %= 4;
	__asm__ volatile("rep stosl" : "+D"(to), "+c"(words) : "a"(four) : "memory");
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(length) : "a"(four) : "memory");
	return start;
}

/* Bytes compare as unsigned: 0x80 is greater than 0x7f. So do the characters of strcmp and strncmp.
 */
int memcmp(const void *left, const void *right, size_t length)
{
	const uint8_t *a = left, *b = right;

	for (; length > 0; a++, b++, length--)
		if (*a != *b)
			return *a - *b;
	return 0;
}

size_t strlen(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

/* Negative, 0 or positive: the first difference decides; a text that is the beginning of the other
 * one is less.
 */
int strcmp(const char *left, const char *right)
{
	for (; *left && *left == *right; left++, right++)
		;
	return (uint8_t)*left - (uint8_t)*right;
}

/* Looks at no byte after a NUL, nor at more than `length`. */
int strncmp(const char *left, const char *right, size_t length)
{
	for (; length > 0; left++, right++, length--)
		if (*left != *right || *left == '\0')
			return (uint8_t)*left - (uint8_t)*right;
	return 0;
}

/* The NUL counts as part of the text: strchr(text, 0) is the text's end. */
char *strchr(const char *text, int character)
{
	for (; *text; text++)
		if (*text == (char)character)
			return (char *)text;
	return (char)character == '\0' ? (char *)text : NULL;
}
