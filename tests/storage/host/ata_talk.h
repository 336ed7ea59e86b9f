/*
 * What the process with the ATA driver (ata_inside.c) and the machine around it (ata_kernel.c) say
 * to each other, over two pipes. Only one of the two runs at any time: the driver asks and waits
 * for RESULT, the machine calls and waits for END. Either may come before the other's answer:
 *
 *	driver				machine
 *	IN 0x1f7			time passes, the drive interrupts
 *					CALL_INTERRUPT 14
 *	(its handler) IN 0x1f7		RESULT 0x58
 *	END				RESULT 0x58
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

#define ARENA_AT	  0x04000000u /* physical: memory that DMA reaches */
#define ARENA_BYTES	  (1u << 20)
#define ARENA_FOR_SECTORS (768u << 10) /* what is above is for page_alloc */
#define ELSEWHERE_SECTORS 16u	       /* memory that DMA does not reach */
#define BORDER_AT	  0xf7fffe00u  /* a sector before the direct map ends, and more behind */
#define BORDER_BYTES	  8192u	       /* of the pages there */
#define LAST_BYTES	  512u	       /* of them are in the direct map */
#define KERNEL_AT	  0xc0000000u  /* where the direct map begins */
#define TALK_MOST	  (1u << 20)   /* bytes after a message */

enum talk {
	/* The driver. A line with = has a value. */
	ASK_IN,	     /* port, width << 16 | how often = the last one; all of them follow */
	ASK_OUT,     /* the same; what is written follows; value: is_answered, at COMMAND */
	ASK_CLI,     /* */
	ASK_STI,     /* */
	ASK_TIME,    /* = ns */
	ASK_MSLEEP,  /* value: ms */
	ASK_SAY,     /* a text follows */
	ASK_HANDLER, /* IRQ */
	ASK_ALARM,   /* timer; value: deadline */
	ASK_CANCEL,  /* timer */
	ASK_WAKE,    /* queue */
	ASK_SLEEP,   /* queue */
	ASK_LOCK,    /* mutex = whether it is taken; else ask again when the task goes on */
	ASK_UNLOCK,  /* mutex */
	ASK_DRIVE,   /* number: it is a block device */
	ASK_CRASH,   /* */
	END,	     /* value: the call's result */

	/* The machine. */
	RESULT,
	CALL_INTERRUPT, /* IRQ */
	CALL_ALARM,	/* timer */
	CALL_OTHER,	/* another task sets the mode of the text that follows */
	CALL_GO_ON,	/* that task, which has waited for a mutex */
	CALL_START,	/* in the mode of the text that follows; 1: there is no bus master */
	CALL_MODE,	/* in the mode of the text that follows */
	CALL_TRANSFER,	/* drive, is_write | is_forced << 1; value: lba; pieces follow */
	CALL_FLUSH,	/* drive */
	GIVE,		/* memory, offset; value: how many bytes; they come after END */
	TAKE,		/* memory, offset; bytes follow */
	CALL_DISCARD,	/* drive, count; value: lba */
	CALL_QUESTION,	/* the next command of the script begins */
};

enum memory { ARENA, ELSEWHERE, OWN }; /* OWN: of the driver; its offset is the address */

struct message {
	uint32_t what, first, second, bytes;
	uint64_t value;
};

struct talk_piece {
	uint32_t memory, offset, sectors;
};

/* Returns false if the other one has ended. */
static inline bool talk_send(int pipe, const struct message *message, const void *bytes)
{
	struct iovec parts[2] = { { (void *)message, sizeof(*message) },
				  { (void *)bytes, message->bytes } };
	size_t left = sizeof(*message) + message->bytes;

	for (unsigned i = 0; left > 0;) {
		ssize_t count = writev(pipe, parts + i, 2 - i);

		if (count <= 0)
			return false;
		left -= (size_t)count;
		for (; i < 2 && (size_t)count >= parts[i].iov_len; i++)
			count -= (ssize_t)parts[i].iov_len;
		if (i < 2) {
			parts[i].iov_base = (char *)parts[i].iov_base + count;
			parts[i].iov_len -= (size_t)count;
		}
	}
	return true;
}

/* The same. */
static inline bool talk_receive(int pipe, void *bytes, size_t count)
{
	for (size_t done = 0; done < count;) {
		ssize_t here = read(pipe, (char *)bytes + done, count - done);

		if (here <= 0)
			return false;
		done += (size_t)here;
	}
	return true;
}
