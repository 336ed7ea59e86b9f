/* Calls about time that only Linux's programs make: clocks besides the monotonic one, intervals,
 * and timers of processor time. */
#include <stddef.h>

#include "fs/files.h"
#include "kernel/abi/signal_handler.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/process/usage.h"
#include "kernel/linux/time/processor_time.h"
#include "kernel/syscall/syscall.h"
#include "kernel/process/signal.h"
#include "kernel/process/syscall_clock.h"
#include "kernel/task/time.h"
#include "fs/vfs/wall_time.h"
#include "kernel/task/timer.h"
#include "mm/user_copy.h"
#include "kernel/linux/time/user_time64.h"
#include "kernel/task/wait.h"

#define NS	    NANOSECONDS_PER_SECOND
#define NS_PER_TICK (NS / TICKS_PER_SECOND)

/* A clock of processor time: the pid, inverted, above these bits. */
#define CLOCK_PID_SHIFT 3
#define CLOCK_OF_THREAD 4u
#define CLOCK_KINDS	3u
#define CLOCK_OF_USE	2u

/* ---- clocks ---- */

/* Linux's clock of another task or program: its number inverted, and what is meant by it. */
static int read_clock_of(uint32_t clock, uint64_t *ns)
{
	int32_t pid = ~((int32_t)clock >> CLOCK_PID_SHIFT);
	const struct task *task = task_find(pid ? pid : current->pid);

	if ((clock & CLOCK_KINDS) != CLOCK_OF_USE || !task || !task->process)
		return -EINVAL;
	const struct process *leader = task->process->leader;

	if (!(clock & CLOCK_OF_THREAD))
		*ns = time_of_cycles(use_of_program(leader).cycles);
	else if (leader == current->process->leader)
		*ns = time_of_cycles(use_of_task(task).cycles);
	else
		return -EINVAL;
	return 0;
}

/* One clock for the time of day, one that only runs, and those of processor time. */
int clock_read_more(uint32_t clock, uint64_t *ns)
{
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_TAI:
		*ns = time_wall_ns();
		return 0;
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_BOOTTIME:
		*ns = time_ns();
		return 0;
	case CLOCK_PROCESS_CPUTIME_ID:
		*ns = time_of_cycles(use_of_program(current->process->leader).cycles);
		return 0;
	case CLOCK_THREAD_CPUTIME_ID:
		*ns = time_of_cycles(use_of_task(current).cycles);
		return 0;
	default:
		return (int32_t)clock < 0 ? read_clock_of(clock, ns) : -EINVAL;
	}
}

static int give_timespec64(uint32_t address, uint64_t ns)
{
	const struct linux_timespec64 time = timespec64_of(ns);

	return give(address, &time, sizeof(time));
}

static int show_clock(uint32_t clock, uint32_t address, time_teller *tell)
{
	uint64_t ns;
	int error = clock_read(clock, &ns);

	return error ? error : tell(address, ns);
}

CALL(sys_clock_gettime64, show_clock(frame->ebx, frame->ecx, give_timespec64))

static int show_resolution(uint32_t clock, uint32_t address, time_teller *tell)
{
	uint64_t ns;
	int error = clock_read(clock, &ns);

	return error || !address ? error : tell(address, 1);
}

CALL(sys_clock_getres, show_resolution(frame->ebx, frame->ecx, give_timespec))
CALL(sys_clock_getres64, show_resolution(frame->ebx, frame->ecx, give_timespec64))

static struct linux_timeval timeval_of(uint64_t ns)
{
	const struct linux_timespec time = timespec_of(ns);

	return (struct linux_timeval){ time.seconds, time.nanoseconds / 1000 };
}

static int sys_gettimeofday(struct trap_frame *frame)
{
	static const uint32_t utc[2];
	const struct linux_timeval now = timeval_of(time_wall_ns());

	if (frame->ebx && give(frame->ebx, &now, sizeof(now)) != 0)
		return -EFAULT;
	return frame->ecx ? give(frame->ecx, utc, sizeof(utc)) : 0;
}

static int sys_time(struct trap_frame *frame)
{
	int32_t now = timespec_of(time_wall_ns()).seconds;

	if (frame->ebx && give(frame->ebx, &now, sizeof(now)) != 0)
		return -EFAULT;
	return now;
}

/* ---- sleeping ---- */

/* Until a time of a clock. What it shows runs as fast as time_ns() does. */
static int sleep_until_clock(uint32_t clock, uint64_t time)
{
	uint64_t shown;
	int error = clock_read(clock, &shown);

	if (error || time <= shown)
		return error;
	return sleep_until(time_ns() + (time - shown));
}

/* `time` and `rest` are user addresses. */
static int clock_sleep(uint32_t clock, uint32_t flags, uint32_t time, uint32_t rest,
		       timespec_reader *take, time_teller *tell)
{
	uint64_t ns;

	if (clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_MONOTONIC_RAW ||
	    clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC_COARSE)
		return -EOPNOTSUPP;
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME &&
	    clock != CLOCK_TAI)
		return -EINVAL;
	int result = take(time, &ns);

	if (result)
		return result;
	return flags & TIMER_ABSTIME ? sleep_until_clock(clock, ns) : sleep_for(ns, rest, tell);
}

CALL(sys_clock_nanosleep,
     clock_sleep(frame->ebx, frame->ecx, frame->edx, frame->esi, timespec_from_user, give_timespec))
CALL(sys_clock_nanosleep64, clock_sleep(frame->ebx, frame->ecx, frame->edx, frame->esi,
					timespec64_from_user, give_timespec64))

/* ---- processor time: timers and limits that count ticks ---- */

/* Of a process's tick_timers, in nanoseconds: the use at which it rings (0: it does not), and its
 * interval. */
enum { NEXT, INTERVAL };

/* Of the two timers the first counts what the program uses in user mode, the second all. */
static uint32_t ticks_used(uint32_t timer)
{
	const struct use use = use_of_program(current->process->leader);

	return use.user_ticks + (timer ? use.system_ticks : 0);
}

static uint64_t ns_used(uint32_t timer)
{
	return (uint64_t)ticks_used(timer) * NS_PER_TICK;
}

static void ring_if_due(uint32_t timer, int signal)
{
	uint64_t *state = current->process->leader->tick_timers[timer], used = ns_used(timer);

	if (state[NEXT] == 0 || used < state[NEXT])
		return;
	state[NEXT] = state[INTERVAL] ? used + state[INTERVAL] : 0;
	signal_send(current->process, signal);
}

/* SIGXCPU at the soft limit and every second after it, SIGKILL at the hard limit. */
static void check_limit(const struct limit *limit)
{
	uint32_t ticks = ticks_used(1), seconds = ticks / TICKS_PER_SECOND;

	if (ticks % TICKS_PER_SECOND == 0 && seconds >= limit->soft)
		signal_send(current->process, seconds < limit->hard ? SIGXCPU : SIGKILL);
}

/* In every tick, after it has been charged to the current task. */
static void look_at_use(struct timer *timer)
{
	if (current->process && current->process->files) {
		ring_if_due(0, SIGVTALRM);
		ring_if_due(1, SIGPROF);
		check_limit(&current->process->files->limits[LIMIT_CPU]);
	}
	timer_start(timer, time_ns() + 1, look_at_use);
}

/* It starts with the first use, so that other kernels do not pay for it. */
void watch_processor_time(void)
{
	static struct timer every_tick;

	if (!timer_is_running(&every_tick))
		timer_start(&every_tick, time_ns(), look_at_use);
}

/* A tick more than is asked for, as in Linux: the one that has begun may be nearly over. */
static void set_tick_timer(uint32_t timer, uint64_t value, uint64_t interval)
{
	uint64_t *state = current->process->leader->tick_timers[timer];

	state[NEXT] = value ? ns_used(timer) + value + NS_PER_TICK : 0;
	state[INTERVAL] = interval;
	watch_processor_time();
}

/* ---- getitimer, setitimer ---- */

static int give_timer(uint32_t which, uint32_t address)
{
	struct linux_interval_timer timer = { timeval_of(current->process->leader->alarm_interval),
					      timeval_of(alarm_left()) };

	if (which > ITIMER_PROF)
		return -EINVAL;
	if (which != ITIMER_REAL) {
		const uint64_t *state = current->process->leader->tick_timers[which - 1];
		uint64_t used = ns_used(which - 1);

		timer.interval = timeval_of(state[INTERVAL]);
		timer.value = timeval_of(state[NEXT] > used ? state[NEXT] - used : 0);
	}
	return give(address, &timer, sizeof(timer));
}

CALL(sys_getitimer, give_timer(frame->ebx, frame->ecx))

static int ns_of_timeval(const struct linux_timeval *time, uint64_t *ns)
{
	const struct linux_timespec64 fine = { time->seconds, (int64_t)time->microseconds * 1000 };

	return timespec64_ns(&fine, ns);
}

static int sys_setitimer(struct trap_frame *frame)
{
	struct linux_interval_timer timer = { { 0, 0 }, { 0, 0 } };
	uint64_t value, interval;

	if (frame->ebx > ITIMER_PROF)
		return -EINVAL;
	if (frame->ecx && copy_from_user(&timer, frame->ecx, sizeof(timer)) != 0)
		return -EFAULT;
	if (ns_of_timeval(&timer.value, &value) != 0 ||
	    ns_of_timeval(&timer.interval, &interval) != 0)
		return -EINVAL;
	if (frame->edx && give_timer(frame->ebx, frame->edx) != 0)
		return -EFAULT;
	if (frame->ebx == ITIMER_REAL)
		alarm_set(value, interval);
	else
		set_tick_timer(frame->ebx - 1, value, interval);
	return 0;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 13, "time", "p", sys_time },
	{ 78, "gettimeofday", "pp", sys_gettimeofday },
	{ 104, "setitimer", "dpp", sys_setitimer },
	{ 105, "getitimer", "dp", sys_getitimer },
	{ 266, "clock_getres", "dp", sys_clock_getres },
	{ 267, "clock_nanosleep", "dxpp", sys_clock_nanosleep },
	{ 403, "clock_gettime64", "dp", sys_clock_gettime64 },
	{ 406, "clock_getres_time64", "dp", sys_clock_getres64 },
	{ 407, "clock_nanosleep_time64", "dxpp", sys_clock_nanosleep64 },
};
