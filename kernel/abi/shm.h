/* System V shared memory: Linux's numbers and structures for i386. */
#pragma once

#include "kernel/abi/ipc.h"

/* shmctl's commands, besides those that all have. */
#define SHM_LOCK     11
#define SHM_UNLOCK   12
#define SHM_STAT     13 /* by a number from 0 on, not by an id */
#define SHM_INFO     14
#define SHM_STAT_ANY 15

/* shmat's flags. */
#define SHM_RDONLY 010000u
#define SHM_RND	   020000u
#define SHM_REMAP  040000u
#define SHM_EXEC   0100000u

#define SHM_DEST  01000u      /* in a mode: it goes with its last attachment */
#define SHM_LIMIT 4096u	      /* segments at a time */
#define SHM_MOST  0xfeffffffu /* bytes, as Linux says */

/* shmctl's structure. */
struct linux_shm {
	struct linux_ipc permission;
	uint32_t size;
	uint64_t attached, detached, changed; /* seconds */
	int32_t creator_pid, last_pid;
	uint32_t attachments;
	uint32_t unused[2];
} __attribute__((packed));
