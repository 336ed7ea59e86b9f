/*
 * calls [SEED [COUNT]]: random system calls with random arguments, half of them bad; 100,000 by
 * default. The kernel must survive, and lose nothing: the program makes and removes its files below
 * /tmp, and closes what it opened. Prints how often each error came, and a hash over the results.
 *
 * What could stop or harm it, or what it runs next to, is left out: waiting without end, signals
 * that arrive, other processes, memory it needs, paths outside its folder but for reading.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/testing/places.h"

#define FOLDER "/tmp/calls"
#define ARENA  65536u /* where good pointers point, and a margin after it for what they receive: */
#define MARGIN 32768u /* /proc/self/fd with all descriptors open takes 24 KiB */
#define LENGTH_MAX 8192u
#define HUGE	   0xf8000000u /* wraps around from wherever a program is */
#define FILES_MAX  24	       /* descriptors that are closed at the end: 3 up to it */
#define ERRORS	   4096
#define VECTORS	   16  /* as many as a small number says, at most */
#define RARELY	   32  /* of this many turns of fork one is taken */
#define DEPTH	   100 /* calls, after which the way back from folders in folders is taken */

/*
 * Letters for arguments: f a descriptor; p a pointer; q the same, or NULL; v a list of them; s a
 * path to write or remove in the folder; r a path to read; d a folder to go to; l a length; n a
 * small number; w any word; o an offset's upper half; m a mode; O open's flags; M mmap's; A the
 * folder that openat starts from; c a command of fcntl; i a process; e a signal that does not
 * arrive; b a pointer that cannot be read; 0 nothing. Results that are addresses or process numbers
 * are not hashed ('-').
 */
static const struct {
	short number;
	const char *arguments;
	char hashed;
} calls[] = {
	{ SYS_read, "fpl", '+' },
	{ SYS_write, "fpl", '+' },
	{ SYS_readv, "fvn", '+' },
	{ SYS_writev, "fvn", '+' },
	{ SYS_pread64, "fplno", '+' },
	{ SYS_pwrite64, "fplno", '+' },
	{ SYS_open, "sOm", '+' },
	{ SYS_open, "r0", '+' },
	{ SYS_open, "sOm", '+' },
	{ SYS_openat, "AsOm", '+' },
	{ SYS_close, "f", '+' },
	{ SYS_dup, "f", '+' },
	{ SYS_dup2, "ff", '+' },
	{ SYS_pipe2, "pN", '+' },
	{ SYS_pipe, "b", '+' },
	{ SYS_fcntl64, "fcn", '+' },
	{ SYS__llseek, "f0opn", '+' },
	{ SYS_ftruncate64, "flo", '+' },
	{ SYS_fstat64, "fp", '+' },
	{ SYS_stat64, "rp", '+' },
	{ SYS_lstat64, "sp", '+' },
	{ SYS_fstatat64, "fspn", '+' },
	{ SYS_access, "rn", '+' },
	{ SYS_unlink, "s", '+' },
	{ SYS_mkdir, "sm", '+' },
	{ SYS_rmdir, "s", '+' },
	{ SYS_link, "ss", '+' },
	{ SYS_symlink, "ss", '+' },
	{ SYS_readlink, "spl", '+' },
	{ SYS_rename, "ss", '+' },
	{ SYS_chmod, "sm", '+' },
	{ SYS_chdir, "d", '+' },
	{ SYS_getcwd, "pl", '+' },
	{ SYS_getdents64, "fpl", '+' },
	{ SYS_ioctl, "fwp", '+' },
	{ SYS_poll, "pn0", '0' },
	{ SYS_brk, "0", '-' },
	{ SYS_munmap, "bl", '+' },
	{ SYS_mprotect, "blw", '+' },
	{ SYS_mmap2, "0lwMfo", '-' },
	{ SYS_execve, "bqq", '+' },
	{ SYS_fork, "", '-' },
	{ SYS_wait4, "wqWq", '+' },
	{ SYS_kill, "ie", '+' },
	{ SYS_tgkill, "iie", '+' },
	{ SYS_getpid, "", '-' },
	{ SYS_getppid, "", '-' },
	{ SYS_gettid, "", '-' },
	{ SYS_setpgid, "w0", '+' },
	{ SYS_rt_sigaction, "ebqn", '+' },
	{ SYS_rt_sigprocmask, "nbqn", '+' },
	{ SYS_nanosleep, "bq", '+' },
	{ SYS_clock_gettime, "np", '+' },
	{ SYS_gettimeofday, "qq", '+' },
	{ SYS_set_thread_area, "p", '0' },
	{ SYS_uname, "p", '+' },
	{ SYS_umask, "n", '+' },
	{ SYS_sched_yield, "", '+' },
	{ SYS_reboot, "www", '+' },
	{ 43, "p", '0' },	/* times */
	{ 77, "np", '+' },	/* getrusage */
	{ 116, "p", '+' },	/* sysinfo */
	{ 142, "nqqqb", '+' },	/* select */
	{ 163, "blln", '+' },	/* mremap */
	{ 172, "nqqqq", '+' },	/* prctl */
	{ 177, "bqbn", '+' },	/* rt_sigtimedwait */
	{ 178, "ieb", '+' },	/* rt_sigqueueinfo */
	{ 186, "bq", '+' },	/* sigaltstack */
	{ 187, "ffqn", '0' },	/* sendfile: its offset may be a time that was stored there */
	{ 193, "slo", '+' },	/* truncate64 */
	{ 219, "blw", '+' },	/* madvise */
	{ 240, "bnnbbn", '+' }, /* futex */
	{ 268, "rnp", '+' },	/* statfs64 */
	{ 284, "nwpwq", '+' },	/* waitid */
	{ 305, "Aspl", '+' },	/* readlinkat */
	{ 309, "pnbq0", '0' },	/* ppoll */
	{ 320, "Asbn", '+' },	/* utimensat */
	{ 30, "sp", '+' },	/* utime: half of the times are before 1970 */
	{ 333, "fvnno", '+' },	/* preadv */
	{ 334, "fvnno", '+' },	/* pwritev */
	{ 340, "0nbq", '+' },	/* prlimit64 */
	{ 383, "Aswwp", '+' },	/* statx */
	{ -1, "wwwwww", '+' },
	{ 0x7fff, "wwwwww", '+' },
	{ 1000, "wwwwww", '+' },
};

static struct random numbers;
static uint32_t edge;
static bool survives_pipes; /* without signals there is no ignoring of SIGPIPE either */
static char arena[ARENA + MARGIN] __attribute__((aligned(4096)));
static unsigned counts[ERRORS];
static uint64_t hash = 14695981039346656037u; /* FNV-1a, 64 bits */

static uint32_t below(uint32_t bound)
{
	return random_below(&numbers, bound);
}

static uint32_t bad_pointer(void)
{
	return place_address(below(IN_READ_ONLY), &numbers);
}

static uint32_t pointer(void)
{
	if (below(4) == 0)
		return place_address(below(PLACES), &numbers);
	if (below(16) == 0)
		return edge - below(64);
	return (uint32_t)arena + below(ARENA);
}

/* A list for readv: what it points to is good or bad, but never the program itself. */
static uint32_t vectors(void)
{
	static uint32_t list[VECTORS][2];

	for (unsigned i = 0; i < VECTORS; i++) {
		list[i][0] = pointer();
		list[i][1] = below(LENGTH_MAX / VECTORS);
	}
	return below(4) == 0 ? bad_pointer() : (uint32_t)list;
}

static uint32_t path(const char *const *names, unsigned count)
{
	return below(6) == 0 ? bad_pointer() : (uint32_t)names[below(count)];
}

static uint32_t own_path(void)
{
	static const char *const names[] = { "a", "b", "c", "d", "d/a", "d/e", "a/b", "./a", "" };

	return path(names, sizeof(names) / sizeof(names[0]));
}

static uint32_t any_path(void)
{
	static const char *const names[] = {
		"a",
		"b",
		"d/a",
		".",
		"..",
		"/",
		"/dev/null",
		"/tmp",
		"",
		"no",
		"no/a",
		"/bin/no",
		"/proc/self/fd",
		"/proc/self/exe",
		"/proc/self/maps",
		"/proc/self/cwd/a",
	};

	return path(names, sizeof(names) / sizeof(names[0]));
}

static uint32_t own_folder(void)
{
	static const char *const names[] = { ".", "a", "", "no" };

	return path(names, sizeof(names) / sizeof(names[0]));
}

static uint32_t descriptor(void)
{
	return below(16) == 0 ? (uint32_t)random_next(&numbers) | 0x100 : 3 + below(FILES_MAX - 3);
}

static uint32_t open_flags(void)
{
	static const uint32_t flags[] = { O_CREAT,  O_EXCL,	O_TRUNC,
					  O_APPEND, O_NONBLOCK, O_DIRECTORY };
	uint32_t word = below(3) | O_NONBLOCK;

	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		word |= below(4) == 0 ? flags[i] : 0;
	return word | (below(2) ? O_CREAT : 0);
}

static uint32_t signal_number(void)
{
	static const uint32_t none[] = { 0, 65, -1u, 1u << 31, SIGKILL | 0x100 };

	return none[below(sizeof(none) / sizeof(none[0]))];
}

static uint32_t command(void)
{
	static const uint32_t known[] = { F_DUPFD, F_GETFD, F_SETFD, F_GETFL, 99 };

	return known[below(sizeof(known) / sizeof(known[0]))];
}

/* A descriptor that F_DUPFD begins with stays small, since it is a small number. */
static uint32_t argument(char letter)
{
	switch (letter) {
	case 'f':
		return descriptor();
	case 'p':
		return pointer();
	case 'q':
		return below(2) ? 0 : pointer();
	case 'b':
		return bad_pointer();
	case 's':
		return own_path();
	case 'r':
		return any_path();
	case 'd':
		return own_folder();
	case 'l':
		return below(16) == 0 ? HUGE | below(1u << 27) : below(LENGTH_MAX);
	case 'n':
		return below(16);
	case 'o':
		return below(16) == 0 ? -1u : 0;
	case 'm':
		return 0700 | below(0100);
	case 'O':
		return open_flags();
	case 'M':
		return (uint32_t)random_next(&numbers) & ~MAP_FIXED;
	case 'A':
		return below(4) == 0 ? -1u : (uint32_t)AT_FDCWD;
	case 'v':
		return vectors();
	case 'N':
		return O_NONBLOCK;
	case 'W':
		return WNOHANG;
	case 'c':
		return command();
	case 'e':
		return signal_number();
	case 'i':
		return below(2) ? (uint32_t)getpid() : 0x7ffffff0;
	case 'w':
		return random_next(&numbers);
	default:
		return 0;
	}
}

static void add_to_hash(uint32_t word)
{
	for (int i = 0; i < 4; i++, word >>= 8)
		hash = (hash ^ (word & 0xff)) * 1099511628211u;
}

/* What a call has made that nothing else would take away. */
static void undo(long number, const uint32_t *a, long result)
{
	if (number == SYS_mmap2 && result != -1)
		munmap((void *)result, a[1]);
	if (number == SYS_fork && result == 0)
		_exit(0);
	if (number == SYS_fork && result > 0)
		waitpid(result, NULL, 0);
}

static void run_one(unsigned index)
{
	const char *letters = calls[index].arguments;
	uint32_t a[6] = { 0 };

	if (calls[index].number == SYS_fork && below(RARELY) > 0)
		return;
	if (calls[index].number == SYS_pipe2 && !survives_pipes)
		return;
	for (int i = 0; letters[i]; i++)
		a[i] = argument(letters[i]);
	errno = 0;
	long result = syscall(calls[index].number, a[0], a[1], a[2], a[3], a[4], a[5]);
	int error = result == -1 ? errno : 0;

	undo(calls[index].number, a, result);
	counts[error < ERRORS ? error : ERRORS - 1]++;
	if (calls[index].hashed == '0')
		return;
	add_to_hash(index);
	add_to_hash(error);
	if (calls[index].hashed == '+')
		add_to_hash(result);
}

/* ---- before and after ---- */

static void close_all(void)
{
	for (int i = 3; i < 2 * FILES_MAX; i++)
		close(i);
}

/* Empties the current folder. What is no empty folder is one to empty first. */
static void empty_folder(void)
{
	DIR *directory = opendir(".");

	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlink(name) == 0)
			continue;
		if (rmdir(name) < 0 && chdir(name) == 0) {
			empty_folder();
			if (chdir("..") == 0)
				rmdir(name);
		}
	}
	if (directory)
		closedir(directory);
}

static void prepare(void)
{
	mkdir(FOLDER, 0700);
	if (chdir(FOLDER) < 0) {
		perror("calls: " FOLDER);
		exit(1);
	}
	close_all();
	empty_folder();
	int scratch = open("a", O_RDWR | O_CREAT, 0600);

	edge = places_initialize();
	close(scratch);
	survives_pipes = signal(SIGPIPE, SIG_IGN) != SIG_ERR;
	for (unsigned i = 0; i < ARENA; i += 8) {
		uint64_t word = random_next(&numbers);

		memcpy(arena + i, &word, sizeof(word));
	}
}

static void tidy_up(void)
{
	close_all();
	if (chdir(FOLDER) == 0)
		empty_folder();
	if (chdir("/") == 0)
		rmdir(FOLDER);
}

int main(int count, char **arguments)
{
	unsigned long long seed = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
	unsigned times = count > 2 ? strtoul(arguments[2], NULL, 10) : 100000;

	numbers.state = seed;
	prepare();
	for (unsigned i = 0; i < times; i++) {
		run_one(below(sizeof(calls) / sizeof(calls[0])));
		if (i % DEPTH == 0 && chdir(FOLDER) < 0)
			perror("calls: " FOLDER);
	}
	tidy_up();
	printf("calls seed=%llu count=%u hash=%016llx\n", seed, times, (unsigned long long)hash);
	for (int error = 0; error < ERRORS; error++)
		if (counts[error])
			printf("%7u %s\n", counts[error], strerror(error));
	return 0;
}
