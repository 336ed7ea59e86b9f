/* Files that give signals: signalfd(2). A read takes those of the file's set that are pending,
 * which the program usually blocks, so that they do nothing else. */
#include <stddef.h>

#include "fs/linux/poll.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/signal_handler.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/signals/frame.h"
#include "kernel/linux/signals/mask.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/signal_actions.h"
#include "kernel/syscall/syscall.h"

struct signal_file {
	uint64_t set;
};

/* struct signalfd_siginfo. */
struct signal_record {
	uint32_t signal;
	int32_t error, code, pid, user, file;
	uint32_t unused[4];
	int32_t status, value;
	uint32_t rest[20];
};

static struct pool pool = POOL_INITIALIZER(struct signal_file);

static int take(uint64_t set, struct signal_cause *cause)
{
	if (signal_adopt)
		signal_adopt(set);
	return signal_take(set, cause);
}

/* Waits for the first one only. */
static int signal_read(struct file *file, struct buffer *to, uint64_t offset)
{
	uint64_t set = ((struct signal_file *)file->private)->set;
	struct signal_cause cause;
	int done = 0, signal;

	if (to->length < sizeof(struct signal_record))
		return -EINVAL;
	signal = take(set, &cause);
	if (!signal && file->flags & O_NONBLOCK)
		return -EAGAIN;
	int error = wait_event(&signal_sent, signal || (signal = take(set, &cause)) != 0);

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
		signal = to->length < sizeof(record) ? 0 : take(set, &cause);
	}
	return error ? error : done;
}

static uint32_t signal_poll(struct file *file, struct poll_table *table)
{
	uint64_t set = ((struct signal_file *)file->private)->set;

	poll_add(table, &signal_sent);
	if (signal_adopt)
		signal_adopt(set);
	return current->process->signals.pending & set ? POLLIN : 0;
}

static void signal_release(struct file *file)
{
	pool_free(&pool, file->private);
}

static const struct file_ops signal_ops = {
	.read = signal_read, .poll = signal_poll, .release = signal_release, .is_stream = true
};

/* Descriptor -1: a new file; else the file's set is another one from now on. */
static int signal_file(struct file *held, const struct trap_frame *frame, uint32_t flags)
{
	static struct anonymous kind = { .kind = "[signalfd]" };
	uint64_t set;

	if (frame->edx != SIGNAL_MASK_SIZE || flags & ~(O_NONBLOCK | O_CLOEXEC))
		return -EINVAL;
	if (copy_from_user(&set, frame->ecx, sizeof(set)) != 0)
		return -EFAULT;
	bool is_new = frame->ebx == -1u;
	struct file *file =
	    is_new ? file_of_pool(&kind, &signal_ops, &pool, O_RDWR | (flags & O_NONBLOCK)) : held;

	if (!file)
		return is_new ? -ENOMEM : -EBADF;
	if (file->ops != &signal_ops)
		return -EINVAL;
	((struct signal_file *)file->private)->set = set & ~SIGNALS_FIXED;
	return is_new ? descriptor_add(file, flags) : (int)frame->ebx;
}

FILE_CALL(sys_signalfd, signal_file(file_opened(file), frame, 0))
FILE_CALL(sys_signalfd4, signal_file(file_opened(file), frame, frame->esi))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 321, "signalfd", "fpd", sys_signalfd },
	{ 327, "signalfd4", "fpdx", sys_signalfd4 },
};
