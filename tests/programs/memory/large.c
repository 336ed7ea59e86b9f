/*
 * Large pages, as a program uses them; the same on Linux, if that has a pool of 4 MiB pages.
 *
 *	large all	what mmap, fork, munmap, mprotect and madvise do to them
 *	large fill	maps one after the other until none is left, and says how many it had
 *	large errors	what mmap refuses
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#define LARGE	(4u << 20)
#define SMALL	4096u
#define TWO	(2 * LARGE)
#define PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS)
#define POOL	(PRIVATE | MAP_HUGETLB)
#define BOTH	(PROT_READ | PROT_WRITE)

static char *map(void *wanted, size_t length, int flags)
{
	return mmap(wanted, length, BOTH, flags, -1, 0);
}

/* Shows the lines of a file of /proc that have a word in them. */
static void show(const char *path, const char *word)
{
	char line[256];
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, word))
			printf("  %s", line);
	if (file)
		fclose(file);
	fflush(stdout);
}

/* The sum of a line of /proc/self/smaps over all areas, in KiB. */
static unsigned sum(const char *name)
{
	char line[256];
	unsigned kib, total = 0;
	FILE *file = fopen("/proc/self/smaps", "r");

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0 &&
		    sscanf(line + strlen(name), "%u", &kib) == 1)
			total += kib;
	if (file)
		fclose(file);
	return total;
}

static void say(const char *what)
{
	printf("%s: pool %u KiB, promoted %u KiB\n", what,
	       sum("Private_Hugetlb:") + sum("Shared_Hugetlb:"), sum("AnonHugePages:"));
	fflush(stdout);
}

static void require(int holds, const char *what)
{
	if (holds)
		return;
	printf("wrong: %s\n", what);
	exit(1);
}

static void fill(char *start, size_t length, unsigned seed)
{
	for (size_t at = 0; at < length; at += SMALL)
		*(unsigned *)(start + at) = seed + at;
}

static void check(const char *start, size_t length, unsigned seed, const char *what)
{
	for (size_t at = 0; at < length; at += SMALL)
		require(*(unsigned *)(start + at) == seed + at, what);
}

/* The child writes to both; the parent sees its own. */
static void fork_and_write(char *pages)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		check(pages, TWO, 1, "the child's contents");
		fill(pages, TWO, 2);
		check(pages, TWO, 2, "what the child has written");
		say("child");
		_exit(0);
	}
	waitpid(child, &status, 0);
	require(status == 0, "the child's end");
	check(pages, TWO, 1, "the parent's contents after the child's writes");
}

/* What a read of this address is for a child: its signal. */
static int signal_of(const volatile char *address, int write)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (write)
			*(volatile char *)address = 1;
		_exit(*address & 0);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void all(void)
{
	char *pages = map(NULL, TWO, POOL);

	require(pages != MAP_FAILED, "mmap");
	require((unsigned long)pages % LARGE == 0, "the address");
	say("mapped");
	for (size_t at = 0; at < TWO; at += SMALL)
		require(pages[at] == 0, "zeros");
	fill(pages, TWO, 1);
	say("touched");
	fork_and_write(pages);
	fill(pages, TWO, 1);

	require(mprotect(pages, LARGE, PROT_READ) == 0, "mprotect of a whole one");
	require(signal_of(pages + LARGE - 1, 1) == SIGSEGV, "a write to one that is read-only");
	say("protected");
	require(mprotect(pages, LARGE, PROT_NONE) == 0, "mprotect, nothing");
	require(signal_of(pages, 0) == SIGSEGV, "a read of one that is forbidden");
	require(mprotect(pages, LARGE, BOTH) == 0, "mprotect, back");
	check(pages, TWO, 1, "contents after mprotect");

	require(mprotect(pages + 7 * SMALL, SMALL, PROT_READ) == 0, "mprotect of a part");
	require(signal_of(pages + 7 * SMALL, 1) == SIGSEGV, "a write to the part");
	require(signal_of(pages + 6 * SMALL, 1) == 0, "a write beside the part");
	check(pages, TWO, 1, "contents after a demotion");
	say("demoted");
	require(mprotect(pages, LARGE, BOTH) == 0, "mprotect, all again");
	require(madvise(pages, TWO, MADV_HUGEPAGE) == 0, "madvise");
	check(pages, TWO, 1, "contents after a promotion");
	say("promoted");
	require(munmap(pages + LARGE, LARGE) == 0, "munmap of a whole one");
	require(signal_of(pages + LARGE, 0) == SIGSEGV, "a read of what is unmapped");
	require(munmap(pages, SMALL) == 0, "munmap of a part");
	check(pages + SMALL, LARGE - SMALL, 1 + SMALL, "contents beside a hole");
	say("cut");
	require(munmap(pages, LARGE) == 0, "munmap of the rest");

	pages = map(NULL, 3 * LARGE, PRIVATE);
	fill(pages, 3 * LARGE, 3);
	require(madvise(pages, 3 * LARGE, MADV_HUGEPAGE) == 0, "madvise of small pages");
	check(pages, 3 * LARGE, 3, "contents of small pages, promoted");
	say("small pages promoted");
	require(madvise(pages, 3 * LARGE, MADV_DONTNEED) == 0, "MADV_DONTNEED");
	require(pages[LARGE] == 0, "zeros after MADV_DONTNEED");
	show("/proc/meminfo", "Huge");
	puts("all is well");
}

/* All that there is; they are given back by the end. */
static void fill_memory(void)
{
	unsigned count = 0;
	char *page;

	while ((page = map(NULL, LARGE, POOL)) != MAP_FAILED) {
		page[count % LARGE] = 1;
		count++;
	}
	printf("had %u, then %s\n", count, strerror(errno));
}

static void refuse(const char *what, void *wanted, size_t length, int flags)
{
	char *got = map(wanted, length, flags);

	if (got == MAP_FAILED)
		printf("%s: %s\n", what, strerror(errno));
	else
		printf("%s: %u\n", what, (unsigned)((unsigned long)got % LARGE));
	if (got != MAP_FAILED)
		munmap(got, LARGE);
}

static void errors(void)
{
	char *place = (char *)0x60000000;

	refuse("one byte", NULL, 1, POOL);
	refuse("a hint in the middle", place + SMALL, LARGE, POOL);
	refuse("fixed in the middle", place + SMALL, LARGE, POOL | MAP_FIXED);
	refuse("fixed", place, LARGE, POOL | MAP_FIXED);
	refuse("no length", NULL, 0, POOL);
	refuse("pages of 4 MiB", NULL, LARGE, POOL | 22 << 26);
	refuse("pages of 2 MiB", NULL, LARGE, POOL | 21 << 26);
	refuse("too many", NULL, 0xb0000000, POOL);
	refuse("neither shared nor private", NULL, LARGE, MAP_ANONYMOUS | MAP_HUGETLB);
	refuse("of a file", NULL, LARGE, MAP_PRIVATE | MAP_HUGETLB);
}

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "all";

	if (strcmp(what, "all") == 0)
		all();
	else if (strcmp(what, "fill") == 0)
		fill_memory();
	else
		errors();
	return 0;
}
