/*
 * Timers as files: timerfd_create(2) and its like. A read gives how often the time has come since
 * the last read, as 64 bits, and waits for the first time.
 *
 *	settime: value 30 ms, interval 20 ms	comes at 30, 50, 70 ms, ...
 *	read at 75 ms				gives 3; the next read waits until 90 ms
 *
 * Programs such as fio poll it. Called by system calls, and by the tick.
 */
#include "kernel/abi/poll.h"
#include "kernel/linux/poll/eventfd.h"
#include "kernel/linux/time/interval_timer.h"

/* The private data of an open timer; reads are eventfd's (kernel/linux/poll/eventfd.h). */
struct timer_file {
	struct event_counter times; /* first; how often it has come since the last read */
	struct interval_timer timer;
};

static struct pool timer_files = POOL_INITIALIZER(struct timer_file);

/* In the tick. */
static void timer_file_expire(struct timer *timer)
{
	struct timer_file *file = list_entry(timer, struct timer_file, timer.timer);

	file->times.count++;
	wait_wake(&file->times.changed);
	interval_timer_again(&file->timer);
}

/* It can be read when it has come. It can never be written. */
static uint32_t timer_poll(struct file *file, struct poll_table *table)
{
	struct event_counter *times = file->private;

	poll_add(table, &times->changed);
	return times->count ? POLLIN : 0;
}

static void timer_release(struct file *file)
{
	timer_cancel(&((struct timer_file *)file->private)->timer.timer);
	pool_free(&timer_files, file->private);
}

static const struct file_ops timer_ops = {
	.read = event_read, .poll = timer_poll, .release = timer_release, .is_stream = true
};

/* TFD_NONBLOCK and TFD_CLOEXEC are open's flags. */
SYSCALL_DEFINE(322, sys_timerfd_create, "dx")
{
	static struct anonymous kind = { .kind = "[timerfd]" };
	uint32_t clock = frame->ebx, flags = frame->ecx;
	const struct timer_file file = { .timer.is_of_the_day = clock == CLOCK_REALTIME };

	if (flags & ~(O_NONBLOCK | O_CLOEXEC) || !interval_timer_has_clock(clock))
		return -EINVAL;
	return descriptor_of_pool(&kind, &timer_ops, &timer_files, &file, flags);
}

/* 0 for an open timer; -EINVAL for another file, -EBADF for none. */
static int timer_file_error(const struct file *file)
{
	return !file ? -EBADF : file->ops != &timer_ops ? -EINVAL : 0;
}

/* What has come before, and was not read, is forgotten. */
static int timerfd_settime(struct file *file, const struct trap_frame *frame)
{
	enum time_format format = format_of_call(frame);
	struct timer_setting setting;
	int error = timer_file_error(file) ?: timer_setting_from_user(frame->edx, format, &setting);

	if (error || frame->ecx & ~TIMER_ABSTIME)
		return error ?: -EINVAL;
	struct timer_file *found = file->private;

	if (frame->esi && interval_timer_give(&found->timer, frame->esi, format))
		return -EFAULT;
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	found->times.count = 0;
	interval_timer_set(&found->timer, &setting, frame->ecx, timer_file_expire);
	return 0;
}

SYSCALL_FILE(325, sys_timerfd_settime, "fxpp", timerfd_settime(file, frame))
SYSCALL_ROW_OF(411, sys_timerfd_settime64, "fxpp", sys_timerfd_settime)

SYSCALL_FILE(326, sys_timerfd_gettime, "fp",
	     timer_file_error(file)
		 ?: interval_timer_give(&((struct timer_file *)file->private)->timer, frame->ecx,
					format_of_call(frame)))
SYSCALL_ROW_OF(410, sys_timerfd_gettime64, "fp", sys_timerfd_gettime)
