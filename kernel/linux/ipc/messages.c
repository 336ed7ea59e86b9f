/*
 * System V's messages (msgget(2), msgsnd(2), msgrcv(2), msgctl(2)): queues of messages that have a
 * type, by which a receiver may choose.
 *
 * A queue is looked up again after each wait, since it may have been removed. Copies from and to
 * programs sleep: then the message is in no queue. Called by system calls only.
 */
#include <stdbool.h>

#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/linux/ipc/keys.h"
#include "kernel/task/wait.h"
#include "mm/kmalloc.h"
#include "mm/user_copy.h"

#define WAITS 1 /* a result: it cannot be done now */

struct message {
	struct list link;
	int32_t type;
	uint32_t length;
	char bytes[];
};

struct queue {
	struct ipc ipc; /* the first member */
	struct list messages;
	struct linux_messages state; /* without the permission */
};

static struct ipc *make(uint32_t unused);

static struct ipc_kind queues = IPC_KIND(queues, MSG_QUEUES, make);
static struct wait_queue changed; /* wakes when a message came or went, or a queue */
static uint32_t changes;

static struct ipc *make(uint32_t unused)
{
	struct queue *queue = kmalloc(sizeof(*queue));

	if (!queue)
		return NULL;
	queue->messages = (struct list)LIST_EMPTY(queue->messages);
	queue->state = (struct linux_messages){ .changed = ipc_now(), .capacity = MSG_CAPACITY };
	return &queue->ipc;
}

static int get(int32_t key, uint32_t flags)
{
	struct ipc *found;
	int error = ipc_get(&queues, key, 1, flags, &found);

	return error ? error : found->id;
}

static void tell_change(void)
{
	changes++;
	wait_wake(&changed);
}

/* ---- moving ---- */

/* What is done with a queue, or WAITS. */
typedef int attempt(struct queue *queue, void *context);

static int repeat(int32_t id, uint32_t flags, int refusal, attempt *attempt, void *context)
{
	int error = -EINVAL; /* if it is not there at first */

	for (;;) {
		uint32_t seen = changes;
		struct queue *queue = (struct queue *)ipc_find(&queues, id);
		int result = queue ? attempt(queue, context) : error;

		if (result != WAITS)
			return result;
		if (flags & IPC_NOWAIT)
			return refusal;
		if (wait_event(&changed, changes != seen) != 0)
			return -EINTR;
		error = -EIDRM;
	}
}

static int put(struct queue *queue, void *context)
{
	struct message *message = context;

	if (queue->state.bytes + message->length > queue->state.capacity ||
	    queue->state.count >= queue->state.capacity)
		return WAITS;
	list_append(&queue->messages, &message->link);
	queue->state.bytes += message->length;
	queue->state.count++;
	queue->state.sent = ipc_now();
	queue->state.sender = ipc_caller();
	tell_change();
	return 0;
}

/* A program's message is its type, and its bytes. */
static int send(int32_t id, uint32_t address, uint32_t length, uint32_t flags)
{
	int32_t type;

	if (copy_from_user(&type, address, sizeof(type)) != 0)
		return -EFAULT;
	if (length > MSG_LONGEST || id < 0 || type < 1)
		return -EINVAL;
	struct message *message = kmalloc(sizeof(*message) + length);

	if (!message)
		return -ENOMEM;
	message->type = type;
	message->length = length;
	int result = copy_from_user(message->bytes, address + sizeof(type), length) ? -EFAULT : 0;

	if (!result)
		result = repeat(id, flags, -EAGAIN, put, message);
	if (result)
		kfree(message);
	return result;
}

struct request {
	int32_t type;
	uint32_t length, flags;
	struct message *found;
};

/* Type 0: the first message; a negative one: the first of the lowest type up to that number. */
static bool is_wanted(const struct message *message, const struct request *request)
{
	if (request->type < 0)
		return -(int64_t)message->type >= request->type &&
		       (!request->found || message->type < request->found->type);
	if (request->found)
		return false;
	return request->type == 0 ||
	       (message->type == request->type) == !(request->flags & MSG_EXCEPT);
}

static int take(struct queue *queue, void *context)
{
	struct request *request = context;
	struct list *link = queue->messages.next;

	request->found = NULL;
	for (; link != &queue->messages; link = link->next)
		if (is_wanted(list_entry(link, struct message, link), request))
			request->found = list_entry(link, struct message, link);
	if (!request->found)
		return WAITS;
	if (request->found->length > request->length && !(request->flags & MSG_NOERROR))
		return -E2BIG;
	list_remove(&request->found->link);
	queue->state.bytes -= request->found->length;
	queue->state.count--;
	queue->state.received = ipc_now();
	queue->state.receiver = ipc_caller();
	tell_change();
	return 0;
}

/* As Linux has it, a message that the program has no memory for is lost. */
static int receive(int32_t id, uint32_t address, struct request *request)
{
	if ((int32_t)request->length < 0 || id < 0)
		return -EINVAL;
	int result = repeat(id, request->flags, -ENOMSG, take, request);

	if (result)
		return result;
	const struct message *found = request->found;

	result = found->length < request->length ? found->length : request->length;
	if (give(address, &found->type, sizeof(found->type)) != 0 ||
	    give(address + sizeof(found->type), found->bytes, result) != 0)
		result = -EFAULT;
	kfree(request->found);
	return result;
}

/* Where the message goes, and its type, are at the address in EDI. */
static int receive_call(const struct trap_frame *frame)
{
	struct request request = { .length = frame->edx, .flags = frame->esi };
	uint32_t words[2];

	if (!frame->edi)
		return -EINVAL;
	if (copy_from_user(words, frame->edi, sizeof(words)) != 0)
		return -EFAULT;
	request.type = words[1];
	return receive(frame->ecx, words[0], &request);
}

/* ---- msgctl ---- */

static void remove(struct queue *queue)
{
	while (!list_is_empty(&queue->messages)) {
		struct message *message = list_entry(queue->messages.next, struct message, link);

		list_remove(&message->link);
		kfree(message);
	}
	ipc_remove(&queues, &queue->ipc);
	kfree(queue);
	tell_change();
}

static int give_state(const struct ipc *ipc, uint32_t address)
{
	struct linux_messages state = ((const struct queue *)ipc)->state;

	state.permission = ipc->permission;
	return give(address, &state, sizeof(state));
}

/* Linux's struct msginfo; all that is not in use now is a limit. */
static int give_info(uint32_t address, bool of_use)
{
	const struct ipc *each;
	uint32_t messages = 0, bytes = 0;

	for (uint32_t i = 0; (each = ipc_at(&queues, i)); i++) {
		messages += ((const struct queue *)each)->state.count;
		bytes += ((const struct queue *)each)->state.bytes;
	}
	const uint32_t words[] = {
		of_use ? queues.count : MSG_QUEUES * (MSG_CAPACITY / 1024),
		of_use ? messages : MSG_CAPACITY,
		MSG_LONGEST,
		MSG_CAPACITY,
		MSG_QUEUES,
		MSG_SEGMENT,
		of_use ? bytes : MSG_CAPACITY,
		UINT16_MAX,
	};

	return ipc_give_info(&queues, address, words, sizeof(words));
}

/* Searched after the copy, which may sleep. */
static int set_state(int32_t id, uint32_t address)
{
	struct linux_messages wanted;

	if (copy_from_user(&wanted, address, sizeof(wanted)) != 0)
		return -EFAULT;
	struct queue *queue = (struct queue *)ipc_find(&queues, id);

	if (!queue)
		return -EINVAL;
	ipc_set(&queue->ipc, wanted.permission);
	queue->state.capacity = wanted.capacity;
	queue->state.changed = ipc_now();
	tell_change();
	return 0;
}

static int control(int32_t id, uint32_t command, uint32_t address)
{
	struct queue *queue = (struct queue *)ipc_find(&queues, id);

	if (command == IPC_SET)
		return set_state(id, address);
	if (command == IPC_INFO || command == MSG_INFO)
		return give_info(address, command == MSG_INFO);
	if (command == MSG_STAT || command == MSG_STAT_ANY)
		return ipc_give_state_at(&queues, id, address, give_state);
	if (!queue || (command != IPC_STAT && command != IPC_RMID))
		return -EINVAL;
	if (command == IPC_STAT)
		return give_state(&queue->ipc, address);
	remove(queue);
	return 0;
}

int message_call(const struct trap_frame *frame)
{
	switch (frame->ebx) {
	case IPC_MSGSND:
		return send(frame->ecx, frame->edi, frame->edx, frame->esi);
	case IPC_MSGRCV:
		return receive_call(frame);
	case IPC_MSGGET:
		return get(frame->ecx, frame->edx);
	case IPC_MSGCTL:
		return control(frame->ecx, frame->edx & ~IPC_64, frame->edi);
	}
	return -ENOSYS;
}
