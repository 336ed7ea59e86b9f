/* Giving the processor away. */
#pragma once

int sched_yield(void);
