/*
 * Calls about a file's attributes: stat in its three layouts, modes, owners and times, and statfs.
 *
 * Each is an operation on an inode, and a way to name one (kernel/linux/files/calls.h). The newest
 * call of a family has the most general arguments; the older ones are that with constants:
 *
 *	stat, lstat, fstat	struct linux_stat: sizes of 31 bits, owners of 16
 *	stat64 ... fstatat64	struct linux_stat64: the same, wider; times of 32 bits
 *	statx			struct linux_statx: times of 64 bits
 *	chown, lchown, fchown	owners of 16 bits; chown32 ... fchownat: of 32
 *	utime, utimes, futimesat, utimensat: struct times of seconds, us, us, ns
 *
 * stat(2), statx(2), access(2), chmod(2), chown(2), fallocate(2), utimensat(2), statfs(2). All may
 * sleep, for a path or for the disk.
 */
#include "fs/vfs/mounts.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/statx.h"
#include "kernel/linux/files/calls.h"
#include "kernel/linux/time/user_time64.h"

#define FALLOCATE_KEEP_SIZE  1u
#define FALLOCATE_PUNCH_HOLE 2u /* alone: that would change the size */

/* Inodes keep the times that ext4 can: 2^31 seconds before 1970 and 2^34 from there on. */
#define FIRST_SECOND INT32_MIN
#define LAST_SECOND  (FIRST_SECOND + (1ll << 34) - 1)

/* ---- the three layouts ---- */

/* A time of an inode, with its seconds rounded down: half a second before 1970 is second -1 and
 * 500,000,000 ns. The division needs a number that is not negative: the time since the earliest
 * one. */
static struct linux_timespec64 timespec_of_inode(int64_t ns)
{
	struct linux_timespec64 time = timespec64_of(ns - FIRST_SECOND * (int64_t)NS);

	time.seconds += FIRST_SECOND;
	return time;
}

static struct linux_timespec old_time_of(int64_t ns)
{
	const struct linux_timespec64 time = timespec_of_inode(ns);

	return (struct linux_timespec){ time.seconds, time.nanoseconds };
}

/* What the three layouts have in common, by the same names. Of a device number the lower byte is
 * the minor one; the other fields are as the inode has them. */
#define FACTS(inode)                                                                               \
	.mode = (inode)->mode, .links = (inode)->links, .owner = (inode)->owner,                   \
	.group = (inode)->group, .number = (inode)->number, .size = (inode)->size,                 \
	.blocks = (inode)->blocks, .block_size = (inode)->block_size ?: PAGE_SIZE

#define TIMES(inode, convert)                                                                      \
	.accessed = convert((inode)->accessed), .modified = convert((inode)->modified),            \
	.changed = convert((inode)->changed)

/* The inode's number is there twice: the older field has its lower half. */
static int give_stat64(const struct inode *inode, uint32_t to)
{
	const struct linux_stat64 stat = {
		FACTS(inode),
		TIMES(inode, old_time_of),
		.number_low = inode->number,
		.filesystem = inode->filesystem,
		.device = inode->device,
	};

	return give(to, &stat, sizeof(stat));
}

/* -EOVERFLOW for a size that has no room; owners are cut to 16 bits. */
static int give_stat(const struct inode *inode, uint32_t to)
{
	const struct linux_stat stat = {
		FACTS(inode),
		TIMES(inode, old_time_of),
		.filesystem = inode->filesystem,
		.device = inode->device,
	};

	return inode->size > INT32_MAX ? -EOVERFLOW : give(to, &stat, sizeof(stat));
}

/* Says with a mask which fields are filled in: those that stat64 has. */
static int give_statx(const struct inode *inode, uint32_t to)
{
	const struct linux_statx stat = {
		FACTS(inode),
		TIMES(inode, timespec_of_inode),
		.mask = STATX_BASIC,
		.device_major = inode->device >> 8 & 0xfff,
		.device_minor = (inode->device & 0xff) | (inode->device >> 12 & ~0xffu),
		.filesystem_major = inode->filesystem >> 8,
		.filesystem_minor = inode->filesystem & 0xff,
	};

	return give(to, &stat, sizeof(stat));
}

/* ---- the calls ---- */

SYSCALL_INODES(106, 107, 108, stat, "p", file, give_stat(inode, frame->ecx))
SYSCALL_INODES(195, 196, 197, stat64, "p", file, give_stat64(inode, frame->ecx))
SYSCALL_INODE(300, sys_fstatat64, "aspx", OF_PATH_AT(frame->esi), give_stat64(inode, frame->edx))

/* What statx's arguments ask for; flags that no call has, for -EINVAL, where they contradict
 * themselves. */
static uint32_t statx_flags(uint32_t flags, uint32_t mask)
{
	bool is_wrong = mask & STATX_RESERVED || (flags & AT_STATX_SYNC) == AT_STATX_SYNC;

	return is_wrong ? UINT32_MAX : flags;
}

SYSCALL_INODE(383, sys_statx, "asxxp", OF_PATH_AT(statx_flags(frame->edx, frame->esi)),
	      give_statx(inode, frame->edi))

/* Every process is root's, which may do everything except execute a file that has no execute
 * permission. */
static int access_at(uint32_t directory, uint32_t address, uint32_t wanted, uint32_t flags)
{
	struct inode *inode CLEANUP(inode_release) = NULL;
	int error =
	    wanted > 7 ? -EINVAL : inode_at(directory, address, flags & ~AT_EACCESS, &inode);

	if (!error && wanted & W_OK && (inode_is(inode, S_IFREG) || inode_is(inode, S_IFDIR)))
		error = mount_check_write(inode);
	if (!error && wanted & X_OK && !inode_is(inode, S_IFDIR) && !(inode->mode & S_IXALL))
		error = -EACCES;
	return error;
}

SYSCALL(33, sys_access, "so", access_at(HERE, frame->ebx, frame->ecx, 0))
SYSCALL(307, sys_faccessat, "aso", access_at(frame->ebx, frame->ecx, frame->edx, 0))
SYSCALL(439, sys_faccessat2, "asox", access_at(frame->ebx, frame->ecx, frame->edx, frame->esi))

/* ---- changes ---- */

/* -EROFS, -EPERM. The type stays. */
static int change_permissions(struct inode *inode, uint32_t mode)
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

/* truncate(2). The length is signed. */
static int change_size(struct inode *inode, int64_t size)
{
	return size < 0 ? -EINVAL : vfs_truncate(inode, size);
}

/* The 16 bits of the older calls; all ones mean -1. */
static uint32_t wide_owner(uint32_t owner)
{
	return (int16_t)owner == -1 ? UINT32_MAX : (uint16_t)owner;
}

SYSCALL_INODE(15, sys_chmod, "so", OF_PATH, change_permissions(inode, frame->ecx))
SYSCALL_OPEN(94, sys_fchmod, "fo", change_permissions(file->inode, frame->ecx))
SYSCALL_INODE(306, sys_fchmodat, "aso", OF_PATH_AT(0), change_permissions(inode, frame->edx))
SYSCALL_INODES(182, 16, 95, chown, "dd", file_opened(file),
	       change_owner(inode, wide_owner(frame->ecx), wide_owner(frame->edx)))
SYSCALL_INODES(212, 198, 207, chown32, "dd", file_opened(file),
	       change_owner(inode, frame->ecx, frame->edx))
SYSCALL_INODE(298, sys_fchownat, "asddx", OF_PATH_AT(frame->edi),
	      change_owner(inode, frame->edx, frame->esi))
SYSCALL_INODE(92, sys_truncate, "sd", OF_PATH, change_size(inode, (int32_t)frame->ecx))
SYSCALL_INODE(193, sys_truncate64, "sxx", OF_PATH, change_size(inode, wide(frame->ecx, frame->edx)))

/* In memory it makes a file longer, unless that is to keep its size: nothing is reserved for it. */
static int allocate_range(struct file *file, uint32_t mode, int64_t offset, int64_t length)
{
	struct inode *inode = file->inode;
	bool is_more = mode & ~FALLOCATE_KEEP_SIZE; /* changes what is there: a hole, say */
	int64_t end;

	if (offset < 0 || length <= 0)
		return -EINVAL;
	if (mode == FALLOCATE_PUNCH_HOLE || inode_is(inode, S_IFBLK) ||
	    (!inode->ops->allocate && is_more))
		return -EOPNOTSUPP;
	if (!file_writable(file))
		return -EBADF;
	if (!inode_is(inode, S_IFREG))
		return inode_is(inode, S_IFIFO) ? -ESPIPE : -ENODEV;
	int error = is_more ? mount_check_change(inode) : mount_check_write(inode);

	if (error)
		return error;
	if (__builtin_add_overflow(offset, length, &end))
		return -EFBIG;
	if (inode->ops->allocate)
		return inode->ops->allocate(inode, mode, offset, length);
	return mode || (uint64_t)end <= inode->size ? 0 : vfs_truncate(inode, end);
}

SYSCALL_OPEN(324, sys_fallocate, "fxxxxx",
	     allocate_range(file, frame->ecx, wide(frame->edx, frame->esi),
			    wide(frame->edi, frame->ebp)))

/* ---- times ---- */

/* Moves a time to what a call wants of it: leaves it alone for UTIME_OMIT, and cuts what is out of
 * an inode's range. -EINVAL for nanoseconds that are none. */
static int time_wanted(int64_t *time, const struct linux_timespec64 *wanted)
{
	if (wanted->nanoseconds == UTIME_NOW)
		*time = time_wall_ns();
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

/* With now for both a process needs to be allowed to write; to set other times, to change. */
static int change_times(struct inode *inode, const struct linux_timespec64 wanted[2])
{
	bool is_touch = wanted[0].nanoseconds == UTIME_NOW && wanted[1].nanoseconds == UTIME_NOW;
	int64_t both[2] = { inode->accessed, inode->modified };
	int error = is_touch ? mount_check_write(inode) : mount_check_change(inode);

	if (error)
		return error;
	if (time_wanted(&both[0], &wanted[0]) || time_wanted(&both[1], &wanted[1]))
		return -EINVAL;
	inode->accessed = both[0];
	inode->modified = both[1];
	inode_touch(inode, false);
	return 0;
}

/* utimensat(2), and the older calls: `address` is that of the two times, or 0: both are now. Two
 * times that stay need not even have a file. Without a path it is the open file's (futimens). */
static int change_times_at(struct file *file, uint32_t directory, uint32_t path, uint32_t address,
			   uint32_t flags, enum time_format format)
{
	struct linux_timespec64 both[2] = { { 0, UTIME_NOW }, { 0, UTIME_NOW } };
	struct inode *inode CLEANUP(inode_release) = NULL;

	if (address && times_load(address, format, both, 2))
		return -EFAULT;
	if (both[0].nanoseconds == UTIME_OMIT && both[1].nanoseconds == UTIME_OMIT)
		return 0;
	if (path || directory == HERE)
		return inode_at(directory, path, flags, &inode) ?: change_times(inode, both);
	return flags ? -EINVAL : INODE_OF(file_opened(file), change_times(inode, both));
}

SYSCALL(30, sys_utime, "sp", change_times_at(NULL, HERE, frame->ebx, frame->ecx, 0, SECONDS))
SYSCALL(271, sys_utimes, "sp", change_times_at(NULL, HERE, frame->ebx, frame->ecx, 0, TIMEVAL))
SYSCALL_FILE(299, sys_futimesat, "fsp",
	     change_times_at(file, frame->ebx, frame->ecx, frame->edx, 0, TIMEVAL))
SYSCALL_FILE(320, sys_utimensat, "fspx",
	     change_times_at(file, frame->ebx, frame->ecx, frame->edx, frame->esi,
			     format_of_call(frame)))
SYSCALL_ROW_OF(412, sys_utimensat_time64, "fspx", sys_utimensat)

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

SYSCALL_INODE(268, sys_statfs64, "sdp", OF_PATH, give_statfs(inode, frame->edx, frame->ecx))
SYSCALL_FILE(269, sys_fstatfs64, "fdp", INODE_OF(file, give_statfs(inode, frame->edx, frame->ecx)))
