/* Waiting for a word of memory to change, between the tasks that see it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/optional.h"

struct memory_object;
struct trap_frame;

/* Wakes up to `count` tasks that wait at a user address of the current task, as FUTEX_WAKE does.
 * Returns how many. */
uint32_t futex_wake(uint32_t address, uint32_t count);

/* Identifies the word of memory at a user address, in any space: its object, or its space, and the
 * place in it. NULL: no memory is shared, and the address says it. */
struct futex_key {
	const void *memory;
	uint64_t offset;
	struct memory_object *object; /* that is `memory`, without a reference; or NULL */
};
struct futex_key futex_shared_key(uint32_t address) OPTIONAL;

#define FUTEX_FLAGS	     0x180u /* of futex's operation: */
#define FUTEX_PRIVATE	     0x080u /* the word is in no memory that spaces share */
#define FUTEX_REALTIME_CLOCK 0x100u

/* Bits of a word that is a lock: whether somebody waits, whether its owner has ended without giving
 * it back, and the owner's pid, or 0. */
#define FUTEX_WAITERS	 0x80000000u
#define FUTEX_OWNER_DIED 0x40000000u
#define FUTEX_OWNER	 0x3fffffffu

/* Which word an operation means. */
struct futex_key futex_key(uint32_t address, uint32_t operation);

static inline bool futex_is_same(struct futex_key one, struct futex_key other)
{
	return one.memory == other.memory && one.offset == other.offset;
}

/* A task that waits for a word holds a reference to its object: otherwise another object at the
 * same address would be taken for it. The space of the task that waits is there anyway. */
void futex_hold(const struct futex_key *key);
void futex_release(const struct futex_key *key);

/* Makes change(word, argument) of a word of the program's, in one step; *old is what it was.
 * `change` NULL: only brings the page, writable. Returns 0 or -EFAULT. May sleep before that step,
 * never after it. */
int futex_change(uint32_t address, uint32_t (*change)(uint32_t word, uint32_t argument),
		 uint32_t argument, uint32_t *old);

/* Operations of locks; LOCK's time is of the day. */
enum { FUTEX_LOCK = 6, FUTEX_UNLOCK, FUTEX_TRY_LOCK, FUTEX_LOCK2 = 13 };

/* Does operations of locks that the kernel hands over (lock.c); the deadline is one of time_ns().
 */
int futex_lock(struct trap_frame *frame, uint32_t operation, uint64_t deadline) OPTIONAL;

/* The owner of a lock of the current program has ended: those that wait look at the word again. */
void futex_owner_died(uint32_t address);

/* Makes a user address of the current task writable, or returns a negated errno. May sleep.
 * Without it what a copy cannot reach is not there. */
int futex_bring(uint32_t address) OPTIONAL;
