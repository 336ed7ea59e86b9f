/*
 * Calls about time that only Linux's programs make: clocks besides the monotonic one, intervals,
 * and timers of processor time.
 *
 *	clock_read_more		what each clock shows, in nanoseconds
 *	sys_clock_nanosleep	waits until a clock shows a time
 *	look_at_use		in each tick: timers and limits of processor time
 *
 * A time that a program passes is read by time_from_user, in either of its formats.
 * clock_gettime(2), clock_nanosleep(2), setitimer(2), getrlimit(2) (RLIMIT_CPU).
 */
#include "fs/vfs/wall_time.h"
#include "kernel/abi/resource.h"
#include "kernel/abi/signal_handler.h"
#include "kernel/linux/call.h"
#include "kernel/linux/process/usage.h"
#include "kernel/linux/time/interval_timer.h"
#include "kernel/process/signal.h"
#include "kernel/process/syscall_clock.h"
#include "kernel/task/time.h"

#define NS_PER_TICK (NS / TICKS_PER_SECOND)

/* A clock of processor time: the pid, inverted, above these bits. */
#define CLOCK_PID_SHIFT 3
#define CLOCK_OF_THREAD 4u
#define CLOCK_KINDS	3u
#define CLOCK_OF_USE	2u

#define LATEST	     8277292036 /* seconds: Linux keeps 30 years to run on in */
#define MINUTES_WEST 900

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

/* clock_gettime of any clock; kernel/process/syscall_clock.c has the short form. */
SYSCALL_DEFINE(403, sys_clock_gettime64, "dp")
{
	uint64_t ns;

	return clock_read(frame->ebx, &ns) ?: time_to_user(frame->ecx, TIMESPEC64, ns);
}

/* Each clock there is counts single nanoseconds. */
SYSCALL_DEFINE(266, sys_clock_getres, "dp")
{
	uint64_t ns;
	int error = clock_read(frame->ebx, &ns);

	return error || !frame->ecx ? error : time_to_user(frame->ecx, format_of_call(frame), 1);
}
SYSCALL_ROW_OF(406, sys_clock_getres_time64, "dp", sys_clock_getres)

/* The time zone is always UTC. */
SYSCALL_DEFINE(78, sys_gettimeofday, "pp")
{
	static const uint32_t utc[2];

	if (frame->ebx && time_to_user(frame->ebx, TIMEVAL, time_wall_ns()) != 0)
		return -EFAULT;
	return frame->ecx ? give(frame->ecx, utc, sizeof(utc)) : 0;
}

/* Seconds since 1970, as the result and, unless the address is 0, in memory. */
SYSCALL_DEFINE(13, sys_time, "p")
{
	int32_t now = timespec_of(time_wall_ns()).seconds;

	if (frame->ebx && give(frame->ebx, &now, sizeof(now)) != 0)
		return -EFAULT;
	return now;
}

/* ---- setting the clock ---- */

/* Times of files and of other calls follow; waits that have begun do not: they end after as long as
 * they were asked to take then. The one user, root, may do it. */

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

SYSCALL_PAIR(264, sys_clock_settime, 404, sys_clock_settime64, "dp",
	     clock_settime(frame->ebx, frame->ecx, format_of_call(frame)))

/* A time zone is checked, and then ignored. */
SYSCALL_DEFINE(79, sys_settimeofday, "pp")
{
	struct linux_timespec64 time;
	int32_t zone[] = { 0, 0 }; /* minutes west of UTC; a rule of summer time */

	if ((frame->ebx && time_load(frame->ebx, TIMEVAL, &time) != 0) ||
	    (frame->ecx && copy_from_user(zone, frame->ecx, sizeof(zone)) != 0))
		return -EFAULT;
	if (zone[0] > MINUTES_WEST || zone[0] < -MINUTES_WEST)
		return -EINVAL;
	return frame->ebx ? clock_set(&time) : 0;
}

SYSCALL(25, sys_stime, "p", clock_settime(CLOCK_REALTIME, frame->ebx, SECONDS))

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

/* A time_teller, for sleep_for. */
static int give_timespec64(uint32_t address, uint64_t ns)
{
	return time_to_user(address, TIMESPEC64, ns);
}

/* `time` and `rest` are user addresses. Only a clock that a program can wait for: -EOPNOTSUPP for
 * others that there are, -EINVAL for those that there are not. */
SYSCALL_DEFINE(267, sys_clock_nanosleep, "dxpp")
{
	enum time_format format = format_of_call(frame);
	uint32_t clock = frame->ebx, flags = frame->ecx, time = frame->edx, rest = frame->esi;
	uint64_t ns;

	if (clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_MONOTONIC_RAW ||
	    clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC_COARSE)
		return -EOPNOTSUPP;
	if (clock != CLOCK_TAI && !interval_timer_has_clock(clock))
		return -EINVAL;
	int error = time_from_user(time, format, &ns);

	if (error)
		return error;
	return flags & TIMER_ABSTIME
		   ? sleep_until_clock(clock, ns)
		   : sleep_for(ns, rest, format == TIMESPEC64 ? give_timespec64 : give_timespec);
}
SYSCALL_ROW_OF(407, sys_clock_nanosleep_time64, "dxpp", sys_clock_nanosleep)

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

/* The same in nanoseconds: as exact as the ticks are. */
static uint64_t ns_used(uint32_t timer)
{
	return (uint64_t)ticks_used(timer) * NS_PER_TICK;
}

/* The timer of the current program; a timer without an interval stops. */
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

/* As getitimer shows it: the value is what is left until the signal, 0 if the timer is stopped. */
static struct timer_setting setting_of_itimer(uint32_t which)
{
	const struct process *leader = current->process->leader;

	if (which == ITIMER_REAL)
		return (struct timer_setting){ leader->alarm_interval, alarm_left() };
	const uint64_t *state = leader->tick_timers[which - 1];
	uint64_t used = ns_used(which - 1);

	return (struct timer_setting){ state[INTERVAL],
				       state[NEXT] > used ? state[NEXT] - used : 0 };
}

/* -EINVAL for a number that is not a timer's, -EFAULT. */
static int give_itimer(uint32_t which, uint32_t address)
{
	if (which > ITIMER_PROF)
		return -EINVAL;
	const struct timer_setting setting = setting_of_itimer(which);

	return timer_setting_to_user(address, TIMEVAL, &setting);
}

SYSCALL(105, sys_getitimer, "dp", give_itimer(frame->ebx, frame->ecx))

/* Without a new setting the timer stops. */
SYSCALL_DEFINE(104, sys_setitimer, "dpp")
{
	struct timer_setting setting = { 0, 0 };
	int error = frame->ebx > ITIMER_PROF ? -EINVAL : 0;

	if (!error && frame->ecx)
		error = timer_setting_from_user(frame->ecx, TIMEVAL, &setting);
	if (!error && frame->edx)
		error = give_itimer(frame->ebx, frame->edx);
	if (error)
		return error;
	if (frame->ebx == ITIMER_REAL)
		alarm_set(setting.value, setting.interval);
	else
		set_tick_timer(frame->ebx - 1, setting.value, setting.interval);
	return 0;
}
