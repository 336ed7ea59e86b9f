/*
 * epoll: a file that watches other files, and returns those that are ready (epoll(7)).
 *
 *	struct epoll --- item --- item --- item		in the order in which they are asked
 *	  ready queue	   |	    |
 *			 a file	  a file --- item	of another epoll: file->watches
 *
 * Each item waits in the queues of its file, as poll does, but all the time. What waits there is no
 * task but a function: it marks the item, and wakes those who wait for its epoll. So an epoll has a
 * queue as other files have, and can be polled, or watched, itself.
 *
 * An item has no reference to its file. A file knows its items, and when the last descriptor is
 * closed, and the last call of it is over, it takes them with it (epoll(7), question 6).
 *
 * Items are changed and walked with interrupts disabled. Called by system calls; the function also
 * by interrupt handlers.
 */
#include "kernel/abi/epoll.h"
#include "kernel/abi/signal_handler.h"
#include "kernel/abi/poll.h"
#include "kernel/linux/list_each.h"
#include "kernel/linux/poll/wait.h"
#include "kernel/linux/files/calls.h"

#define EVENTS	  32 /* that one call gives at most */
#define ITEMS_MAX 32768u
#define NESTED	  5u  /* epolls in a chain, as on Linux */
#define PATHS	  64u /* through one epoll that watches another */

/* The only ones together with EPOLLEXCLUSIVE, which asks that of several epolls with one file not
 * all are woken. Here all are: epoll_ctl(2) promises "one or more". */
#define WITH_EXCLUSIVE                                                                             \
	(POLLIN | POLLOUT | POLLERR | POLLHUP | EPOLLET | EPOLLWAKEUP | EPOLLEXCLUSIVE)

/* How the program wants to be told, which is not a file's event. EPOLLWAKEUP changes nothing: this
 * machine does not go to sleep. */
#define MODES (EPOLLET | EPOLLONESHOT | EPOLLWAKEUP | EPOLLEXCLUSIVE)

struct epoll {
	struct file *file;
	struct list items;
	struct wait_queue ready;
};

struct watch {
	struct list link;   /* in its epoll's items */
	struct watch *next; /* of the same file */
	struct epoll *epoll;
	struct file *file;
	uint32_t descriptor;
	struct linux_epoll_event event; /* without events: it has had its one shot */
	struct waiter places[POLL_QUEUES];
	bool is_woken; /* since it was asked last */
};

static struct pool epolls = POOL_INITIALIZER(struct epoll), items = POOL_INITIALIZER(struct watch);
static const struct file_ops epoll_ops;

/* ---- items ---- */

/* Leaving a queue that was not joined does nothing. */
static void leave_queues(struct watch *item)
{
	for (unsigned i = 0; i < POLL_QUEUES; i++)
		wait_leave(&item->places[i]);
}

/* One of the item's queues was woken. An epoll that watches this one is told by its own item. */
static void watch_mark(struct watch *item)
{
	item->is_woken = true;
	wait_wake(&item->epoll->ready);
}

/* One function for each place: it finds its item by where the waiter is in it. */
static void mark_first(struct waiter *waiter)
{
	watch_mark(list_entry(waiter, struct watch, places[0]));
}

static void mark_second(struct waiter *waiter)
{
	watch_mark(list_entry(waiter, struct watch, places[1]));
}

/* Joins the queues of the item's file. Returns which of the wanted events there are. Like all that
 * polls a file, for a task with a program only, and with interrupts disabled. */
static uint32_t join_queues(struct watch *item, uint32_t wanted)
{
	static void (*const functions[POLL_QUEUES])(struct waiter *) = { mark_first, mark_second };
	struct poll_table table = { .waiters = item->places, .limit = POLL_QUEUES };
	uint32_t ready = poll_file(item->file, wanted, &table);

	for (uint32_t i = 0; i < table.count; i++) {
		item->places[i].function = functions[i];
		item->places[i].calls = true;
	}
	return ready;
}

/* With interrupts disabled. */
static void watch_remove(struct watch *item)
{
	struct watch **at = &item->file->watches;

	while (*at != item)
		at = &(*at)->next;
	*at = item->next;
	list_remove(&item->link);
	leave_queues(item);
	pool_free(&items, item);
}

/* The last reference to a file is gone. */
void file_unwatch(struct file *file)
{
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	while (file->watches)
		watch_remove(file->watches);
}

/* With interrupts disabled. The file finds the item when it is closed. */
static void watch_attach(struct epoll *epoll, struct watch *item)
{
	item->epoll = epoll;
	item->next = item->file->watches;
	item->file->watches = item;
	join_queues(item, 0);
	list_append(&epoll->items, &item->link);
}

/* ---- what is ready ---- */

/* The events that the program gets of an item now. A file that has woken the item may have other
 * queues since then, as a socket that has been connected. */
static uint32_t ready_of(struct watch *item)
{
	uint32_t wanted = item->event.events;

	if (!(wanted & ~MODES) || (wanted & EPOLLET && !item->is_woken))
		return 0;
	if (!item->is_woken)
		return poll_file(item->file, wanted & ~MODES, NULL);
	leave_queues(item);
	return join_queues(item, wanted & ~MODES);
}

/* Gives up to `room` events, and returns how many. Items that were given one go to the end,
 * so that each has its turn. */
static int epoll_collect(struct epoll *epoll, struct linux_epoll_event *events, int room)
{
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();
	const struct list *last = epoll->items.previous;
	struct list *link = &epoll->items, *next = link->next;
	int count = 0;

	while (link != last && count < room) {
		link = next;
		next = link->next;
		struct watch *item = list_entry(link, struct watch, link);
		uint32_t ready = ready_of(item);

		item->is_woken = false;
		if (!ready)
			continue;
		events[count] = item->event;
		events[count++].events = ready;
		if (item->event.events & EPOLLONESHOT)
			item->event.events &= MODES;
		list_remove(link);
		list_append(&epoll->items, link);
	}
	return count;
}

/* An epoll can be read when it would give an event. */
static uint32_t epoll_poll(struct file *file, struct poll_table *table)
{
	struct epoll *epoll = file->private;
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();
	uint32_t ready = 0;

	poll_add(table, &epoll->ready);
	list_for_each(struct watch, item, &epoll->items, link)
		ready |= ready_of(item) ? POLLIN : 0;
	return ready;
}

/* ---- making one ---- */

static void epoll_release(struct file *file)
{
	struct epoll *epoll = file->private;

	while (!list_is_empty(&epoll->items)) {
		bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

		watch_remove(list_entry(epoll->items.next, struct watch, link));
	}
	pool_free(&epolls, epoll);
}

static const struct file_ops epoll_ops = { .poll = epoll_poll, .release = epoll_release };

/* An anonymous file: the items belong to it, not to a descriptor, so all that share the file after
 * a fork or a dup watch the same. */
static int epoll_create(uint32_t flags)
{
	static struct anonymous kind = { .kind = "[eventpoll]" };

	if (flags & ~O_CLOEXEC)
		return -EINVAL;
	struct file *file = file_of_pool(&kind, &epoll_ops, &epolls, O_RDWR);

	if (!file)
		return -ENOMEM;
	struct epoll *epoll = file->private;

	epoll->file = file;
	epoll->items = (struct list)LIST_EMPTY(epoll->items);
	return descriptor_add(file, flags);
}

/* The size is only checked. */
SYSCALL(254, sys_epoll_create, "d", (int32_t)frame->ebx > 0 ? epoll_create(0) : -EINVAL)
SYSCALL(329, sys_epoll_create1, "x", epoll_create(frame->ebx))

/* ---- what it watches ---- */

/* Of the chains of epolls that begin with one and lead up, to those that watch it, or down: the
 * longest one's length, and how many they are. Longer than NESTED it is not looked at. */
struct chains {
	uint32_t length, paths;
};

/* The chains that go on through one more epoll. */
static void add_chains(struct chains *to, struct chains more)
{
	to->length = more.length >= to->length ? more.length + 1 : to->length;
	to->paths += more.paths;
}

/* Through the epolls that watch this one. If it is to watch one of them itself, that is a circle: a
 * chain without an end. */
static struct chains chains_up(const struct epoll *epoll, const struct epoll *to_watch,
			       uint32_t limit)
{
	struct chains chains = { epoll == to_watch ? NESTED : 1, 1 };
	const struct watch *item = limit ? epoll->file->watches : NULL;

	for (; item; item = item->next)
		add_chains(&chains, chains_up(item->epoll, to_watch, limit - 1));
	return chains;
}

/* Through those that it watches. */
static struct chains chains_down(const struct epoll *epoll, uint32_t limit)
{
	struct chains chains = { 1, 1 };

	list_for_each(const struct watch, item, &epoll->items, link)
		if (limit && item->file->ops == &epoll_ops)
			add_chains(&chains, chains_down(item->file->private, limit - 1));
	return chains;
}

/* A look at an epoll looks at all below it, once for each way there, which must not take long. */
static int nesting_error(const struct epoll *epoll, const struct epoll *watched)
{
	struct chains up = chains_up(epoll, watched, NESTED), down = chains_down(watched, NESTED);

	if (up.length + down.length > NESTED)
		return -ELOOP;
	return up.paths * down.paths > PATHS ? -EINVAL : 0;
}

static int epoll_add(struct file *file, struct file *watched, uint32_t descriptor,
		     const struct linux_epoll_event *event)
{
	int error = watched->ops == &epoll_ops ? nesting_error(file->private, watched->private) : 0;

	if (error)
		return error;
	if (items.used >= ITEMS_MAX)
		return -ENOSPC;
	struct watch *item = pool_alloc(&items);

	if (!item)
		return -ENOMEM;
	item->file = watched;
	item->descriptor = descriptor;
	item->event = *event;
	item->is_woken = true;
	watch_attach(file->private, item);
	return 0;
}

/* With interrupts disabled. */
static int epoll_control(struct file *file, uint32_t operation, uint32_t descriptor,
			 struct file *watched, const struct linux_epoll_event *event)
{
	struct watch *item = watched->watches;

	while (item && (item->epoll != file->private || item->descriptor != descriptor))
		item = item->next;
	if (operation == EPOLL_CTL_ADD)
		return item ? -EEXIST : epoll_add(file, watched, descriptor, event);
	if (operation != EPOLL_CTL_MOD && operation != EPOLL_CTL_DEL)
		return -EINVAL;
	if (!item)
		return -ENOENT;
	if (operation == EPOLL_CTL_DEL) {
		watch_remove(item);
		return 0;
	}
	if (item->event.events & EPOLLEXCLUSIVE)
		return -EINVAL;
	item->event = *event;
	item->is_woken = true;
	return 0;
}

/* epoll_ctl(2), its errors in Linux's order (fs/eventpoll.c, do_epoll_ctl): the event, the two
 * files, whether the second can be polled, and what may not be watched. Errors and hang-ups are
 * always told. A thread that waits looks again, since what was added may be ready already. */
static int epoll_change(struct file *file, struct file *watched, const struct trap_frame *frame)
{
	struct linux_epoll_event event = { .events = 0 };

	if (frame->ecx != EPOLL_CTL_DEL && copy_from_user(&event, frame->esi, sizeof(event)) != 0)
		return -EFAULT;
	if (!file || !watched)
		return -EBADF;
	if (!watched->ops->poll)
		return -EPERM;
	if (file == watched || file->ops != &epoll_ops)
		return -EINVAL;
	if (event.events & EPOLLEXCLUSIVE &&
	    (frame->ecx == EPOLL_CTL_MOD || watched->ops == &epoll_ops ||
	     event.events & ~WITH_EXCLUSIVE))
		return -EINVAL;
	event.events |= POLLERR | POLLHUP;
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();
	int result = epoll_control(file, frame->ecx, frame->edx, watched, &event);

	if (!result)
		wait_wake(&((struct epoll *)file->private)->ready);
	return result;
}

FILES_CALL(sys_epoll_ctl, 2, edx, epoll_change(file_opened(file), file_opened(other), frame))
SYSCALL_ROW(255, sys_epoll_ctl, "fdfp")

/* ---- waiting ---- */

struct epoll_request {
	struct epoll *epoll;
	uint32_t address; /* of the program's array */
	int room;	  /* events */
};

/* A poll_scanner: one queue, the epoll's own. */
static int epoll_scan(void *context, struct poll_table *table)
{
	const struct epoll_request *request = context;
	struct linux_epoll_event events[EVENTS];

	poll_add(table, &request->epoll->ready);
	int count = epoll_collect(request->epoll, events, request->room);

	if (count > 0 && copy_to_user(request->address, events, count * sizeof(events[0])))
		return -EFAULT;
	return count;
}

/* At most EVENTS events come at a time. */
static int epoll_wait(struct file *file, const struct trap_frame *frame, uint64_t deadline)
{
	int32_t room = frame->edx;

	if (room <= 0 || (uint32_t)room > INT32_MAX / sizeof(struct linux_epoll_event))
		return -EINVAL;
	if (!user_range_ok(frame->ecx, room * sizeof(struct linux_epoll_event)))
		return -EFAULT;
	if (!file || file->ops != &epoll_ops)
		return file ? -EINVAL : -EBADF;
	struct epoll_request request = { file->private, frame->ecx, room < EVENTS ? room : EVENTS };

	return poll_wait_for(epoll_scan, &request, 1, deadline);
}

/* epoll_wait(2); the mask of epoll_pwait is in force while it waits, as that of ppoll. */
SYSCALL_FILE(256, sys_epoll_wait, "fpdd",
	     epoll_wait(file_opened(file), frame, poll_deadline(frame->esi)))
SYSCALL_FILE(319, sys_epoll_pwait, "fpddpd",
	     poll_mask(frame->edi, frame->ebp)
		 ?: poll_unmask(epoll_wait(file_opened(file), frame, poll_deadline(frame->esi))))
