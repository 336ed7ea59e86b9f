/*
 * kept: memory that is pinned or grows downwards, the limits of memory, the names of files that are
 * mapped, and what is counted of a program, one line a promise. The same on Linux.
 *
 *	kept [DIRECTORY]	where its files are; /tmp
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define MIB  (1u << 20)
#define BOTH (PROT_READ | PROT_WRITE)
#define OWN  (MAP_PRIVATE | MAP_ANONYMOUS)

static int number;

static void ok(int good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

static int fails(long result, int error)
{
	return result == -1 && errno == error;
}

static char *map(size_t pages, int flags)
{
	return mmap(NULL, pages * PAGE, BOTH, OWN | flags, -1, 0);
}

/* What a child that calls a function ends with: its exit code, or its signal + 256. */
static int child_of(int (*run)(void))
{
	int status = 0;

	if (fork() == 0)
		_exit(run());
	wait(&status);
	return WIFSIGNALED(status) ? WTERMSIG(status) + 256 : WEXITSTATUS(status);
}

/* A number in a file of /proc, after a word and, in smaps, for the range at an address; -1. */
static long number_in(const char *path, const void *start, const char *word)
{
	FILE *file = fopen(path, "r");
	char line[512], range[16];
	int is_there = !start;
	long value = -1;

	snprintf(range, sizeof(range), "%08lx-", (unsigned long)(uintptr_t)start);
	while (file && value < 0 && fgets(line, sizeof(line), file)) {
		if (start && strstr(line, range) == line)
			is_there = 1;
		else if (is_there && strncmp(line, word, strlen(word)) == 0)
			value = atol(line + strlen(word));
	}
	if (file)
		fclose(file);
	return value;
}

static long in_smaps(const void *start, const char *word)
{
	return number_in("/proc/self/smaps", start, word);
}

static long locked(void)
{
	return number_in("/proc/self/status", NULL, "VmLck:");
}

/* ---- mlock ---- */

static char *inherited;

static int child_is_free(void)
{
	return locked() == 0 && in_smaps(inherited, "Locked:") == 0;
}

static void test_pins(void)
{
	char *memory = map(9, 0), *none = mmap(NULL, PAGE, PROT_NONE, OWN, -1, 0);
	long before = locked();

	munmap(memory, PAGE);
	memory += PAGE;
	munmap(memory + 7 * PAGE, PAGE);
	ok(mlock(memory, 6 * PAGE) == 0 && in_smaps(memory, "Rss:") == 24, "mlock brings pages");
	ok(in_smaps(memory, "Locked:") == 24 && locked() == before + 24, "and it is seen");
	ok(mlock(memory + PAGE, PAGE) == 0 && locked() == before + 24, "twice is once");
	ok(munlock(memory + 2 * PAGE + 1, 1) == 0 && in_smaps(memory, "Size:") == 8 &&
	       in_smaps(memory + 2 * PAGE, "Locked:") == 0 && locked() == before + 20,
	   "a page of them is free, which is the range around an address");
	ok(mlock(memory + 2 * PAGE, PAGE) == 0 && in_smaps(memory, "Locked:") == 24,
	   "and one area again");
	inherited = memory;
	ok(child_of(child_is_free), "a child has none");
	ok(fails(msync(memory, 6 * PAGE, MS_INVALIDATE | MS_ASYNC), EBUSY) &&
	       msync(memory, 6 * PAGE, MS_ASYNC) == 0 &&
	       msync(memory + 6 * PAGE, PAGE, MS_INVALIDATE) == 0,
	   "msync does not invalidate it");
	ok(fails(madvise(memory, PAGE, MADV_DONTNEED), EINVAL), "nor does madvise");
	ok(mprotect(memory, 2 * PAGE, PROT_READ) == 0 && in_smaps(memory, "Locked:") == 8,
	   "mprotect leaves it pinned");
	ok(fails(mlock(memory, 9 * PAGE), ENOMEM) && locked() == before + 28,
	   "a range with a hole: ENOMEM, and the part before it is pinned");
	ok(fails(mlock(none, PAGE), ENOMEM) && munlock(none, PAGE) == 0, "what nobody may touch");
	ok(mlock(memory + 8 * PAGE, 0) == 0, "no range");
	ok(munmap(memory, 7 * PAGE) == 0 && locked() == before, "munmap frees it");
	munmap(none, PAGE);
}

static void test_all(void)
{
	char *memory = map(4, 0), *later;

	ok(fails(mlockall(0), EINVAL) && fails(mlockall(8), EINVAL) && fails(mlockall(4), EINVAL),
	   "mlockall wants flags");
	ok(mlockall(MCL_FUTURE) == 0 && in_smaps(memory, "Locked:") == 0, "MCL_FUTURE is later");
	later = map(4, 0);
	munmap(later + 3 * PAGE, PAGE);
	ok(in_smaps(later, "Rss:") >= 12 && in_smaps(later, "Locked:") >= 12, "what is mapped");
	ok(munlockall() == 0 && locked() == 0, "munlockall");
	munmap(later, 3 * PAGE);
	later = map(4, MAP_LOCKED);
	ok(in_smaps(later, "Locked:") == 16, "MAP_LOCKED");
	munmap(later, 4 * PAGE);
	ok(syscall(376, memory, 4 * PAGE, 1) == 0 && locked() == 16 &&
	       fails(syscall(376, memory, PAGE, 2), EINVAL),
	   "mlock2, as pages are touched");
	munmap(memory, 4 * PAGE);
	memory = map(4, MAP_POPULATE);
	unsigned char there[4] = { 0 };

	ok(mincore(memory, 4 * PAGE, there) == 0 && (there[0] & there[3] & 1), "MAP_POPULATE");
	munmap(memory, 4 * PAGE);
}

/* ---- what grows ---- */

/* A page that grows downwards, at the end of `pages` free ones; a neighbour `below` pages below it.
 */
static volatile char *growing(size_t pages, size_t below)
{
	char *room = map(pages, 0), *top = room + (pages - 1) * PAGE;

	munmap(room, pages * PAGE);
	if (below)
		mmap(top - below * PAGE, PAGE, BOTH, OWN | MAP_FIXED, -1, 0);
	return mmap(top, PAGE, BOTH, OWN | MAP_FIXED | MAP_GROWSDOWN, -1, 0);
}

static int grows(void)
{
	volatile char *top = growing(1024, 0);

	for (size_t page = 0; page < 300; page++)
		top[-page * PAGE] = 1;
	return in_smaps((const char *)top - 299 * PAGE, "Size:") == 1200;
}

/* As glibc does for a library that wants to execute its stack: of one page, all below it. */
static int protects_what_grew(void)
{
	volatile char *top = growing(1024, 0);

	top[-9 * (int)PAGE] = 1;
	if (mprotect((void *)top, PAGE, BOTH | PROT_EXEC | PROT_GROWSDOWN) != 0)
		return 0;
	return in_smaps((const char *)top - 9 * PAGE, "Size:") == 40;
}

static int grows_to_neighbour(void)
{
	volatile char *top = growing(1024, 300);

	top[-40 * (int)PAGE] = 1;
	top[-42 * (int)PAGE] = 1;
	return 7;
}

static int grows_into_gap(void)
{
	volatile char *top = growing(1024, 300);

	top[-44 * (int)PAGE] = 1;
	return 7;
}

static int grows_beyond_limit(void)
{
	const struct rlimit small = { 64 * PAGE, 64 * PAGE };
	volatile char *top = growing(1024, 0);

	setrlimit(RLIMIT_STACK, &small);
	top[-63 * (int)PAGE] = 1;
	printf("ok: at its limit\n");
	fflush(stdout);
	top[-64 * (int)PAGE] = 1;
	return 7;
}

static void test_growth(void)
{
	int file = open("/proc/self/exe", O_RDONLY);

	ok(child_of(grows), "MAP_GROWSDOWN grows");
	ok(child_of(protects_what_grew), "mprotect with PROT_GROWSDOWN protects all of it");
	ok(child_of(grows_to_neighbour) == 7, "towards a neighbour");
	ok(child_of(grows_into_gap) == 256 + SIGSEGV, "not into the gap above it");
	ok(child_of(grows_beyond_limit) == 256 + SIGSEGV, "nor beyond the stack's limit");
	ok(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_GROWSDOWN, file, 0) == MAP_FAILED &&
	       errno == EINVAL,
	   "no file grows");
	close(file);
	char *top = map(1, MAP_GROWSDOWN), *next = map(1, 0);

	ok(next > top || next <= top - (MIB + PAGE), "what is mapped next leaves it room");
	ok(fails(mprotect(next, PAGE, PROT_READ | PROT_GROWSDOWN), EINVAL),
	   "only what grows has it");
	munmap(top, PAGE);
	munmap(next, PAGE);
}

/* ---- /dev/zero ---- */

static volatile char *zeros;

static int writes_zeros(void)
{
	zeros[PAGE] = 5;
	return 0;
}

static void test_zeros(void)
{
	int file = open("/dev/zero", O_RDWR);
	volatile char *own = mmap(NULL, PAGE, BOTH, MAP_PRIVATE, file, PAGE);
	volatile char *other = mmap(NULL, 2 * PAGE, BOTH, MAP_SHARED, file, 0);

	zeros = mmap(NULL, 2 * PAGE, BOTH, MAP_SHARED, file, 0);
	close(file);
	ok(own != MAP_FAILED && own[5] == 0 && (own[5] = 1), "/dev/zero, private");
	ok(zeros != MAP_FAILED && zeros[PAGE] == 0 && child_of(writes_zeros) == 0 &&
	       zeros[PAGE] == 5,
	   "shared: with a child");
	ok(other[PAGE] == 0, "and each time another");
	file = open("/dev/zero", O_RDONLY);
	ok(mmap(NULL, PAGE, BOTH, MAP_SHARED, file, 0) == MAP_FAILED && errno == EACCES,
	   "not to write, open to read only");
	close(file);
	file = open("/dev/null", O_RDWR);
	ok(mmap(NULL, PAGE, BOTH, MAP_SHARED, file, 0) == MAP_FAILED && errno == ENODEV,
	   "/dev/null has no memory");
	close(file);
}

/* ---- limits ---- */

static int data_is_kept(void)
{
	const struct rlimit limit = { 8 * MIB, 8 * MIB };
	int file = open("/proc/self/exe", O_RDONLY), bad = 0;

	setrlimit(RLIMIT_DATA, &limit);
	char *some = map(4 * MIB / PAGE, 0), *reserved;

	bad |= some == MAP_FAILED ? 1 : 0;
	bad |= map(5 * MIB / PAGE, 0) != MAP_FAILED || errno != ENOMEM ? 2 : 0;
	bad |= mmap(some, 4 * MIB, BOTH, OWN | MAP_FIXED, -1, 0) != some ? 4 : 0;
	errno = 0;
	bad |= sbrk(5 * MIB) != (void *)-1 || errno != ENOMEM || sbrk(MIB) == (void *)-1 ? 8 : 0;
	reserved = mmap(NULL, 16 * MIB, PROT_READ, OWN, -1, 0);
	bad |= reserved == MAP_FAILED || mprotect(reserved, 16 * MIB, BOTH) == 0 ? 16 : 0;
	bad |= mmap(NULL, 16 * MIB, BOTH, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? 32 : 0;
	bad |= mmap(NULL, 16 * MIB, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED ? 64 : 0;
	munmap(some, 4 * MIB);
	bad |= map(4 * MIB / PAGE, 0) == MAP_FAILED ? 128 : 0;
	return bad;
}

/* No two neighbours can be one area. */
static int areas_are_kept(void)
{
	long most = number_in("/proc/sys/vm/max_map_count", NULL, ""), made = 0;
	char *room = mmap(NULL, (most + 16) * PAGE, PROT_NONE, OWN | MAP_NORESERVE, -1, 0);

	while (made < most && mprotect(room + 2 * made * PAGE, PAGE, PROT_READ) == 0)
		made++;
	if (room == MAP_FAILED || errno != ENOMEM || made < most / 2 - 40 || made > most / 2)
		return 1;
	char *middle = room + (2 * made + 3) * PAGE;

	/* One may be left: two are missing where the middle of an area is to be another. */
	while (mmap(NULL, PAGE, made++ % 2 ? PROT_READ : BOTH, MAP_SHARED | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED)
		if (made > most)
			return 3;
	if (errno != ENOMEM)
		return 4;
	return !fails(munmap(middle, PAGE), ENOMEM) ? 2 : munmap(room, 9 * PAGE) != 0 ? 5 : 0;
}

static void test_limits(void)
{
	ok(child_of(data_is_kept) == 0, "RLIMIT_DATA is kept");
	ok(child_of(areas_are_kept) == 0, "and max_map_count");
}

/* ---- names ---- */

/* Does the line of /proc/self/maps for an address end so? */
static int is_named(const char *start, const char *end)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[512], range[16];
	int good = 0;

	snprintf(range, sizeof(range), "%08lx-", (unsigned long)(uintptr_t)start);
	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, range) == line && strlen(line) > strlen(end))
			good =
			    strncmp(line + strlen(line) - 1 - strlen(end), end, strlen(end)) == 0;
	if (file)
		fclose(file);
	return good;
}

static int leads_to_deleted(const char *link)
{
	char text[200] = "";
	ssize_t length = readlink(link, text, sizeof(text) - 1);

	return length > 10 && strcmp(text + length - 10, " (deleted)") == 0;
}

static void test_names(const char *directory)
{
	char path[100], link[40], again[110];

	snprintf(path, sizeof(path), "%s/kept-name", directory);
	snprintf(again, sizeof(again), "%s/kept-again", directory);
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *shown = mmap(NULL, PAGE, BOTH, MAP_SHARED, file, 0);

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	ok(file >= 0 && is_named(shown, path), "a mapped file's name");
	ok(unlink(path) == 0 && leads_to_deleted(link) && is_named(shown, " (deleted)"),
	   "it is deleted, and says so");
	ok(fails(linkat(AT_FDCWD, link, AT_FDCWD, again, AT_SYMLINK_FOLLOW), ENOENT),
	   "and gets no name again");
	int other = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);

	ok(leads_to_deleted(link) && is_named(shown, " (deleted)"),
	   "nor the name of the one that comes after it");
	unlink(path);
	close(file);
	close(other);
	munmap(shown, PAGE);
}

/* ---- what is counted ---- */

static struct rusage used_by(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return usage;
}

static int touches(void)
{
	char *memory = map(8 * MIB / PAGE, 0);

	memset(memory, 1, 8 * MIB);
	munmap(memory, 8 * MIB);
	usleep(1000);
	return 0;
}

/* Its own child touches twice as much. */
static int has_child(void)
{
	char *memory = map(16 * MIB / PAGE, 0);

	memset(memory, 1, 16 * MIB);
	munmap(memory, 16 * MIB);
	return child_of(touches);
}

static void test_counts(void)
{
	const struct rusage first = used_by(RUSAGE_SELF);
	const struct rusage before = used_by(RUSAGE_CHILDREN);
	long faults = number_in("/proc/vmstat", NULL, "pgfault ");

	touches();
	const struct rusage own = used_by(RUSAGE_SELF);

	ok(own.ru_minflt - first.ru_minflt >= 2048 && own.ru_minflt - first.ru_minflt < 3000 &&
	       own.ru_majflt == first.ru_majflt && own.ru_nvcsw > first.ru_nvcsw &&
	       own.ru_maxrss >= 8192, /* more on Linux, if what started it had more */
	   "faults, and the most memory that it had");
	ok(number_in("/proc/vmstat", NULL, "pgfault ") - faults >= 2048 &&
	       number_in("/proc/vmstat", NULL, "pgmajfault ") >= 0,
	   "the system's faults");
	struct rusage child, after;
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(has_child());
	ok(wait4(pid, &status, 0, &child) == pid && child.ru_minflt >= 6144 &&
	       child.ru_minflt < 8000 && child.ru_maxrss >= 16384 && child.ru_maxrss < 20480 &&
	       child.ru_nvcsw > 0,
	   "a child's and its children's");
	after = used_by(RUSAGE_CHILDREN);
	ok(after.ru_minflt - before.ru_minflt == child.ru_minflt &&
	       after.ru_nvcsw - before.ru_nvcsw == child.ru_nvcsw &&
	       after.ru_maxrss ==
		   (child.ru_maxrss > before.ru_maxrss ? child.ru_maxrss : before.ru_maxrss),
	   "are counted once it was waited for");
	signal(SIGCHLD, SIG_IGN);
	ok(child_of(touches) == 0 && used_by(RUSAGE_CHILDREN).ru_minflt == after.ru_minflt,
	   "not those of a child that nobody waits for");
	signal(SIGCHLD, SIG_DFL);
}

int main(int count, char **words)
{
	test_pins();
	test_all();
	test_growth();
	test_zeros();
	test_limits();
	test_names(count > 1 ? words[1] : "/tmp");
	test_counts();
	printf("1..%d\n", number);
	return 0;
}
