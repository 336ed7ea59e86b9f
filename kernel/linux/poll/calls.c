/*
 * Waiting for one of many files: poll, select, and their forms with a mask and a finer time; and
 * the wait itself, which epoll shares.
 *
 *	poll_wait_for	scans once; then joins the queues of all files, and scans after each wake-up
 *	  scan_poll	looks at an array of descriptors and events	poll, ppoll
 *	  scan_select	looks at three sets of bits			select, pselect6
 *
 * A signal ends a wait. If it has no handler, the call is made again and waits until the same time
 * (signals.resume_ns). poll(2), select(2).
 */
#include "kernel/abi/poll.h"
#include "kernel/abi/signal_handler.h"
#include "kernel/lib/string.h"
#include "kernel/linux/call.h"
#include "kernel/linux/poll/wait.h"
#include "kernel/linux/signals/mask.h"
#include "kernel/linux/time/user_time64.h"
#include "kernel/task/time.h"

#define FEW	   16u /* waiters that are on the stack */
#define MANY_ORDER 3   /* pages, as a power of two, for those of FILES_MAX files */
#define MS	   1000000u
#define SET_WORDS  (FILES_MAX / 32)

_Static_assert(FILES_MAX * POLL_QUEUES * sizeof(struct waiter) <= PAGE_SIZE << MANY_ORDER,
	       "room for waiters");
_Static_assert(FILES_MAX * sizeof(struct file *) <= PAGE_SIZE, "room for files");

/* A file without a poll operation never waits. RDNORM and WRNORM are the same as IN and OUT here.
 */
uint32_t poll_file(struct file *file, uint32_t wanted, struct poll_table *table)
{
	uint32_t ready = file->ops->poll ? file->ops->poll(file, table) : POLLIN | POLLOUT;

	ready |= ready & POLLIN ? POLLRDNORM : 0;
	ready |= ready & POLLOUT ? POLLWRNORM : 0;
	return ready & (wanted | POLLERR | POLLHUP);
}

/* The same for a descriptor; POLLNVAL if it is not open. The file is held while the table waits for
 * it, because another task of the program may close it. */
static uint32_t poll_look(uint32_t descriptor, uint32_t wanted, struct poll_table *table)
{
	struct file *file = file_opened(files_get(current->process->files, descriptor));

	if (!file)
		return POLLNVAL;
	if (table) {
		file->references++;
		table->files[table->held++] = file;
	}
	return poll_file(file, wanted, table);
}

/* Joins the files' queues, scans, and waits until one of them is woken, which need not mean that a
 * file is ready: then all of this again, until the deadline. */
static int wait_until(poll_scanner *scan, void *context, struct poll_table *table,
		      uint64_t deadline)
{
	int result, error;

	do {
		table->count = 0;
		result = scan(context, table);
		error = result ? 0 : wait_any(table->waiters, table->count, deadline);
		while (table->count > 0)
			wait_leave(&table->waiters[--table->count]);
		while (table->held > 0)
			file_release(table->files[--table->held]);
	} while (!result && !error);
	if (error == -ETIMEDOUT)
		return scan(context, NULL);
	return error ? -ERESTART_SLEEP : result;
}

int poll_wait_for(poll_scanner *scan, void *context, uint32_t count, uint64_t deadline)
{
	uint64_t *resumed = &current->process->signals.resume_ns;
	struct waiter few[FEW];
	struct file *few_files[FEW];
	int result = scan(context, NULL);

	if (*resumed)
		deadline = *resumed;
	*resumed = 0;
	if (result || deadline == 0)
		return result;
	bool are_many = count * POLL_QUEUES > FEW;
	struct poll_table table = { .waiters = are_many ? page_alloc(MANY_ORDER) : few,
				    .limit = count * POLL_QUEUES,
				    .files = are_many ? page_alloc(0) : few_files };

	result =
	    table.waiters && table.files ? wait_until(scan, context, &table, deadline) : -ENOMEM;
	if (are_many && table.files)
		page_free(table.files, 0);
	if (are_many && table.waiters)
		page_free(table.waiters, MANY_ORDER);
	*resumed = result == -ERESTART_SLEEP ? deadline : 0;
	return result;
}

/* ---- poll ---- */

/* A poll_scanner. The call's first two arguments are the program's array and how many elements it
 * has. Each scan writes all results to the program; the last one counts. */
static int scan_poll(void *context, struct poll_table *table)
{
	const struct trap_frame *frame = context;
	int total = 0;

	for (uint32_t i = 0; i < frame->ecx; i++) {
		uint32_t at = frame->ebx + i * sizeof(struct linux_poll);
		struct linux_poll poll;

		if (copy_from_user(&poll, at, sizeof(poll)))
			return -EFAULT;
		poll.ready = poll.descriptor < 0
				 ? 0
				 : poll_look(poll.descriptor, (uint16_t)poll.events, table);
		if (copy_to_user(at, &poll, sizeof(poll)))
			return -EFAULT;
		total += poll.ready != 0;
	}
	return total;
}

/* A call that waits until a deadline, for what its first arguments say. */
typedef int poll_call(struct trap_frame *frame, uint64_t deadline);

static int poll_until(struct trap_frame *frame, uint64_t deadline)
{
	return frame->ecx > FILES_MAX ? -EINVAL
				      : poll_wait_for(scan_poll, frame, frame->ecx, deadline);
}

/* 0 does not wait at all, not even until the next tick. */
uint64_t poll_deadline(int32_t milliseconds)
{
	if (milliseconds < 0)
		return WAIT_FOREVER;
	return milliseconds ? time_ns() + (uint64_t)milliseconds * MS : 0;
}

SYSCALL(168, sys_poll, "pdd", poll_until(frame, poll_deadline(frame->edx)))

/* ---- select ---- */

enum { READ, WRITE, EXCEPT, SETS };

/* What select was called with. A set has a bit for each descriptor, the lowest first. */
struct select_request {
	uint32_t count;	    /* descriptors */
	uint32_t set[SETS]; /* user addresses, or 0 */
	uint32_t wanted[SETS][SET_WORDS];
	uint32_t ready[SETS][SET_WORDS];
};

/* What puts a file's descriptor into each result: select(2), "Correspondence between select() and
 * poll() notifications". */
static const uint32_t set_events[SETS] = { [READ] = POLLIN | POLLHUP | POLLERR,
					   [WRITE] = POLLOUT | POLLERR,
					   [EXCEPT] = POLLPRI };

/* A poll_scanner: one look at a file answers for all three sets. A descriptor that is not open is
 * an error of the call, while poll says POLLNVAL of that one only. */
static int scan_select(void *context, struct poll_table *table)
{
	struct select_request *request = context;
	int total = 0;

	memset(request->ready, 0, sizeof(request->ready));
	for (uint32_t i = 0; i < request->count; i++) {
		uint32_t word = i / 32, bit = 1u << i % 32;
		bool is_wanted = (request->wanted[READ][word] | request->wanted[WRITE][word] |
				  request->wanted[EXCEPT][word]) &
				 bit;
		uint32_t ready = is_wanted ? poll_look(i, POLLIN | POLLOUT | POLLPRI, table) : 0;

		if (ready & POLLNVAL)
			return -EBADF;
		for (unsigned set = 0; set < SETS; set++) {
			if (!(ready & set_events[set]) || !(request->wanted[set][word] & bit))
				continue;
			request->ready[set][word] |= bit;
			total++;
		}
	}
	return total;
}

/* Fetches the program's sets, or gives it those of what is ready in place of them: in whole words,
 * as Linux reads and writes. A set at address 0 is empty. */
static int move_sets(struct select_request *request, bool gives)
{
	for (unsigned i = 0; i < SETS; i++) {
		uint32_t address = request->set[i];
		uint32_t size = address ? (request->count + 31) / 32 * sizeof(uint32_t) : 0;

		if (gives ? copy_to_user(address, request->ready[i], size)
			  : copy_from_user(request->wanted[i], address, size))
			return -EFAULT;
	}
	return 0;
}

static int select_until(struct trap_frame *frame, uint64_t deadline)
{
	struct select_request request = {
		.count = frame->ebx < FILES_MAX ? frame->ebx : FILES_MAX,
		.set = { frame->ecx, frame->edx, frame->esi },
	};

	if ((int32_t)frame->ebx < 0)
		return -EINVAL;
	int result = move_sets(&request, false)
			 ?: poll_wait_for(scan_select, &request, request.count, deadline);

	return result < 0 ? result : move_sets(&request, true) ?: result;
}

/* ---- times and masks ---- */

int poll_mask(uint32_t mask, uint32_t size)
{
	uint64_t blocked;
	int error = mask ? mask_from_user(&blocked, mask, size) : 0;

	if (mask && !error)
		signal_suspend(blocked);
	return error;
}

/* Whether a signal came is known only to the call: until then the mask stays. */
int poll_unmask(int result)
{
	if (result != -ERESTART_SLEEP)
		signal_resume();
	return result;
}

/* With a time and a mask, both at user addresses (0: none). An error of either is told before
 * anything is waited for, or written. Linux writes back how much of the time is left, and ignores
 * an error of that write. */
static int wait_with(struct trap_frame *frame, uint32_t time, enum time_format format,
		     uint32_t mask, uint32_t size, poll_call *call)
{
	uint64_t deadline;
	int error = deadline_from_user(time, format, &deadline) ?: poll_mask(mask, size);

	if (error)
		return error;
	int result = poll_unmask(call(frame, deadline));
	uint64_t now = time_ns();

	if (time)
		time_to_user(time, format, deadline > now ? deadline - now : 0);
	return result;
}

/* select(2) has no mask. What POSIX leaves open Linux does for it, too: the rest of the time is
 * written back. */
SYSCALL(142, sys__newselect, "dpppp", wait_with(frame, frame->edi, TIMEVAL, 0, 0, select_until))

/* ppoll(2): as poll with a mask, so that no signal comes between its change and the wait. */
SYSCALL_PAIR(309, sys_ppoll, 414, sys_ppoll_time64, "pdppd",
	     wait_with(frame, frame->edx, format_of_call(frame), frame->esi, frame->edi,
		       poll_until))

/* The last argument is the address of the mask's address and size: i386 has six registers. */
SYSCALL_DEFINE(308, sys_pselect6, "dppppp")
{
	uint32_t mask[2] = { 0, 0 };

	if (frame->ebp && copy_from_user(mask, frame->ebp, sizeof(mask)))
		return -EFAULT;
	return wait_with(frame, frame->edi, format_of_call(frame), mask[0], mask[1], select_until);
}
SYSCALL_ROW_OF(413, sys_pselect6_time64, "dppppp", sys_pselect6)
