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

#define MOST  100000
#define NAME  "/tmp/greedy"
#define FILES 50

static int number, files[FILES];

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

/* Each byte's lock is one of its own, because the next byte is not locked. The limit is one of all
 * files together, and the list of each is short: a longer one takes longer to look through. */
static int lock_byte(int type, int at)
{
	return lock(files[at % FILES], type, 2 * (at / FILES) + (type == F_UNLCK), 1);
}

static int count_locks(int type)
{
	int count = 0;

	while (count < MOST && lock_byte(type, count) == 0)
		count++;
	return count;
}

static int lock_whole(int type)
{
	int error = 0;

	for (int i = 0; i < FILES; i++)
		error |= lock(files[i], type, 0, 0);
	return error;
}

static void test_locks(void)
{
	char name[sizeof(NAME) + 2];
	int count;

	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), NAME "%d", i);
		files[i] = open(name, O_RDWR | O_CREAT, 0600);
		unlink(name);
	}
	count = count_locks(F_WRLCK);
	ok(count > 1000 && count < MOST, "locks of files have a limit");
	ok(lock_byte(F_WRLCK, count) == ENOLCK, "ENOLCK beyond it");
	ok(lock(files[0], F_UNLCK, 0, 1) == 0, "one can be given back");
	ok(lock(files[0], F_WRLCK, 0, 1) == 0, "and taken again");
	ok(lock_whole(F_UNLCK) == 0, "all can be given back");
	lock_whole(F_WRLCK);
	count = count_locks(F_UNLCK);
	ok(count > 1000 && count < MOST, "the middle of a lock cannot be given back without end");
	for (int i = 0; i < FILES; i++)
		close(files[i]);
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
