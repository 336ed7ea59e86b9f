/*
 * mount, umount, and the calls that make files safe: syncfs and sync_file_range.
 *
 * mount's flags are options that every file system has; the rest is text for the file system
 * itself. Flags that only restrict programs (nosuid, nodev, noexec) change nothing here, where
 * every process is root's. Other kinds of mounts (bind, move) are refused. mount(2), umount(2),
 * sync(2), sync_file_range(2). All may sleep: a mount reads the disk, the others write.
 */
#include "fs/vfs/mounting.h"
#include "fs/vfs/mounts.h"
#include "fs/vfs/vfs.h"
#include "kernel/linux/files/calls.h"
#include "kernel/report/printk.h"

/* Linux's flags of mount and umount2. */
#define MS_RDONLY	1u
#define MS_NOSUID	2u
#define MS_NODEV	4u
#define MS_NOEXEC	8u
#define MS_SYNCHRONOUS	16u
#define MS_REMOUNT	32u
#define MS_DIRSYNC	128u
#define MS_NOATIME	1024u
#define MS_NODIRATIME	2048u
#define MS_SILENT	32768u
#define MS_RELATIME	(1u << 21)
#define MS_STRICTATIME	(1u << 24)
#define MS_LAZYTIME	(1u << 25)
#define MS_MAGIC	0xc0ed0000u /* in the upper half, from very old programs */
#define MS_MAGIC_MASK	0xffff0000u
#define MNT_FORCE	1u
#define UMOUNT_NOFOLLOW 8u

#define SYNC_RANGE_FLAGS 7u /* wait before, write, wait after */

/* Which accesses change a file's time is one option here (noatime); what else mount(2) says about
 * times, or forbids programs, is taken and ignored. */
#define IGNORED_FLAGS                                                                              \
	(MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NODIRATIME | MS_SILENT | MS_RELATIME |              \
	 MS_STRICTATIME | MS_LAZYTIME)
#define KNOWN_FLAGS                                                                                \
	(IGNORED_FLAGS | MS_RDONLY | MS_SYNCHRONOUS | MS_DIRSYNC | MS_REMOUNT | MS_NOATIME)

/* mount's texts, each in a page; NULL where the program gave a null pointer. */
enum { SOURCE, TARGET, TYPE, OPTIONS, TEXTS };

struct mount_texts {
	char *of[TEXTS];
};

static void free_texts(struct mount_texts *texts)
{
	for (unsigned i = 0; i < TEXTS; i++)
		path_page_release(&texts->of[i]);
}

/* A null pointer is an error only where the text is needed. What is not supported is named on the
 * console, since -EINVAL has many causes here. */
static int mount_from_texts(char *const texts[TEXTS], uint32_t flags)
{
	struct inode *start = vfs_working_directory(current->process->files);
	const struct mount_options options = {
		.read_only = flags & MS_RDONLY,
		.no_access_time = flags & MS_NOATIME,
		.synchronous = flags & MS_SYNCHRONOUS,
		.synchronous_directories = flags & (MS_SYNCHRONOUS | MS_DIRSYNC),
		.text = texts[OPTIONS] ?: "",
	};

	if (!texts[TARGET])
		return -EFAULT;
	if (flags & ~KNOWN_FLAGS) {
		printk("mount: %s: flags 0x%x are not supported (bind and move are not)\n",
		       texts[TARGET], flags & ~KNOWN_FLAGS);
		return -EINVAL;
	}
	if (flags & MS_REMOUNT)
		return vfs_remount(start, texts[TARGET], &options);
	if (!texts[TYPE])
		return -EFAULT;
	return vfs_mount(start, texts[SOURCE] ?: "none", texts[TYPE], texts[TARGET], &options);
}

/* All four texts are fetched before any is looked at, as Linux does: a bad pointer is -EFAULT,
 * whatever the flags. */
SYSCALL_DEFINE(21, sys_mount, "sssxp")
{
	const uint32_t addresses[TEXTS] = { frame->ebx, frame->ecx, frame->edx, frame->edi };
	bool has_magic = (frame->esi & MS_MAGIC_MASK) == MS_MAGIC;
	struct mount_texts texts CLEANUP(free_texts) = { { NULL } };
	int error = 0;

	for (unsigned i = 0; i < TEXTS && !error; i++)
		error = addresses[i] ? path_from_user(addresses[i], &texts.of[i]) : 0;
	return error
		   ?: mount_from_texts(texts.of,
				       has_magic ? frame->esi & ~MS_MAGIC_MASK : frame->esi);
}

/* MNT_FORCE is ignored: nothing here waits for a server. -EBUSY while something of it is in use. */
static int unmount_path(uint32_t address, uint32_t flags)
{
	char *path CLEANUP(path_page_release) = NULL;

	if (flags & ~(MNT_FORCE | UMOUNT_NOFOLLOW))
		return -EINVAL;
	return path_from_user(address, &path)
		   ?: vfs_unmount(vfs_working_directory(current->process->files), path);
}

SYSCALL(22, sys_umount, "s", unmount_path(frame->ebx, 0))
SYSCALL(52, sys_umount2, "sx", unmount_path(frame->ebx, frame->ecx))

/* Writes back all of the file system that the file is in, and tells of errors since the file was
 * opened or last asked. */
static int sync_mount(struct file *file)
{
	const struct mount *mount = file->inode ? mount_of(file->inode) : NULL;

	return mount && mount->type->sync ? mount->type->sync(mount->root, &file->mount_errors) : 0;
}

SYSCALL_OPEN(344, sys_syncfs, "f", sync_mount(file))

/* More than is asked for: all of the file, and durably. */
static int sync_range(struct file *file, int64_t offset, int64_t length, uint32_t flags)
{
	if (offset < 0 || length < 0 || flags > SYNC_RANGE_FLAGS)
		return -EINVAL;
	if (!file->ops->sync)
		return file->ops->is_stream ? -ESPIPE : 0;
	return file->ops->sync(file, true);
}

SYSCALL_OPEN(314, sys_sync_file_range, "fxxxxx",
	     sync_range(file, wide(frame->ecx, frame->edx), wide(frame->esi, frame->edi),
			frame->ebp))
