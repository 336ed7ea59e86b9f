/* System V shared memory: Linux's numbers and structures for i386. */
#pragma once

#include <stdint.h>

/* ipc's first argument. */
#define IPC_SHMAT  21
#define IPC_SHMDT  22
#define IPC_SHMGET 23
#define IPC_SHMCTL 24

#define IPC_PRIVATE 0
#define IPC_CREAT   01000u
#define IPC_EXCL    02000u

/* shmctl's commands, and a flag of theirs that means nothing today. */
#define IPC_RMID   0
#define IPC_SET	   1
#define IPC_STAT   2
#define SHM_LOCK   11
#define SHM_UNLOCK 12
#define IPC_64	   0x100u

/* shmat's flags. */
#define SHM_RDONLY 010000u
#define SHM_RND	   020000u
#define SHM_REMAP  040000u
#define SHM_EXEC   0100000u

#define SHM_DEST  01000u /* in a mode: it goes with its last attachment */
#define SHM_MODES 0777u
#define SHM_LIMIT 4096 /* segments at a time */

/* shmctl's structure. */
struct linux_shm {
	int32_t key;
	uint32_t owner, group, creator, creator_group, mode;
	uint16_t sequence, padding;
	uint32_t unused_0[2];
	uint32_t size;
	uint64_t attached, detached, changed; /* seconds */
	int32_t creator_pid, last_pid;
	uint32_t attachments;
	uint32_t unused_1[2];
} __attribute__((packed));
