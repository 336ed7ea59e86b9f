/* Memory and string functions, as in C11 7.24. The compiler also calls the first four by itself. */
#pragma once

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t length);
void *memmove(void *to, const void *from, size_t length);
void *memset(void *to, int byte, size_t length);
int memcmp(const void *left, const void *right, size_t length);

size_t strlen(const char *text);
int strcmp(const char *left, const char *right);
int strncmp(const char *left, const char *right, size_t length);
char *(strchr)(const char *text, int character); /* ( ): C23 has a macro of it */
