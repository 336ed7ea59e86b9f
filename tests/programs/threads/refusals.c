/* What calls about memory, signals, files and processes refuse, at limits and beyond. */
#include "threads.h"

#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define PAGE 4096u

static long error_of(long result)
{
	return result < 0 ? -errno : result;
}

/* A kernel with 64 bits sees a length of -1 as one of 4 GiB, and may say ENOMEM. */
static bool is_too_long(long result)
{
	return result < 0 && (errno == ENOMEM || errno == EINVAL);
}

static void lengths(void)
{
	char there[1],
	    *memory = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(memory + PAGE, PAGE);
	say("mprotect", error_of(syscall(SYS_mprotect, memory, -1, PROT_READ)));
	say("mprotect", error_of(syscall(SYS_mprotect, memory, 0, PROT_READ)));
	say("mincore", error_of(syscall(SYS_mincore, memory, -1, there)));
	say("mincore", error_of(syscall(SYS_mincore, memory, -2 * PAGE, there)));
	say("msync", error_of(syscall(SYS_msync, memory, -2 * PAGE, MS_ASYNC)));
	say("madvise", is_too_long(syscall(SYS_madvise, memory, -1, MADV_NORMAL)));
	say("madvise", error_of(syscall(SYS_madvise, memory, 0, MADV_NORMAL)));
	say("mlockall", error_of(mlockall(0)));
	say("mlockall", error_of(mlockall(8 | MCL_CURRENT)));
	munmap(memory, PAGE);
}

/* Only memory that no file and no other program has can be given up. */
static void giving_up(void)
{
	int file = memfd_create("given up", 0), kinds[] = { MAP_PRIVATE, MAP_SHARED };

	(void)!ftruncate(file, PAGE);
	for (int i = 0; i < 4; i++) {
		int flags = kinds[i % 2] | (i < 2 ? 0 : MAP_ANONYMOUS);
		char *memory =
		    mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, i < 2 ? file : -1, 0);

		memory[0] = i;
		say("free", error_of(madvise(memory, PAGE, MADV_FREE)));
		munmap(memory, PAGE);
	}
	close(file);
}

/* The old mmap takes no more of a protection than the new one: none of these bits pins the memory.
 */
static void old_mmap(void)
{
	const unsigned long arguments[] = {
		0, PAGE, 0xfff8 | PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
	};
	void *memory = (void *)syscall(SYS_mmap, arguments);

	say("old mmap", error_of(madvise(memory, PAGE, MADV_DONTNEED)));
	munmap(memory, PAGE);
}

/* A time of day is only for calls that take a time which is not a distance. */
static void futex_clocks(void)
{
	static const int operations[] = { FUTEX_WAIT,	     FUTEX_WAKE,    FUTEX_REQUEUE,
					  FUTEX_CMP_REQUEUE, FUTEX_LOCK_PI, FUTEX_UNLOCK_PI,
					  FUTEX_WAKE_BITSET, 0x200 };
	unsigned word = 0;

	for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		say("of the day",
		    error_of(syscall(SYS_futex, &word, operations[i] | FUTEX_CLOCK_REALTIME, 1,
				     NULL, &word, 1)));
	say("of the day",
	    error_of(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, NULL,
			     NULL, 1)));
}

/* Flags that no kernel knows are not told again, and two signals cannot be blocked. */
static void handlers(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		unsigned mask[2];
	} action = { SIG_DFL, 0x03fff7f8, NULL, { ~0u, ~0u } }, now;
	struct {
		void *handler;
		unsigned long mask, flags;
		void *restorer;
	} old = { SIG_DFL, ~0ul, 0x03fff7f8, NULL };

	say("set", error_of(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8)));
	say("get", error_of(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &now, 8)));
	say("flags", now.flags);
	say("mask", ~now.mask[0] | ~now.mask[1]);
	say("old", error_of(syscall(SYS_sigaction, SIGUSR1, &old, NULL)));
	say("old", error_of(syscall(SYS_sigaction, SIGUSR1, NULL, &old)));
	say("flags", old.flags);
	say("mask", ~old.mask);
}

static long at_end(long number, int file, void *bytes, unsigned length)
{
	return error_of(syscall(number, file, bytes, length, 0xfffffffc, 0x7fffffff));
}

static void offsets(void)
{
	char bytes[10] = "";
	const struct iovec {
		void *base;
		size_t length;
	} vector = { bytes, sizeof(bytes) };
	int file = memfd_create("offsets", 0), zero = open("/dev/zero", O_RDWR), pipes[2];

	say("read", at_end(SYS_pread64, file, bytes, 10));
	say("read", at_end(SYS_pread64, file, bytes, 0));
	say("write", at_end(SYS_pwrite64, file, bytes, 10));
	say("zeros", at_end(SYS_pread64, zero, bytes, 10));
	say("zeros", at_end(SYS_pread64, zero, bytes, 3));
	say("vectors", at_end(SYS_preadv, file, (void *)&vector, 1));
	say("vectors", at_end(SYS_pwritev, file, (void *)&vector, 1));
	(void)!pipe(pipes);
	say("pipe", at_end(SYS_pread64, pipes[0], bytes, 10));
	close(pipes[0]);
	close(pipes[1]);
	close(file);
	close(zero);
}

static long seek_in(const char *path, int whence)
{
	int folder = open(path, O_RDONLY);
	long result = error_of(lseek(folder, 0, whence));

	close(folder);
	return result;
}

static long unnamed(const char *path, int flags)
{
	int file = open(path, O_TMPFILE | flags, 0600);
	long result = file < 0 ? -errno : 0;

	close(file);
	return result;
}

static void files(void)
{
	static const char *const own[] = { "/proc/self",	"/proc/self/maps", "/proc/self/fd",
					   "/proc/self/status", "/proc/net",	   "/proc/sys",
					   "/proc/sys/kernel" };

	say("end of a folder", seek_in("/dev/shm", SEEK_END));
	say("end of a folder", seek_in("/proc", SEEK_END));
	say("end of a folder", seek_in("/proc/self", SEEK_END));
	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		struct stat now;

		stat(own[i], &now); /* to what it is: it may be this machine's own /proc */
		say("chmod", error_of(chmod(own[i], now.st_mode & 07777)));
	}
	say("unnamed", geteuid() ? -EOPNOTSUPP : unnamed("/proc", O_RDWR)); /* others get EACCES */
	say("unnamed", unnamed("/proc", O_RDONLY));
	say("unnamed", unnamed("/none", O_RDWR));
	say("unnamed", unnamed("/none", O_RDONLY));
	say("unnamed", unnamed("/proc/version", O_RDWR));
	say("unnamed", unnamed("/none", O_RDWR | O_CREAT));
	say("unnamed", unnamed("", O_RDWR));
	say("no folder", error_of(open("/proc", (O_TMPFILE & ~O_DIRECTORY) | O_RDWR, 0600)));
}

/* Of two faults the first one that Linux looks at; and a wait that is refused writes no time that
 * is left. */
static void order(void)
{
	static const char *const names[] = { "", "user.", "none.such", "user.name" };
	struct timespec left = { 0, 20000000 };
	const unsigned mask[2] = { 0, 0 };
	const struct {
		const void *mask;
		unsigned size;
	} sixth = { mask, 4 };

	for (int i = 0; i < 4; i++)
		say("attribute", error_of(setxattr("/dev/shm", names[i], "x", 1, 4)));
	say("attribute", error_of(setxattr("/dev/shm", "", "x", 1, 0)));
	say("ppoll", error_of(syscall(SYS_ppoll, NULL, 0, &left, mask, 4)));
	say("left", left.tv_nsec);
	say("pselect6", error_of(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &left, &sixth)));
	say("left", left.tv_nsec);
}

void part_refusals(void)
{
	lengths();
	giving_up();
	old_mmap();
	futex_clocks();
	handlers();
	offsets();
	files();
	order();
	say("group", error_of(setpgid(-1, 0)));
	say("group", error_of(setpgid(-1, 5)));
	say("group", error_of(setpgid(0, -1)));
}
