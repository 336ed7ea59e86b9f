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
#include "kernel/linux/ipc/keys.h"
#include "kernel/linux/sleeper.h"
#include "mm/kmalloc.h"
#include "mm/pool.h"

#define WAITS 1 /* a result: it cannot be done now */

struct semaphore {
	int32_t value, pid; /* of the last program that changed it */
};

/* A set of semaphores (union semid_ds is what programs see of it). */
struct set {
	struct ipc ipc; /* its size is how many semaphores there are */
	struct list sleepers;
	struct semaphore semaphores[];
};

/* What one call asks for; the operations are a copy in the kernel. */
struct request {
	const struct linux_semaphore_operation *operations;
	uint32_t count, blocked; /* the operation that it waits for */
	int32_t pid;		 /* of the program */
};

/* The task of a request that could not be done sleeps until somebody has a result for it. */
struct semaphore_sleeper {
	struct sleeper sleeper; /* first: the two have one address */
	struct request request;
};

/* The sum of what a program did to one semaphore with SEM_UNDO, negated: its end adds it. There is
 * one for each semaphore that it has used so. */
struct undo {
	struct list link;
	struct set *set;
	int32_t pid;
	uint16_t number;
	int32_t change;
};

static struct pool undo_pool = POOL_INITIALIZER(struct undo);
static struct list undos = LIST_EMPTY(undos);

/* ---- the kind ---- */

/* All values are 0 at first. */
static int set_make(struct ipc *ipc)
{
	struct set *set = (struct set *)ipc;

	set->sleepers = (struct list)LIST_EMPTY(set->sleepers);
	ipc->state.semaphores.count = ipc->size;
	return 0;
}

/* SEM_INFO, in the fields that SEM_INFO gives another meaning (semctl(2)): how many sets there are,
 * and semaphores. */
static uint32_t set_get_use(uint32_t *words)
{
	words[7] = ipc_sets.count;
	words[9] = 0;
	list_for_each(struct ipc, ipc, &ipc_sets.all, link)
		words[9] += ipc->size;
	return IPC_INFO_WORDS;
}

/* Those that wait get -EIDRM. What was to be undone cannot be any more. */
static void set_remove(struct ipc *ipc)
{
	struct set *set = (struct set *)ipc;

	list_for_each_safe(struct sleeper, sleeper, &set->sleepers, link)
		sleeper_end(sleeper, -EIDRM);
	list_for_each_safe(struct undo, undo, &undos, link)
		if (undo->set == set) {
			list_remove(&undo->link);
			pool_free(&undo_pool, undo);
		}
	ipc_remove(&ipc_sets, ipc);
}

/* Limits: struct seminfo. */
struct ipc_kind ipc_sets = {
	IPC_KIND(ipc_sets, struct set, semaphores),
	.unit_bytes = sizeof(struct semaphore),
	.most = SEM_SETS,
	.largest = SEM_COUNT,
	.stat = SEM_STAT,
	.limits = { SEM_ALL, SEM_SETS, SEM_ALL, SEM_ALL, SEM_COUNT, SEM_OPERATIONS, SEM_OPERATIONS,
		    SEM_UNDO_SIZE, SEM_VALUE_MAX, SEM_VALUE_MAX },
	.limit_count = IPC_INFO_WORDS,
	.make = set_make,
	.remove = set_remove,
	.get_use = set_get_use,
};

/* ---- undoing ---- */

/* The list has the notes of all sets and programs: few use SEM_UNDO. NULL if the program has not
 * used the semaphore with SEM_UNDO. */
static struct undo *find_undo(struct set *set, int32_t pid, uint16_t number)
{
	list_for_each(struct undo, undo, &undos, link)
		if (undo->set == set && undo->pid == pid && undo->number == number)
			return undo;
	return NULL;
}

/* Each operation that is to be undone has a note before any of them is done: a sleeper's are done
 * by another task, which could not report a lack of memory. -ENOMEM: notes that were made do no
 * harm. */
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

/* ---- operations ---- */

/* Does operation `index` with sign 1, or takes it back with -1. 0, WAITS; -EAGAIN (IPC_NOWAIT), or
 * -ERANGE if the value would be too large: then nothing has changed. */
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

/* All operations, or none: then the result says why (change_one), and request->blocked which one it
 * was. Operations before it are taken back. */
static int perform_request(struct set *set, struct request *request)
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
		set->ipc.state.semaphores.operated = ipc_now();
	return result;
}

/* Values have changed. Sleepers are served in their order; one that can go on does not wait for an
 * earlier one that cannot. What one of them does may be what another waits for, so it begins again
 * after each. */
static void serve_sleepers(struct set *set)
{
	list_for_each_safe(struct semaphore_sleeper, each, &set->sleepers, sleeper.link) {
		int result = perform_request(set, &each->request);

		if (result == WAITS)
			continue;
		sleeper_end(&each->sleeper, result);
		if (result == 0)
			next = (struct semaphore_sleeper *)set->sleepers.next;
	}
}

/* Sleeps until another task has done the request, or removed the set, which may be gone afterwards.
 * A signal ends the wait with -EINTR: semop(2) is never made again. */
static int semaphore_sleep(struct set *set, const struct request *request, uint64_t deadline)
{
	struct semaphore_sleeper waiting = { .request = *request };
	int result = sleeper_wait(&waiting.sleeper, &set->sleepers, deadline);

	return result == -ETIMEDOUT ? -EAGAIN : result == -ERESTART ? -EINTR : result;
}

/* Sleeps if the request must wait, and then the set may be gone. 0, -EFBIG, -ENOMEM; -EAGAIN after
 * the deadline (ns of time_ns()), -EINTR, -EIDRM. */
static int operate_on(struct set *set, struct request *request, uint64_t deadline)
{
	for (uint32_t i = 0; i < request->count; i++)
		if (request->operations[i].number >= set->ipc.size)
			return -EFBIG;
	int result = make_undos(set, request);

	if (!result)
		result = perform_request(set, request);
	if (!result)
		serve_sleepers(set);
	return result == WAITS ? semaphore_sleep(set, request, deadline) : result;
}

/* semop(2), and with a time at a user address (0: none) semtimedop(2). The operations are at an
 * address, too. Their copy comes first, since it may sleep. */
int semaphore_operate(int32_t id, uint32_t address, uint32_t count, uint32_t time,
		      enum time_format format)
{
	uint32_t size = count * sizeof(struct linux_semaphore_operation);
	uint64_t deadline;
	int result = deadline_from_user(time, format, &deadline);

	if (result)
		return result;
	if (count == 0 || id < 0)
		return -EINVAL;
	if (count > SEM_OPERATIONS)
		return -E2BIG;
	struct linux_semaphore_operation *operations = kmalloc(size);

	if (!operations)
		return -ENOMEM;
	result = copy_from_user(operations, address, size) ? -EFAULT : 0;
	struct set *set = (struct set *)ipc_find(&ipc_sets, id);
	struct request request = { operations, count, 0, calling_pid() };

	if (!result)
		result = set ? operate_on(set, &request, deadline) : -EINVAL;
	kfree(operations);
	return result;
}

/* At the end of a program, in its last task (semop(2)). A value that would leave its range
 * stays at the end of it, as on Linux. The first one is undone first. */
void semaphores_undo(void)
{
	int32_t pid = calling_pid();

	list_for_each_safe(struct undo, undo, &undos, link) {
		struct semaphore *semaphore = &undo->set->semaphores[undo->number];
		int32_t value = semaphore->value + undo->change;

		if (undo->pid != pid)
			continue;
		semaphore->value = value < 0 ? 0 : value > SEM_VALUE_MAX ? SEM_VALUE_MAX : value;
		semaphore->pid = pid;
		list_remove(&undo->link);
		serve_sleepers(undo->set);
		pool_free(&undo_pool, undo);
	}
}

/* ---- semctl ---- */

/* How many wait for a semaphore to grow, or (for_zero) to become 0. */
static int sleepers_of(const struct set *set, uint32_t number, bool for_zero)
{
	int count = 0;

	list_for_each(const struct semaphore_sleeper, each, &set->sleepers, sleeper.link) {
		const struct linux_semaphore_operation *blocked =
		    &each->request.operations[each->request.blocked];

		count += blocked->number == number && (blocked->change == 0) == for_zero;
	}
	return count;
}

/* Sets a value: what was done before cannot be undone. The notes stay, for those who sleep. */
static void note_value(struct set *set, uint32_t number, int32_t value)
{
	set->semaphores[number] = (struct semaphore){ value, calling_pid() };
	list_for_each(struct undo, undo, &undos, link)
		if (undo->set == set && undo->number == number)
			undo->change = 0;
}

/* Values were set by semctl, which is a change of the set as IPC_SET is (sem_ctime): those who
 * sleep look at them. */
static int end_change(struct set *set)
{
	ipc_note_change(&ipc_sets, &set->ipc);
	serve_sleepers(set);
	return 0;
}

/* Commands of one semaphore of the set; GETNCNT and GETZCNT count those that sleep.
 * None of them sleeps. */
static int control_one(struct set *set, uint32_t number, uint32_t command, uint32_t argument)
{
	if (number >= set->ipc.size)
		return -EINVAL;
	switch (command) {
	case GETVAL:
		return set->semaphores[number].value;
	case GETPID:
		return set->semaphores[number].pid;
	case SETVAL:
		if (argument > SEM_VALUE_MAX) /* or negative */
			return -ERANGE;
		note_value(set, number, argument);
		return end_change(set);
	}
	return sleepers_of(set, number, command == GETZCNT);
}

/* GETALL, by a copy of the values of one moment: the set may change while that is given. */
static int give_values(const struct set *set, uint32_t address, uint16_t *values)
{
	for (uint32_t i = 0; i < set->ipc.size; i++)
		values[i] = set->semaphores[i].value;
	return give(address, values, set->ipc.size * sizeof(values[0]));
}

/* SETALL. The set is found by its id again, because a copy that sleeps comes first; a set never
 * changes its size, and an id is not given again soon. */
static int take_values(int32_t id, uint32_t address, uint16_t *values, uint32_t count)
{
	if (copy_from_user(values, address, count * sizeof(values[0])) != 0)
		return -EFAULT;
	for (uint32_t i = 0; i < count; i++)
		if (values[i] > SEM_VALUE_MAX)
			return -ERANGE;
	struct set *set = (struct set *)ipc_find(&ipc_sets, id);

	for (uint32_t i = 0; set && i < count; i++)
		note_value(set, i, values[i]);
	return set ? end_change(set) : -EIDRM;
}

static int move_all_values(const struct set *set, uint32_t address, bool gives)
{
	uint32_t count = set->ipc.size;
	uint16_t *values = kmalloc(count * sizeof(*values));
	int result = !values ? -ENOMEM
		     : gives ? give_values(set, address, values)
			     : take_values(set->ipc.id, address, values, count);

	kfree(values);
	return result;
}

/* semctl(2). Its last argument, a union semun of one word, is at the address in EDI: ipc(2). */
int semaphore_control(const struct trap_frame *frame)
{
	uint32_t argument, command = frame->esi & ~IPC_64;

	if (!frame->edi)
		return -EINVAL;
	if (copy_from_user(&argument, frame->edi, sizeof(argument)) != 0)
		return -EFAULT;
	if (command < GETPID || command > SETALL)
		return ipc_control(&ipc_sets, frame->ecx, command, argument);
	struct set *set = (struct set *)ipc_find(&ipc_sets, frame->ecx);

	if (!set)
		return -EINVAL;
	return command == GETALL || command == SETALL
		   ? move_all_values(set, argument, command == GETALL)
		   : control_one(set, frame->edx, command, argument);
}
