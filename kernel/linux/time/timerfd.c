/*
 * Timers as files: timerfd_create(2) and its like. A read gives how often the time has come since
 * the last read, as 64 bits, and waits for the first time.
 *
 *	settime: value 30 ms, interval 20 ms	comes at 30, 50, 70 ms, ...
 *	read at 75 ms				gives 3; the next read waits until 90 ms
 *
 * Programs such as fio poll it. Called by system calls, and by the tick.
 */
#include <stddef.h>

#include "fs/files.h"
#include "fs/linux/poll.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/clocks.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/time/interval_timer.h"
#include "kernel/linux/files/calls.h"
#include "kernel/syscall/syscall.h"

struct timer_file {
	struct interval_timer timer; /* first: the two have one address */
	struct wait_queue ready;
	uint64_t times; /* it has come since the last read */
};

static struct pool pool = POOL_INITIALIZER(struct timer_file);

/* In the tick. */
static void expire(struct timer *timer)
{
	struct timer_file *mine = (struct timer_file *)timer;

	mine->times++;
	wait_wake(&mine->ready);
	interval_timer_again(&mine->timer);
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

	timer_cancel(&mine->timer.timer);
	pool_free(&pool, mine);
}

static const struct file_ops timer_ops = {
	.read = timer_read, .poll = timer_poll, .release = timer_release, .is_stream = true
};

static int sys_timerfd_create(struct trap_frame *frame)
{
	static struct anonymous kind = { .kind = "[timerfd]" };
	uint32_t clock = frame->ebx, flags = frame->ecx;

	if (flags & ~(O_NONBLOCK | O_CLOEXEC) || !interval_timer_has_clock(clock))
		return -EINVAL;
	struct file *file = file_of_pool(&kind, &timer_ops, &pool, O_RDWR | (flags & O_NONBLOCK));

	if (!file)
		return -ENOMEM;
	((struct timer_file *)file->private)->timer.is_of_the_day = clock == CLOCK_REALTIME;
	return descriptor_add(file, flags);
}

static int set(struct file *file, const struct trap_frame *frame, bool wide)
{
	struct timer_setting setting;

	if (!file || file->ops != &timer_ops)
		return file ? -EINVAL : -EBADF;
	struct timer_file *mine = file->private;
	int error = timer_setting_from_user(frame->edx, wide, &setting);

	if (!error && frame->ecx & ~TIMER_ABSTIME)
		error = -EINVAL;
	if (!error && frame->esi)
		error = interval_timer_give(&mine->timer, frame->esi, wide);
	if (error)
		return error;
	bool enabled = interrupts_disable();

	mine->times = 0;
	interval_timer_set(&mine->timer, &setting, frame->ecx, expire);
	interrupts_restore(enabled);
	return 0;
}

FILE_CALL(sys_timerfd_settime, set(file, frame, false))
FILE_CALL(sys_timerfd_settime64, set(file, frame, true))

static int get(struct file *file, const struct trap_frame *frame, bool wide)
{
	if (!file || file->ops != &timer_ops)
		return file ? -EINVAL : -EBADF;
	return interval_timer_give(&((struct timer_file *)file->private)->timer, frame->ecx, wide);
}

FILE_CALL(sys_timerfd_gettime, get(file, frame, false))
FILE_CALL(sys_timerfd_gettime64, get(file, frame, true))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 322, "timerfd_create", "dx", sys_timerfd_create },
	{ 325, "timerfd_settime", "fxpp", sys_timerfd_settime },
	{ 326, "timerfd_gettime", "fp", sys_timerfd_gettime },
	{ 410, "timerfd_gettime64", "fp", sys_timerfd_gettime64 },
	{ 411, "timerfd_settime64", "fxpp", sys_timerfd_settime64 },
};
