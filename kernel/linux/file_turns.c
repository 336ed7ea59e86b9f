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
 * The file is held meanwhile: a thread may close its descriptor. Streams have no offset, and a turn
 * there could last for ever.
 *
 * brk takes turns by space: it clears memory, which may sleep, between looking where the heap ends
 * and returning where it ends now.
 */
#include "fs/file.h"
#include "kernel/lib/startup.h"
#include "kernel/process/file_calls.h"
#include "kernel/syscall/gate.h"
#include "kernel/task/task.h"
#include "kernel/task/wait.h"

struct turn {
	const void *of;
	struct turn *next;
};

#define BREAK 45

/* brk, and read, write, lseek, _llseek, readv, writev, getdents64: the descriptor is in EBX. */
static const uint16_t numbers[] = { 3, 4, 19, 140, 145, 146, 220, BREAK };

#define COUNT (sizeof(numbers) / sizeof(numbers[0]))

static struct syscall in_turns[COUNT];
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
	int result = originals[BREAK](frame);

	give_back(&turn);
	return result;
}

static int run_in_turn(struct trap_frame *frame)
{
	int (*original)(struct trap_frame *) = originals[frame->eax];
	struct file *file = descriptor_file(frame->ebx);

	if (!file || file->ops->is_stream)
		return original(frame);
	struct turn turn = { .of = file->inode ? (const void *)file->inode : file };

	file->references++;
	take(&turn);
	int result = original(frame);

	give_back(&turn);
	file_release(file);
	return result;
}

/* The calls are there already: each gets its turn around it. */
static void file_turns_start(void)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		in_turns[i] = *syscall_find(numbers[i]);
		originals[numbers[i]] = in_turns[i].run;
		in_turns[i].run = numbers[i] == BREAK ? run_in_turn_of_space : run_in_turn;
	}
	syscall_register(in_turns, COUNT);
}
STARTUP(file_turns_start)
