/*
 * mount, umount, and the calls that make files safe: sync and its like.
 *
 * mount's flags are options that every file system has; the rest is text for the file system
 * itself. Flags that only restrict programs (nosuid, nodev, noexec) change nothing here, where
 * every process is root's. Other kinds of mounts (bind, move) are refused.
 */
#include "fs/file.h"
#include "fs/path_page.h"
#include "fs/vfs/mounting.h"
#include "fs/vfs/mounts.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/process.h"
#include "kernel/report/printk.h"
#include "kernel/syscall/syscall.h"

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

#define IGNORED_FLAGS                                                                              \
	(MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NODIRATIME | MS_SILENT | MS_RELATIME |              \
	 MS_STRICTATIME | MS_LAZYTIME)
#define KNOWN_FLAGS                                                                                \
	(IGNORED_FLAGS | MS_RDONLY | MS_SYNCHRONOUS | MS_DIRSYNC | MS_REMOUNT | MS_NOATIME)

enum { SOURCE, TARGET, TYPE, TEXT, TEXTS };

static void free_texts(char *const texts[TEXTS])
{
	for (unsigned i = 0; i < TEXTS; i++)
		path_page_free(texts[i]);
}

/* Fetches mount's four texts, each into a page; an address of 0 gives NULL. After an error none is
 * left. */
static int fetch_texts(const struct trap_frame *frame, char *texts[TEXTS])
{
	const uint32_t addresses[TEXTS] = { frame->ebx, frame->ecx, frame->edx, frame->edi };
	int error = 0;

	for (unsigned i = 0; i < TEXTS; i++)
		texts[i] = NULL;
	for (unsigned i = 0; i < TEXTS && !error; i++) {
		if (addresses[i])
			error = path_from_user(addresses[i], &texts[i]);
		if (error)
			texts[i] = NULL;
	}
	if (error)
		free_texts(texts);
	return error;
}

static int mount_texts(char *const texts[TEXTS], uint32_t flags)
{
	struct inode *start = vfs_working_directory(current->process->files);
	const struct mount_options options = {
		.read_only = flags & MS_RDONLY,
		.no_access_time = flags & MS_NOATIME,
		.synchronous = flags & MS_SYNCHRONOUS,
		.synchronous_directories = flags & (MS_SYNCHRONOUS | MS_DIRSYNC),
		.text = texts[TEXT] ? texts[TEXT] : "",
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
	return vfs_mount(start, texts[SOURCE] ? texts[SOURCE] : "none", texts[TYPE], texts[TARGET],
			 &options);
}

static int sys_mount(struct trap_frame *frame)
{
	uint32_t flags = frame->esi;
	char *texts[TEXTS];
	int error = fetch_texts(frame, texts);

	if (error)
		return error;
	if ((flags & MS_MAGIC_MASK) == MS_MAGIC)
		flags &= ~MS_MAGIC_MASK;
	error = mount_texts(texts, flags);
	free_texts(texts);
	return error;
}

static int unmount(uint32_t address, uint32_t flags)
{
	char *path;
	int error =
	    flags & ~(MNT_FORCE | UMOUNT_NOFOLLOW) ? -EINVAL : path_from_user(address, &path);

	if (error)
		return error;
	error = vfs_unmount(vfs_working_directory(current->process->files), path);
	path_page_free(path);
	return error;
}

CALL(sys_umount, unmount(frame->ebx, 0))
CALL(sys_umount2, unmount(frame->ebx, frame->ecx))

static int sync_mount(struct file *file)
{
	const struct mount *mount = file && file->inode ? mount_of(file->inode) : NULL;

	if (!file)
		return -EBADF;
	return mount && mount->type->sync ? mount->type->sync(mount->root, &file->mount_errors) : 0;
}

/* More than is asked for: all of the file, and durably. */
static int sync_range(struct file *file, const struct trap_frame *frame)
{
	int64_t offset = wide(frame->ecx, frame->edx), length = wide(frame->esi, frame->edi);

	if (!file)
		return -EBADF;
	if (offset < 0 || length < 0 || frame->ebp > 7)
		return -EINVAL;
	if (!file->ops->sync)
		return file->ops->is_stream ? -ESPIPE : 0;
	return file->ops->sync(file, true);
}

FILE_CALL(sys_syncfs, sync_mount(file_opened(file)))
FILE_CALL(sys_sync_file_range, sync_range(file_opened(file), frame))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 21, "mount", "sssxp", sys_mount },
	{ 22, "umount", "s", sys_umount },
	{ 52, "umount2", "sx", sys_umount2 },
	{ 314, "sync_file_range", "fxxxxx", sys_sync_file_range },
	{ 344, "syncfs", "f", sys_syncfs },
};
