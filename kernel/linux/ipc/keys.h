/*
 * Common to System V's semaphores, messages and shared memory: keys and ids, permissions, and the
 * commands of semctl, msgctl and shmctl (ipc(5)).
 *
 *	struct ipc_kind		semaphore sets, message queues, or segments
 *	  struct ipc		one of them, found by its id, or (semget and its like) by its key
 *
 * All functions are called by system calls. Copies from and to a program sleep, and whatever has an
 * id may be removed meanwhile: so it is looked up after the last copy.
 */
#pragma once

#include "kernel/abi/shm.h"
#include "kernel/linux/call.h"
#include "kernel/linux/list_each.h"
#include "kernel/linux/time/user_time64.h"

/* What IPC_STAT gives and IPC_SET takes: each structure begins with the permission. */
union ipc_state {
	struct linux_ipc permission;
	struct linux_semaphores semaphores;
	struct linux_messages messages;
	struct linux_shm segment;
};

/* What has a key and an id: the first member of its kind's structure. */
struct ipc {
	struct list link;
	int32_t id;
	uint32_t size; /* semaphores of a set; bytes of a segment; 1 of a queue */
	union ipc_state state;
};

#define IPC_INFO_WORDS 10u /* of struct seminfo, the longest */

/* All of one kind. */
struct ipc_kind {
	struct list all;
	int32_t last_id;
	uint32_t count, most, largest; /* how many there are, and may be; the largest size of one */
	/* The command SEM_STAT, or its like; the next one is SEM_INFO, and then SEM_STAT_ANY. */
	uint32_t stat;
	/* Of the kind's member of union ipc_state, and where it has the time of the last change. */
	uint32_t state_size, changed_at;
	uint32_t limits[IPC_INFO_WORDS], limit_count; /* what IPC_INFO gives */
	/* Bytes of the structure, and of what it ends with for each unit of its size. */
	uint32_t bytes, unit_bytes;

	/* Completes a zeroed one, whose size is known: 0, or -ENOMEM. */
	int (*make)(struct ipc *ipc);
	/* IPC_RMID: ends all waits for it; calls ipc_remove when nothing needs it any more. */
	void (*remove)(struct ipc *ipc);
	/* Completes a copy of the state. NULL: nothing is missing. */
	void (*get_state)(const struct ipc *ipc, union ipc_state *state);
	/* What IPC_SET takes besides the permission. NULL: nothing. */
	void (*set_state)(struct ipc *ipc, const union ipc_state *wanted);
	/* SEM_INFO and its like: makes the limits what is in use, and returns how many words the
	 * structure has. */
	uint32_t (*get_use)(uint32_t *words);
};

/* The first fields of a kind of these structures without anything, whose state is this member of
 * union ipc_state. */
#define IPC_KIND(name, type, member)                                                               \
	.all = LIST_EMPTY((name).all), .last_id = -1, .bytes = sizeof(type),                       \
	.state_size = sizeof(((union ipc_state *)0)->member),                                      \
	.changed_at = offsetof(union ipc_state, member.changed)

/* The one with an id, or NULL. */
struct ipc *ipc_find(const struct ipc_kind *kind, int32_t id);

/* semget and its like: the id of the one with the key, or of a new one. -EEXIST, -ENOENT, -ENOSPC,
 * -ENOMEM; -EINVAL for a size of 0, or more than an existing one has. */
int ipc_get(struct ipc_kind *kind, int32_t key, uint32_t size, uint32_t flags);

/* The commands that semctl, msgctl and shmctl share; -EINVAL for others. */
int ipc_control(struct ipc_kind *kind, int32_t id, uint32_t command, uint32_t address);

/* Frees one: nobody finds it any more. */
void ipc_remove(struct ipc_kind *kind, struct ipc *ipc);

/* Seconds since 1970. */
uint64_t ipc_now(void);

/* It was made now, or changed as IPC_SET does. */
void ipc_note_change(const struct ipc_kind *kind, struct ipc *ipc);

/* The three kinds, and the calls that each has for itself: as the manual's pages of their names
 * say, but for the result, which may be a negated errno. All may sleep. */
extern struct ipc_kind ipc_sets, ipc_queues, ipc_segments;
int semaphore_operate(int32_t id, uint32_t address, uint32_t count, uint32_t time,
		      enum time_format format);
int semaphore_control(const struct trap_frame *frame);
int message_send(int32_t id, uint32_t address, uint32_t length, uint32_t flags);
int message_receive(const struct trap_frame *frame);
int segment_attach(int32_t id, uint32_t address, uint32_t flags, uint32_t result);
int segment_detach(uint32_t address);
int segment_control(int32_t id, uint32_t command, uint32_t address);

/* The current program ends: takes back what it did with SEM_UNDO. */
void semaphores_undo(void);
