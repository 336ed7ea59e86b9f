/*
 * tlscheck: thread-local storage as glibc and musl use it: set_thread_area picks a descriptor, and
 * gs reaches the block through it; over fork, and while another process has another block.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* As Linux's struct user_desc. The bits are: 32-bit segment, limit in pages, usable. */
struct area {
	int number; /* of the descriptor; -1: the kernel is to choose, and says here which */
	uint32_t base, limit, bits;
};
#define BITS 0x51

static uint32_t block[4]; /* each word holds its own number, and the process's mark on top */

static int descriptor = -1;

static int set(uint32_t *base)
{
	struct area area = { descriptor, (uint32_t)base, 0xfffff, BITS };

	if (syscall(SYS_set_thread_area, &area) < 0) {
		perror("tlscheck: set_thread_area");
		return -1;
	}
	descriptor = area.number;
	__asm__ volatile("mov %w0, %%gs" : : "r"(descriptor << 3 | 3));
	return 0;
}

static uint32_t word(uint32_t index)
{
	uint32_t value;

	__asm__ volatile("movl %%gs:(%1), %0" : "=r"(value) : "r"(index * 4));
	return value;
}

static void mark(uint32_t value)
{
	for (uint32_t i = 0; i < 4; i++)
		block[i] = value + i;
}

static int check(const char *who, uint32_t value)
{
	for (int round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < 4; i++) {
			if (word(i) == value + i)
				continue;
			printf("%s: word %u of gs is %u, not %u\n", who, (unsigned)i,
			       (unsigned)word(i), (unsigned)(value + i));
			return 1;
		}
		sched_yield();
	}
	return 0;
}

/* The child gets the parent's descriptor; then it moves it to another address. */
static int run_child(void)
{
	static uint32_t other[4] = { 300, 301, 302, 303 };

	mark(200);
	if (check("the child", 200) || set(other) < 0)
		return 1;
	return check("the child with a block of its own", 300);
}

int main(void)
{
	int status = 0;

	if (set(block) < 0)
		return 1;
	mark(100);
	if (check("the process", 100))
		return 1;
	pid_t process = fork();

	if (process == 0)
		_exit(run_child());
	if (process < 0)
		printf("fork: %s; the rest is left out\n", strerror(errno));
	int failed = check("the parent", 100);

	if (process > 0)
		waitpid(process, &status, 0);
	puts(failed || status ? "tlscheck: failed" : "tlscheck: ok");
	return failed || status;
}
