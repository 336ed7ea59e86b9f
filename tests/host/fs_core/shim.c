/* The core's own files of the file layer: what stands below them, and the tests. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fs/linux/line.h"
#include "fs/root.h"
#include "kernel/lib/errno.h"
#include "tests/host/fs_core/shim.h"

const struct unit_test *const shim_suites[] = { root_tests, line_tests, NULL };

char shim_said[SHIM_SAID];
const uint8_t *shim_archive;
uint32_t shim_archive_length;

void shim_begin(void)
{
	root_initialize();
}

void printk(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(shim_said, sizeof(shim_said), format, arguments);
	va_end(arguments);
}

int fw_cfg_open(const char *name)
{
	(void)name;
	return shim_archive_length;
}

void fw_cfg_next(void *buffer, uint32_t length)
{
	REQUIRE(length <= shim_archive_length, "%u bytes behind the end", length);
	memcpy(buffer, shim_archive, length);
	shim_archive += length;
	shim_archive_length -= length;
}

/* The archive is kept for good, for the files are in it. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* What the breadth's line can do; the tests that need it are not run with the core's. */
void line_set(struct line *line, const struct linux_termios *settings, bool flush)
{
	(void)line, (void)settings, (void)flush;
}

void line_flush(struct line *line)
{
	(void)line;
}
