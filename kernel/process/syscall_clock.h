/* What the calls about time share. All times are nanoseconds; deadlines are those of time_ns(). */
#pragma once

#include <stdint.h>

/* What a clock (CLOCK_...) shows. -EINVAL for one that is not there. */
int clock_read(uint32_t clock, uint64_t *ns);

/* Sleeps until a deadline. Returns 0 or -ERESTART_SLEEP. */
int sleep_until(uint64_t deadline);

/* Sleeps for a time. A sleep that a signal interrupted and that begins again ends when it would
 * have ended. Returns 0 or -ERESTART_SLEEP, with the time that was left. */
int sleep_for(uint64_t ns, uint64_t *left);

/* Sends the current process SIGALRM in so many nanoseconds, and then after each interval; 0: never.
 */
void alarm_set(uint64_t ns, uint64_t interval);

/* How long it is until then; 0: never. */
uint64_t alarm_left(void);
