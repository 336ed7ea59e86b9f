/* The end of a program's timers: kernel/linux/time/posix_timer.c. */
#pragma once

/* Deletes the timers of the current task's program. */
void signal_timers_delete(void);
