/* Memory and string functions. */
#include "kernel/lib/string.h"

#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
	void *start = to;
	size_t words = length / 4;

	length %= 4;
	__asm__ volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
	return start;
}

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

int strcmp(const char *left, const char *right)
{
	while (*left && *left == *right) {
		left++;
		right++;
	}
	return (uint8_t)*left - (uint8_t)*right;
}

int strncmp(const char *left, const char *right, size_t length)
{
	for (; length > 0; left++, right++, length--)
		if (*left != *right || *left == '\0')
			return (uint8_t)*left - (uint8_t)*right;
	return 0;
}

char *strchr(const char *text, int character)
{
	for (; *text; text++)
		if (*text == (char)character)
			return (char *)text;
	return (char)character == '\0' ? (char *)text : NULL;
}
