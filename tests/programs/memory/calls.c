/*
 * calls: random calls about memory, and what each returns and leaves. The same program with the
 * same seed on Linux and on our kernel must print the same.
 *
 *	calls SEED COUNT [FROM TO]
 *
 * One line a call: number, call, result, and a sum of the layout of /proc/self/maps afterwards; for
 * calls FROM to TO the layout itself. What a kernel may choose (an address, what an area that two
 * kernels cut differently is in, inode numbers) is left out: calls work on one ARENA at addresses
 * of the program's choice, and neighbours with the same protection are one.
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
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../kernel/lib/random.h"

#define PAGE	   4096u
#define ARENA	   0x50000000u
#define PAGES	   48u /* of the arena */
#define MOST	   12u /* pages of a call */
#define FILE_PAGES 8u
#define HEAP_PAGES 16u

static struct random dice;
static sigjmp_buf back;
static siginfo_t last;
static int file, from = -1, to = -1, number;
static uint32_t heap; /* the end of the heap when it was found, on a page */

static uint32_t below(uint32_t bound)
{
	return random_below(&dice, bound);
}

/* ---- the layout ---- */

static uint32_t sum;

static void show(uint32_t start, uint32_t end, const char *rights)
{
	char line[64];
	int length = snprintf(line, sizeof(line), "%x-%x %s", start - ARENA, end - ARENA, rights);

	for (int i = 0; i < length; i++)
		sum = (sum ^ (uint8_t)line[i]) * 16777619u;
	if (number >= from && number <= to)
		printf("    %s\n", line);
}

/* A line of the file: ranges of the arena are joined if their rights are the same. */
static void layout(void)
{
	static char text[65536];
	int maps = open("/proc/self/maps", O_RDONLY), length = 0, got;
	uint32_t start, end, known = 0, known_end = 0;
	char rights[8], before[8] = "";

	while ((got = read(maps, text + length, sizeof(text) - 1 - length)) > 0)
		length += got;
	close(maps);
	text[length] = 0;
	sum = 2166136261u;
	for (char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%x-%x %4s", &start, &end, rights) != 3 || start < ARENA ||
		    end > ARENA + PAGES * PAGE)
			continue;
		if (known_end == start && strcmp(before, rights) == 0) {
			known_end = end;
			continue;
		}
		if (known_end)
			show(known, known_end, before);
		known = start;
		known_end = end;
		strcpy(before, rights);
	}
	if (known_end)
		show(known, known_end, before);
}

/* ---- what the calls are given ---- */

struct range {
	uint32_t start, length;
};

/* Whole pages of the arena; seldom what no call takes, or only a part of a page. `wraps`: or a
 * length that is too large, where a kernel of 64 bits does the same as one of 32. */
static struct range some(int wraps)
{
	uint32_t first = below(PAGES), count = 1 + below(MOST);

	if (first + count > PAGES)
		count = PAGES - first;
	struct range range = { ARENA + first * PAGE, count * PAGE };

	switch (below(40)) {
	case 0:
		range.length = 0;
		break;
	case 1:
		range.start += 1 + below(PAGE - 1);
		break;
	case 2:
		if (wraps)
			range.length = 0u - (1 + below(3)) * PAGE;
		break;
	case 3:
	case 4:
		range.length -= below(PAGE);
		break;
	}
	return range;
}

/* Not EXEC alone: what that means depends on the processor. */
static int rights(void)
{
	static const int all[] = { PROT_NONE,
				   PROT_READ,
				   PROT_READ | PROT_WRITE,
				   PROT_READ | PROT_WRITE,
				   PROT_READ | PROT_EXEC,
				   PROT_WRITE };

	return all[below(sizeof(all) / sizeof(all[0]))];
}

static int named(long result)
{
	return result == -1 ? -errno : (int)result;
}

/* An address as a distance from the arena's start. */
static int placed(void *result)
{
	return result == MAP_FAILED ? -errno : (int)((uint32_t)result - ARENA);
}

/* ---- accesses ---- */

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	last = *info;
	siglongjmp(back, 1);
}

/* Reads or writes a word; prints it, or which signal came, why, and where. */
static void touch(uint32_t address, int write, volatile uint32_t value)
{
	if (sigsetjmp(back, 1)) {
		printf("signal %d code %d at %x", last.si_signo, last.si_code,
		       (uint32_t)last.si_addr - address);
		return;
	}
	if (write)
		*(volatile uint32_t *)address = value;
	else
		value = *(volatile uint32_t *)address;
	printf("%x", value);
}

/* ---- the calls ---- */

static void do_mmap(void)
{
	static const int kinds[] = { MAP_PRIVATE | MAP_ANONYMOUS,
				     MAP_PRIVATE | MAP_ANONYMOUS,
				     MAP_SHARED | MAP_ANONYMOUS,
				     MAP_PRIVATE,
				     MAP_SHARED,
				     MAP_ANONYMOUS };
	struct range range = some(1);
	int kind = kinds[below(below(20) ? 5 : 6)], protection = rights();
	int place = below(10) || kind == MAP_ANONYMOUS ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	uint32_t page = kind & MAP_ANONYMOUS ? 0 : below(FILE_PAGES);

	printf("mmap %x %x %d %x page %u", range.start - ARENA, range.length, protection,
	       kind | place, page);
	printf(" = %d", placed(mmap((void *)range.start, range.length, protection, kind | place,
				    kind & MAP_ANONYMOUS ? -1 : file, page * PAGE)));
}

static void do_munmap(void)
{
	struct range range = some(1);

	printf("munmap %x %x", range.start - ARENA, range.length);
	printf(" = %d", named(munmap((void *)range.start, range.length)));
}

static void do_mprotect(void)
{
	struct range range = some(0);
	int protection = rights();

	printf("mprotect %x %x %d", range.start - ARENA, range.length, protection);
	printf(" = %d", named(mprotect((void *)range.start, range.length, protection)));
}

/* On memory that has just been mapped: it is one area on every kernel. What has moved is read, and
 * given back. */
static void do_mremap(void)
{
	uint32_t first = below(PAGES - MOST), old = 1 + below(MOST), new = below(MOST + 4);
	uint32_t start = ARENA + first * PAGE;
	int flags = below(2) ? MREMAP_MAYMOVE : 0;
	uint32_t *pages = mmap((void *)start, old * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	for (uint32_t i = 0; i < old; i += 2)
		pages[i * PAGE / 4] = number + i;
	printf("mremap %x %x %x %d", start - ARENA, old * PAGE, new *PAGE, flags);
	uint32_t *result = mremap(pages, old * PAGE, new *PAGE, flags);

	if (result == MAP_FAILED || result == pages) {
		printf(" = %d", placed(result));
		return;
	}
	printf(" moved:");
	for (uint32_t i = 0; i < new && i <= old; i++)
		printf(" %x", result[i * PAGE / 4]);
	munmap(result, new *PAGE);
}

/* The heap, which must not grow over a page that is in its way, and is zero where it is new. */
static void do_brk(void)
{
	uint32_t wanted = heap + below(HEAP_PAGES) * PAGE + (below(2) ? below(PAGE) : 0);
	uint32_t before = (uint32_t)sbrk(0);
	uint32_t now = syscall(SYS_brk, wanted);

	printf("brk %x = %x", wanted - heap, now - heap);
	brk((void *)now); /* the library remembers it */
	for (uint32_t at = before; at + 1 < now; at += PAGE)
		if (*(volatile uint8_t *)at)
			printf(" not zero at %x", at - heap);
	for (uint32_t at = heap; at + 1 < now; at += PAGE / 2)
		*(volatile uint8_t *)at = 0xee;
}

static void do_madvise(void)
{
	static const int advices[] = { MADV_NORMAL, MADV_DONTNEED, MADV_DONTNEED, MADV_WILLNEED,
				       77 };
	struct range range = some(0);
	int advice = advices[below(5)];

	printf("madvise %x %x %d", range.start - ARENA, range.length, advice);
	printf(" = %d", named(madvise((void *)range.start, range.length, advice)));
}

static void do_msync(void)
{
	static const int all[] = { MS_SYNC, MS_ASYNC, MS_SYNC | MS_ASYNC, MS_INVALIDATE, 64 };
	struct range range = some(0);
	int flags = all[below(5)];

	printf("msync %x %x %d", range.start - ARENA, range.length, flags);
	printf(" = %d", named(msync((void *)range.start, range.length, flags)));
}

static void do_mincore(void)
{
	static unsigned char there[PAGES];
	struct range range = some(0);

	printf("mincore %x %x", range.start - ARENA, range.length);
	printf(" = %d", named(mincore((void *)range.start, range.length, there)));
}

static void do_access(void)
{
	uint32_t address = ARENA + below(PAGES) * PAGE + below(PAGE / 4) / 512 * 2048;
	int write = below(2);

	printf("%s %x = ", write ? "write" : "read", address - ARENA);
	touch(address, write, number);
}

/* A system call in the program's place: a hole is EFAULT. Only inside the file: for the rest
 * Linux's file systems do not agree on what comes first. */
static void do_copy(void)
{
	uint32_t address = ARENA + below(PAGES) * PAGE + PAGE - 8, place = below(FILE_PAGES * 2);
	int write = below(2);
	off_t end = lseek(file, 0, SEEK_END), at = end / (FILE_PAGES * 2) * place;

	if (end == 0)
		return;
	printf("%s %x %d", write ? "pwrite" : "pread", address - ARENA, (int)at);
	printf(" = %d", named(write ? pwrite(file, (void *)address, 4, at)
				    : pread(file, (void *)address, 4, at)));
}

static void do_truncate(void)
{
	uint32_t length = below(FILE_PAGES * 2 + 1) * (PAGE / 2);

	printf("ftruncate %u = %d", length, named(ftruncate(file, length)));
}

static void call(void)
{
	static void (*const calls[])(void) = {
		do_mmap,    do_mmap,   do_munmap, do_mprotect, do_mprotect, do_mremap,	 do_brk,
		do_madvise, do_access, do_access, do_access,   do_access,   do_truncate,
	};
	static void (*const seldom[])(void) = { do_msync, do_mincore, do_copy, do_copy };

	if (below(6))
		calls[below(sizeof(calls) / sizeof(calls[0]))]();
	else
		seldom[below(sizeof(seldom) / sizeof(seldom[0]))]();
}

static void prepare(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	file = open("calls.file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (uint32_t i = 0; i < FILE_PAGES * PAGE / 4; i++) {
		uint32_t word = 0xf11e0000 + i;

		if (write(file, &word, 4) != 4)
			exit(2);
	}
	unlink("calls.file");
	heap = ((uint32_t)sbrk(0) + PAGE - 1) & -PAGE;
	brk((void *)heap);
}

int main(int count, char **words)
{
	static char buffer[1 << 16];
	uint32_t calls = count > 2 ? strtoul(words[2], NULL, 0) : 1000;

	dice.state = count > 1 ? strtoull(words[1], NULL, 0) : 1;
	if (count > 4) {
		from = atoi(words[3]);
		to = atoi(words[4]);
	}
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer)); /* no malloc: the heap is ours */
	prepare();
	for (number = 0; number < (int)calls; number++) {
		printf("%d ", number);
		call();
		layout();
		printf("; %08x\n", sum);
	}
	return 0;
}
