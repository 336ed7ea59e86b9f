/* What the disk says and cannot be: a line on the console, and -EUCLEAN for the caller. */
#include <stdarg.h>

#include "fs/ext/internal.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"

/* Prints "hdc: superblock: ..." or "hdc: inode 12: ...": where, and then what. */
static void say(const struct ext_fs *fs, const char *where, const char *format, va_list arguments)
{
	char text[128];

	vsnprintk(text, sizeof(text), format, arguments);
	printk("%s: %s: %s\n", fs->device->name, where, text);
}

int ext_corrupt(const struct ext_fs *fs, const char *where, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(fs, where, format, arguments);
	va_end(arguments);
	return -EUCLEAN;
}

int ext_corrupt_inode(const struct ext_inode *inode, const char *format, ...)
{
	char where[24];
	va_list arguments;

	snprintk(where, sizeof(where), "inode %u", inode->number);
	va_start(arguments, format);
	say(inode->fs, where, format, arguments);
	va_end(arguments);
	return -EUCLEAN;
}
