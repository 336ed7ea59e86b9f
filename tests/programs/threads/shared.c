/* Locks in memory that processes share. */
#include "threads.h"

/* ---- between processes ---- */

struct shared {
	pthread_mutex_t lock;
	pthread_cond_t is_changed;
	pthread_barrier_t barrier;
	sem_t semaphore;
	long counter, turn;
};

static struct shared *share(bool is_robust)
{
	struct shared *shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attribute;
	pthread_condattr_t condition;
	pthread_barrierattr_t meeting;

	pthread_mutexattr_init(&attribute);
	say("setpshared", pthread_mutexattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED));
	if (is_robust)
		pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->lock, &attribute);
	pthread_condattr_init(&condition);
	pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&shared->is_changed, &condition);
	pthread_barrierattr_init(&meeting);
	pthread_barrierattr_setpshared(&meeting, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &meeting, 4);
	sem_init(&shared->semaphore, 1, 0);
	return shared;
}

static void work_shared(struct shared *shared, int number)
{
	unsigned state = seed + number;

	pthread_barrier_wait(&shared->barrier);
	for (int i = 0; i < TURNS / 4; i++) {
		pthread_mutex_lock(&shared->lock);
		long value = shared->counter;

		dawdle(&state);
		shared->counter = value + 1;
		pthread_mutex_unlock(&shared->lock);
	}
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&shared->lock);
		while (shared->turn % 4 != number)
			pthread_cond_wait(&shared->is_changed, &shared->lock);
		shared->turn++;
		pthread_cond_broadcast(&shared->is_changed);
		pthread_mutex_unlock(&shared->lock);
	}
	sem_post(&shared->semaphore);
}

void part_processes(void)
{
	struct shared *shared = share(false);

	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			work_shared(shared, i);
			_exit(0);
		}
	for (int i = 0; i < 4; i++)
		sem_wait(&shared->semaphore);
	for (int i = 0; i < 4; i++)
		end_of(-1);
	say("counter", shared->counter);
	say("turns", shared->turn);
	munmap(shared, sizeof(*shared));
}

static void *take_and_end(void *argument)
{
	say("taken", pthread_mutex_lock(argument));
	return NULL;
}

static void robust(struct shared *shared, const char *who)
{
	int error = pthread_mutex_lock(&shared->lock);

	printf("%s: ", who);
	say("owner died", error == EOWNERDEAD);
	say("consistent", pthread_mutex_consistent(&shared->lock));
	pthread_mutex_unlock(&shared->lock);
	say("again", pthread_mutex_lock(&shared->lock));
	pthread_mutex_unlock(&shared->lock);
}

void part_robust(void)
{
	struct shared *shared = share(true);
	pid_t child;

	pthread_join(start(take_and_end, &shared->lock), NULL);
	robust(shared, "a thread");
	child = fork();
	if (child == 0) {
		pthread_mutex_lock(&shared->lock);
		sem_post(&shared->semaphore);
		rest(30);
		raise(SIGKILL);
	}
	sem_wait(&shared->semaphore);
	robust(shared, "a process, while this one waits");
	say("child", end_of(child));
	child = fork();
	if (child == 0) {
		pthread_mutex_lock(&shared->lock);
		execl(myself, "threads", "-executed", NULL);
	}
	say("child", end_of(child));
	robust(shared, "one that called exec");
	munmap(shared, sizeof(*shared));
}
