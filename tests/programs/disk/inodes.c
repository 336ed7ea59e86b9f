/* What inodes of a disk keep, by Linux's calls: times, device numbers. Says the same on Linux.
 * inodes PART, in a directory of the disk. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
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

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = { { "times", times },
	      { "again", again },
	      { "fresh", fresh },
	      { "devices", devices },
	      { "limit", limit } };

int main(int argc, char **argv)
{
	for (int each = 1; each < argc; each++)
		for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++)
			if (strcmp(argv[each], parts[i].name) == 0)
				parts[i].run();
	return 0;
}
