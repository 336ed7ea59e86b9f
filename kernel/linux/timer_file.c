/*
 * Timers as files: timerfd_create(2) and its like. A read gives how often the time has come since
 * the last read, as 64 bits, and waits for the first time.
 *
 *	settime: value 30 ms, interval 20 ms	comes at 30, 50, 70 ms, ...
 *	read at 75 ms				gives 3; the next read waits until 90 ms
 *
 * No interval is shorter than a tick of 10 ms. Absolute times are those of the monotonic clock: the
 * time of day never jumps here, and a program that asks for it gets EINVAL. Programs such as fio
 * poll it. Called by system calls, and by the tick.
 */
#include <stddef.h>

#include "fs/files.h"
#include "fs/linux/poll.h"
#include "kernel/abi/poll.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/user_time64.h"
#include "kernel/process/file_calls.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/time.h"
#include "kernel/task/timer.h"
#include "mm/pool.h"
#include "mm/user_copy.h"

#define SHORTEST_NS 10000000u
#define ABSOLUTE    1u

struct timer_file {
	struct timer timer; /* first: the two have one address */
	struct wait_queue ready;
	uint64_t interval, times; /* times it has come since the last read */
	bool is_of_the_day;
};

static struct pool pool = POOL_INITIALIZER(struct timer_file);

/* In the tick. One that is late catches up, one time each tick. */
static void expire(struct timer *timer)
{
	struct timer_file *mine = (struct timer_file *)timer;

	mine->times++;
	wait_wake(&mine->ready);
	if (mine->interval)
		timer_start(timer, timer->deadline + mine->interval, expire);
}

static int timer_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct timer_file *mine = file->private;

	if (to->length < sizeof(mine->times))
		return -EINVAL;
	if (file->flags & O_NONBLOCK && !mine->times)
		return -EAGAIN;
	int error = wait_event(&mine->ready, mine->times > 0);

	if (error)
		return error;
	bool enabled = interrupts_disable();
	uint64_t times = mine->times;

	mine->times = 0;
	interrupts_restore(enabled);
	return buffer_put(to, &times, sizeof(times));
}

static uint32_t timer_poll(struct file *file, struct poll_table *table)
{
	struct timer_file *mine = file->private;

	poll_add(table, &mine->ready);
	return mine->times ? POLLIN : 0;
}

static void timer_release(struct file *file)
{
	struct timer_file *mine = file->private;

	timer_cancel(&mine->timer);
	pool_free(&pool, mine);
}

static const struct file_ops timer_ops = {
	.read = timer_read, .poll = timer_poll, .release = timer_release, .is_stream = true
};

static int sys_timerfd_create(struct trap_frame *frame)
{
	uint32_t clock = frame->ebx, flags = frame->ecx;

	if (flags & ~(O_NONBLOCK | O_CLOEXEC) ||
	    (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME))
		return -EINVAL;
	struct timer_file *mine = pool_alloc(&pool);
	struct file *file =
	    mine ? file_create(&timer_ops, mine, O_RDWR | (flags & O_NONBLOCK)) : NULL;

	if (file) {
		*mine = (struct timer_file){ .is_of_the_day = clock == CLOCK_REALTIME };
		return descriptor_add(file, flags);
	}
	if (mine)
		pool_free(&pool, mine);
	return -ENOMEM;
}

/* Two times at address: the interval, and how long until the next time, 0 if it does not run. */
static int give_setting(const struct timer_file *mine, uint32_t address, bool wide)
{
	uint64_t now = time_ns(), left = 0;

	if (timer_is_running(&mine->timer))
		left = mine->timer.deadline > now ? mine->timer.deadline - now : 1;
	struct linux_timespec64 both64[] = { timespec64_of(mine->interval), timespec64_of(left) };
	struct linux_timespec both[] = { timespec_of(mine->interval), timespec_of(left) };

	return wide ? give(address, both64, sizeof(both64)) : give(address, both, sizeof(both));
}

static void arm(struct timer_file *mine, uint64_t interval, uint64_t deadline)
{
	bool enabled = interrupts_disable();

	timer_cancel(&mine->timer);
	mine->times = 0;
	mine->interval = interval && interval < SHORTEST_NS ? SHORTEST_NS : interval;
	if (deadline)
		timer_start(&mine->timer, deadline, expire);
	interrupts_restore(enabled);
}

static int set(struct trap_frame *frame, bool wide)
{
	timespec_reader *read = wide ? timespec64_from_user : timespec_from_user;
	uint32_t size = wide ? sizeof(struct linux_timespec64) : sizeof(struct linux_timespec);
	struct file *file = descriptor_file(frame->ebx);
	uint64_t interval, value;

	if (!file || file->ops != &timer_ops)
		return file ? -EINVAL : -EBADF;
	struct timer_file *mine = file->private;
	int error = read(frame->edx, &interval);

	if (!error)
		error = read(frame->edx + size, &value);
	if (!error && (frame->ecx & ~ABSOLUTE || (frame->ecx & ABSOLUTE && mine->is_of_the_day)))
		error = -EINVAL;
	if (!error && frame->esi)
		error = give_setting(mine, frame->esi, wide);
	if (!error)
		arm(mine, interval, value && !(frame->ecx & ABSOLUTE) ? time_ns() + value : value);
	return error;
}

static int sys_timerfd_settime(struct trap_frame *frame)
{
	return set(frame, false);
}

static int sys_timerfd_settime64(struct trap_frame *frame)
{
	return set(frame, true);
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 322, "timerfd_create", "dx", sys_timerfd_create },
	{ 325, "timerfd_settime", "dxpp", sys_timerfd_settime },
	{ 411, "timerfd_settime64", "dxpp", sys_timerfd_settime64 },
};
