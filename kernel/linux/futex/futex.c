/*
 * futex: a task sleeps until another one says that a word of memory has changed.
 *
 * A lock in a program's memory needs the kernel only when somebody has to wait: the program changes
 * the word by itself, and calls with the value that it has seen. If the word still has it, the task
 * sleeps; the one that changes the word wakes it. Between the check and the sleep nothing can
 * change the word, because no other program runs while the kernel works for this one.
 *
 *	first --> [ task, key, bits ] --> [ ... ] --> ...	on the stacks of those that wait
 *
 * The key is which word it is: its space and address; or, if it is in memory that several spaces
 * share, the object that has the page and the place in it.
 */

#include "kernel/linux/futex/futex.h"
#include "kernel/linux/sleeper.h"
#include "kernel/linux/call.h"
#include "kernel/task/time.h"
#include "fs/vfs/wall_time.h"
#include "mm/memory_object.h"
#include "kernel/linux/time/user_time64.h"

enum { WAIT, WAKE, REQUEUE = 3, COMPARE_REQUEUE, WAKE_OP, WAIT_BITS = 9, WAKE_BITS };

#define ALL_BITS 0xffffffffu

struct futex_waiter {
	struct sleeper sleeper; /* first: the two have one address */
	struct futex_key key;
	uint32_t bits; /* of WAIT_BITS: a wake-up must have one of them */
};

static struct list waiters = LIST_EMPTY(waiters);

struct futex_key futex_key(uint32_t address, uint32_t operation)
{
	if (!(operation & FUTEX_PRIVATE) && futex_shared_key)
		return futex_shared_key(address);
	return (struct futex_key){ current->space, address, NULL };
}

void futex_hold(const struct futex_key *key)
{
	if (key->object)
		key->object->ops->hold(key->object);
}

void futex_release(const struct futex_key *key)
{
	if (key->object)
		key->object->ops->release(key->object);
}

/* ---- waking ---- */

/* All that wakes, since a requeue is a wake that moves some. Those that have waited longest come
 * first: up to `wake` are woken, and up to `move` more wait for another word from now on. Returns
 * how many there were. Does not sleep: the caller's own area has a reference to the object, too. */
static uint32_t wake_and_move(struct futex_key key, uint32_t bits, uint32_t wake, uint32_t move,
			      struct futex_key to)
{
	uint32_t count = 0;

	list_for_each_safe(struct futex_waiter, waiter, &waiters, sleeper.link) {
		if (count == wake + move)
			break;
		if (!futex_is_same(waiter->key, key) || !(waiter->bits & bits))
			continue;
		if (count++ >= wake) {
			futex_hold(&to);
			futex_release(&waiter->key);
			waiter->key = to;
			continue;
		}
		sleeper_end(&waiter->sleeper, 0);
	}
	return count;
}

uint32_t futex_wake(uint32_t address, uint32_t count)
{
	return wake_and_move(futex_key(address, 0), ALL_BITS, count, 0, (struct futex_key){ 0 });
}

/* How many are woken: a negative number counts as one, and so does 0, as on Linux, which looks
 * at the count after it has woken one. */
static uint32_t wake_count(uint32_t argument)
{
	return (int32_t)argument > 0 ? argument & INT32_MAX : 1;
}

/* What Linux says of a word's address before it looks at the word: -EINVAL, -EFAULT, or 0. A word
 * that programs share must be there, also for operations that do not read it. */
static int check_word(const struct trap_frame *frame, uint32_t address)
{
	uint32_t value;

	if (address % sizeof(value))
		return -EINVAL;
	if (!user_range_ok(address, sizeof(value)))
		return -EFAULT;
	return frame->ecx & FUTEX_PRIVATE ? 0 : fetch(&value, address, sizeof(value));
}

/* FUTEX_WAKE and FUTEX_WAKE_BITSET. */
static int futex_wake_bits(const struct trap_frame *frame, uint32_t bits)
{
	return wake_and_move(futex_key(frame->ebx, frame->ecx), bits, wake_count(frame->edx), 0,
			     (struct futex_key){ 0 });
}

/* ESI is how many wait for another word, at EDI, from now on; if it `compares`, the first one must
 * still be EBP. */
static int futex_requeue(const struct trap_frame *frame, bool compares)
{
	uint32_t value = frame->ebp;
	bool counts = (int32_t)frame->edx >= 0 && (int32_t)frame->esi >= 0;
	int error = counts ? check_word(frame, frame->edi) : -EINVAL;

	if (!error && compares)
		error = fetch(&value, frame->ebx, sizeof(value));
	if (error || value != frame->ebp)
		return error ?: -EAGAIN;
	return wake_and_move(futex_key(frame->ebx, frame->ecx), ALL_BITS, frame->edx, frame->esi,
			     futex_key(frame->edi, frame->ecx));
}

/* ---- changing a second word, and waking by what it was ---- */

/* FUTEX_WAKE_OP has all of this in one word: 4 bits for what is done, 4 for what is compared, and a
 * signed number of 12 bits for each. */
enum { SET, ADD, OR, AND_NOT, XOR };

/* The comparisons ==, !=, <, <=, >, >=: whether each holds of a smaller word (1), of an equal one
 * (2) and of a greater one (4). */
static const uint8_t comparisons[] = { 2, 5, 1, 3, 4, 6 };

#define IS_SHIFT 0x80000000u /* the number is which bit is meant */

static int32_t signed_bits(uint32_t order, unsigned first)
{
	return (int32_t)(order << (20 - first)) >> 20;
}

/* Are its operation and its comparison some that there are? */
static bool is_known(uint32_t order)
{
	return (order >> 28 & 7) <= XOR && (order >> 24 & 15) < sizeof(comparisons);
}

/* The word after the operation. */
static uint32_t wake_op_changed(uint32_t word, uint32_t order)
{
	uint32_t number = signed_bits(order, 12);

	if (order & IS_SHIFT)
		number = 1u << number % 32;
	switch (order >> 28 & 7) {
	case SET:
		return number;
	case ADD:
		return word + number;
	case OR:
		return word | number;
	case AND_NOT:
		return word & ~number;
	}
	return word ^ number;
}

/* Does the comparison hold of what the word was? Both numbers are signed, as in Linux's
 * futex_atomic_op_inuser. */
static bool wake_op_holds(int32_t word, uint32_t order)
{
	int32_t number = signed_bits(order, 0);
	unsigned relation = word < number ? 1 : word == number ? 2 : 4;

	return comparisons[order >> 24 & 15] & relation;
}

/* In one step: with interrupts disabled neither copy sleeps. If one of them would have to, the page
 * is brought, and both begin again. */
int futex_change(uint32_t address, uint32_t (*change)(uint32_t word, uint32_t argument),
		 uint32_t argument, uint32_t *old)
{
	for (;;) {
		bool enabled = interrupts_disable();
		uint32_t left = copy_from_user(old, address, sizeof(*old));
		const uint32_t new = left ? 0 : change ? change(*old, argument) : *old;

		left = left ? left : copy_to_user(address, &new, sizeof(new));
		interrupts_restore(enabled);
		if (left == 0)
			return 0;
		if (!futex_bring || futex_bring(address) != 0)
			return -EFAULT;
	}
}

/* EDI is the second word, EBP what is done with it, ESI how many that wait for it are woken. */
static int wake_by_change(const struct trap_frame *frame)
{
	uint32_t old;
	int error = check_word(frame, frame->edi) ?: is_known(frame->ebp) ? 0 : -ENOSYS;

	if (!error)
		error = futex_change(frame->edi, wake_op_changed, frame->ebp, &old);
	if (error)
		return error;
	uint32_t woken = futex_wake_bits(frame, ALL_BITS);

	if (wake_op_holds(old, frame->ebp))
		woken += wake_and_move(futex_key(frame->edi, frame->ecx), ALL_BITS,
				       wake_count(frame->esi), 0, (struct futex_key){ 0 });
	return woken;
}

/* ---- waiting ---- */

/* A wait that begins again ends when it would have ended. Only WAIT's time is a distance, and
 * LOCK's is always of the day. */
static int take_deadline(const struct trap_frame *frame, uint64_t *deadline)
{
	uint32_t operation = frame->ecx & ~FUTEX_FLAGS;
	bool is_of_the_day = operation == FUTEX_LOCK || (frame->ecx & FUTEX_REALTIME_CLOCK);
	uint64_t ns = 0, now = is_of_the_day ? time_wall_ns() : time_ns();
	uint64_t resumed = current->process->signals.resume_ns;

	*deadline = resumed ?: WAIT_FOREVER;
	if (!frame->esi || resumed)
		return 0;
	int error = time_from_user(frame->esi, format_of_call(frame), &ns);

	if (operation != WAIT)
		ns = ns > now ? ns - now : 0;
	*deadline = time_ns() + ns;
	return error;
}

/* A copy may sleep, but not after it has read; and what is shown there may be another memory after
 * that. So the word is read first, then comes which word it is. */
static int futex_sleep(const struct trap_frame *frame, uint32_t bits, uint64_t deadline)
{
	struct futex_waiter waiter = { .bits = bits };
	uint32_t value;

	if (copy_from_user(&value, frame->ebx, sizeof(value)) != 0)
		return -EFAULT;
	if (value != frame->edx)
		return -EAGAIN;
	waiter.key = futex_key(frame->ebx, frame->ecx);
	futex_hold(&waiter.key);
	int result = sleeper_wait(&waiter.sleeper, &waiters, deadline);

	futex_release(&waiter.key);
	return result;
}

/* FUTEX_WAIT and FUTEX_WAIT_BITSET; a signal without a handler makes the call again. */
static int futex_wait(const struct trap_frame *frame, uint32_t bits)
{
	uint64_t deadline;
	int result = take_deadline(frame, &deadline);

	if (!result)
		result = futex_sleep(frame, bits, deadline);
	bool is_timed = result == -ERESTART && deadline != WAIT_FOREVER;

	current->process->signals.resume_ns = is_timed ? deadline : 0;
	return is_timed ? -ERESTART_SLEEP : result;
}

/* What is wrong with the arguments is said before the operation looks at the word; the order is
 * Linux's. */
SYSCALL_DEFINE(240, sys_futex, "pxdppx")
{
	uint32_t operation = frame->ecx & ~FUTEX_FLAGS;
	bool has_bits = operation == WAIT_BITS || operation == WAKE_BITS;
	uint32_t bits = has_bits ? frame->ebp : ALL_BITS;
	uint64_t deadline = WAIT_FOREVER;

	if (frame->ecx & FUTEX_REALTIME_CLOCK && operation != WAIT_BITS && operation != FUTEX_LOCK2)
		return -ENOSYS;
	int error = bits ? check_word(frame, frame->ebx) : -EINVAL;

	if (error)
		return error;
	switch (operation) {
	case WAIT:
	case WAIT_BITS:
		return futex_wait(frame, bits);
	case WAKE:
	case WAKE_BITS:
		return futex_wake_bits(frame, bits);
	case REQUEUE:
	case COMPARE_REQUEUE:
		return futex_requeue(frame, operation == COMPARE_REQUEUE);
	case WAKE_OP:
		return wake_by_change(frame);
	case FUTEX_LOCK:
	case FUTEX_LOCK2: /* the only ones of a lock that have a time */
		error = take_deadline(frame, &deadline);
	}
	return error ?: futex_lock ? futex_lock(frame, operation, deadline) : -ENOSYS;
}
SYSCALL_ROW_OF(422, sys_futex_time64, "pxdppx", sys_futex)
