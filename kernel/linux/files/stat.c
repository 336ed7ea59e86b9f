/* System calls about a file's attributes: the stat family, modes, owners and times. */
#include "fs/file.h"
#include "fs/vfs/mounts.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/statx.h"
#include "kernel/abi/file.h"
#include "kernel/lib/errno.h"
#include "kernel/syscall/syscall.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/process.h"
#include "mm/user_copy.h"
#include "kernel/linux/time/user_time64.h"
#include "mm/page_alloc.h"

#define NS NANOSECONDS_PER_SECOND

#define FALLOCATE_KEEP_SIZE  1u
#define FALLOCATE_PUNCH_HOLE 2u /* alone: that would change the size */

/* Inodes keep the times that ext4 can: 2^31 seconds before 1970 and 2^34 from there on. */
#define FIRST_SECOND INT32_MIN
#define LAST_SECOND  (FIRST_SECOND + (1ll << 34) - 1)

/* ---- the three layouts ---- */

/* A time of an inode, with its seconds rounded down: half a second before 1970 is second -1 and
 * 500,000,000 ns. The division needs a number that is not negative: the time since the earliest
 * one. */
static struct linux_timespec64 time_of(int64_t ns)
{
	struct linux_timespec64 time = timespec64_of(ns - FIRST_SECOND * (int64_t)NS);

	time.seconds += FIRST_SECOND;
	return time;
}

static struct linux_timespec old_time_of(int64_t ns)
{
	const struct linux_timespec64 time = time_of(ns);

	return (struct linux_timespec){ time.seconds, time.nanoseconds };
}

/* Of a device number the lower byte is the minor one; the other fields are as the inode has them.
 */
static int give_stat64(struct inode *inode, uint32_t to, uint32_t unused)
{
	struct linux_stat64 stat = {
		.filesystem = inode->filesystem,
		.number_low = inode->number,
		.mode = inode->mode,
		.links = inode->links,
		.owner = inode->owner,
		.group = inode->group,
		.device = inode->device,
		.size = inode->size,
		.block_size = inode->block_size ?: PAGE_SIZE,
		.blocks = inode->blocks,
		.number = inode->number,
		.accessed = old_time_of(inode->accessed),
		.modified = old_time_of(inode->modified),
		.changed = old_time_of(inode->changed),
	};

	return give(to, &stat, sizeof(stat));
}

static int give_stat(struct inode *inode, uint32_t to, uint32_t unused)
{
	struct linux_stat stat = {
		.filesystem = inode->filesystem,
		.number = inode->number,
		.mode = inode->mode,
		.links = inode->links,
		.owner = inode->owner,
		.group = inode->group,
		.device = inode->device,
		.size = inode->size,
		.block_size = inode->block_size ?: PAGE_SIZE,
		.blocks = inode->blocks,
		.accessed = old_time_of(inode->accessed),
		.modified = old_time_of(inode->modified),
		.changed = old_time_of(inode->changed),
	};

	if (inode->size > INT32_MAX)
		return -EOVERFLOW;
	return give(to, &stat, sizeof(stat));
}

static int give_statx(struct inode *inode, uint32_t to, uint32_t unused)
{
	struct linux_statx stat = {
		.mask = STATX_BASIC,
		.block_size = inode->block_size ?: PAGE_SIZE,
		.links = inode->links,
		.owner = inode->owner,
		.group = inode->group,
		.mode = inode->mode,
		.number = inode->number,
		.size = inode->size,
		.blocks = inode->blocks,
		.accessed = time_of(inode->accessed),
		.changed = time_of(inode->changed),
		.modified = time_of(inode->modified),
		.device_major = inode->device >> 8 & 0xfff,
		.device_minor = (inode->device & 0xff) | (inode->device >> 12 & ~0xffu),
		.filesystem_major = inode->filesystem >> 8,
		.filesystem_minor = inode->filesystem & 0xff,
	};

	return give(to, &stat, sizeof(stat));
}

/* ---- the calls ---- */

CALL(sys_stat, call_at(HERE, frame->ebx, 0, give_stat, frame->ecx, 0))
CALL(sys_lstat, call_at(HERE, frame->ebx, AT_SYMLINK_NOFOLLOW, give_stat, frame->ecx, 0))
FILE_CALL(sys_fstat, call_file(file, give_stat, frame->ecx, 0))
CALL(sys_stat64, call_at(HERE, frame->ebx, 0, give_stat64, frame->ecx, 0))
CALL(sys_lstat64, call_at(HERE, frame->ebx, AT_SYMLINK_NOFOLLOW, give_stat64, frame->ecx, 0))
FILE_CALL(sys_fstat64, call_file(file, give_stat64, frame->ecx, 0))
CALL(sys_fstatat64, call_at(frame->ebx, frame->ecx, frame->esi, give_stat64, frame->edx, 0))

static int sys_statx(struct trap_frame *frame)
{
	if (frame->esi & STATX_RESERVED || (frame->edx & AT_STATX_SYNC) == AT_STATX_SYNC)
		return -EINVAL;
	return call_at(frame->ebx, frame->ecx, frame->edx, give_statx, frame->edi, 0);
}

/* Every process is root's, which may do everything except execute a file that has no execute
 * permission. */
static int access_at(uint32_t directory, uint32_t address, uint32_t wanted, uint32_t flags)
{
	struct inode *inode;
	int error =
	    wanted > 7 ? -EINVAL : inode_at(directory, address, flags & ~AT_EACCESS, &inode);

	if (error)
		return error;
	if (wanted & W_OK && (inode_is(inode, S_IFREG) || inode_is(inode, S_IFDIR)))
		error = mount_check_write(inode);
	if (!error && wanted & X_OK && !inode_is(inode, S_IFDIR) && !(inode->mode & S_IXALL))
		error = -EACCES;
	inode_put(inode);
	return error;
}

CALL(sys_access, access_at(HERE, frame->ebx, frame->ecx, 0))
CALL(sys_faccessat, access_at(frame->ebx, frame->ecx, frame->edx, 0))
CALL(sys_faccessat2, access_at(frame->ebx, frame->ecx, frame->edx, frame->esi))

/* ---- changes ---- */

static int change_mode(struct inode *inode, uint32_t mode, uint32_t unused)
{
	int error = inode->has_fixed_mode ? -EPERM : mount_check_change(inode);

	if (error)
		return error;
	inode->mode = (inode->mode & S_IFMT) | (mode & S_ALL);
	inode_touch(inode, false);
	return 0;
}

/* -1 leaves an owner as it is. A program loses the right to run as its owner or group. */
static int change_owner(struct inode *inode, uint32_t owner, uint32_t group)
{
	int error = mount_check_change(inode);

	if (error)
		return error;
	inode->owner = owner == UINT32_MAX ? inode->owner : owner;
	inode->group = group == UINT32_MAX ? inode->group : group;
	if (!inode_is(inode, S_IFDIR))
		inode->mode &= inode->mode & S_IXGRP ? ~(S_ISUID | S_ISGID) : ~S_ISUID;
	inode_touch(inode, false);
	return 0;
}

static int change_size(struct inode *inode, uint32_t low, uint32_t high)
{
	return (int32_t)high < 0 ? -EINVAL : vfs_truncate(inode, wide(low, high));
}

/* The 16 bits of the older calls; all ones mean -1. */
static uint32_t old_owner(uint32_t owner)
{
	return (int32_t)(int16_t)owner == -1 ? UINT32_MAX : (uint16_t)owner;
}

CALL(sys_chmod, call_at(HERE, frame->ebx, 0, change_mode, frame->ecx, 0))
FILE_CALL(sys_fchmod, call_file(file_opened(file), change_mode, frame->ecx, 0))
CALL(sys_fchmodat, call_at(frame->ebx, frame->ecx, 0, change_mode, frame->edx, 0))
CALL(sys_chown,
     call_at(HERE, frame->ebx, 0, change_owner, old_owner(frame->ecx), old_owner(frame->edx)))
CALL(sys_lchown, call_at(HERE, frame->ebx, AT_SYMLINK_NOFOLLOW, change_owner, old_owner(frame->ecx),
			 old_owner(frame->edx)))
FILE_CALL(sys_fchown,
	  call_file(file_opened(file), change_owner, old_owner(frame->ecx), old_owner(frame->edx)))
CALL(sys_chown32, call_at(HERE, frame->ebx, 0, change_owner, frame->ecx, frame->edx))
CALL(sys_lchown32,
     call_at(HERE, frame->ebx, AT_SYMLINK_NOFOLLOW, change_owner, frame->ecx, frame->edx))
FILE_CALL(sys_fchown32, call_file(file_opened(file), change_owner, frame->ecx, frame->edx))
CALL(sys_fchownat,
     call_at(frame->ebx, frame->ecx, frame->edi, change_owner, frame->edx, frame->esi))
CALL(sys_truncate, call_at(HERE, frame->ebx, 0, change_size, frame->ecx, (int32_t)frame->ecx >> 31))
CALL(sys_truncate64, call_at(HERE, frame->ebx, 0, change_size, frame->ecx, frame->edx))

/* In memory it makes a file longer, unless that is to keep its size: nothing is reserved for it. */
static int allocate(struct file *file, const struct trap_frame *frame)
{
	int64_t offset = wide(frame->edx, frame->esi), length = wide(frame->edi, frame->ebp), end;

	if (!file)
		return -EBADF;
	if (offset < 0 || length <= 0)
		return -EINVAL;
	if (frame->ecx == FALLOCATE_PUNCH_HOLE || inode_is(file->inode, S_IFBLK) ||
	    (!file->inode->ops->allocate && frame->ecx & ~FALLOCATE_KEEP_SIZE))
		return -EOPNOTSUPP;
	if (!file_writable(file))
		return -EBADF;
	if (!inode_is(file->inode, S_IFREG))
		return inode_is(file->inode, S_IFIFO) ? -ESPIPE : -ENODEV;
	int error = frame->ecx & ~FALLOCATE_KEEP_SIZE ? mount_check_change(file->inode)
						      : mount_check_write(file->inode);

	if (error)
		return error;
	if (__builtin_add_overflow(offset, length, &end))
		return -EFBIG;
	if (file->inode->ops->allocate)
		return file->inode->ops->allocate(file->inode, frame->ecx, offset, length);
	if (frame->ecx || (uint64_t)end <= file->inode->size)
		return 0;
	return vfs_truncate(file->inode, end);
}

FILE_CALL(sys_fallocate, allocate(file_opened(file), frame))

/* ---- times ---- */

/* What the two words of a time are, in the structures of the calls: the oldest has only one. */
enum layout { SECONDS, MICROSECONDS, NANOSECONDS, NANOSECONDS_64 };

/* The two times at a user address, with UTIME_NOW and UTIME_OMIT in their nanoseconds; address 0:
 * both are now. */
static int take_times(uint32_t address, enum layout layout, struct linux_timespec64 both[2])
{
	uint32_t unit = layout == MICROSECONDS ? 1000 : 1, words = layout == SECONDS ? 1 : 2;
	int32_t time[4];

	both[0] = both[1] = (struct linux_timespec64){ 0, UTIME_NOW };
	if (!address)
		return 0;
	if (layout == NANOSECONDS_64) {
		int error = copy_from_user(both, address, 2 * sizeof(*both));

		for (unsigned i = 0; i < 2; i++) /* programs may leave anything in the upper half */
			both[i].nanoseconds &= UINT32_MAX;
		return error ? -EFAULT : 0;
	}
	if (copy_from_user(time, address, 2 * words * sizeof(int32_t)))
		return -EFAULT;
	for (unsigned i = 0; i < 2; i++) {
		both[i].seconds = time[i * words];
		both[i].nanoseconds = words == 1 ? 0 : (uint32_t)time[2 * i + 1] * (int64_t)unit;
	}
	return 0;
}

static int set_time(int64_t *time, const struct linux_timespec64 *wanted)
{
	if (wanted->nanoseconds == UTIME_NOW)
		*time = inode_now();
	else if (wanted->nanoseconds == UTIME_OMIT)
		return 0;
	else if (wanted->nanoseconds >= NS)
		return -EINVAL;
	else if (wanted->seconds <= FIRST_SECOND)
		*time = FIRST_SECOND * (int64_t)NS;
	else if (wanted->seconds >= LAST_SECOND)
		*time = (uint64_t)LAST_SECOND * NS;
	else
		*time = (uint64_t)wanted->seconds * NS + wanted->nanoseconds;
	return 0;
}

static int change_times(struct inode *inode, uint32_t address, uint32_t layout)
{
	struct linux_timespec64 wanted[2];
	int64_t both[2] = { inode->accessed, inode->modified };

	if (mount_check_write(inode) == -EROFS)
		return -EROFS;
	if (take_times(address, layout, wanted))
		return -EFAULT;
	bool is_touch = wanted[0].nanoseconds == UTIME_NOW && wanted[1].nanoseconds == UTIME_NOW;
	int error = is_touch ? mount_check_write(inode) : mount_check_change(inode);

	if (error)
		return error;
	if (set_time(&both[0], &wanted[0]) || set_time(&both[1], &wanted[1]))
		return -EINVAL;
	inode->accessed = both[0];
	inode->modified = both[1];
	inode_touch(inode, false);
	return 0;
}

static int set_times(struct file *file, const struct trap_frame *frame, uint32_t flags,
		     enum layout layout)
{
	struct linux_timespec64 both[2];

	/* Two times that stay: then the file need not even be there. */
	if (!take_times(frame->edx, layout, both) && both[0].nanoseconds == UTIME_OMIT &&
	    both[1].nanoseconds == UTIME_OMIT)
		return 0;
	if (!frame->ecx && frame->ebx != HERE) /* futimens: the file is the descriptor's */
		return flags ? -EINVAL
			     : call_file(file_opened(file), change_times, frame->edx, layout);
	return call_at(frame->ebx, frame->ecx, flags, change_times, frame->edx, layout);
}

FILE_CALL(sys_utimensat, set_times(file, frame, frame->esi, NANOSECONDS))
FILE_CALL(sys_utimensat64, set_times(file, frame, frame->esi, NANOSECONDS_64))
CALL(sys_utime, call_at(HERE, frame->ebx, 0, change_times, frame->ecx, SECONDS))
CALL(sys_utimes, call_at(HERE, frame->ebx, 0, change_times, frame->ecx, MICROSECONDS))
FILE_CALL(sys_futimesat, set_times(file, frame, 0, MICROSECONDS))

/* ---- file systems ---- */

/* For an inode in no mount (a pipe) only the limits are known. The program says what it has room
 * for, and that must be right. */
static int give_statfs(struct inode *inode, uint32_t to, uint32_t size)
{
	const struct mount *mount = mount_of(inode);
	struct filesystem_usage usage = { .block_size = PAGE_SIZE };

	if (mount && mount->type->statfs)
		mount->type->statfs(mount->root, &usage);
	struct linux_statfs64 stat = {
		.type = usage.type,
		.block_size = usage.block_size,
		.blocks = usage.blocks,
		.blocks_free = usage.free,
		.blocks_available = usage.available,
		.inodes = usage.inodes,
		.inodes_free = usage.free_inodes,
		.identity = { inode->filesystem },
		.name_max = NAME_MAX,
		.fragment_size = usage.block_size,
		.flags = STATFS_VALID |
			 (mount && mount_is_read_only(mount) ? STATFS_READ_ONLY : 0) |
			 (mount && mount->options.no_access_time ? STATFS_NO_ACCESS_TIME : 0),
	};

	return size == sizeof(stat) ? give(to, &stat, sizeof(stat)) : -EINVAL;
}

CALL(sys_statfs64, call_at(HERE, frame->ebx, 0, give_statfs, frame->edx, frame->ecx))
FILE_CALL(sys_fstatfs64, call_file(file, give_statfs, frame->edx, frame->ecx))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 15, "chmod", "so", sys_chmod },
	{ 16, "lchown", "sdd", sys_lchown },
	{ 30, "utime", "sp", sys_utime },
	{ 33, "access", "so", sys_access },
	{ 92, "truncate", "sd", sys_truncate },
	{ 94, "fchmod", "fo", sys_fchmod },
	{ 95, "fchown", "fdd", sys_fchown },
	{ 106, "stat", "sp", sys_stat },
	{ 107, "lstat", "sp", sys_lstat },
	{ 108, "fstat", "fp", sys_fstat },
	{ 182, "chown", "sdd", sys_chown },
	{ 193, "truncate64", "sxx", sys_truncate64 },
	{ 195, "stat64", "sp", sys_stat64 },
	{ 196, "lstat64", "sp", sys_lstat64 },
	{ 197, "fstat64", "fp", sys_fstat64 },
	{ 198, "lchown32", "sdd", sys_lchown32 },
	{ 207, "fchown32", "fdd", sys_fchown32 },
	{ 212, "chown32", "sdd", sys_chown32 },
	{ 268, "statfs64", "sdp", sys_statfs64 },
	{ 269, "fstatfs64", "fdp", sys_fstatfs64 },
	{ 271, "utimes", "sp", sys_utimes },
	{ 298, "fchownat", "asddx", sys_fchownat },
	{ 299, "futimesat", "fsp", sys_futimesat },
	{ 300, "fstatat64", "aspx", sys_fstatat64 },
	{ 306, "fchmodat", "aso", sys_fchmodat },
	{ 307, "faccessat", "aso", sys_faccessat },
	{ 320, "utimensat", "fspx", sys_utimensat },
	{ 324, "fallocate", "fxxxxx", sys_fallocate },
	{ 383, "statx", "asxxp", sys_statx },
	{ 412, "utimensat_time64", "fspx", sys_utimensat64 },
	{ 439, "faccessat2", "asox", sys_faccessat2 },
};
