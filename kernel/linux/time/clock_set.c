/* Calls that set the clock. Times of files and of other calls follow; waits that have begun do not:
 * they end after as long as they were asked to take then. The one user, root, may do it. */
#include "fs/vfs/wall_time.h"
#include "kernel/linux/call.h"
#include "kernel/linux/time/user_time64.h"
#include "kernel/task/time.h"

#define NS	     NANOSECONDS_PER_SECOND
#define LATEST	     8277292036 /* seconds: Linux keeps 30 years to run on in */
#define MINUTES_WEST 900

struct time_zone {
	int32_t minutes_west, summer_time;
};

/* Sets the time of the day; -EINVAL for one that is not valid, or so early that the machine would
 * have begun before 1970, as on Linux. */
static int clock_set(const struct linux_timespec64 *time)
{
	uint64_t ns = time->seconds * NS + time->nanoseconds;

	if (time->seconds < 0 || time->seconds >= LATEST || (uint64_t)time->nanoseconds >= NS ||
	    ns < time_ns())
		return -EINVAL;
	time_wall_set(ns);
	return 0;
}

/* Only CLOCK_REALTIME can be set. */
static int clock_settime(uint32_t clock, uint32_t address, enum time_format format)
{
	struct linux_timespec64 time;

	if (clock != CLOCK_REALTIME)
		return -EINVAL;
	return time_load(address, format, &time) ?: clock_set(&time);
}

SYSCALL(264, sys_clock_settime, "dp", clock_settime(frame->ebx, frame->ecx, TIMESPEC))
SYSCALL(404, sys_clock_settime64, "dp", clock_settime(frame->ebx, frame->ecx, TIMESPEC64))

/* A time zone is checked, and then ignored. */
SYSCALL_DEFINE(79, sys_settimeofday, "pp")
{
	struct linux_timespec64 time;
	struct time_zone zone = { 0, 0 };

	if ((frame->ebx && time_load(frame->ebx, TIMEVAL, &time) != 0) ||
	    (frame->ecx && copy_from_user(&zone, frame->ecx, sizeof(zone)) != 0))
		return -EFAULT;
	if (zone.minutes_west > MINUTES_WEST || zone.minutes_west < -MINUTES_WEST)
		return -EINVAL;
	return frame->ebx ? clock_set(&time) : 0;
}

SYSCALL(25, sys_stime, "p", clock_settime(CLOCK_REALTIME, frame->ebx, SECONDS))
