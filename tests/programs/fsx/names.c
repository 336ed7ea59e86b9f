/* Operations on paths. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fsx.h"

static void make_directory(void)
{
	say("mkdir");
	const char *path = any_directory();
	uint32_t mode = below(010000);

	say(" %o", mode);
	say_result(mkdir(path, mode));
}

static void remove_directory(void)
{
	say("rmdir");
	say_result(rmdir(any_directory()));
}

static void remove_name(void)
{
	say("unlink");
	say_result(unlink(any_path()));
}

static void add_link(void)
{
	bool follows = one_in(4);

	say(follows ? "link follow" : "link");
	const char *from = any_path(), *to = any_path();

	say_result(linkat(AT_FDCWD, from, AT_FDCWD, to, follows ? AT_SYMLINK_FOLLOW : 0));
}

/* Short ones are in the inode; long ones have a block. */
static void add_symbolic_link(void)
{
	static char target[5000];
	uint32_t length = one_in(8) ? below(4200) : 0;

	say("symlink");
	strcpy(target, any_path());
	if (length > strlen(target)) {
		memset(target, '/', length);
		memcpy(target, "./", 2);
		target[length] = 0;
		say(" to %u", length);
	}
	say_result(symlink(target, any_path()));
}

static void read_symbolic_link(void)
{
	static char target[5000];
	uint32_t size = one_in(4) ? below(20) : sizeof(target);

	say("readlink");
	long length = readlink(any_path(), target, size);

	say_result(length);
	if (length > 0)
		say(" %08x", hash_of(target, length));
}

static void rename_name(void)
{
	static const char *const names[] = { "", " noreplace", " exchange", " both" };
	uint32_t flags = one_in(3) ? below(4) : 0;

	say("rename%s", names[flags]);
	const char *from = any_path(), *to = any_path();

	say_result(flags ? renameat2(AT_FDCWD, from, AT_FDCWD, to, flags) : rename(from, to));
}

static void set_size(void)
{
	say("truncate");
	const char *path = any_path();
	uint32_t size = below(MOST);

	say(" %u", size);
	say_result(truncate(path, size));
}

static void say_status_of(const char *path, bool follows)
{
	struct stat status;
	long result = follows ? stat(path, &status) : lstat(path, &status);

	say_status(result, &status);
}

static void status_of_name(void)
{
	bool follows = one_in(2);

	say(follows ? "stat" : "lstat");
	say_status_of(any_path(), follows);
}

static void change_mode(void)
{
	say("chmod");
	const char *path = any_path();
	uint32_t mode = below(010000);

	say(" %o", mode);
	say_result(chmod(path, mode));
}

static void change_owner(void)
{
	bool follows = one_in(2);

	say(follows ? "chown" : "lchown");
	const char *path = any_path();
	int owner = (int)below(5) - 1, group = one_in(20) ? 1000000 : (int)below(5) - 1;

	say(" %d %d", owner, group);
	say_result(fchownat(AT_FDCWD, path, owner, group, follows ? 0 : AT_SYMLINK_NOFOLLOW));
}

/* Times that are set are seen again; the others are the clock's. */
static void change_times(void)
{
	static const long specials[] = { UTIME_OMIT, 1000000000, -1 };
	struct timespec times[2];
	struct stat status;
	bool follows = one_in(2);

	say("utimens");
	for (unsigned i = 0; i < 2; i++) {
		times[i].tv_sec = one_in(4) ? -(long)below(1u << 31) : (long)below(1u << 31);
		times[i].tv_nsec = one_in(5) ? specials[below(3)] : (long)below(1000000000);
		say(" %ld.%ld", (long)times[i].tv_sec, times[i].tv_nsec);
	}
	const char *path = any_path();

	long result = utimensat(AT_FDCWD, path, times, follows ? 0 : AT_SYMLINK_NOFOLLOW);

	say_result(result);
	if (result < 0 || (follows ? stat(path, &status) : lstat(path, &status)) < 0)
		return;
	if (times[0].tv_nsec != UTIME_OMIT)
		say(" %ld.%ld", (long)status.st_atim.tv_sec, status.st_atim.tv_nsec);
	if (times[1].tv_nsec != UTIME_OMIT)
		say(" %ld.%ld", (long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

static void ask_access(void)
{
	int mode = below(8);

	say("access %d", mode);
	say_result(access(any_path(), mode));
}

/* The order is the file system's: names are added up. Reads some, and the rest twice. */
static uint32_t sum_of_names(DIR *directory, unsigned most, unsigned *count)
{
	uint32_t sum = 0;
	struct dirent *entry;

	for (*count = 0; *count < most && (entry = readdir(directory)); ++*count)
		sum += hash_of(entry->d_name, strlen(entry->d_name)) * (entry->d_type + 1);
	return sum;
}

static void read_directory(void)
{
	unsigned before, rest, again, most = below(20);

	say("readdir");
	DIR *directory = opendir(any_directory());

	say_result(directory ? 0 : -1);
	if (!directory)
		return;
	uint32_t sum = sum_of_names(directory, most, &before);
	long place = telldir(directory);
	uint32_t first = sum_of_names(directory, -1u, &rest);

	seekdir(directory, place);
	uint32_t second = sum_of_names(directory, -1u, &again);

	rewinddir(directory);
	uint32_t all = sum_of_names(directory, -1u, &most);

	say(" %u names %08x%s", most, sum + first,
	    rest != again || first != second || sum + first != all ? " DIFFERS" : "");
	closedir(directory);
}

static void make_node(void)
{
	static const uint32_t kinds[] = { S_IFIFO, S_IFSOCK, S_IFCHR, S_IFREG, S_IFDIR };
	uint32_t kind = kinds[below(5)];

	say("mknod %o", kind);
	say_result(mknod(any_path(), kind | 0644, kind == S_IFCHR ? makedev(1, 3) : 0));
}

static void status_of_system(void)
{
	struct statvfs status;

	say("statfs");
	long result = statvfs(any_path(), &status);

	say_result(result);
	if (result == 0)
		say(" block %lu %lu name %lu flag %lx", status.f_bsize, status.f_frsize,
		    status.f_namemax, status.f_flag & ST_RDONLY);
}

const struct operation name_operations[] = {
	{ make_directory, 14 },
	{ remove_directory, 2 },
	{ remove_name, 10 },
	{ add_link, 7 },
	{ add_symbolic_link, 4 },
	{ read_symbolic_link, 3 },
	{ rename_name, 16 },
	{ set_size, 3 },
	{ status_of_name, 14 },
	{ change_mode, 4 },
	{ change_owner, 4 },
	{ change_times, 5 },
	{ ask_access, 3 },
	{ read_directory, 10 },
	{ make_node, 2 },
	{ status_of_system, 1 },
	{ NULL, 0 },
};
