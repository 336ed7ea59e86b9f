/* Locks of one program, whose threads meet at random places. */
#include "threads.h"

/* ---- locks ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_changed = PTHREAD_COND_INITIALIZER;
static long counters[4];

static void *count(void *argument)
{
	unsigned state = seed * 31 + (intptr_t)argument;

	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&lock);
		for (int j = 0; j < 4; j++) {
			long value = counters[j];

			dawdle(&state);
			counters[j] = value + 1;
		}
		pthread_mutex_unlock(&lock);
		dawdle(&state);
	}
	return NULL;
}

void part_mutex(void)
{
	memset(counters, 0, sizeof(counters));
	each(count);
	for (int i = 0; i < 4; i++)
		say("counter", counters[i]);
}

static struct {
	long items[ROOM];
	int count, first, producers;
	long sum, taken;
} queue;

static void *produce_or_consume(void *argument)
{
	intptr_t number = (intptr_t)argument;
	unsigned state = seed * 7 + number;

	for (long i = 1; number % 2 && i <= TURNS; i++) {
		pthread_mutex_lock(&lock);
		while (queue.count == ROOM)
			pthread_cond_wait(&is_changed, &lock);
		queue.items[(queue.first + queue.count++) % ROOM] = i * number;
		pthread_cond_broadcast(&is_changed);
		pthread_mutex_unlock(&lock);
		dawdle(&state);
	}
	pthread_mutex_lock(&lock);
	queue.producers -= number % 2;
	pthread_cond_broadcast(&is_changed);
	while (number % 2 == 0 && (queue.count > 0 || queue.producers > 0)) {
		if (queue.count == 0) {
			pthread_cond_wait(&is_changed, &lock);
			continue;
		}
		queue.sum += queue.items[queue.first];
		queue.first = (queue.first + 1) % ROOM;
		queue.count--;
		queue.taken++;
		pthread_cond_broadcast(&is_changed);
		pthread_mutex_unlock(&lock);
		dawdle(&state);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

void part_condition(void)
{
	memset(&queue, 0, sizeof(queue));
	queue.producers = THREADS / 2;
	each(produce_or_consume);
	say("taken", queue.taken);
	say("sum", queue.sum);
}

static pthread_barrier_t barrier;
static int turns_of[THREADS], last_ones, mismatches;

static void *meet(void *argument)
{
	intptr_t number = (intptr_t)argument;
	unsigned state = seed + number;

	for (int i = 0; i < 50; i++) {
		turns_of[number]++;
		dawdle(&state);
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			last_ones++;
		for (int j = 0; j < THREADS; j++)
			mismatches += turns_of[j] != i + 1;
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

void part_barrier(void)
{
	pthread_barrier_init(&barrier, NULL, THREADS);
	each(meet);
	say("last ones", last_ones);
	say("mismatches", mismatches);
	pthread_barrier_destroy(&barrier);
}

static sem_t ping, pong;

static void *answer(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		sem_wait(&ping);
		counters[0]++;
		sem_post(&pong);
	}
	return NULL;
}

void part_semaphore(void)
{
	pthread_t thread;
	struct timespec soon;

	counters[0] = 0;
	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	thread = start(answer, NULL);
	for (int i = 0; i < TURNS; i++) {
		sem_post(&ping);
		sem_wait(&pong);
	}
	pthread_join(thread, NULL);
	say("answers", counters[0]);
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_nsec += 20000000;
	soon.tv_sec += soon.tv_nsec / 1000000000;
	soon.tv_nsec %= 1000000000;
	say("nobody posts", sem_timedwait(&ping, &soon) ? errno : 0);
	pthread_mutex_lock(&lock);
	say("nobody signals", pthread_cond_timedwait(&is_changed, &lock, &soon));
	pthread_mutex_unlock(&lock);
}

static pthread_rwlock_t both = PTHREAD_RWLOCK_INITIALIZER;

static void *read_or_write(void *argument)
{
	unsigned state = seed * 3 + (intptr_t)argument;

	for (int i = 0; i < TURNS; i++) {
		if ((intptr_t)argument < 2) {
			pthread_rwlock_wrlock(&both);
			counters[0]++;
			dawdle(&state);
			counters[1]++;
		} else {
			pthread_rwlock_rdlock(&both);
			dawdle(&state);
			mismatches += counters[0] != counters[1];
		}
		pthread_rwlock_unlock(&both);
	}
	return NULL;
}

void part_readers(void)
{
	counters[0] = counters[1] = mismatches = 0;
	each(read_or_write);
	say("written", counters[1]);
	say("mismatches", mismatches);
}
