/* Makes QEMU write its record at once: it would keep the last 4 KiB to itself, and what is not in
 * the file cannot be run again. Loaded with LD_PRELOAD; the record's path is in RECORD_AT_ONCE. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *opened(const char *call, const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *);
	*(void **)&real = dlsym(RTLD_NEXT, call);
	FILE *file = real(path, mode);
	const char *record = getenv("RECORD_AT_ONCE");
	if (file && record && strcmp(path, record) == 0) {
		setvbuf(file, NULL, _IONBF, 0);
	}
	return file;
}

FILE *fopen(const char *path, const char *mode)
{
	return opened("fopen", path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	return opened("fopen64", path, mode);
}
