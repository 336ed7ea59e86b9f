/* Memory and strings. */
#include <string.h>

#include <stdint.h>
#include <stdlib.h>

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
	void *target = to;
	size_t words = length / 4, rest = length % 4;

	__asm__ volatile("rep movsl" : "+D"(target), "+S"(from), "+c"(words) : : "memory");
	__asm__ volatile("rep movsb" : "+D"(target), "+S"(from), "+c"(rest) : : "memory");
	return to;
}

void *memmove(void *to, const void *from, size_t length)
{
	if ((uintptr_t)to - (uintptr_t)from >= length)
		return memcpy(to, from, length);
	while (length-- > 0)
		((char *)to)[length] = ((const char *)from)[length];
	return to;
}

void *memset(void *to, int byte, size_t length)
{
	void *target = to;
	size_t words = length / 4, rest = length % 4;
	uint32_t pattern = (uint8_t)byte * 0x01010101u;

	__asm__ volatile("rep stosl" : "+D"(target), "+c"(words) : "a"(pattern) : "memory");
	__asm__ volatile("rep stosb" : "+D"(target), "+c"(rest) : "a"(pattern) : "memory");
	return to;
}

int memcmp(const void *left, const void *right, size_t length)
{
	const uint8_t *a = left, *b = right;

	for (; length > 0; length--, a++, b++)
		if (*a != *b)
			return *a - *b;
	return 0;
}

void *memchr(const void *memory, int byte, size_t length)
{
	const uint8_t *place = memory;

	for (; length > 0; length--, place++)
		if (*place == (uint8_t)byte)
			return (void *)place;
	return NULL;
}

size_t strlen(const char *text)
{
	return strnlen(text, SIZE_MAX);
}

size_t strnlen(const char *text, size_t limit)
{
	size_t length = 0;

	while (length < limit && text[length])
		length++;
	return length;
}

int strcmp(const char *left, const char *right)
{
	return strncmp(left, right, SIZE_MAX);
}

int strncmp(const char *left, const char *right, size_t length)
{
	for (; length > 0; length--, left++, right++)
		if (*left != *right || !*left)
			return (uint8_t)*left - (uint8_t)*right;
	return 0;
}

char *strcpy(char *restrict to, const char *restrict from)
{
	return memcpy(to, from, strlen(from) + 1);
}

char *strcat(char *restrict to, const char *restrict from)
{
	strcpy(to + strlen(to), from);
	return to;
}

char *strchr(const char *text, int character)
{
	for (;; text++) {
		if (*text == (char)character)
			return (char *)text;
		if (!*text)
			return NULL;
	}
}

char *strrchr(const char *text, int character)
{
	char *last = NULL;

	for (;; text++) {
		if (*text == (char)character)
			last = (char *)text;
		if (!*text)
			return last;
	}
}

char *strstr(const char *text, const char *part)
{
	size_t length = strlen(part);

	for (;; text++) {
		if (strncmp(text, part, length) == 0)
			return (char *)text;
		if (!*text)
			return NULL;
	}
}

size_t strspn(const char *text, const char *set)
{
	size_t length = 0;

	while (text[length] && strchr(set, text[length]))
		length++;
	return length;
}

size_t strcspn(const char *text, const char *set)
{
	size_t length = 0;

	while (text[length] && !strchr(set, text[length]))
		length++;
	return length;
}

char *strdup(const char *text)
{
	return strndup(text, SIZE_MAX);
}

char *strndup(const char *text, size_t limit)
{
	size_t length = strnlen(text, limit);
	char *copy = malloc(length + 1);

	if (copy) {
		memcpy(copy, text, length);
		copy[length] = '\0';
	}
	return copy;
}
