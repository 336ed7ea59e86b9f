/* What inodes of a disk keep and tell, by Linux's calls: times, device numbers, flags, holes. Says
 * the same on Linux. inodes PART..., in a directory of the disk. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define UTIMENSAT_TIME64 412

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

static void say(const char *what, long value)
{
	printf("%s %ld\n", what, value);
	fflush(stdout);
}

/* ---- times ---- */

static struct statx state_of(const char *path)
{
	struct statx state;

	memset(&state, 0, sizeof(state));
	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &state) != 0)
		say("statx", -errno);
	return state;
}

static void show_times(const char *path)
{
	struct statx state = state_of(path);

	printf("%s %lld.%09u %lld.%09u\n", path, state.stx_atime.tv_sec, state.stx_atime.tv_nsec,
	       state.stx_mtime.tv_sec, state.stx_mtime.tv_nsec);
}

/* Sets both times: the later calls find what the inode can keep. */
static void times(void)
{
	static const int64_t seconds[] = { -2147483649, -2147483648, -1,	  0,
					   2147483647,	2147483648,  9223372036,  9223372037,
					   13569465600, 15032385535, 15032385536, 99999999999 };
	char name[16];

	for (unsigned i = 0; i < sizeof(seconds) / sizeof(*seconds); i++) {
		int64_t both[4] = { seconds[i], 999999999, seconds[i], 1 };

		sprintf(name, "t%u", i);
		close(open(name, O_CREAT | O_WRONLY, 0644));
		say("set", error_of(syscall(UTIMENSAT_TIME64, AT_FDCWD, name, both, 0)));
		show_times(name);
	}
}

/* The same after a mount. */
static void again(void)
{
	char name[16];

	for (unsigned i = 0; i < 12; i++) {
		sprintf(name, "t%u", i);
		show_times(name);
	}
}

/* Has a time that the file system sets by itself nanoseconds? Both answers must not depend on luck.
 */
static int has_nanoseconds(const char *path)
{
	struct statx state = state_of(path);

	return state.stx_mtime.tv_nsec || state.stx_ctime.tv_nsec || state.stx_atime.tv_nsec;
}

static void fresh(void)
{
	int made = 0, written = 0, changed = 0;
	char name[16];

	for (int i = 0; i < 8; i++) {
		sprintf(name, "f%d", i);
		int file = open(name, O_CREAT | O_RDWR, 0644);

		made += has_nanoseconds(name);
		(void)!write(file, "x", 1);
		written += has_nanoseconds(name);
		fchmod(file, 0600);
		changed += has_nanoseconds(name);
		close(file);
	}
	say("made", made > 0);
	say("written", written > 0);
	say("changed", changed > 0);
}

static void devices(void)
{
	static const unsigned numbers[][2] = {
		{ 1, 3 }, { 8, 255 }, { 8, 256 }, { 4095, 1048575 }
	};

	for (unsigned i = 0; i < 4; i++) {
		struct stat old;

		mknod("device", S_IFCHR | 0600, makedev(numbers[i][0], numbers[i][1]));
		struct statx state = state_of("device");

		stat("device", &old);
		printf("device %u:%u %u:%u\n", state.stx_rdev_major, state.stx_rdev_minor,
		       major(old.st_rdev), minor(old.st_rdev));
		unlink("device");
	}
}

static volatile int signals;

static void note(int signal)
{
	signals++;
}

static void limit(void)
{
	struct rlimit most = { 10000, 10000 };
	int file = open("limited", O_CREAT | O_RDWR, 0644);

	signal(SIGXFSZ, note);
	setrlimit(RLIMIT_FSIZE, &most);
	say("below", error_of(fallocate(file, 0, 0, 10000)));
	say("above", error_of(fallocate(file, 0, 4000, 6001)));
	say("far", error_of(fallocate(file, 0, 20000, 1)));
	say("kept", error_of(fallocate(file, FALLOC_FL_KEEP_SIZE, 4000, 9000)));
	say("signals", signals);
	close(file);
	say("size", state_of("limited").stx_size);
}

/* ---- flags ---- */

enum { IMMUTABLE = 0x10, APPEND = 0x20 };

static const unsigned get = 0x80046601, set = 0x40046602;

/* Changes some flags of a file; -1: it is not there. */
static long change(const char *path, unsigned flags)
{
	int file = open(path, O_RDONLY | O_NONBLOCK), all = 0;

	if (file < 0)
		return -errno;
	ioctl(file, get, &all);
	all = (all & ~(IMMUTABLE | APPEND)) | flags;

	long result = error_of(ioctl(file, set, &all));

	close(file);
	return result;
}

static void show_flags(const char *path)
{
	int file = open(path, O_RDONLY), all = 0;
	unsigned common[7] = { 0 };

	say(path, error_of(ioctl(file, get, &all)));
	say("common", error_of(ioctl(file, 0x801c581f, common)));
	printf("%s %x %x %u\n", path, all & ~0x80000, common[0], common[3]);
	close(file);
}

static long opened(const char *path, int flags)
{
	long file = error_of(open(path, flags, 0644));

	return file < 0 ? file : close(file);
}

/* All that could change a file or a directory with these flags, while `held` is open. */
static void try_file(unsigned flags)
{
	int held = open("flagged", O_RDWR | O_CREAT, 0644);
	const struct timespec now[2] = { { 0, UTIME_NOW }, { 0, UTIME_NOW } };
	const struct timespec then[2] = { { 1, 0 }, { 1, 0 } },
			      half[2] = { { 0, UTIME_NOW }, { 1, 0 } };

	(void)!write(held, "text", 4);
	link("flagged", "second");
	printf("flags %x %ld\n", flags, change("flagged", flags));
	show_flags("flagged");
	say("read", opened("flagged", O_RDONLY));
	say("write", opened("flagged", O_WRONLY));
	say("append", opened("flagged", O_WRONLY | O_APPEND));
	say("cut", opened("flagged", O_RDONLY | O_TRUNC));
	say("cut, append", opened("flagged", O_WRONLY | O_APPEND | O_TRUNC));
	say("create", opened("flagged", O_RDWR | O_CREAT));
	say("access", error_of(access("flagged", W_OK)));
	say("held", error_of(write(held, "more", 4)));
	say("cut", error_of(ftruncate(held, 1)));
	say("cut", error_of(truncate("flagged", 1)));
	say("longer", error_of(truncate("flagged", 9999)));
	say("reserve", error_of(fallocate(held, FALLOC_FL_KEEP_SIZE, 0, 99999)));
	say("punch", error_of(fallocate(held, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 9)));
	say("mode", error_of(chmod("flagged", 0600)));
	say("owner", error_of(chown("flagged", 1, 1)));
	say("touch", error_of(utimensat(AT_FDCWD, "flagged", NULL, 0)));
	say("now", error_of(utimensat(AT_FDCWD, "flagged", now, 0)));
	say("then", error_of(utimensat(AT_FDCWD, "flagged", then, 0)));
	say("half", error_of(utimensat(AT_FDCWD, "flagged", half, 0)));
	say("attribute", error_of(setxattr("flagged", "user.a", "x", 1, 0)));
	say("attribute", error_of(removexattr("flagged", "user.none")));
	say("link", error_of(link("flagged", "third")));
	say("rename", error_of(rename("flagged", "other")));
	say("onto it", error_of(rename("plain", "flagged")));
	say("to itself", error_of(rename("flagged", "second")));
	say("remove", error_of(unlink("flagged")));
	say("shared", mmap(NULL, 4096, PROT_WRITE | PROT_READ, MAP_SHARED, held, 0) == MAP_FAILED
			  ? errno
			  : 0);
	say("not to append", error_of(fcntl(held, F_SETFL, O_APPEND)));
	say("undone", change("flagged", 0));
	for (unsigned i = 0; i < 4; i++)
		say("gone", unlink((const char *[]){ "flagged", "second", "third", "other" }[i]));
	close(held);
}

static void try_directory(unsigned flags)
{
	mkdir("dir", 0755);
	mkdir("dir/in", 0755);
	opened("dir/old", O_CREAT | O_WRONLY);
	printf("directory %x %ld\n", flags, change("dir", flags));
	show_flags("dir");
	say("create", opened("dir/new", O_CREAT | O_WRONLY));
	say("write", opened("dir/old", O_WRONLY | O_TRUNC));
	say("access", error_of(access("dir", W_OK)));
	say("make", error_of(mkdir("dir/made", 0755)));
	say("node", error_of(mknod("dir/node", S_IFIFO | 0600, 0)));
	say("symlink", error_of(symlink("x", "dir/link")));
	say("link", error_of(link("plain", "dir/plain")));
	say("remove", error_of(unlink("dir/old")));
	say("remove", error_of(rmdir("dir/in")));
	say("within", error_of(rename("dir/old", "dir/older")));
	say("out", error_of(rename("dir/old", "out")));
	say("in", error_of(rename("plain", "dir/older")));
	say("in", error_of(rename("dir/older", "plain")));
	say("mode", error_of(chmod("dir", 0700)));
	say("rename", error_of(rename("dir", "folder")));
	say("remove", error_of(rmdir("dir")));
	say("undone", change("dir", 0));
	(void)!system("rm -rf dir folder out");
}

/* Which flags can be set, and which a directory passes on. */
static void each_flag(const char *path)
{
	int file = open(path, O_RDONLY), all, before, wanted;

	ioctl(file, get, &before);
	for (int bit = 0; bit < 32; bit++) {
		if (1u << bit & 0x2484000) /* here another kind of map, or of writing, is refused */
			continue;
		wanted = before ^ 1u << bit;
		long result = error_of(ioctl(file, set, &wanted));

		ioctl(file, get, &all);
		printf("%s %d: %ld %x\n", path, bit, result, all ^ before);
		ioctl(file, set, &before);
	}
	close(file);
}

static void flags(void)
{
	unsigned common[7] = { 0x8 | 0x40 };
	int file, wanted;

	opened("plain", O_CREAT | O_WRONLY);
	try_file(0);
	try_file(IMMUTABLE);
	try_file(APPEND);
	opened("plain", O_CREAT | O_WRONLY);
	try_directory(0);
	opened("plain", O_CREAT | O_WRONLY);
	try_directory(IMMUTABLE);
	try_directory(APPEND);
	mkdir("each", 0755);
	opened("one", O_CREAT | O_WRONLY);
	each_flag("each");
	each_flag("one");
	file = open("one", O_RDONLY);
	say("common", error_of(ioctl(file, 0x401c5820, common)));
	show_flags("one");
	ioctl(file, get, &wanted);
	wanted |= 0x40;
	say("more", error_of(ioctl(file, set, &wanted)));
	common[0] = 0;
	say("common", error_of(ioctl(file, 0x401c5820, common)));
	show_flags("one");
	say("bad pointer", error_of(ioctl(file, set, 16)) + error_of(ioctl(file, get, 16)));
	close(file);
	file = open("each", O_RDONLY);
	ioctl(file, get, &wanted);
	wanted |= 0x180cd;
	say("all", error_of(ioctl(file, set, &wanted)));
	mkdir("each/dir", 0755);
	opened("each/file", O_CREAT | O_WRONLY);
	show_flags("each");
	show_flags("each/dir");
	show_flags("each/file");
	close(file);
}

/* ---- holes and extents ---- */

static void show_map(const char *what, int file, uint64_t start, uint64_t length, unsigned most)
{
	struct {
		uint64_t start, length;
		uint32_t flags, mapped, count, reserved;
		struct {
			uint64_t logical, physical, length, reserved[2];
			uint32_t flags, more[3];
		} extents[8];
	} map = { start, length, 1, 0, most };
	long result = error_of(ioctl(file, 0xc020660b, &map));

	printf("%s %ld: %u", what, result, map.mapped);
	for (unsigned i = 0; i < map.mapped && i < most; i++)
		printf(", %llu+%llu %x%s", map.extents[i].logical, map.extents[i].length,
		       map.extents[i].flags & ~0x1000, map.extents[i].physical ? "" : " nowhere");
	printf("\n");
}

static void holes(void)
{
	static const off64_t places[] = { 0,	 1,	4095,	4096,	8191,	8192, 20000,
					  65536, 70000, 131071, 131072, 200000, -1 };
	int file = open("holes", O_RDWR | O_CREAT, 0644), size = 0, block;
	char byte = 'x';

	say("empty", lseek64(file, 0, SEEK_DATA) < 0 ? errno : 0);
	show_map("empty", file, 0, -1, 8);
	pwrite(file, &byte, 1, 0);
	pwrite(file, &byte, 1, 20000);
	pwrite(file, &byte, 1, 65536);
	ftruncate(file, 131072);
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		say("data",
		    lseek64(file, places[i], SEEK_DATA) < 0 ? -errno : lseek64(file, 0, SEEK_CUR));
		say("hole",
		    lseek64(file, places[i], SEEK_HOLE) < 0 ? -errno : lseek64(file, 0, SEEK_CUR));
	}
	show_map("all", file, 0, -1, 8);
	show_map("count", file, 0, -1, 0);
	show_map("two", file, 0, -1, 2);
	show_map("middle", file, 16384, 50000, 8);
	show_map("within", file, 20100, 10, 8);
	show_map("hole", file, 70000, 10000, 8);
	show_map("nothing", file, 0, 0, 8);
	say("size", error_of(ioctl(file, 2, &size)) + size);
	for (block = -1; block < 3; block++) {
		int here = block;
		long result = error_of(ioctl(file, 1, &here));

		printf("block %ld %d\n", result, result < 0 ? 0 : here > 0);
	}
	fallocate(file, 0, 81920, 16384);
	fallocate(file, FALLOC_FL_KEEP_SIZE, 131072, 16384);
	show_map("reserved", file, 0, -1, 8);
	say("data", lseek64(file, 70000, SEEK_DATA) < 0 ? -errno : lseek64(file, 0, SEEK_CUR));
	say("hole", lseek64(file, 65536, SEEK_HOLE) < 0 ? -errno : lseek64(file, 0, SEEK_CUR));
	pwrite(file, &byte, 1, 90000);
	say("data", lseek64(file, 70000, SEEK_DATA) < 0 ? -errno : lseek64(file, 0, SEEK_CUR));
	close(file);
	file = open(".", O_RDONLY);
	show_map("directory", file, 0, 1, 8);
	say("its end", lseek64(file, 0, SEEK_END));
	say("block", error_of(ioctl(file, 1, &block)));
	close(file);
}

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = { { "times", times }, { "again", again }, { "fresh", fresh }, { "devices", devices },
	      { "limit", limit }, { "flags", flags }, { "holes", holes } };

int main(int argc, char **argv)
{
	for (int each = 1; each < argc; each++)
		for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++)
			if (strcmp(argv[each], parts[i].name) == 0)
				parts[i].run();
	return 0;
}
