/* See tasks.h; and mutexes for these tasks. */
#include "tests/host/cache/tasks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "kernel/task/lock.h"

struct task {
	uint32_t number;
	bool has_ended;
	void (*function)(uint32_t task);
};

struct random chance;

static struct task tasks[TASKS];
static pthread_mutex_t processor = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t running = TASKS; /* TASKS: nobody */

static void choose_next(void)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < TASKS; i++)
		left += !tasks[i].has_ended;
	running = left == 0 ? TASKS : (uint32_t)random_below(&chance, TASKS);
	while (running < TASKS && tasks[running].has_ended)
		running = (running + 1) % TASKS;
	pthread_cond_broadcast(&changed);
}

static void wait_for_turn(uint32_t task)
{
	while (running != task)
		pthread_cond_wait(&changed, &processor);
}

/* Outside of tasks it does nothing: before they begin, and after they have ended. */
void sleep_a_while(void)
{
	uint32_t task = running;

	if (task == TASKS)
		return;
	choose_next();
	wait_for_turn(task);
}

static void *begin(void *argument)
{
	struct task *task = argument;

	pthread_mutex_lock(&processor);
	wait_for_turn(task->number);
	task->function(task->number);
	task->has_ended = true;
	choose_next();
	pthread_mutex_unlock(&processor);
	return NULL;
}

void run_tasks(void (*function)(uint32_t task))
{
	pthread_t threads[TASKS];

	running = TASKS;
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct task){ i, false, function };
		pthread_create(&threads[i], NULL, begin, &tasks[i]);
	}
	pthread_mutex_lock(&processor);
	choose_next();
	pthread_mutex_unlock(&processor);
	for (uint32_t i = 0; i < TASKS; i++)
		pthread_join(threads[i], NULL);
}

void mutex_lock(struct mutex *mutex)
{
	static struct task outside;

	while (mutex->owner != NULL) {
		if (running == TASKS)
			abort();
		sleep_a_while();
	}
	mutex->owner = running == TASKS ? &outside : &tasks[running];
}

void mutex_unlock(struct mutex *mutex)
{
	if (mutex->owner == NULL)
		abort();
	mutex->owner = NULL;
}
