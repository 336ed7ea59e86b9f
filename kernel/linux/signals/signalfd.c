/*
 * Files that give signals: signalfd(2). A read takes those of the file's set that are pending,
 * which the program usually blocks, so that they do nothing else.
 *
 * They are the signals of the task that reads, and of its program: a file that a child has
 * inherited gives the child's. So a file has only a set, and all readers are woken by every signal
 * (signal_sent) and looks again.
 */

#include "fs/linux/poll.h"
#include "kernel/abi/poll.h"
#include "kernel/linux/signals/frame.h"
#include "kernel/linux/signals/mask.h"
#include "kernel/linux/files/calls.h"

/* What a file has; SIGKILL and SIGSTOP are never in it. */
struct signal_file {
	uint64_t set;
};

/* struct signalfd_siginfo, of 128 bytes: what the kernel does not know is 0. */
struct signal_record {
	uint32_t signal;
	int32_t error, code, pid, user, file;
	uint32_t unused[4];
	int32_t status, value;
	uint32_t rest[20];
};

static struct pool pool = POOL_INITIALIZER(struct signal_file);

/* As many records as there is room for; waits for the first one only. -EINVAL without room for one.
 * A signal whose record cannot be copied is gone, as on Linux. */
static int signal_read(struct file *file, struct buffer *to, uint64_t offset)
{
	uint64_t set = ((struct signal_file *)file->private)->set;
	struct signal_cause cause;
	int done = 0, signal;

	if (to->length < sizeof(struct signal_record))
		return -EINVAL;
	signal = signal_accept(set, &cause);
	if (!signal && file->flags & O_NONBLOCK)
		return -EAGAIN;
	int error = wait_event(&signal_sent, signal || (signal = signal_accept(set, &cause)) != 0);

	while (!error && signal) {
		const struct linux_signal_info info = signal_info(signal, &cause);
		const struct signal_record record = {
			.signal = signal,
			.code = info.code,
			.pid = info.pid,
			.user = info.user,
			.status = info.status,
			.value = info.status,
		};
		int moved = buffer_put(to, &record, sizeof(record));

		if (moved < 0)
			return done ? done : moved;
		done += moved;
		signal = to->length < sizeof(record) ? 0 : signal_accept(set, &cause);
	}
	return error ? error : done;
}

/* Ready for the task that asks: another one may get another answer. */
static uint32_t signal_poll(struct file *file, struct poll_table *table)
{
	uint64_t set = ((struct signal_file *)file->private)->set;

	poll_add(table, &signal_sent);
	if (signal_adopt)
		signal_adopt(set);
	return current->process->signals.pending & set ? POLLIN : 0;
}

/* The last descriptor is closed. Signals that are pending stay so. */
static void signal_release(struct file *file)
{
	pool_free(&pool, file->private);
}

static const struct file_ops signal_ops = {
	.read = signal_read, .poll = signal_poll, .release = signal_release, .is_stream = true
};

/* Descriptor -1: a new file, whose descriptor it returns; else the file's set is another one from
 * now on. `held` is the descriptor's, or NULL. */
static int signal_file(struct file *held, const struct trap_frame *frame, uint32_t flags)
{
	static struct anonymous kind = { .kind = "[signalfd]" };
	uint64_t set;
	int error = flags & ~(O_NONBLOCK | O_CLOEXEC)
			? -EINVAL
			: mask_from_user(&set, frame->ecx, frame->edx);

	if (error)
		return error;
	const struct signal_file new = { set & ~SIGNALS_FIXED };

	if (frame->ebx == -1u)
		return descriptor_of_pool(&kind, &signal_ops, &pool, &new, flags);
	if (!held || held->ops != &signal_ops)
		return held ? -EINVAL : -EBADF;
	*(struct signal_file *)held->private = new;
	return frame->ebx;
}

SYSCALL_FILE(321, sys_signalfd, "fpd", signal_file(file_opened(file), frame, 0))
SYSCALL_FILE(327, sys_signalfd4, "fpdx", signal_file(file_opened(file), frame, frame->esi))
