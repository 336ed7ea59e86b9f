/*
 * Reports invalid data on the disk: a line on the console, and -EUCLEAN for the caller.
 *
 *	hdc: inode 12: extent node in block 50: magic 0x0000, 3 of 4 entries, depth 0
 *
 * A damaged image is an expected input, not a bug of the kernel: the operation fails, and
 * everything else goes on. So a check is one line: return ext_corrupt(...). The message names the
 * drive, the place and the value, because nobody can repeat the run with a debugger on somebody
 * else's disk.
 */
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

/* The most frequent place: an inode, or something that only it refers to. */
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
