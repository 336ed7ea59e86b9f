/*
 * greedy: one program wants as much of the kernel's own memory as it can get: locks of a file, and
 * threads. There is a limit to each, as on Linux, but ours are lower.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 100000
#define NAME "/tmp/greedy"

static int number;

static void ok(int good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

static int lock(int file, int type, off_t first, off_t length)
{
	struct flock wanted = { .l_type = type, .l_start = first, .l_len = length };

	return fcntl(file, F_SETLK, &wanted) == 0 ? 0 : errno;
}

/* Each byte's lock is one of its own, because the next byte is not locked. */
static void test_locks(void)
{
	int file = open(NAME, O_RDWR | O_CREAT, 0600), count = 0;

	while (count < MOST && lock(file, F_WRLCK, 2 * count, 1) == 0)
		count++;
	ok(count > 1000 && count < MOST, "locks of a file have a limit");
	ok(lock(file, F_WRLCK, 2 * count, 1) == ENOLCK, "ENOLCK beyond it");
	ok(lock(file, F_UNLCK, 0, 1) == 0, "one can be given back");
	ok(lock(file, F_WRLCK, 0, 1) == 0, "and taken again");
	ok(lock(file, F_UNLCK, 0, 0) == 0, "all can be given back");
	lock(file, F_WRLCK, 0, 0);
	for (count = 0; count < MOST && lock(file, F_UNLCK, 2 * count + 1, 1) == 0;)
		count++;
	ok(count > 1000 && count < MOST, "the middle of a lock cannot be given back without end");
	close(file);
	unlink(NAME);
}

static void *sleep_for_ever(void *unused)
{
	pause();
	return NULL;
}

static void test_threads(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int count = 0, error = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384);
	while (count < MOST &&
	       !(error = pthread_create(&thread, &attributes, sleep_for_ever, NULL)))
		count++;
	ok(count > 50 && count < MOST && (error == EAGAIN || error == ENOMEM),
	   "threads have a limit");
}

int main(void)
{
	mkdir("/tmp", 0777);
	test_locks();
	test_threads();
	printf("1..%d\n", number);
	return 0;
}
