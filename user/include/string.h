/* Memory and strings, as in C11 7.24, with POSIX's additions. */
#pragma once

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t length);
void *memmove(void *to, const void *from, size_t length);
void *memset(void *to, int byte, size_t length);
int memcmp(const void *left, const void *right, size_t length);
void *memchr(const void *memory, int byte, size_t length);

size_t strlen(const char *text);
size_t strnlen(const char *text, size_t limit);
int strcmp(const char *left, const char *right);
int strncmp(const char *left, const char *right, size_t length);
char *strcpy(char *restrict to, const char *restrict from);
char *strcat(char *restrict to, const char *restrict from);
char *strchr(const char *text, int character);
char *strrchr(const char *text, int character);
char *strstr(const char *text, const char *part);
size_t strspn(const char *text, const char *set);
size_t strcspn(const char *text, const char *set);
char *strdup(const char *text);
char *strndup(const char *text, size_t limit);

/* The text of an error number, or of a signal's. */
char *strerror(int error);
char *strsignal(int number);
