/*
 * Requests that wait for a drive: each drive has a queue.
 *
 * A task may submit several requests and do other things; then it waits for each. block_read and
 * its like (drivers/disk/block.h) do both at once. Tasks only.
 */
#pragma once

#include "drivers/disk/device.h"
#include "drivers/disk/latency.h"
#include "kernel/lib/list.h"
#include "kernel/task/wait.h"

/* The caller fills in the first members, and keeps all of it until block_wait has returned. */
struct block_request {
	struct block_device *device; /* a drive, or a partition */
	uint64_t lba;		     /* on that device */
	unsigned count;	 /* 1 to BLOCK_TRANSFER_SECTORS; of a flush 0; of a discard all sectors */
	void *buffer;	 /* NULL of a flush; of a discard its ranges, as the drive has them, and */
	unsigned ranges; /* how many there are */
	char operation;	 /* 'R', 'W', 'F': a flush, 'D': a discard */
	bool is_forced;	 /* of a write: safe from a power cut when it ends */
	enum block_purpose purpose;

	/* the queue's own */
	struct list in_queue; /* `lba` is one of the drive's from then on */
	uint64_t submitted_ns;
	int result;
	bool is_done;
};

enum block_order {
	BLOCK_FIFO,   /* as they came */
	BLOCK_C_LOOK, /* upwards, and then again from the lowest sector on */
	BLOCK_ORDERS,
};

/* "fifo", "c-look". */
extern const char *const block_orders[BLOCK_ORDERS];

struct block_queue {
	struct list waiting; /* in the order in which they came */
	struct wait_queue ended;
	enum block_order order;
	bool is_served;			       /* a task works on it */
	const struct block_transfer *transfer; /* that the drive works on; NULL: on none */
	uint32_t pending;		       /* requests that have not ended */
	uint64_t position;		       /* the sector after those of the last transfer */
	uint64_t busy_ns, busy_since;
	struct latency latency;
};

/* A queue for a new drive; NULL without memory. */
struct block_queue *block_queue_create(void);

/* Changes the order to the one of this name; -EINVAL if there is none. */
int block_set_order(struct block_queue *queue, const char *name);

/* Puts a request into the queue of its drive. The range has been checked. Does not sleep. */
void block_submit(struct block_request *request);

/* Waits until the request has ended. Returns 0 or a negated errno. */
int block_wait(struct block_request *request);

/* Does a request at once, before all that waits: for the task that serves the drive's queue at this
 * moment. Returns 0 or a negated errno. */
int block_serve_inside(struct block_request *request);

/* For how long so far there was at least one request. */
uint64_t block_busy_ns(const struct block_queue *queue);
