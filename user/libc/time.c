/* The system calls for time. */
#include <time.h>

#include <stddef.h>
#include <unistd.h>

#include "user/libc/syscall.h"

int clock_gettime(clockid_t clock, struct timespec *now)
{
	return result_of(_syscall2(SYS_clock_gettime, clock, (long)now));
}

time_t time(time_t *now)
{
	struct timespec clock = { 0 };

	clock_gettime(CLOCK_REALTIME, &clock);
	if (now)
		*now = clock.tv_sec;
	return clock.tv_sec;
}

int nanosleep(const struct timespec *duration, struct timespec *left)
{
	return result_of(_syscall2(SYS_nanosleep, (long)duration, (long)left));
}

unsigned sleep(unsigned seconds)
{
	struct timespec duration = { .tv_sec = seconds }, left = { 0 };

	return nanosleep(&duration, &left) < 0 ? left.tv_sec : 0;
}

unsigned alarm(unsigned seconds)
{
	return _syscall1(SYS_alarm, seconds);
}
