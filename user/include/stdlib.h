/* Memory, numbers, the environment, and the end of a program. */
#pragma once

#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);
void free(void *memory);
/* Sets *memory, for ever: free does not take it. Returns 0, EINVAL or ENOMEM. */
int posix_memalign(void **memory, size_t alignment, size_t size);

int atoi(const char *text);
long strtol(const char *text, char **end, int base);
unsigned long strtoul(const char *text, char **end, int base);
unsigned long long strtoull(const char *text, char **end, int base);
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *));

char *getenv(const char *name);
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);

void exit(int status) __attribute__((noreturn));
void abort(void) __attribute__((noreturn));
