/*
 * Turns: one task at a time moves in a file.
 *
 * Tasks that share an open file share its offset. A copy to or from a program may sleep, in a page
 * fault: meanwhile another task would read the same bytes again, or write over those of the first
 * one. So the calls that use an offset take turns, as Linux's do; and because the offset of
 * O_APPEND is the size, which is the same for all that have a file open, they take turns by inode:
 *
 *	turns --> { inode of /tmp/log } --> { inode of /bin }	each on the stack of its task
 *
 * Most files need no turn: one descriptor leads to them, and one task has it. The offset is shared
 * after fork, dup and the like (more than one reference) and by threads, which have their
 * descriptors in common. Streams have no offset, and a turn there could last for ever.
 *
 * The file is held meanwhile: a thread may close its descriptor.
 *
 * brk takes turns by space: it clears memory, which may sleep, between looking where the heap ends
 * and returning where it ends now.
 */
#include "fs/file.h"
#include "fs/files.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/startup.h"
#include "kernel/linux/threads.h"
#include "kernel/process/file_calls.h"
#include "kernel/process/process.h"
#include "kernel/syscall/gate.h"
#include "kernel/task/task.h"
#include "kernel/task/wait.h"
#include "mm/user_copy.h"

struct turn {
	const void *of;
	struct turn *next;
};

static int (*originals[SYSCALL_LIMIT])(struct trap_frame *frame);
static struct turn *turns;
static struct wait_queue given_back;

static bool is_taken(const void *of)
{
	const struct turn *turn = turns;

	while (turn && turn->of != of)
		turn = turn->next;
	return turn;
}

static void take(struct turn *turn)
{
	bool enabled = interrupts_disable();

	while (is_taken(turn->of))
		wait_sleep_blocked(&given_back);
	turn->next = turns;
	turns = turn;
	interrupts_restore(enabled);
}

static void give_back(const struct turn *turn)
{
	struct turn **link = &turns;

	while (*link != turn)
		link = &(*link)->next;
	*link = turn->next;
	wait_wake(&given_back);
}

static int run_in_turn_of_space(struct trap_frame *frame)
{
	struct turn turn = { .of = current->space };

	take(&turn);
	int result = originals[frame->eax](frame);

	give_back(&turn);
	return result;
}

static const void *turn_of(const struct file *file)
{
	return file->inode ? (const void *)file->inode : file;
}

/* May another task use the same offset meanwhile? */
static inline bool is_shared(const struct file *file)
{
	return !file->ops->is_stream &&
	       (file->references > 1 || (file->flags & O_APPEND) || program_has_threads());
}

static int run_in_turn(struct trap_frame *frame)
{
	int (*original)(struct trap_frame *) = originals[frame->eax];
	struct file *file = descriptor_file(frame->ebx);

	if (!file || !is_shared(file))
		return original(frame);
	struct turn turn = { .of = turn_of(file) };

	file->references++;
	take(&turn);
	int result = original(frame);

	give_back(&turn);
	file_release(file);
	return result;
}

static __attribute__((noinline)) int move_in_turn(struct file *file, struct buffer *buffer,
						  int (*move)(struct file *, struct buffer *))
{
	struct turn turn = { .of = turn_of(file) };

	take(&turn);
	int result = move(file, buffer);

	give_back(&turn);
	return result;
}

/* How a file's bytes move: by its offset, and (streams) without one. */
struct direction {
	bool (*allowed)(const struct file *file);
	int (*move)(struct file *file, struct buffer *buffer);
	int (*move_at)(struct file *file, struct buffer *buffer, uint64_t offset);
};

/* As transfer in kernel/process/file_calls.c; all of it is inline, because most system calls are
 * these two. */
static inline __attribute__((always_inline)) int transfer(const struct trap_frame *frame,
							  struct direction by)
{
	struct file *file = files_get(current->process->files, frame->ebx);
	uint32_t length = frame->edx < TRANSFER_MAX ? frame->edx : TRANSFER_MAX;
	int result;

	if (!file || !by.allowed(file))
		return -EBADF;
	if (!user_range_ok(frame->ecx, frame->edx))
		return -EFAULT;
	struct buffer buffer = buffer_of_user(frame->ecx, length);
	bool in_turn = is_shared(file);

	file->references++;
	if (in_turn)
		result = move_in_turn(file, &buffer, by.move);
	else if (file->ops->is_stream)
		result = by.move_at(file, &buffer, 0);
	else
		result = by.move(file, &buffer);
	file_release(file);
	return result;
}

static int read_in_turn(struct trap_frame *frame)
{
	return transfer(frame, (struct direction){ file_readable, file_read, file_read_at });
}

static int write_in_turn(struct trap_frame *frame)
{
	int result =
	    transfer(frame, (struct direction){ file_writable, file_write, file_write_at });

	return result == -EPIPE ? end_write(result) : result;
}

/* lseek, _llseek, readv, writev, getdents64, and read and write, which are the most frequent calls
 * and so done here: the descriptor is in EBX. And brk. */
static const struct {
	uint16_t number;
	int (*run)(struct trap_frame *frame);
} calls[] = {
	{ 3, read_in_turn },  { 4, write_in_turn },	    { 19, run_in_turn },
	{ 140, run_in_turn }, { 145, run_in_turn },	    { 146, run_in_turn },
	{ 220, run_in_turn }, { 45, run_in_turn_of_space },
};

#define COUNT (sizeof(calls) / sizeof(calls[0]))

/* The calls are there already: these take their places. */
static void file_turns_start(void)
{
	static struct syscall in_turns[COUNT];

	for (uint32_t i = 0; i < COUNT; i++) {
		in_turns[i] = *syscall_find(calls[i].number);
		originals[calls[i].number] = in_turns[i].run;
		in_turns[i].run = calls[i].run;
	}
	syscall_register(in_turns, COUNT);
}
STARTUP(file_turns_start)
