/* System V's semaphores and messages, and what they have in common with its shared memory: Linux's
 * numbers and structures for i386. */
#pragma once

#include <stdint.h>

/* ipc's first argument. */
#define IPC_SEMOP      1
#define IPC_SEMGET     2
#define IPC_SEMCTL     3
#define IPC_SEMTIMEDOP 4
#define IPC_MSGSND     11
#define IPC_MSGRCV     12
#define IPC_MSGGET     13
#define IPC_MSGCTL     14
#define IPC_SHMAT      21
#define IPC_SHMDT      22
#define IPC_SHMGET     23
#define IPC_SHMCTL     24

#define IPC_PRIVATE 0
#define IPC_CREAT   01000u
#define IPC_EXCL    02000u
#define IPC_NOWAIT  04000u
#define IPC_MODES   0777u

/* Commands of shmctl, semctl and msgctl, and a flag of theirs that means nothing today. */
#define IPC_RMID 0
#define IPC_SET	 1
#define IPC_STAT 2
#define IPC_INFO 3
#define IPC_64	 0x100u

#define ENOMSG 42
#define EIDRM  43

struct linux_ipc {
	int32_t key;
	uint32_t owner, group, creator, creator_group, mode;
	uint16_t sequence, padding;
	uint32_t unused[2];
};

/* ---- semaphores ---- */

#define GETPID	11
#define GETVAL	12
#define GETALL	13
#define GETNCNT 14
#define GETZCNT 15
#define SETVAL	16
#define SETALL	17

#define SEM_STAT     18 /* by a number from 0 on, not by an id */
#define SEM_INFO     19
#define SEM_STAT_ANY 20

#define SEM_UNDO       0x1000
#define SEM_VALUE_MAX  32767
#define SEM_SETS       32000u
#define SEM_COUNT      32000u /* of a set */
#define SEM_OPERATIONS 500u   /* of a call */
#define SEM_ALL	       (SEM_SETS * SEM_COUNT)
#define SEM_UNDO_SIZE  20u /* what Linux says of a structure of its own */

struct linux_semaphores {
	struct linux_ipc permission;
	uint64_t operated, changed; /* seconds */
	uint32_t count, unused[2];
} __attribute__((packed));

struct linux_semaphore_operation {
	uint16_t number;
	int16_t change, flags;
};

/* ---- messages ---- */

#define MSG_STAT     11
#define MSG_INFO     12
#define MSG_STAT_ANY 13

#define MSG_NOERROR 010000u
#define MSG_EXCEPT  020000u

#define MSG_QUEUES   32000u
#define MSG_LONGEST  8192u
#define MSG_SEGMENT  16u    /* what Linux says */
#define MSG_CAPACITY 16384u /* of a queue, in bytes */

struct linux_messages {
	struct linux_ipc permission;
	uint64_t sent, received, changed; /* seconds */
	uint32_t bytes, count, capacity;
	int32_t sender, receiver;
	uint32_t unused[2];
} __attribute__((packed));
