/*
 * System V's messages (msgget(2), msgsnd(2), msgrcv(2), msgctl(2)): queues of messages that have a
 * type, by which a receiver may choose.
 *
 *	msgsnd	copies a message; puts it into the queue, or waits until that has room
 *	msgrcv	takes the first message of a type, or waits for one; copies it to the program
 *
 * A queue is looked up again after each wait, since it may have been removed. Copies from and to
 * programs sleep: then the message is in no queue. Called by system calls only.
 */
#include "kernel/linux/ipc/keys.h"
#include "mm/kmalloc.h"

#define MSGINFO_WORDS 8u /* of struct msginfo */
#define WAITS	      1	 /* a result: it cannot be done now */

/* One that was sent: in a queue, or with the call that copies it. */
struct message {
	struct list link;
	int32_t type;
	uint32_t length;
	char bytes[];
};

/* A message queue; how many messages and bytes it has is in its state. */
struct queue {
	struct ipc ipc;
	struct list messages;
};

/* Wakes when a message came or went, or a queue. All that wait look again: which of them can go on
 * depends on types and lengths. */
static struct wait_queue queues_changed;

static struct linux_messages *state_of(struct queue *queue)
{
	return &queue->ipc.state.messages;
}

/* ---- the kind ---- */

static int queue_make(struct ipc *ipc)
{
	struct queue *queue = (struct queue *)ipc;

	queue->messages = (struct list)LIST_EMPTY(queue->messages);
	state_of(queue)->capacity = MSG_CAPACITY;
	return 0;
}

/* IPC_SET changes msg_qbytes, for root also beyond MSGMNB. With more capacity a sender may go on.
 */
static void queue_set_state(struct ipc *ipc, const union ipc_state *wanted)
{
	ipc->state.messages.capacity = wanted->messages.capacity;
	wait_wake(&queues_changed);
}

/* Those that wait find no queue any more: -EIDRM. */
static void queue_remove(struct ipc *ipc)
{
	struct queue *queue = (struct queue *)ipc;

	list_for_each_safe(struct message, message, &queue->messages, link)
		kfree(message);
	ipc_remove(&ipc_queues, ipc);
	wait_wake(&queues_changed);
}

/* MSG_INFO, in the fields that MSG_INFO gives another meaning (msgctl(2)): how many queues there
 * are, messages, and their bytes. */
static uint32_t queue_get_use(uint32_t *words)
{
	words[0] = ipc_queues.count;
	words[1] = words[6] = 0;
	list_for_each(struct queue, queue, &ipc_queues.all, ipc.link) {
		words[1] += state_of(queue)->count;
		words[6] += state_of(queue)->bytes;
	}
	return MSGINFO_WORDS;
}

/* Limits: struct msginfo. */
struct ipc_kind ipc_queues = {
	IPC_KIND(ipc_queues, struct queue, messages),
	.most = MSG_QUEUES,
	.largest = 1,
	.stat = MSG_STAT,
	.limits = { MSG_QUEUES * (MSG_CAPACITY / 1024), MSG_CAPACITY, MSG_LONGEST, MSG_CAPACITY,
		    MSG_QUEUES, MSG_SEGMENT, MSG_CAPACITY, UINT16_MAX },
	.limit_count = MSGINFO_WORDS,
	.make = queue_make,
	.remove = queue_remove,
	.set_state = queue_set_state,
	.get_use = queue_get_use,
};

/* ---- moving ---- */

/* Does something with a queue that does not sleep; WAITS: it cannot be done now. */
typedef int queue_attempt(struct queue *queue, void *context);

/* After the first time the queue was there: it has been removed. */
static int try_once(int32_t id, queue_attempt *attempt, void *context)
{
	struct queue *queue = (struct queue *)ipc_find(&ipc_queues, id);

	return queue ? attempt(queue, context) : -EIDRM;
}

/* Tries it until it can be done. Sleeps, except with IPC_NOWAIT: then the result is `refusal`. */
static int repeat(int32_t id, uint32_t flags, int refusal, queue_attempt *attempt, void *context)
{
	bool waits = !(flags & IPC_NOWAIT);
	int done;

	if (!ipc_find(&ipc_queues, id))
		return -EINVAL;
	int error =
	    wait_event(&queues_changed, (done = try_once(id, attempt, context)) != WAITS || !waits);

	return error ? -EINTR : done == WAITS ? refusal : done;
}

/* A queue_attempt of msgsnd. The number of messages is limited as well, since they may be empty. */
static int put_message(struct queue *queue, void *context)
{
	struct linux_messages *state = state_of(queue);
	struct message *message = context;

	if (state->bytes + message->length > state->capacity || state->count >= state->capacity)
		return WAITS;
	list_append(&queue->messages, &message->link);
	state->bytes += message->length;
	state->count++;
	state->sent = ipc_now();
	state->sender = calling_pid();
	wait_wake(&queues_changed);
	return 0;
}

/* msgsnd(2). A program's message is its type, and its bytes. Waits while the queue is full; -EAGAIN
 * with IPC_NOWAIT, -EINTR after a signal: it is never made again. */
int message_send(int32_t id, uint32_t address, uint32_t length, uint32_t flags)
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
		result = repeat(id, flags, -EAGAIN, put_message, message);
	if (result)
		kfree(message);
	return result;
}

/* What msgrcv asks for, and the message that it got, which is in no queue. MSG_EXCEPT turns the
 * choice of a type round, MSG_NOERROR cuts what is too long: msgrcv(2). */
struct message_request {
	int32_t type;
	uint32_t length, flags;
	struct message *found;
};

/* Type 0: the first message; a negative one: the first of the lowest type up to that number. */
static bool is_wanted_message(const struct message *message, const struct message_request *request)
{
	if (request->type < 0)
		return -(int64_t)message->type >= request->type &&
		       (!request->found || message->type < request->found->type);
	if (request->found)
		return false;
	return request->type == 0 ||
	       (message->type == request->type) == !(request->flags & MSG_EXCEPT);
}

/* A queue_attempt of msgrcv. -E2BIG: the message stays in the queue. */
static int take_message(struct queue *queue, void *context)
{
	struct linux_messages *state = state_of(queue);
	struct message_request *request = context;

	request->found = NULL;
	list_for_each(struct message, message, &queue->messages, link)
		if (is_wanted_message(message, request))
			request->found = message;
	if (!request->found)
		return WAITS;
	if (request->found->length > request->length && !(request->flags & MSG_NOERROR))
		return -E2BIG;
	list_remove(&request->found->link);
	state->bytes -= request->found->length;
	state->count--;
	state->received = ipc_now();
	state->receiver = calling_pid();
	wait_wake(&queues_changed);
	return 0;
}

/* msgrcv(2): how many bytes came, of those that the message had. Where it goes, and its type, are
 * at the address in EDI. As Linux has it, a message that the program has no memory for is lost. */
int message_receive(const struct trap_frame *frame)
{
	struct message_request request = { .length = frame->edx, .flags = frame->esi };
	uint32_t words[2]; /* an address, and a type */

	if (!frame->edi)
		return -EINVAL;
	if (copy_from_user(words, frame->edi, sizeof(words)) != 0)
		return -EFAULT;
	if ((int32_t)request.length < 0 || (int32_t)frame->ecx < 0)
		return -EINVAL;
	request.type = words[1];
	int result = repeat(frame->ecx, request.flags, -ENOMSG, take_message, &request);

	if (result)
		return result;
	const struct message *found = request.found;

	result = found->length < request.length ? found->length : request.length;
	if (give(words[0], &found->type, sizeof(found->type)) != 0 ||
	    give(words[0] + sizeof(found->type), found->bytes, result) != 0)
		result = -EFAULT;
	kfree(request.found);
	return result;
}
