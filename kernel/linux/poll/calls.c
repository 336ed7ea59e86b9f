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
	struct poll_table table = { few, 0, count * POLL_QUEUES, few_files, 0 };
	int result = scan(context, NULL);

	if (*resumed)
		deadline = *resumed;
	*resumed = 0;
	if (result || deadline == 0)
		return result;
	if (table.limit > FEW) {
		table.waiters = page_alloc(MANY_ORDER);
		table.files = page_alloc(0);
	}
	if (table.waiters && table.files)
		result = wait_until(scan, context, &table, deadline);
	else
		result = -ENOMEM;
	if (table.limit > FEW && table.files)
		page_free(table.files, 0);
	if (table.limit > FEW && table.waiters)
		page_free(table.waiters, MANY_ORDER);
	*resumed = result == -ERESTART_SLEEP ? deadline : 0;
	return result;
}

/* ---- poll ---- */

/* What poll was called with. */
struct poll_request {
	uint32_t address; /* of the program's array */
	uint32_t count;
};

/* A poll_scanner. Each scan writes all results to the program; the last one counts. */
static int scan_poll(void *context, struct poll_table *table)
{
	const struct poll_request *request = context;
	int total = 0;

	for (uint32_t i = 0; i < request->count; i++) {
		uint32_t at = request->address + i * sizeof(struct linux_poll);
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

/* What a call's first two arguments ask for. */
static int poll_until(struct file *unused, const struct trap_frame *frame, uint64_t deadline)
{
	struct poll_request request = { frame->ebx, frame->ecx };

	if (request.count > FILES_MAX)
		return -EINVAL;
	return poll_wait_for(scan_poll, &request, request.count, deadline);
}

/* 0 does not wait at all, not even until the next tick. */
uint64_t poll_deadline(int32_t milliseconds)
{
	if (milliseconds < 0)
		return WAIT_FOREVER;
	return milliseconds ? time_ns() + (uint64_t)milliseconds * MS : 0;
}

SYSCALL(168, sys_poll, "pdd", poll_until(NULL, frame, poll_deadline(frame->edx)))

/* ---- select ---- */

enum { READ, WRITE, EXCEPT, SETS };

/* What select was called with. A set has a bit for each descriptor, the lowest first. */
struct select_request {
	uint32_t count;	    /* descriptors */
	uint32_t set[SETS]; /* user addresses, or 0 */
	uint32_t wanted[SETS][SET_WORDS];
	uint32_t ready[SETS][SET_WORDS];
};

/* Of a set, in whole words: those are what Linux reads and writes. */
static uint32_t set_bytes(const struct select_request *request)
{
	return (request->count + 31) / 32 * 4;
}

static bool select_has(const uint32_t *set, uint32_t descriptor)
{
	return set[descriptor / 32] >> descriptor % 32 & 1;
}

/* Notes a descriptor in a result if it is wanted there and ready. Returns 1 then. */
static int select_note(struct select_request *request, unsigned set, uint32_t descriptor,
		       bool ready)
{
	if (!ready || !select_has(request->wanted[set], descriptor))
		return 0;
	request->ready[set][descriptor / 32] |= 1u << descriptor % 32;
	return 1;
}

/* A poll_scanner: one look at a file answers for all three sets. A descriptor that is not open is
 * an error of the call. */
static int scan_select(void *context, struct poll_table *table)
{
	struct select_request *request = context;
	int total = 0;

	memset(request->ready, 0, sizeof(request->ready));
	for (uint32_t i = 0; i < request->count; i++) {
		bool wanted = select_has(request->wanted[READ], i) ||
			      select_has(request->wanted[WRITE], i) ||
			      select_has(request->wanted[EXCEPT], i);
		uint32_t ready = wanted ? poll_look(i, POLLIN | POLLOUT | POLLPRI, table) : 0;

		if (ready & POLLNVAL)
			return -EBADF;
		total += select_note(request, READ, i, ready & (POLLIN | POLLHUP | POLLERR));
		total += select_note(request, WRITE, i, ready & (POLLOUT | POLLERR));
		total += select_note(request, EXCEPT, i, ready & POLLPRI);
	}
	return total;
}

/* Fetches the program's sets, or gives it those of what is ready in place of them. A set at address
 * 0 is empty. */
static int move_sets(struct select_request *request, bool gives)
{
	for (unsigned i = 0; i < SETS; i++) {
		uint32_t address = request->set[i], size = address ? set_bytes(request) : 0;

		if (gives ? copy_to_user(address, request->ready[i], size)
			  : copy_from_user(request->wanted[i], address, size))
			return -EFAULT;
	}
	return 0;
}

/* What a call's first four arguments ask for. */
static int select_until(struct file *unused, const struct trap_frame *frame, uint64_t deadline)
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

/* Linux writes back how much of the time is left, and ignores an error of that write. */
static void give_rest(uint32_t address, enum time_format format, uint64_t deadline)
{
	uint64_t now = time_ns();

	if (address)
		time_to_user(address, format, deadline > now ? deadline - now : 0);
}

/* Whether a signal came is known only to the call: until then the mask stays. */
int poll_masked(struct file *file, const struct trap_frame *frame, uint64_t deadline, uint32_t mask,
		uint32_t size, poll_call *call)
{
	uint64_t blocked;
	int error = mask ? mask_from_user(&blocked, mask, size) : 0;

	if (error)
		return error;
	if (mask)
		signal_suspend(blocked);
	int result = call(file, frame, deadline);

	if (result != -ERESTART_SLEEP)
		signal_resume();
	return result;
}

/* With a time and a mask, both at user addresses (0: none). */
static int wait_with(const struct trap_frame *frame, uint32_t time, enum time_format format,
		     uint32_t mask, uint32_t size, poll_call *call)
{
	uint64_t deadline;
	int error = deadline_from_user(time, format, &deadline);

	if (error)
		return error;
	int result = poll_masked(NULL, frame, deadline, mask, size, call);

	give_rest(time, format, deadline);
	return result;
}

SYSCALL(142, sys__newselect, "dpppp", wait_with(frame, frame->edi, TIMEVAL, 0, 0, select_until))

static int ppoll(const struct trap_frame *frame, enum time_format format)
{
	return wait_with(frame, frame->edx, format, frame->esi, frame->edi, poll_until);
}

SYSCALL(309, sys_ppoll, "pdppd", ppoll(frame, TIMESPEC))
SYSCALL(414, sys_ppoll_time64, "pdppd", ppoll(frame, TIMESPEC64))

/* The last argument is the address of the mask's address and size: i386 has six registers. */
static int pselect(const struct trap_frame *frame, enum time_format format)
{
	uint32_t mask[2] = { 0, 0 };

	if (frame->ebp && copy_from_user(mask, frame->ebp, sizeof(mask)))
		return -EFAULT;
	return wait_with(frame, frame->edi, format, mask[0], mask[1], select_until);
}

SYSCALL(308, sys_pselect6, "dppppp", pselect(frame, TIMESPEC))
SYSCALL(413, sys_pselect6_time64, "dppppp", pselect(frame, TIMESPEC64))
