/* Exercise 4.3: a sleep, and a semaphore that is handed to and fro. */
#include "kernel/task/lock.h"
#include "kernel/task/wait.h"
#include "tests/lesson4/threads/thread_test.h"

void a_short_sleep(void);
void hand_over(void);

static struct semaphore semaphore, done;

/* questions: milliseconds. */
void a_short_sleep(void)
{
	uint64_t start = time_ns();

	msleep(questions[0]);
	answer((uint32_t)(time_ns() - start) / 1000);
}

static void pass_on(void *argument)
{
	for (unsigned i = 0; i < 3; i++) {
		semaphore_down(&semaphore);
		answer((uintptr_t)argument);
		semaphore_up(&done);
	}
}

void hand_over(void)
{
	begin_thread(pass_on, 9);
	for (unsigned i = 0; i < 3; i++) {
		answer(i);
		semaphore_up(&semaphore);
		semaphore_down(&done);
	}
}
