/* Exercise 4.2: the class of round robin by itself. */
#include "tests/lesson4/hidden/class_steps.h"

void class_steps(void);

/* questions: steps, quantum. answers: stamps per tick; after each step its result. */
void class_steps(void)
{
	begin_steps();
	for (uint32_t i = 0; i < questions[0]; i++)
		answer(run_step(&sched_round_robin, &steps[3 * i]));
}
