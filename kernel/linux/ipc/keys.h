/* Keys and ids of System V's semaphores, messages and shared memory. */
#pragma once

#include "kernel/abi/ipc.h"
#include "kernel/lib/list.h"
#include "kernel/syscall/syscall.h"

/* Something that has a key and an id: the first member of its structure. */
struct ipc {
	struct list link;
	int32_t id;
	struct linux_ipc permission;
};

/* All of one kind. */
struct ipc_kind {
	struct list all;
	int32_t last_id;
	uint32_t count, most;
	/* Makes one, of a size that only its kind knows. NULL without memory. */
	struct ipc *(*make)(uint32_t size);
};

#define IPC_KIND(name, most, make) { LIST_EMPTY((name).all), -1, 0, most, make }

/* The one with an id, or NULL. */
struct ipc *ipc_find(const struct ipc_kind *kind, int32_t id);

/* semget and its like: the one with the key, or a new one. -EEXIST, -ENOENT, -ENOSPC, -ENOMEM. */
int ipc_get(struct ipc_kind *kind, int32_t key, uint32_t size, uint32_t flags, struct ipc **found);

/* Number `index` of a kind, or NULL. */
struct ipc *ipc_at(const struct ipc_kind *kind, uint32_t index);

/* IPC_INFO and its like: gives words of numbers, and returns the highest index, or 0. */
int ipc_give_info(const struct ipc_kind *kind, uint32_t address, const uint32_t *words,
		  uint32_t size);

/* Gives a program the state of one: 0 or -EFAULT. */
typedef int ipc_give_state(const struct ipc *ipc, uint32_t address);

/* IPC_STAT by a number from 0 on (SEM_STAT and its like): returns the id, or -EINVAL. */
int ipc_give_state_at(const struct ipc_kind *kind, uint32_t index, uint32_t address,
		      ipc_give_state *give_state);

/* Nobody finds it any more. */
void ipc_remove(struct ipc_kind *kind, struct ipc *ipc);

/* What IPC_SET takes of the program's structure. */
void ipc_set(struct ipc *ipc, struct linux_ipc wanted);

/* Seconds since 1970, and the pid of the current program. */
uint64_t ipc_now(void);
int32_t ipc_caller(void);

/* Calls by their number in EBX; -ENOSYS for others. */
int semaphore_call(const struct trap_frame *frame);
int message_call(const struct trap_frame *frame);

/* The current program ends: takes back what it did with SEM_UNDO. */
void semaphores_undo(void);
