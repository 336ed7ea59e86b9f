/* Pipes: buffers of up to 64 KiB from one program to another. */
#pragma once

#include "fs/file.h"

#define PIPE_ORDER    4u
#define PIPE_CAPACITY (PAGE_SIZE << PIPE_ORDER)

struct pipe {
	uint8_t *ring;			     /* NULL until something is written */
	uint32_t taken, end;		     /* where data begins, and where its last page ends */
	uint32_t written, read;		     /* bytes since it was made */
	uint16_t ends[1 << PIPE_ORDER];	     /* bytes that were written to each page */
	uint32_t readers, writers;	     /* open files */
	uint32_t reader_opens, writer_opens; /* by name, ever: see fs/linux/pipes.c */
	struct wait_queue data, room;
	struct claim reading, writing; /* whose copy is under way */
};

static inline uint32_t pipe_filled(const struct pipe *pipe)
{
	return pipe->written - pipe->read;
}

/* Can a write of this length begin? Of length 0: is a page free? */
bool pipe_has_room(struct pipe *pipe, uint32_t length);

/* Makes a pipe without a name: a file to read from and one to write to, each with a reference.
 * flags: O_NONBLOCK or 0. -ENFILE without memory. */
int pipe_create(uint32_t flags, struct file **reader, struct file **writer);

/* All pipes: a new one is empty, and no file has it open. */
extern struct pool pipe_pool;

/* A file that is open for one side of the pipe, or for both, begins; its release ends it. */
void pipe_enter(struct pipe *pipe, struct file *file);

/* The operations of an open end. */
extern const struct file_ops pipe_ops;

/* Two of them, which Linux's programs need. */
uint32_t pipe_poll(struct file *file, struct poll_table *table) OPTIONAL;
int pipe_control(struct file *file, uint32_t command, uint32_t argument) OPTIONAL;

/* Called for each pipe that is made, for a module that gives inodes to pipes (false: without
 * memory), and when the last file of one has gone. */
bool pipe_made(struct file *reader, struct file *writer) OPTIONAL;
void pipe_freed(const struct file *file) OPTIONAL;
