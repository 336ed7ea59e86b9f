/* Giving up the processor. */
#pragma once

int sched_yield(void);
