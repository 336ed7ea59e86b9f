/*
 * System calls that a C library for threads makes when a program begins: its thread-local segment.
 *
 * GS selects a descriptor whose base is the thread's own memory, so gs:0 is another address in each
 * thread. The global descriptor table has three entries for that, which each task switch loads
 * (kernel/cpu/descriptors.h); set_thread_area fills one in.
 *
 *	struct user_descriptor	base, limit, flags	from the program: checked here
 *	struct descriptor	the same		kernel/cpu/descriptor.h packs it
 *	thread_local.packed[]	64 bits each		of the task, and the processor's table
 *
 * set_thread_area(2), set_tid_address(2), gettid(2). Nothing here sleeps, except for copies.
 */
#include "kernel/cpu/descriptor.h"
#include "kernel/linux/call.h"
#include "kernel/linux/process/thread_local.h"

/* Linux's struct user_desc. */
struct user_descriptor {
	uint32_t entry; /* of the descriptor table; -1: choose one */
	uint32_t base;
	uint32_t limit;
	uint32_t flags;
};

#define FLAG_32_BIT	 0x01u
#define FLAG_CONTENTS	 0x06u /* 0: data, 2: a stack; code is refused */
#define FLAG_READ_ONLY	 0x08u
#define FLAG_IN_PAGES	 0x10u
#define FLAG_NOT_PRESENT 0x20u
#define FLAG_AVAILABLE	 0x40u
#define CONTENTS_STACK	 0x02u
#define FLAGS_OF_NONE	 (FLAG_READ_ONLY | FLAG_NOT_PRESENT) /* clears the entry; so do zeros */
#define ACCESS_DATA	 0xf0u				     /* present, DPL 3 */
#define ACCESS_WRITABLE	 0x02u
#define ACCESS_DOWN	 0x04u /* expands down */
#define ENTRY		 (THREAD_LOCAL / 8)
#define SELECTOR_LOCAL	 0x04u /* of the local table, which is empty */
#define ENTRIES		 (sizeof(struct thread_segments) / sizeof(uint64_t))
#define ANY_ENTRY	 0xffffffffu
#define RING		 3u /* a selector's privilege level */

SYSCALL(224, sys_gettid, "", current->pid)

/* The word becomes 0 when the task ends, and wakes those that wait there: pthread_join. */
SYSCALL_DEFINE(258, sys_set_tid_address, "p")
{
	current->process->clear_on_exit = frame->ebx;
	return current->pid;
}

/* Does it clear the entry? */
static bool is_no_segment(const struct user_descriptor *wanted)
{
	return !wanted->base && !wanted->limit &&
	       (!wanted->flags || wanted->flags == FLAGS_OF_NONE);
}

/* The descriptor that is asked for, packed; 0 to clear the entry. */
static uint64_t pack_segment(const struct user_descriptor *wanted)
{
	struct descriptor descriptor = {
		.base = wanted->base,
		.limit = wanted->limit,
		.access = ACCESS_DATA,
		.flags = (wanted->flags & FLAG_32_BIT ? DESCRIPTOR_32_BIT : 0) |
			 (wanted->flags & FLAG_AVAILABLE ? DESCRIPTOR_AVAILABLE : 0),
	};

	if (is_no_segment(wanted))
		return 0;
	if (!(wanted->flags & FLAG_READ_ONLY))
		descriptor.access |= ACCESS_WRITABLE;
	if ((wanted->flags & FLAG_CONTENTS) == CONTENTS_STACK)
		descriptor.access |= ACCESS_DOWN;
	if (wanted->flags & FLAG_IN_PAGES)
		descriptor.limit = wanted->limit << 12 | 0xfff;
	return descriptor_pack(&descriptor);
}

/* Is it data of 32 bits that is there, or no segment at all? */
static bool is_valid_segment(const struct user_descriptor *wanted)
{
	return is_no_segment(wanted) ||
	       (wanted->flags & FLAG_32_BIT && !(wanted->flags & FLAG_NOT_PRESENT) &&
		(wanted->flags & FLAG_CONTENTS) <= CONTENTS_STACK);
}

/* Chooses a free entry, and tells the program which one: -ESRCH when all are in use, -EFAULT. */
static int choose_entry(uint32_t address, struct user_descriptor *wanted)
{
	uint32_t free = 0;

	while (free < ENTRIES && current->thread_local.packed[free])
		free++;
	wanted->entry = ENTRY + free;
	return free == ENTRIES ? -ESRCH : give(address, &wanted->entry, sizeof(wanted->entry));
}

/* As Linux's do_set_thread_area: what is wrong with the segment comes before the entry. The
 * segments are changed only if nothing is wrong. */
int thread_local_from_user(uint32_t address, struct thread_segments *segments, bool may_choose)
{
	struct user_descriptor wanted;

	int error = fetch(&wanted, address, sizeof(wanted));

	if (!error && !is_valid_segment(&wanted))
		error = -EINVAL;
	if (!error && may_choose && wanted.entry == ANY_ENTRY)
		error = choose_entry(address, &wanted);
	if (!error && wanted.entry - ENTRY >= ENTRIES)
		error = -EINVAL;
	if (!error)
		segments->packed[wanted.entry - ENTRY] = pack_segment(&wanted);
	return error;
}

/* The two lowest bits are a privilege level, which does not matter here. */
static bool is_thread_local(uint32_t selector)
{
	return !(selector & SELECTOR_LOCAL) && (selector & 0xffff) / 8 - ENTRY < ENTRIES;
}

uint32_t selector_for_user(uint32_t selector)
{
	selector = (selector & 0xffff) | RING;
	if (selector == USER_DATA || selector == USER_CODE ||
	    (is_thread_local(selector) && current->thread_local.packed[selector / 8 - ENTRY]))
		return selector;
	return 0;
}

/* Also after set_thread_area, which may have cleared the entry that a register still names. */
void selectors_check(struct trap_frame *frame)
{
	uint32_t *const selectors[] = { &frame->gs, &frame->fs, &frame->es, &frame->ds };

	for (unsigned i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++)
		*selectors[i] = selector_for_user(*selectors[i]);
	if (is_thread_local(frame->user_ss))
		frame->user_ss = USER_DATA;
}

SYSCALL_DEFINE(243, sys_set_thread_area, "p")
{
	int error = thread_local_from_user(frame->ebx, &current->thread_local, true);

	if (error)
		return error;
	descriptors_set_thread_local(&current->thread_local);
	selectors_check(frame);
	return 0;
}
