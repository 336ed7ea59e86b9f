/*
 * epoll: a file that watches other files, and returns those that are ready (epoll(7)).
 *
 *	struct epoll --- item --- item --- item		in the order in which they are asked
 *	  ready queue	   |	    |
 *			 a file	  a file
 *
 * Each item waits in the queues of its file, as poll does, but all the time. What waits there is
 * one kernel thread for all of them: it notes which items were woken, and wakes those who wait for
 * their epoll. So an epoll has a queue as other files have, and can be polled, or watched, itself.
 *
 * An item holds its file. When only items still hold it, because the last descriptor was closed,
 * they are freed (epoll(7), question 6).
 *
 * Items are changed and walked with interrupts disabled. Called by system calls, and by the thread.
 */
#include <stddef.h>

#include "fs/files.h"
#include "kernel/abi/epoll.h"
#include "kernel/abi/poll.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/list.h"
#include "kernel/linux/poll_wait.h"
#include "kernel/linux/syscall_file.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/sched.h"
#include "mm/user_copy.h"

#define EVENTS	  32 /* that one call gives at most */
#define ITEMS_MAX 32768u

#define MODES (EPOLLET | EPOLLONESHOT | EPOLLWAKEUP | EPOLLEXCLUSIVE)

struct epoll {
	struct list link; /* in `every` */
	struct list items;
	struct wait_queue ready;
};

struct item {
	struct list link;  /* in its epoll's items */
	struct file *file; /* a reference */
	uint32_t descriptor;
	struct linux_epoll_event event; /* without events: it has had its one shot */
	struct waiter places[POLL_QUEUES];
	bool is_woken; /* since it was asked last */
};

static struct pool epolls = POOL_INITIALIZER(struct epoll), items = POOL_INITIALIZER(struct item);
static struct list every = LIST_EMPTY(every);
static struct task *thread;
static const struct file_ops epoll_ops;

static struct item *item_at(struct list *link)
{
	return list_entry(link, struct item, link);
}

/* ---- the thread ---- */

/* Notes the wake-ups of an item's file. */
static bool was_woken(struct item *item)
{
	bool woken = false;

	for (unsigned i = 0; i < POLL_QUEUES; i++) {
		woken |= item->places[i].is_woken;
		item->places[i].is_woken = false;
	}
	item->is_woken |= woken;
	return woken;
}

static bool pass_on(struct epoll *epoll)
{
	bool woken = false;

	for (struct list *link = epoll->items.next; link != &epoll->items; link = link->next)
		woken |= was_woken(item_at(link));
	if (woken)
		wait_wake(&epoll->ready);
	return woken;
}

/* An epoll's wake-up may be that of another one, which watches it: so until none is woken. */
static void watch(void *unused)
{
	interrupts_disable();
	for (;;) {
		bool woken = false;

		for (struct list *link = every.next; link != &every; link = link->next)
			woken |= pass_on(list_entry(link, struct epoll, link));
		if (!woken)
			sched_sleep(TASK_SLEEPING);
	}
}

/* ---- items ---- */

/* With interrupts disabled. Then nobody else finds the item. */
static void detach(struct item *item)
{
	list_remove(&item->link);
	for (unsigned i = 0; i < POLL_QUEUES; i++)
		wait_leave(&item->places[i]);
}

static void discard(struct item *item)
{
	file_release(item->file);
	pool_free(&items, item);
}

/* Joins the queues of the item's file, for the thread. With interrupts disabled. */
static void attach(struct epoll *epoll, struct item *item)
{
	struct poll_table table = { .waiters = item->places, .limit = POLL_QUEUES };

	item->file->references++;
	item->file->ops->poll(item->file, &table);
	while (table.count > 0)
		item->places[--table.count].task = thread;
	list_append(&epoll->items, &item->link);
}

/* Counts the items that hold a file, and returns one of them, or NULL. */
static struct item *find_items(const struct file *file, uint32_t *count)
{
	struct item *found = NULL;

	*count = 0;
	for (struct list *each = every.next; each != &every; each = each->next) {
		struct list *head = &list_entry(each, struct epoll, link)->items;

		for (struct list *link = head->next; link != head; link = link->next)
			if (item_at(link)->file == file) {
				found = item_at(link);
				++*count;
			}
	}
	return found;
}

static void (*others_closing)(const struct files *files, const struct file *file);

/* A descriptor is being closed, and still holds the file. */
static void closing(const struct files *files, const struct file *file)
{
	struct item *item;
	uint32_t count;

	if (others_closing)
		others_closing(files, file);
	do {
		bool enabled = interrupts_disable();

		item = find_items(file, &count);
		item = file->references == count + 1 ? item : NULL;
		if (item)
			detach(item);
		interrupts_restore(enabled);
		if (item)
			discard(item);
	} while (item);
}

/* Items whose file nobody else holds: a call that was under way when its descriptor was closed has
 * held it longer. */
static void discard_left(struct epoll *epoll)
{
	struct list *link, left = LIST_EMPTY(left);
	bool enabled = interrupts_disable();

	for (link = epoll->items.next; link != &epoll->items;) {
		struct item *item = item_at(link);

		link = link->next;
		if (item->file->references == 1) {
			detach(item);
			list_append(&left, &item->link);
		}
	}
	interrupts_restore(enabled);
	while (!list_is_empty(&left)) {
		link = left.next;
		list_remove(link);
		discard(item_at(link));
	}
}

/* ---- what is ready ---- */

/* The events that the program gets of an item now. */
static uint32_t ready_of(const struct item *item)
{
	uint32_t wanted = item->event.events;

	if (!(wanted & ~MODES) || (wanted & EPOLLET && !item->is_woken))
		return 0;
	return poll_file(item->file, wanted & ~MODES, NULL);
}

/* Gives up to `room` events, and returns how many. Items that were given one go to the end,
 * so that each has its turn. */
static int collect(struct epoll *epoll, struct linux_epoll_event *events, int room)
{
	bool enabled = interrupts_disable();
	const struct list *last = epoll->items.previous;
	struct list *link = &epoll->items, *next = link->next;
	int count = 0;

	pass_on(epoll);
	while (link != last && count < room) {
		link = next;
		next = link->next;
		struct item *item = item_at(link);
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
	interrupts_restore(enabled);
	return count;
}

static uint32_t epoll_poll(struct file *file, struct poll_table *table)
{
	struct epoll *epoll = file->private;
	bool enabled = interrupts_disable();
	uint32_t ready = 0;

	poll_add(table, &epoll->ready);
	pass_on(epoll);
	for (struct list *link = epoll->items.next; link != &epoll->items; link = link->next)
		ready |= ready_of(item_at(link)) ? POLLIN : 0;
	interrupts_restore(enabled);
	return ready;
}

/* ---- making one ---- */

static void epoll_release(struct file *file)
{
	struct epoll *epoll = file->private;
	bool enabled = interrupts_disable();

	list_remove(&epoll->link);
	interrupts_restore(enabled);
	while (!list_is_empty(&epoll->items)) {
		struct item *item = item_at(epoll->items.next);

		enabled = interrupts_disable();
		detach(item);
		interrupts_restore(enabled);
		discard(item);
	}
	pool_free(&epolls, epoll);
}

static const struct file_ops epoll_ops = { .poll = epoll_poll, .release = epoll_release };

/* The thread is there from the first epoll on. */
static bool begin_watch(void)
{
	if (thread)
		return true;
	thread = kthread_create("epoll", watch, NULL);
	if (thread) {
		others_closing = files_closing;
		files_closing = closing;
	}
	return thread;
}

static int epoll_create(uint32_t flags)
{
	static struct anonymous kind = { .kind = "[eventpoll]" };

	if (flags & ~O_CLOEXEC)
		return -EINVAL;
	struct file *file = begin_watch() ? file_of_pool(&kind, &epoll_ops, &epolls, O_RDWR) : NULL;

	if (!file)
		return -ENOMEM;
	struct epoll *epoll = file->private;
	bool enabled = interrupts_disable();

	epoll->items = (struct list)LIST_EMPTY(epoll->items);
	list_append(&every, &epoll->link);
	interrupts_restore(enabled);
	return descriptor_add(file, flags);
}

static int sys_epoll_create(struct trap_frame *frame)
{
	return (int32_t)frame->ebx > 0 ? epoll_create(0) : -EINVAL;
}

CALL(sys_epoll_create1, epoll_create(frame->ebx))

/* ---- what it watches ---- */

static bool watches_epolls(const struct epoll *epoll)
{
	for (struct list *link = epoll->items.next; link != &epoll->items; link = link->next)
		if (item_at(link)->file->ops == &epoll_ops)
			return true;
	return false;
}

/* Of two epolls one may watch the other, if that is all: a look at an epoll looks at all below it,
 * which must not take long, or go round in a circle. Linux allows five. */
static bool is_too_deep(const struct file *file, const struct file *watched)
{
	uint32_t watchers;

	return find_items(file, &watchers) || watches_epolls(watched->private);
}

static int add(struct file *file, struct file *watched, uint32_t descriptor,
	       const struct linux_epoll_event *event)
{
	if (watched->ops == &epoll_ops && is_too_deep(file, watched))
		return -ELOOP;
	if (items.used >= ITEMS_MAX)
		return -ENOSPC;
	struct item *item = pool_alloc(&items);

	if (!item)
		return -ENOMEM;
	item->file = watched;
	item->descriptor = descriptor;
	item->event = *event;
	item->is_woken = true;
	attach(file->private, item);
	return 0;
}

/* With interrupts disabled; an item that is to be deleted goes to *deleted. */
static int control(struct file *file, uint32_t operation, uint32_t descriptor, struct file *watched,
		   const struct linux_epoll_event *event, struct item **deleted)
{
	struct epoll *epoll = file->private;
	struct list *link = epoll->items.next;

	while (link != &epoll->items &&
	       (item_at(link)->file != watched || item_at(link)->descriptor != descriptor))
		link = link->next;
	if (operation == EPOLL_CTL_ADD)
		return link == &epoll->items ? add(file, watched, descriptor, event) : -EEXIST;
	if (operation != EPOLL_CTL_MOD && operation != EPOLL_CTL_DEL)
		return -EINVAL;
	if (link == &epoll->items)
		return -ENOENT;
	if (operation == EPOLL_CTL_DEL) {
		*deleted = item_at(link);
		detach(*deleted);
		return 0;
	}
	item_at(link)->event = *event;
	item_at(link)->is_woken = true;
	return 0;
}

static int change(struct file *file, struct file *watched, const struct trap_frame *frame)
{
	struct linux_epoll_event event = { .events = 0 };
	struct item *deleted = NULL;

	if (frame->ecx != EPOLL_CTL_DEL && copy_from_user(&event, frame->esi, sizeof(event)) != 0)
		return -EFAULT;
	if (!file || !watched)
		return -EBADF;
	if (!watched->ops->poll)
		return -EPERM;
	if (file == watched || file->ops != &epoll_ops)
		return -EINVAL;
	event.events |= POLLERR | POLLHUP;
	bool enabled = interrupts_disable();
	int result = control(file, frame->ecx, frame->edx, watched, &event, &deleted);

	if (!result)
		wait_wake(&((struct epoll *)file->private)->ready);
	interrupts_restore(enabled);
	if (deleted)
		discard(deleted);
	return result;
}

FILES_CALL(sys_epoll_ctl, 2, edx, change(file_opened(file), file_opened(other), frame))

/* ---- waiting ---- */

struct request {
	struct epoll *epoll;
	uint32_t address; /* of the program's array */
	int room;	  /* events */
};

static int scan(void *context, struct poll_table *table)
{
	const struct request *request = context;
	struct linux_epoll_event events[EVENTS];

	discard_left(request->epoll);
	poll_add(table, &request->epoll->ready);
	int count = collect(request->epoll, events, request->room);

	if (count > 0 && copy_to_user(request->address, events, count * sizeof(events[0])))
		return -EFAULT;
	return count;
}

static int wait(struct file *file, const struct trap_frame *frame, uint64_t deadline)
{
	int32_t room = frame->edx;

	if (room <= 0 || (uint32_t)room > INT32_MAX / sizeof(struct linux_epoll_event))
		return -EINVAL;
	if (!user_range_ok(frame->ecx, room * sizeof(struct linux_epoll_event)))
		return -EFAULT;
	if (!file || file->ops != &epoll_ops)
		return file ? -EINVAL : -EBADF;
	struct request request = { file->private, frame->ecx, room < EVENTS ? room : EVENTS };

	return poll_wait_for(scan, &request, 1, deadline);
}

FILE_CALL(sys_epoll_wait, wait(file_opened(file), frame, poll_deadline(frame->esi)))
FILE_CALL(sys_epoll_pwait,
	  poll_masked(file_opened(file), frame, poll_deadline(frame->esi), frame->edi, wait))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 254, "epoll_create", "d", sys_epoll_create },
	{ 255, "epoll_ctl", "fdfp", sys_epoll_ctl },
	{ 256, "epoll_wait", "fpdd", sys_epoll_wait },
	{ 319, "epoll_pwait", "fpddpd", sys_epoll_pwait },
	{ 329, "epoll_create1", "x", sys_epoll_create1 },
};
