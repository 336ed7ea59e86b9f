/* Calls that set the clock. Times of files and of other calls follow; waits that have begun do not:
 * they end after as long as they were asked to take then. The one user, root, may do it. */
#include "fs/vfs/wall_time.h"
#include "kernel/abi/clocks.h"
#include "kernel/lib/errno.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/time.h"
#include "mm/user_copy.h"

#define NS	     1000000000u
#define US	     1000000u
#define LATEST	     8277292036 /* seconds: Linux keeps 30 years to run on in */
#define MINUTES_WEST 900

struct time_zone {
	int32_t minutes_west, summer_time;
};

/* Linux refuses a time at which the machine was not running yet. */
static int set(int64_t seconds, uint64_t nanoseconds)
{
	uint64_t ns = seconds * NS + nanoseconds;

	if (seconds < 0 || seconds >= LATEST || nanoseconds >= NS || ns < time_ns())
		return -EINVAL;
	time_wall_set(ns);
	return 0;
}

static int sys_clock_settime(struct trap_frame *frame)
{
	struct linux_timespec time;

	if (frame->ebx != CLOCK_REALTIME)
		return -EINVAL;
	if (copy_from_user(&time, frame->ecx, sizeof(time)) != 0)
		return -EFAULT;
	return set(time.seconds, (uint32_t)time.nanoseconds);
}

static int sys_clock_settime64(struct trap_frame *frame)
{
	struct linux_timespec64 time;

	if (frame->ebx != CLOCK_REALTIME)
		return -EINVAL;
	if (copy_from_user(&time, frame->ecx, sizeof(time)) != 0)
		return -EFAULT;
	return set(time.seconds, (uint32_t)time.nanoseconds);
}

/* The time zone is refused if it is none, and changes nothing. */
static int sys_settimeofday(struct trap_frame *frame)
{
	struct linux_timeval time = { 0, 0 };
	struct time_zone zone = { 0, 0 };

	if ((frame->ebx && copy_from_user(&time, frame->ebx, sizeof(time)) != 0) ||
	    (frame->ecx && copy_from_user(&zone, frame->ecx, sizeof(zone)) != 0))
		return -EFAULT;
	if (zone.minutes_west > MINUTES_WEST || zone.minutes_west < -MINUTES_WEST ||
	    (uint32_t)time.microseconds >= US)
		return -EINVAL;
	return frame->ebx ? set(time.seconds, time.microseconds * 1000u) : 0;
}

static int sys_stime(struct trap_frame *frame)
{
	int32_t seconds;

	return copy_from_user(&seconds, frame->ebx, sizeof(seconds)) != 0 ? -EFAULT
									  : set(seconds, 0);
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 25, "stime", "p", sys_stime },
	{ 79, "settimeofday", "pp", sys_settimeofday },
	{ 264, "clock_settime", "dp", sys_clock_settime },
	{ 404, "clock_settime64", "dp", sys_clock_settime64 },
};
