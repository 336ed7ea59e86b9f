/* Locks that the kernel hands over (PTHREAD_PRIO_INHERIT), and programs that wait for each other's
 * locks of files. */
#include "threads.h"

#include <linux/futex.h>

#define NOBODY 0x3ffffff0u /* a pid that no task has */

static pthread_mutex_t mutex, *shared;
static volatile long count;
static volatile sig_atomic_t times;

static void initialize(pthread_mutex_t *which, int robust, int type, int sharing)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutexattr_setrobust(&attributes, robust);
	pthread_mutexattr_settype(&attributes, type);
	pthread_mutexattr_setpshared(&attributes, sharing);
	say("init", pthread_mutex_init(which, &attributes));
}

static void *add(void *number)
{
	unsigned state = seed + (uintptr_t)number;

	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&mutex);
		long before = count;

		dawdle(&state);
		count = before + 1;
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

/* With the mutex held by the caller. */
static void *
try
	(void *unused)
	{
		struct timespec soon;

		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec = (soon.tv_nsec + 50000000) % 1000000000;
		soon.tv_sec += soon.tv_nsec < 50000000;
		say("busy", pthread_mutex_trylock(&mutex));
		say("not in time", pthread_mutex_timedlock(&mutex, &soon));
		say("not its own", pthread_mutex_unlock(&mutex));
		return NULL;
	}

static void note(int signal)
{
	times++;
}

/* A signal with a handler: the lock is waited for all the same. */
static void *wait_for_it(void *unused)
{
	struct sigaction action = { .sa_handler = note };

	sigaction(SIGUSR1, &action, NULL);
	sem_post(&done);
	say("after a signal", pthread_mutex_lock(&mutex));
	say("count", count);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void *die_with_it(void *unused)
{
	pthread_mutex_lock(&mutex);
	sem_post(&done);
	rest(50);
	return NULL;
}

static void in_processes(void)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	initialize(shared, PTHREAD_MUTEX_ROBUST, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED);
	pthread_mutex_lock(shared);
	pid_t child = fork();

	if (child == 0) {
		int result = pthread_mutex_lock(shared);

		_exit(result); /* and does not unlock it */
	}
	rest(50);
	pthread_mutex_unlock(shared);
	say("the child's lock", end_of(child));
	say("its owner has ended", pthread_mutex_lock(shared));
	say("consistent", pthread_mutex_consistent(shared));
	pthread_mutex_unlock(shared);
	munmap(shared, 4096);
}

static long call(uint32_t *word, int operation)
{
	return syscall(SYS_futex, word, operation, 0, NULL, NULL, 0) == 0 ? 0 : errno;
}

static void with_words(void)
{
	uint32_t word = 0;

	say("unlock a free one", call(&word, FUTEX_UNLOCK_PI));
	say("take", call(&word, FUTEX_TRYLOCK_PI));
	say("is mine", word == (uint32_t)syscall(SYS_gettid));
	say("take again", call(&word, FUTEX_LOCK_PI));
	say("try again", call(&word, FUTEX_TRYLOCK_PI));
	say("unlock", call(&word, FUTEX_UNLOCK_PI));
	say("word", word);
	word = NOBODY;
	say("no such owner", call(&word, FUTEX_LOCK_PI));
	say("nowhere", call((uint32_t *)16, FUTEX_LOCK_PI));
}

void part_inherit(void)
{
	pthread_t thread;

	initialize(&mutex, PTHREAD_MUTEX_STALLED, PTHREAD_MUTEX_ERRORCHECK,
		   PTHREAD_PROCESS_PRIVATE);
	each(add);
	say("count", count);
	pthread_mutex_lock(&mutex);
	say("again", pthread_mutex_lock(&mutex));
	pthread_join(start(try, NULL), NULL);
	thread = start(wait_for_it, NULL);
	sem_wait(&done);
	rest(50);
	pthread_kill(thread, SIGUSR1);
	rest(50);
	say("signals", times);
	count = 0;
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	initialize(&mutex, PTHREAD_MUTEX_ROBUST, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE);
	thread = start(die_with_it, NULL);
	sem_wait(&done);
	say("its owner ended meanwhile", pthread_mutex_lock(&mutex));
	pthread_join(thread, NULL);
	in_processes();
	with_words();
}

static long lock_byte(int file, int command, int type, int byte)
{
	struct flock lock = { .l_type = type, .l_start = byte, .l_len = 1 };

	return fcntl(file, command, &lock) == 0 ? 0 : errno;
}

/* Each of three has a byte, and wants that of the next. */
void part_circle(void)
{
	char name[] = "/tmp/circleXXXXXX";
	int file = mkstemp(name);
	pid_t children[2];

	unlink(name);
	lock_byte(file, F_SETLK, F_WRLCK, 0);
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] > 0) {
			rest(50);
			continue;
		}
		lock_byte(file, F_SETLK, F_WRLCK, i + 1);
		rest(100);
		_exit(lock_byte(file, F_SETLKW, F_WRLCK, (i + 2) % 3));
	}
	rest(200);
	say("a circle", lock_byte(file, F_SETLKW, F_WRLCK, 1));
	say("without waiting", lock_byte(file, F_SETLK, F_WRLCK, 1));
	lock_byte(file, F_SETLK, F_UNLCK, 0);
	for (int i = 1; i >= 0; i--)
		say("then", end_of(children[i]));
	say("and all are gone", lock_byte(file, F_SETLKW, F_WRLCK, 1));
	close(file);
}
