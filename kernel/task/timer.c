/* Timers, in a list by their deadlines. */
#include "kernel/task/timer.h"

#include "kernel/cpu/interrupts.h"

static struct list timers = LIST_EMPTY(timers);

static struct timer *timer_of(struct list *link)
{
	return list_entry(link, struct timer, in_order);
}

/* EXERCISE 4.3 (sleeping, part 1):
   1. timer_start: find the first timer that is later, and put this one before it. Two times are
   compared by the sign of their difference, as everywhere with clocks: that survives a wrap.
   2. timer_cancel: out of the list, and marked as not running.
   3. timers_expire: as long as the first one is due, take it out, then call it: it may start itself
   anew. */
/* SOLUTION 4.3 { */
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

void timer_cancel(struct timer *timer)
{
	bool enabled = interrupts_disable();

	if (timer_is_running(timer))
		list_remove(&timer->in_order);
	timer->in_order.next = NULL;
	interrupts_restore(enabled);
}

void timers_expire(uint64_t now_ns)
{
	while (!list_is_empty(&timers)) {
		struct timer *timer = timer_of(timers.next);

		if (is_later(timer->deadline, now_ns))
			break;
		timer_cancel(timer);
		timer->expire(timer);
	}
}
/* } SOLUTION 4.3 */
