/* Tasks of the program of faults: tests/host/vfs/tasks.h. Threads of the host, of which one runs:
 * it gives its turn away only in tasks_yield. */
#include "tests/host/vfs/tasks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MULTIPLIER 6364136223846793005ull

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void (*work)(unsigned task);
static bool has_ended[TASKS];
static unsigned running;
static uint64_t state;

static unsigned choose(void)
{
	unsigned task;

	do {
		state = state * MULTIPLIER + 1;
		task = (state >> 33) % TASKS;
	} while (has_ended[task]);
	return task;
}

void tasks_yield(void)
{
	unsigned self = running;

	if (!work)
		return;
	running = choose();
	pthread_cond_broadcast(&changed);
	while (running != self)
		pthread_cond_wait(&changed, &mutex);
}

static void *begin(void *number)
{
	unsigned self = (unsigned)(uintptr_t)number;
	bool are_all = true;

	pthread_mutex_lock(&mutex);
	while (running != self)
		pthread_cond_wait(&changed, &mutex);
	work(self);
	has_ended[self] = true;
	for (unsigned task = 0; task < TASKS; task++)
		are_all &= has_ended[task];
	if (!are_all)
		running = choose();
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

void tasks_run(void (*each)(unsigned task), uint32_t seed)
{
	pthread_t threads[TASKS];

	work = each;
	state = seed;
	running = choose();
	for (uintptr_t task = 0; task < TASKS; task++)
		pthread_create(&threads[task], NULL, begin, (void *)task);
	for (unsigned task = 0; task < TASKS; task++)
		pthread_join(threads[task], NULL);
	work = NULL;
}
