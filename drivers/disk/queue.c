/*
 * The queue of a drive: which request is next, which ones are merged, and which task serves them.
 *
 *	waiting		W 40-47	 R 8-15	 W 48-55  F  W 0-7
 *	C-LOOK, at 30	W 40-55 (two requests, one transfer), R 8-15, F, W 0-7
 *
 * A flush is a barrier: it waits for all that came before it, and what came after it waits for the
 * flush; a discard, too. Between two barriers the drive is free to choose, so tasks that want an
 * order wait for one request before they submit the next.
 *
 * There is no thread for it. A request that is submitted stays in the queue (it is plugged), so
 * that others can join it, until a task waits for one. That task serves the drive, other tasks'
 * requests too, until its own has ended; the others sleep, and one of them continues:
 *
 *	task A	submit 5, submit 6, wait for 5: transfer 5-6 ......... wait for 6: has ended
 *	task B			submit 9, wait: A serves, sleep ...... transfer 9
 *
 * A transfer of several requests that fails is done again, one by one: a bad sector is an error
 * only of the requests that contain it.
 *
 * Nothing is locked, because no task is pre-empted here. Only the driver, and wait_sleep_blocked,
 * sleep.
 */
#include "drivers/disk/queue.h"

#include "drivers/disk/trace.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/task/sched.h"
#include "kernel/task/time.h"
#include "mm/kmalloc.h"

#define TOGETHER 32u /* requests in a transfer, at most */

/* A transfer, and its requests in ascending order of sectors. */
struct batch {
	struct block_request *requests[TOGETHER];
	unsigned requests_count;
	uint64_t lba, end;
};

static struct block_request *request_entry(struct list *link)
{
	return list_entry(link, struct block_request, in_queue);
}

/* A flush or a discard: no request passes it, in either direction. */
static bool is_barrier(const struct block_request *request)
{
	return request->operation == 'F' || request->operation == 'D';
}

const char *const block_orders[BLOCK_ORDERS] = { "fifo", "c-look" };

/* Requests that wait are chosen by the new order from the next on. */
int block_set_order(struct block_queue *queue, const char *name)
{
	for (unsigned order = 0; order < BLOCK_ORDERS; order++)
		if (strcmp(name, block_orders[order]) == 0) {
			queue->order = order;
			return 0;
		}
	return -EINVAL;
}

/* One for each drive; its partitions share it. NULL without memory. */
struct block_queue *block_queue_create(void)
{
	struct block_queue *queue = kmalloc(sizeof(*queue));

	if (!queue)
		return NULL;
	*queue = (struct block_queue){ .order = BLOCK_C_LOOK };
	queue->waiting = (struct list){ &queue->waiting, &queue->waiting };
	return queue;
}

/* From here on `lba` is the drive's, wherever the partition begins. */
void block_submit(struct block_request *request)
{
	struct block_queue *queue = block_drive(request->device)->queue;

	preempt_disable();
	request->lba += request->device->start;
	request->is_done = false;
	request->submitted_ns = time_ns();
	if (request->operation == 'R')
		current->counts.blocks_in += request->count;
	list_append(&queue->waiting, &request->in_queue);
	if (queue->pending++ == 0)
		queue->busy_since = request->submitted_ns;
	preempt_enable();
}

/* For iostat's %util: with one queue it is the time in which anything was pending. */
uint64_t block_busy_ns(const struct block_queue *queue)
{
	return queue->busy_ns + (queue->pending ? time_ns() - queue->busy_since : 0);
}

/* ---- which ones are next ---- */

/* C-LOOK: what is ahead of the position comes before what is not. */
static bool is_served_before(const struct block_queue *queue, const struct block_request *one,
			     const struct block_request *other)
{
	bool is_ahead = one->lba >= queue->position;

	if (is_ahead != (other->lba >= queue->position))
		return is_ahead;
	return one->lba < other->lba;
}

/* The queue is not empty. What is before the first barrier may be chosen, or the barrier itself. */
static struct block_request *choose_request(const struct block_queue *queue)
{
	struct block_request *best = request_entry(queue->waiting.next);

	if (queue->order == BLOCK_FIFO || is_barrier(best))
		return best;
	for (struct list *link = queue->waiting.next; link != &queue->waiting; link = link->next) {
		if (is_barrier(request_entry(link)))
			break;
		if (is_served_before(queue, request_entry(link), best))
			best = request_entry(link);
	}
	return best;
}

/* Does the request continue the batch at one of its ends? */
static bool touches_batch(const struct batch *batch, const struct block_request *request)
{
	const struct block_request *first = batch->requests[0];

	return block_drive(request->device) == block_drive(first->device) &&
	       request->operation == first->operation && request->is_forced == first->is_forced &&
	       (request->lba == batch->end || request->lba + request->count == batch->lba) &&
	       batch->end - batch->lba + request->count <= BLOCK_TRANSFER_SECTORS;
}

/* At the end that the request continues; the requests stay in ascending order. */
static void add_to_batch(struct batch *batch, struct block_request *request)
{
	unsigned place = request->lba >= batch->lba ? batch->requests_count : 0;

	for (unsigned i = batch->requests_count++; i > place; i--)
		batch->requests[i] = batch->requests[i - 1];
	batch->requests[place] = request;
	if (place == 0)
		batch->lba = request->lba;
	if (request->lba + request->count > batch->end)
		batch->end = request->lba + request->count;
	list_remove(&request->in_queue);
}

/* One more that touches the batch, up to the next barrier; NULL if there is none. */
static struct block_request *find_next(struct block_queue *queue, const struct batch *batch)
{
	for (struct list *link = queue->waiting.next; link != &queue->waiting; link = link->next) {
		if (is_barrier(request_entry(link)))
			break;
		if (touches_batch(batch, request_entry(link)))
			return request_entry(link);
	}
	return NULL;
}

/* The request that is next, and as many others as continue it: one transfer of the drive. A barrier
 * is alone. */
static void gather_batch(struct block_queue *queue, struct batch *batch)
{
	struct block_request *next = choose_request(queue);

	batch->requests_count = 0;
	batch->lba = next->lba;
	batch->end = next->lba + next->count;
	add_to_batch(batch, next);
	while (!is_barrier(next) && batch->requests_count < TOGETHER &&
	       (next = find_next(queue, batch)))
		add_to_batch(batch, next);
}

/* ---- what became of it ---- */

static unsigned stats_group(const struct block_request *request)
{
	switch (request->operation) {
	case 'W':
		return BLOCK_WRITES;
	case 'F':
		return BLOCK_FLUSHES;
	case 'D':
		return BLOCK_DISCARDS;
	}
	return request->purpose;
}

/* A request has ended; `is_first` of those that were merged and are counted together. Errors count
 * once and add no sectors: a transfer that failed has delivered nothing reliable. */
static void account(struct block_stats *stats, const struct block_request *request, bool is_first,
		    int result, uint64_t now)
{
	struct block_count *count = &stats->counts[stats_group(request)];

	if (result < 0) {
		stats->errors += is_first;
		return;
	}
	count->requests += is_first;
	count->merged += !is_first;
	count->sectors += request->count;
	count->waited_ns += is_first ? now - request->submitted_ns : 0;
}

/* Is a request the first of its batch on this device (NULL: on the drive), and of its group? */
static bool is_first(const struct batch *batch, unsigned number, const struct block_device *device)
{
	unsigned group = stats_group(batch->requests[number]);

	for (unsigned i = 0; i < number; i++)
		if ((!device || batch->requests[i]->device == device) &&
		    stats_group(batch->requests[i]) == group)
			return false;
	return true;
}

/* What tasks on two partitions, or for two purposes, have asked may be one transfer: it is one
 * request of each. */
static void account_all(const struct batch *batch, int result, uint64_t now)
{
	for (unsigned i = 0; i < batch->requests_count; i++) {
		const struct block_request *request = batch->requests[i];
		struct block_device *device = request->device, *drive = block_drive(device);

		account(&drive->stats, request, is_first(batch, i, NULL), result, now);
		if (device != drive)
			account(&device->stats, request, is_first(batch, i, device), result, now);
	}
}

/* A transfer has ended: it is counted, for partitions and their drive, and remembered. What a
 * snapshot is asked becomes requests of other drives, which are in the trace. */
static void record_transfer(const struct batch *batch, uint64_t start, int result)
{
	const struct block_request *first = batch->requests[0];
	struct block_device *drive = block_drive(first->device);
	uint64_t now = time_ns();
	uint64_t sectors = batch->end - batch->lba;
	struct trace_record record = {
		.start_ns = start,
		.lba = first->operation == 'F' ? 0 : batch->lba,
		.duration_ns = now - start,
		.sectors = sectors < UINT16_MAX ? sectors : UINT16_MAX,
		.result = result,
		.drive = drive->name[2],
		.operation = first->operation,
		.purpose = first->purpose,
	};

	account_all(batch, result, now);
	if (drive->is_snapshot)
		return;
	if (!is_barrier(first))
		latency_add(&drive->queue->latency, now - start);
	trace_add(&record);
}

/* Its task finds is_done, at once or when it is woken. */
static void end_request(struct block_queue *queue, struct block_request *request, int result)
{
	request->result = result;
	request->is_done = true;
	if (--queue->pending == 0)
		queue->busy_ns += time_ns() - queue->busy_since;
}

/* ---- serving ---- */

/* From the driver's point of view: sectors, and pieces of memory for them. A snapshot's transfer
 * may serve others inside (block_serve_inside), so the one around it is kept. */
static int transfer_batch(struct block_device *drive, const struct batch *batch)
{
	const struct block_request *first = batch->requests[0];
	bool is_discard = first->operation == 'D';
	struct block_piece pieces[TOGETHER];
	struct block_transfer transfer = { .lba = batch->lba,
					   .count =
					       is_discard ? first->ranges : batch->end - batch->lba,
					   .is_write = first->operation == 'W',
					   .is_forced = first->is_forced || first->operation == 'F',
					   .is_discard = is_discard,
					   .pieces = pieces,
					   .piece_count = batch->requests_count };
	const struct block_transfer *outer = drive->queue->transfer;
	uint64_t start = time_ns();

	for (unsigned i = 0; i < batch->requests_count; i++)
		pieces[i] =
		    (struct block_piece){ batch->requests[i]->buffer, batch->requests[i]->count };
	drive->queue->transfer = &transfer;
	int result = drive->ops->transfer(drive, &transfer);

	drive->queue->transfer = outer;
	record_transfer(batch, start, result);
	return result;
}

static int transfer_one(struct block_request *request)
{
	const struct batch batch = { { request }, 1, request->lba, request->lba + request->count };

	return transfer_batch(block_drive(request->device), &batch);
}

int block_serve_inside(struct block_request *request)
{
	request->submitted_ns = time_ns();
	return transfer_one(request);
}

/* Tells a snapshot what is about to change. */
static void tell_snapshot(struct block_device *drive, const struct batch *batch)
{
	const struct block_request *first = batch->requests[0];
	const struct block_range *range = first->buffer;

	if (first->operation == 'W')
		drive->before_write(drive, batch->lba, batch->end - batch->lba);
	for (unsigned i = 0; first->operation == 'D' && i < first->ranges; i++, range++)
		drive->before_write(drive, range->lba, range->sectors);
}

/* The next transfer, from its choice to its end: of the drive, or of its snapshot. */
static void serve_queue(struct block_queue *queue)
{
	struct batch batch;

	gather_batch(queue, &batch);
	queue->position = batch.end;
	struct block_device *drive = block_drive(batch.requests[0]->device);

	if (drive->before_write)
		tell_snapshot(drive, &batch);
	int result = transfer_batch(drive, &batch);
	bool is_repeated = result < 0 && batch.requests_count > 1;

	for (unsigned i = 0; i < batch.requests_count; i++)
		end_request(queue, batch.requests[i],
			    is_repeated ? transfer_one(batch.requests[i]) : result);
}

/* Serves the queue itself, or sleeps while another task does. Each end of a transfer wakes all: one
 * of them continues, if its own request was not among those that ended. */
int block_wait(struct block_request *request)
{
	struct block_queue *queue = block_drive(request->device)->queue;

	preempt_disable();
	while (!request->is_done) {
		if (queue->is_served) {
			bool enabled = interrupts_disable();

			wait_sleep_blocked(&queue->ended);
			interrupts_restore(enabled);
			continue;
		}
		queue->is_served = true;
		serve_queue(queue);
		queue->is_served = false;
		wait_wake(&queue->ended);
	}
	preempt_enable();
	return request->result;
}
