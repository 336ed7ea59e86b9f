/*
 * Reports invalid data on the disk: a line on the console, and -EUCLEAN for the caller.
 *
 *	hdc: inode 12: extent node in block 50: magic 0x0000, 3 of 4 entries, depth 0
 *
 * A damaged image is an expected input, not a bug of the kernel: the operation fails, and
 * everything else goes on. So a check is one line: return ext_corrupt(...). The message names the
 * drive, the place and the value, because nobody can repeat the run with a debugger on somebody
 * else's disk.
 *
 * What is mounted to be written then does what its `errors` says: it goes on, or nothing begins to
 * change it any more (change.c), or the kernel panics. The superblock remembers that e2fsck is
 * needed, how often there was an error, and when.
 */
#include "fs/ext/mount.h"
#include "kernel/lib/errno.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"

void ext_ask_for_check(struct ext_fs *fs)
{
	fs->super.s_state |= EXT_STATE_ERROR;
	fs->super_changed = true;
}

static void behave(struct ext_fs *fs, const char *what)
{
	uint32_t errors = fs->options.errors ? fs->options.errors : fs->super.s_errors;

	if (errors == EXT_ERRORS_PANIC)
		panic("%s: %s", fs->device->name, what);
	if (errors == EXT_ERRORS_READ_ONLY && !fs->failed) {
		printk("%s: read-only from now on\n", fs->device->name);
		fs->failed = true;
	}
}

/* A mount is not constant, though most who find an error only read. */
static int give_up(const struct ext_fs *constant)
{
	struct ext_fs *fs = (struct ext_fs *)constant;

	if (!fs->writable)
		return -EUCLEAN;
	fs->super.s_last_error_time = ext_now_seconds(fs);
	if (fs->super.s_error_count++ == 0)
		fs->super.s_first_error_time = fs->super.s_last_error_time;
	ext_ask_for_check(fs);
	behave(fs, "the file system contradicts itself");
	return -EUCLEAN;
}

/* The disk may be sound, so the superblock does not ask for e2fsck; ext_bitmap_note_bad does, for
 * what stays used in a group without its bitmap. */
int ext_unreadable(const struct ext_fs *fs, uint64_t block)
{
	printk("%s: metadata: block %ju cannot be read\n", fs->device->name, block);
	if (fs->writable)
		behave((struct ext_fs *)fs, "metadata cannot be read");
	return -EIO;
}

/* Prints "hdc: superblock: ..." or "hdc: inode 12: ...": where, and then what. */
static int contradicts(const struct ext_fs *fs, const char *where, const char *format,
		       va_list arguments)
{
	char text[128];

	vsnprintk(text, sizeof(text), format, arguments);
	printk("%s: %s: %s\n", fs->device->name, where, text);
	return give_up(fs);
}

int ext_corrupt(const struct ext_fs *fs, const char *where, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int error = contradicts(fs, where, format, arguments);

	va_end(arguments);
	return error;
}

/* The most frequent place: an inode, or something that only it refers to. */
int ext_corrupt_inode(const struct ext_inode *inode, const char *format, ...)
{
	char where[24];
	va_list arguments;

	snprintk(where, sizeof(where), "inode %u", inode->number);
	va_start(arguments, format);
	int error = contradicts(inode->fs, where, format, arguments);

	va_end(arguments);
	return error;
}
