/* System calls that a C library for threads makes when a program begins: its thread-local segment.
 */
#include "kernel/cpu/descriptor.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/process/thread_local.h"
#include "kernel/syscall/syscall.h"
#include "kernel/process/process.h"
#include "mm/user_copy.h"

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

CALL(sys_gettid, current->pid)

static int sys_set_tid_address(struct trap_frame *frame)
{
	current->process->clear_on_exit = frame->ebx;
	return current->pid;
}

static bool is_none(const struct user_descriptor *wanted)
{
	return !wanted->base && !wanted->limit &&
	       (!wanted->flags || wanted->flags == FLAGS_OF_NONE);
}

/* The descriptor that is asked for, packed; 0 to clear the entry. */
static uint64_t pack(const struct user_descriptor *wanted)
{
	struct descriptor descriptor = {
		.base = wanted->base,
		.limit = wanted->limit,
		.access = ACCESS_DATA,
		.flags = (wanted->flags & FLAG_32_BIT ? DESCRIPTOR_32_BIT : 0) |
			 (wanted->flags & FLAG_AVAILABLE ? DESCRIPTOR_AVAILABLE : 0),
	};

	if (is_none(wanted))
		return 0;
	if (!(wanted->flags & FLAG_READ_ONLY))
		descriptor.access |= ACCESS_WRITABLE;
	if ((wanted->flags & FLAG_CONTENTS) == CONTENTS_STACK)
		descriptor.access |= ACCESS_DOWN;
	if (wanted->flags & FLAG_IN_PAGES)
		descriptor.limit = wanted->limit << 12 | 0xfff;
	return descriptor_pack(&descriptor);
}

static int from_user(uint32_t address, struct user_descriptor *wanted)
{
	if (copy_from_user(wanted, address, sizeof(*wanted)) != 0)
		return -EFAULT;
	if (is_none(wanted))
		return 0;
	return wanted->flags & FLAG_32_BIT && !(wanted->flags & FLAG_NOT_PRESENT) &&
		       (wanted->flags & FLAG_CONTENTS) <= CONTENTS_STACK
		   ? 0
		   : -EINVAL;
}

static int put(const struct user_descriptor *wanted, struct thread_segments *segments)
{
	if (wanted->entry - ENTRY >= ENTRIES)
		return -EINVAL;
	segments->packed[wanted->entry - ENTRY] = pack(wanted);
	return 0;
}

int thread_local_from_user(uint32_t address, struct thread_segments *segments)
{
	struct user_descriptor wanted;
	int error = from_user(address, &wanted);

	return error ? error : put(&wanted, segments);
}

static bool is_thread_local(uint32_t selector)
{
	return !(selector & SELECTOR_LOCAL) && (selector & 0xffff) / 8 - ENTRY < ENTRIES;
}

bool thread_local_has(const struct thread_segments *segments, uint32_t selector)
{
	return is_thread_local(selector) && segments->packed[(selector & 0xffff) / 8 - ENTRY];
}

/* A selector whose descriptor was removed, or is no longer a stack's, must not be loaded on the way
 * to user mode: the kernel would fault. */
static void forget_segment(struct trap_frame *frame)
{
	uint32_t *const selectors[] = { &frame->gs, &frame->fs, &frame->es, &frame->ds };

	for (unsigned i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++)
		if (is_thread_local(*selectors[i]) &&
		    !thread_local_has(&current->thread_local, *selectors[i]))
			*selectors[i] = 0;
	if (is_thread_local(frame->user_ss))
		frame->user_ss = USER_DATA;
}

static int choose_entry(uint32_t address, struct user_descriptor *wanted)
{
	uint32_t free = 0;

	while (free < ENTRIES && current->thread_local.packed[free])
		free++;
	wanted->entry = ENTRY + free;
	return free == ENTRIES ? -ESRCH : give(address, &wanted->entry, sizeof(wanted->entry));
}

static int sys_set_thread_area(struct trap_frame *frame)
{
	struct user_descriptor wanted;
	int error = from_user(frame->ebx, &wanted);

	if (!error && wanted.entry == ANY_ENTRY)
		error = choose_entry(frame->ebx, &wanted);
	if (!error)
		error = put(&wanted, &current->thread_local);
	if (error)
		return error;
	descriptors_set_thread_local(&current->thread_local);
	forget_segment(frame);
	return 0;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 224, "gettid", "", sys_gettid },
	{ 243, "set_thread_area", "p", sys_set_thread_area },
	{ 258, "set_tid_address", "p", sys_set_tid_address },
};
