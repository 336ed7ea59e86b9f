/*
 * Timers, in a list by their deadlines.
 *
 *	timers --> 12.000 s --> 12.010 s --> 12.010 s --> 15.500 s --> timers
 *		   the next one	 started first			the last
 *
 * The tick only checks the first, which is usually not due. Starting a timer takes one step for
 * each that is earlier, which is fine for one per sleeping task.
 *
 * The list is changed with interrupts disabled, so any context may start and cancel. A function is
 * called from the tick, in interrupt context: it must not sleep. It may start its own timer again;
 * if that deadline has passed already, the next tick calls it.
 */
#include "kernel/task/timer.h"

#include "kernel/cpu/interrupts.h"

static struct list timers = LIST_EMPTY(timers);

static struct timer *timer_of(struct list *link)
{
	return list_entry(link, struct timer, in_order);
}

/* EXERCISE 4.3 (sleeping, part 1): the contracts are in kernel/task/timer.h.

   The list `timers` is kept in the order of the deadlines; timers with equal deadlines stay in
   the order in which they were started. A timer that is not running has in_order.next == NULL.

   Pitfalls: a clock may wrap around, so compare two times by the sign of their difference.
   expire may start its own timer again, so the timer is out of the list before expire is called.
   If that deadline has passed already, the next tick calls it: otherwise this tick never ends.
   expire may cancel other timers, which are then not called. */
/* SOLUTION 4.3 { */
/* A clock of 64 bits in nanoseconds wraps after 584 years; the difference is right even then. */
static bool is_later(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) > 0;
}

void timer_start(struct timer *timer, uint64_t deadline_ns, void (*expire)(struct timer *timer))
{
	bool enabled = interrupts_disable();
	struct list *next = timers.next;

	while (next != &timers && !is_later(timer_of(next)->deadline, deadline_ns))
		next = next->next;
	timer->deadline = deadline_ns;
	timer->expire = expire;
	list_insert(&timer->in_order, next);
	interrupts_restore(enabled);
}

/* After this the function is not running and will not be called: it runs with interrupts disabled,
 * and there is one processor. */
void timer_cancel(struct timer *timer)
{
	bool enabled = interrupts_disable();

	if (timer_is_running(timer))
		list_remove(&timer->in_order);
	timer->in_order.next = NULL;
	interrupts_restore(enabled);
}

/* All timers that are due go into a list of their own first: otherwise this would never end for a
 * timer that starts itself again for a time that has passed. */
void timers_expire(uint64_t now_ns)
{
	struct list due = LIST_EMPTY(due), *link;

	while ((link = timers.next) != &timers && !is_later(timer_of(link)->deadline, now_ns)) {
		list_remove(link);
		list_append(&due, link);
	}
	while ((link = due.next) != &due) {
		timer_cancel(timer_of(link));
		timer_of(link)->expire(timer_of(link));
	}
}
/* } SOLUTION 4.3 */
