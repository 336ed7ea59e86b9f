/*
 * races: two threads of a program call the kernel for the same thing, while one of them sleeps in
 * the middle of its call. For the kernel's `faults slow`, where each page fault sleeps: so the
 * other thread always comes in between. On Linux now one is first and now the other.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE  4096
#define PLACE ((char *)0x50000000)

#define SHMCTL 24 /* of ipc, without what glibc does before the call */
#define IPC_64 0x100

static int number;
static volatile int goes; /* the other thread may begin */
static volatile int came; /* and has done its part */

static void ok(int good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

/* Runs the function in another thread, as soon as this one sleeps. */
static pthread_t meanwhile(void *(*function)(void *), void *argument)
{
	pthread_t thread;

	goes = came = 0;
	pthread_create(&thread, NULL, function, argument);
	while (came == 0) /* it waits, and its stack is there */
		sched_yield();
	return thread;
}

static void wait_to_go(void)
{
	came = 1;
	while (!goes)
		;
}

/* A page that a copy must fault in first. */
static char *absent(void)
{
	return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* ---- brk ---- */

static uintptr_t heap;

static void *grow(void *unused)
{
	wait_to_go();
	syscall(SYS_brk, heap + 8 * PAGE);
	return NULL;
}

/* The smaller heap's last page is cleared at its end, which sleeps. */
static void test_break(void)
{
	heap = (syscall(SYS_brk, 0) + PAGE - 1) / PAGE * PAGE;
	syscall(SYS_brk, heap + 4 * PAGE);
	madvise((void *)heap, 4 * PAGE, MADV_DONTNEED);
	pthread_t thread = meanwhile(grow, NULL);

	goes = 1;
	syscall(SYS_brk, heap + PAGE / 2);
	pthread_join(thread, NULL);
	ok((uintptr_t)syscall(SYS_brk, 0) == heap + 8 * PAGE, "brk: of two calls both count");
}

/* ---- shared memory ---- */

static void *remove_segment(void *id)
{
	wait_to_go();
	shmctl((intptr_t)id, IPC_RMID, NULL);
	return NULL;
}

static void test_segment(void)
{
	int id = shmget(IPC_PRIVATE, PAGE, 0600);
	pthread_t thread = meanwhile(remove_segment, (void *)(intptr_t)id);

	goes = 1;
	int result = syscall(SYS_ipc, SHMCTL, id, IPC_SET | IPC_64, 0, absent());

	ok(result == -1 && (errno == EINVAL || errno == EIDRM), "IPC_SET: the segment is gone");
	pthread_join(thread, NULL);
}

/* ---- a futex ---- */

static void *replace_and_wake(void *unused)
{
	const struct timespec time = { .tv_nsec = 50000000 };

	wait_to_go();
	mmap(PLACE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	nanosleep(&time, NULL);
	return (void *)(intptr_t)syscall(SYS_futex, PLACE, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void test_futex(void)
{
	const struct timespec time = { .tv_sec = 2 };
	void *woken;

	mmap(PLACE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	pthread_t thread = meanwhile(replace_and_wake, NULL);

	goes = 1;
	int result = syscall(SYS_futex, PLACE, FUTEX_WAIT, 0, &time, NULL, 0);

	pthread_join(thread, &woken);
	ok(result == 0 && (intptr_t)woken == 1,
	   "a futex in memory that is replaced is the new one");
}

/* One that waits in memory which is not there any more is not woken by the next one there. */
static void *wait_long(void *unused)
{
	const struct timespec time = { .tv_nsec = 300000000 };

	came = 1;
	return (void *)(intptr_t)syscall(SYS_futex, PLACE, FUTEX_WAIT, 0, &time, NULL, 0);
}

static void test_reuse(void)
{
	const struct timespec time = { .tv_nsec = 100000000 };
	intptr_t woken = 0;
	void *result;

	mmap(PLACE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	pthread_t thread = meanwhile(wait_long, NULL);

	nanosleep(&time, NULL);
	for (unsigned i = 0; i < 100; i++) {
		munmap(PLACE, PAGE);
		mmap(PLACE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0);
		woken += syscall(SYS_futex, PLACE, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
	pthread_join(thread, &result);
	ok(woken == 0 && (intptr_t)result == -1,
	   "nor is one that waits in memory that is gone woken");
}

int main(void)
{
	test_break();
	test_segment();
	test_futex();
	test_reuse();
	printf("1..%d\n", number);
	return 0;
}
