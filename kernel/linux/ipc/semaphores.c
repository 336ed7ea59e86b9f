/*
 * System V's semaphores (semget(2), semop(2), semctl(2)): sets of numbers that are never negative.
 *
 *	operations	[0: -1] [2: 0] [1: +1]		all in one step, or the caller waits
 *	sleepers	first --- sleeper --- sleeper	in the order in which they came
 *
 * A task that changes a value does what sleepers wait for, too, if that can be done now: so a
 * sleeper gets what came for it, even if another program would be faster. What is done with
 * SEM_UNDO is noted for the program and taken back at its end. Called by system calls only, which
 * change a set without sleeping.
 */
#include <stdbool.h>

#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/linux/ipc/keys.h"
#include "kernel/linux/time/user_time64.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/time.h"
#include "kernel/task/wait.h"
#include "mm/kmalloc.h"
#include "mm/pool.h"

#define WAITS 1 /* a result: it cannot be done now */

struct semaphore {
	int32_t value, pid; /* of the last program that changed it */
};

struct set {
	struct ipc ipc; /* the first member */
	uint32_t count;
	uint64_t operated, changed;
	struct list sleepers;
	struct semaphore semaphores[];
};

struct request {
	const struct linux_semaphore_operation *operations;
	uint32_t count, blocked; /* the operation that it waits for */
	int32_t pid;		 /* of the program */
};

struct sleeper {
	struct list link;
	struct request request;
	struct wait_queue queue;
	int result; /* WAITS, until somebody has one for it */
};

struct undo {
	struct list link;
	struct set *set;
	int32_t pid;
	uint16_t number;
	int32_t change;
};

static struct ipc *make(uint32_t count);

static struct ipc_kind sets = IPC_KIND(sets, SEM_SETS, make);
static struct pool undo_pool = POOL_INITIALIZER(struct undo);
static struct list undos = LIST_EMPTY(undos);

static struct ipc *make(uint32_t count)
{
	struct set *set = kmalloc(sizeof(*set) + count * sizeof(set->semaphores[0]));

	if (!set)
		return NULL;
	memset(set, 0, sizeof(*set) + count * sizeof(set->semaphores[0]));
	set->count = count;
	set->changed = ipc_now();
	set->sleepers = (struct list)LIST_EMPTY(set->sleepers);
	return &set->ipc;
}

static int get(int32_t key, uint32_t count, uint32_t flags)
{
	struct ipc *found;
	int error = count > SEM_COUNT ? -EINVAL : ipc_get(&sets, key, count, flags, &found);

	if (error)
		return error;
	return count > ((struct set *)found)->count ? -EINVAL : found->id;
}

/* ---- undoing ---- */

static struct undo *find_undo(struct set *set, int32_t pid, uint16_t number)
{
	for (struct list *link = undos.next; link != &undos; link = link->next) {
		struct undo *undo = list_entry(link, struct undo, link);

		if (undo->set == set && undo->pid == pid && undo->number == number)
			return undo;
	}
	return NULL;
}

/* Each operation that is to be undone has a note before any of them is done. */
static int make_undos(struct set *set, const struct request *request)
{
	for (uint32_t i = 0; i < request->count; i++) {
		const struct linux_semaphore_operation *operation = &request->operations[i];

		if (!(operation->flags & SEM_UNDO) ||
		    find_undo(set, request->pid, operation->number))
			continue;
		struct undo *undo = pool_alloc(&undo_pool);

		if (!undo)
			return -ENOMEM;
		*undo =
		    (struct undo){ .set = set, .pid = request->pid, .number = operation->number };
		list_append(&undos, &undo->link);
	}
	return 0;
}

/* A value was set: what was done before cannot be undone. The notes stay, for those who sleep. */
static void forget_changes(const struct set *set, uint32_t number)
{
	for (struct list *link = undos.next; link != &undos; link = link->next) {
		struct undo *undo = list_entry(link, struct undo, link);

		if (undo->set == set && undo->number == number)
			undo->change = 0;
	}
}

static void free_undos(const struct set *set)
{
	for (struct list *link = undos.next, *next; link != &undos; link = next) {
		struct undo *undo = list_entry(link, struct undo, link);

		next = link->next;
		if (undo->set != set)
			continue;
		list_remove(link);
		pool_free(&undo_pool, undo);
	}
}

/* ---- operations ---- */

static int change_one(struct set *set, const struct request *request, uint32_t index, int sign)
{
	const struct linux_semaphore_operation *operation = &request->operations[index];
	struct semaphore *semaphore = &set->semaphores[operation->number];
	int32_t value = semaphore->value + sign * operation->change;

	if (sign > 0 && (value < 0 || (operation->change == 0 && value != 0)))
		return operation->flags & IPC_NOWAIT ? -EAGAIN : WAITS;
	if (value > SEM_VALUE_MAX)
		return -ERANGE;
	semaphore->value = value;
	if (operation->flags & SEM_UNDO)
		find_undo(set, request->pid, operation->number)->change -= sign * operation->change;
	return 0;
}

/* All operations, or none: then the result says why. */
static int perform(struct set *set, struct request *request)
{
	uint32_t done = 0;
	int result = 0;

	while (done < request->count && (result = change_one(set, request, done, 1)) == 0)
		done++;
	request->blocked = done;
	for (uint32_t i = 0; i < done && !result; i++)
		set->semaphores[request->operations[i].number].pid = request->pid;
	while (result && done-- > 0)
		change_one(set, request, done, -1);
	if (!result)
		set->operated = ipc_now();
	return result;
}

static void end_sleep(struct sleeper *sleeper, int result)
{
	sleeper->result = result;
	list_remove(&sleeper->link);
	wait_wake(&sleeper->queue);
}

/* Values have changed. What one sleeper does may be what another waits for. */
static void serve(struct set *set)
{
	struct list *link = set->sleepers.next;

	while (link != &set->sleepers) {
		struct sleeper *sleeper = list_entry(link, struct sleeper, link);
		int result = perform(set, &sleeper->request);

		link = link->next;
		if (result == WAITS)
			continue;
		end_sleep(sleeper, result);
		if (result == 0)
			link = set->sleepers.next;
	}
}

/* The set may be gone afterwards. */
static int sleep(struct set *set, const struct request *request, uint64_t deadline)
{
	struct sleeper sleeper = { .request = *request, .result = WAITS };

	list_append(&set->sleepers, &sleeper.link);
	int error = wait_event_until(&sleeper.queue, sleeper.result != WAITS, deadline);

	if (sleeper.result != WAITS)
		return sleeper.result;
	list_remove(&sleeper.link);
	return error == -ETIMEDOUT ? -EAGAIN : -EINTR;
}

static int operate_on(struct set *set, struct request *request, uint64_t deadline)
{
	for (uint32_t i = 0; i < request->count; i++)
		if (request->operations[i].number >= set->count)
			return -EFBIG;
	int result = make_undos(set, request);

	if (!result)
		result = perform(set, request);
	if (!result)
		serve(set);
	return result == WAITS ? sleep(set, request, deadline) : result;
}

static int operate(int32_t id, uint32_t address, uint32_t count, uint64_t deadline)
{
	uint32_t size = count * sizeof(struct linux_semaphore_operation);

	if (count == 0 || id < 0)
		return -EINVAL;
	if (count > SEM_OPERATIONS)
		return -E2BIG;
	struct linux_semaphore_operation *operations = kmalloc(size);

	if (!operations)
		return -ENOMEM;
	int result = copy_from_user(operations, address, size) ? -EFAULT : 0;
	struct set *set = (struct set *)ipc_find(&sets, id);
	struct request request = { operations, count, 0, ipc_caller() };

	if (!result)
		result = set ? operate_on(set, &request, deadline) : -EINVAL;
	kfree(operations);
	return result;
}

/* With a time at a user address (0: none). */
static int operate_timed(uint32_t id, uint32_t address, uint32_t count, uint32_t time,
			 timespec_reader *take)
{
	uint64_t ns = 0;
	int error = time ? take(time, &ns) : 0;

	return error ? error : operate(id, address, count, time ? time_ns() + ns : WAIT_FOREVER);
}

/* The first one is undone first. */
void semaphores_undo(void)
{
	int32_t pid = ipc_caller();

	for (struct list *link = undos.next, *next; link != &undos; link = next) {
		struct undo *undo = list_entry(link, struct undo, link);
		struct semaphore *semaphore = &undo->set->semaphores[undo->number];
		int32_t value = semaphore->value + undo->change;

		next = link->next;
		if (undo->pid != pid)
			continue;
		semaphore->value = value < 0 ? 0 : value > SEM_VALUE_MAX ? SEM_VALUE_MAX : value;
		semaphore->pid = pid;
		list_remove(link);
		serve(undo->set);
		pool_free(&undo_pool, undo);
	}
}

/* ---- semctl ---- */

static void remove(struct set *set)
{
	while (!list_is_empty(&set->sleepers))
		end_sleep(list_entry(set->sleepers.next, struct sleeper, link), -EIDRM);
	free_undos(set);
	ipc_remove(&sets, &set->ipc);
	kfree(set);
}

static int give_state(const struct ipc *ipc, uint32_t address)
{
	const struct set *set = (const struct set *)ipc;
	const struct linux_semaphores state = { .permission = ipc->permission,
						.operated = set->operated,
						.changed = set->changed,
						.count = set->count };

	return give(address, &state, sizeof(state));
}

/* Linux's struct seminfo; all that is not in use now is a limit. */
static int give_info(uint32_t address, bool of_use)
{
	const struct ipc *each;
	uint32_t semaphores = 0;

	for (uint32_t i = 0; (each = ipc_at(&sets, i)); i++)
		semaphores += ((const struct set *)each)->count;
	const uint32_t words[] = {
		SEM_ALL,	SEM_SETS,
		SEM_ALL,	SEM_ALL,
		SEM_COUNT,	SEM_OPERATIONS,
		SEM_OPERATIONS, of_use ? sets.count : SEM_UNDO_SIZE,
		SEM_VALUE_MAX,	of_use ? semaphores : SEM_VALUE_MAX,
	};

	return ipc_give_info(&sets, address, words, sizeof(words));
}

/* How many wait for a semaphore to grow, or (for_zero) to become 0. */
static int sleepers_of(const struct set *set, uint32_t number, bool for_zero)
{
	int count = 0;

	for (const struct list *link = set->sleepers.next; link != &set->sleepers;
	     link = link->next) {
		const struct request *request = &list_entry(link, struct sleeper, link)->request;
		const struct linux_semaphore_operation *blocked =
		    &request->operations[request->blocked];

		count += blocked->number == number && (blocked->change == 0) == for_zero;
	}
	return count;
}

static int set_value(struct set *set, uint32_t number, int32_t value)
{
	if (value < 0 || value > SEM_VALUE_MAX)
		return -ERANGE;
	forget_changes(set, number);
	set->semaphores[number].value = value;
	set->semaphores[number].pid = ipc_caller();
	set->changed = ipc_now();
	serve(set);
	return 0;
}

static int control_one(struct set *set, uint32_t number, uint32_t command, uint32_t argument)
{
	if (number >= set->count)
		return -EINVAL;
	switch (command) {
	case GETVAL:
		return set->semaphores[number].value;
	case GETPID:
		return set->semaphores[number].pid;
	case SETVAL:
		return set_value(set, number, argument);
	}
	return sleepers_of(set, number, command == GETZCNT);
}

/* All values as a program has them, from or to a copy of `count` of them. */
static int move_values(int32_t id, uint32_t address, uint16_t *values, uint32_t count, bool gives)
{
	uint32_t size = count * sizeof(values[0]);

	if (!gives && copy_from_user(values, address, size) != 0)
		return -EFAULT;
	for (uint32_t i = 0; i < count; i++)
		if (!gives && values[i] > SEM_VALUE_MAX)
			return -ERANGE;
	struct set *set = (struct set *)ipc_find(&sets, id);

	if (!set)
		return -EIDRM;
	for (uint32_t i = 0; i < count && gives; i++)
		values[i] = set->semaphores[i].value;
	if (gives)
		return give(address, values, size);
	for (uint32_t i = 0; i < count; i++) {
		set->semaphores[i] = (struct semaphore){ values[i], ipc_caller() };
		forget_changes(set, i);
	}
	set->changed = ipc_now();
	serve(set);
	return 0;
}

static int control_all(const struct set *set, uint32_t address, bool gives)
{
	uint16_t *values = kmalloc(set->count * sizeof(*values));
	int result =
	    values ? move_values(set->ipc.id, address, values, set->count, gives) : -ENOMEM;

	kfree(values);
	return result;
}

/* Searched after the copy, which may sleep. */
static int set_state(int32_t id, uint32_t address)
{
	struct linux_semaphores wanted;

	if (copy_from_user(&wanted, address, sizeof(wanted)) != 0)
		return -EFAULT;
	struct set *set = (struct set *)ipc_find(&sets, id);

	if (!set)
		return -EINVAL;
	ipc_set(&set->ipc, wanted.permission);
	set->changed = ipc_now();
	return 0;
}

static int control(int32_t id, uint32_t number, uint32_t command, uint32_t argument)
{
	struct set *set = (struct set *)ipc_find(&sets, id);

	switch (command) {
	case IPC_SET:
		return set_state(id, argument);
	case IPC_INFO:
	case SEM_INFO:
		return give_info(argument, command == SEM_INFO);
	case SEM_STAT:
	case SEM_STAT_ANY:
		return ipc_give_state_at(&sets, id, argument, give_state);
	}
	if (!set)
		return -EINVAL;
	switch (command) {
	case IPC_RMID:
		remove(set);
		return 0;
	case IPC_STAT:
		return give_state(&set->ipc, argument);
	case GETALL:
	case SETALL:
		return control_all(set, argument, command == GETALL);
	case GETVAL:
	case GETPID:
	case GETNCNT:
	case GETZCNT:
	case SETVAL:
		return control_one(set, number, command, argument);
	}
	return -EINVAL;
}

/* semctl's last argument is at the address in EDI. */
static int control_call(const struct trap_frame *frame)
{
	uint32_t argument;

	if (!frame->edi)
		return -EINVAL;
	if (copy_from_user(&argument, frame->edi, sizeof(argument)) != 0)
		return -EFAULT;
	return control(frame->ecx, frame->edx, frame->esi & ~IPC_64, argument);
}

int semaphore_call(const struct trap_frame *frame)
{
	switch (frame->ebx) {
	case IPC_SEMOP:
		return operate(frame->ecx, frame->edi, frame->edx, WAIT_FOREVER);
	case IPC_SEMGET:
		return get(frame->ecx, frame->edx, frame->esi);
	case IPC_SEMCTL:
		return control_call(frame);
	case IPC_SEMTIMEDOP:
		return operate_timed(frame->ecx, frame->edi, frame->edx, frame->ebp,
				     timespec_from_user);
	}
	return -ENOSYS;
}

CALL(sys_semtimedop64,
     operate_timed(frame->ebx, frame->ecx, frame->edx, frame->esi, timespec64_from_user))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 420, "semtimedop_time64", "dpdp", sys_semtimedop64 },
};
