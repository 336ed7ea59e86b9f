/*
 * The structures of user/include are Linux's, under the names that POSIX gives their members. Here
 * the compiler compares each with the kernel's own in kernel/abi: a difference does not compile.
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#define SAME(type, member, linux_type, linux_member)                                               \
	_Static_assert(offsetof(type, member) == offsetof(linux_type, linux_member) &&             \
			   sizeof(((type *)0)->member) == sizeof(((linux_type *)0)->linux_member), \
		       #member " and " #linux_member " differ")
#define SAME_SIZE(type, linux_type) _Static_assert(sizeof(type) == sizeof(linux_type), #type)

SAME_SIZE(struct timespec, struct linux_timespec);
SAME(struct timespec, tv_sec, struct linux_timespec, seconds);
SAME(struct timespec, tv_nsec, struct linux_timespec, nanoseconds);

SAME_SIZE(struct stat, struct linux_stat64);
SAME(struct stat, st_dev, struct linux_stat64, filesystem);
SAME(struct stat, st_mode, struct linux_stat64, mode);
SAME(struct stat, st_nlink, struct linux_stat64, links);
SAME(struct stat, st_uid, struct linux_stat64, owner);
SAME(struct stat, st_gid, struct linux_stat64, group);
SAME(struct stat, st_rdev, struct linux_stat64, device);
SAME(struct stat, st_size, struct linux_stat64, size);
SAME(struct stat, st_blksize, struct linux_stat64, block_size);
SAME(struct stat, st_blocks, struct linux_stat64, blocks);
SAME(struct stat, st_atim, struct linux_stat64, accessed);
SAME(struct stat, st_mtim, struct linux_stat64, modified);
SAME(struct stat, st_ctim, struct linux_stat64, changed);
SAME(struct stat, st_ino, struct linux_stat64, number);

SAME(struct dirent, d_ino, struct linux_dirent64, number);
SAME(struct dirent, d_off, struct linux_dirent64, next);
SAME(struct dirent, d_reclen, struct linux_dirent64, length);
SAME(struct dirent, d_type, struct linux_dirent64, type);
_Static_assert(offsetof(struct dirent, d_name) == sizeof(struct linux_dirent64), "d_name");

SAME_SIZE(struct sigaction, struct linux_signal_action);
SAME(struct sigaction, sa_handler, struct linux_signal_action, handler);
SAME(struct sigaction, sa_flags, struct linux_signal_action, flags);
SAME(struct sigaction, sa_restorer, struct linux_signal_action, restorer);
SAME(struct sigaction, sa_mask, struct linux_signal_action, mask);

SAME_SIZE(struct pollfd, struct linux_poll);
SAME(struct pollfd, fd, struct linux_poll, descriptor);
SAME(struct pollfd, events, struct linux_poll, events);
SAME(struct pollfd, revents, struct linux_poll, ready);

SAME_SIZE(struct winsize, struct linux_window_size);
SAME(struct winsize, ws_row, struct linux_window_size, rows);
SAME(struct winsize, ws_col, struct linux_window_size, columns);
