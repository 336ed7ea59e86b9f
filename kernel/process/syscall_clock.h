/* Functions that the calls about time share. All are for the current program, in nanoseconds. */
#pragma once

#include "kernel/lib/optional.h"
#include "kernel/syscall/user_time.h"

/* What a clock of clock_gettime shows. Returns 0, or -EINVAL for one that is not there. */
int clock_read(uint32_t clock, uint64_t *ns);

/* The same for clocks besides the monotonic one. */
int clock_read_more(uint32_t clock, uint64_t *ns) OPTIONAL;

/* Writes a time to a user address. Returns 0 or -EFAULT. */
typedef int time_teller(uint32_t address, uint64_t ns);
int give_timespec(uint32_t address, uint64_t ns);

/* Sleeps until time_ns() is `deadline`, or for `ns`: then a signal has what was left written to the
 * address `rest` (0: nowhere). Returns 0, -ERESTART_SLEEP or -EFAULT. */
int sleep_until(uint64_t deadline);
int sleep_for(uint64_t ns, uint32_t rest, time_teller *tell);

/* How long it is until the alarm: 0 if none is set, and at least a microsecond if one is. */
uint64_t alarm_left(void);

/* Sets the alarm (0: none), which rings again every `interval` (0: only once). */
void alarm_set(uint64_t value, uint64_t interval);
