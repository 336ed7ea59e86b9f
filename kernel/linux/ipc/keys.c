/* Keys and ids of System V's semaphores, messages and shared memory: a list of each kind. Ids are
 * given in order, so that one that was removed is not found again for a long time. */
#include "kernel/linux/ipc/keys.h"

#include "fs/vfs/wall_time.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/process/process.h"
#include "mm/user_copy.h"

#define SECOND 1000000000u

uint64_t ipc_now(void)
{
	return divide64(time_wall_ns(), SECOND, NULL);
}

int32_t ipc_caller(void)
{
	return current->process->leader->task->pid;
}

struct ipc *ipc_find(const struct ipc_kind *kind, int32_t id)
{
	for (struct list *link = kind->all.next; link != &kind->all; link = link->next)
		if (list_entry(link, struct ipc, link)->id == id)
			return list_entry(link, struct ipc, link);
	return NULL;
}

struct ipc *ipc_at(const struct ipc_kind *kind, uint32_t index)
{
	struct list *link = kind->all.next;

	while (link != &kind->all && index-- > 0)
		link = link->next;
	return link != &kind->all ? list_entry(link, struct ipc, link) : NULL;
}

int ipc_give_info(const struct ipc_kind *kind, uint32_t address, const uint32_t *words,
		  uint32_t size)
{
	int highest = kind->count > 0 ? kind->count - 1 : 0;

	return give(address, words, size) != 0 ? -EFAULT : highest;
}

/* It may be gone after the copy, which may sleep. */
int ipc_give_state_at(const struct ipc_kind *kind, uint32_t index, uint32_t address,
		      ipc_give_state *give_state)
{
	const struct ipc *found = ipc_at(kind, index);
	int32_t id = found ? found->id : -EINVAL;
	int error = found ? give_state(found, address) : 0;

	return error ? error : id;
}

static struct ipc *find_key(const struct ipc_kind *kind, int32_t key)
{
	for (struct list *link = kind->all.next; link != &kind->all; link = link->next)
		if (list_entry(link, struct ipc, link)->permission.key == key)
			return list_entry(link, struct ipc, link);
	return NULL;
}

static int add(struct ipc_kind *kind, int32_t key, uint32_t size, uint32_t mode, struct ipc **made)
{
	struct ipc *ipc = size > 0 && kind->count < kind->most ? kind->make(size) : NULL;

	if (size == 0)
		return -EINVAL;
	if (!ipc)
		return kind->count < kind->most ? -ENOMEM : -ENOSPC;
	do
		kind->last_id = (kind->last_id + 1) & INT32_MAX;
	while (ipc_find(kind, kind->last_id));
	ipc->id = kind->last_id;
	ipc->permission = (struct linux_ipc){ .key = key, .mode = mode & IPC_MODES };
	list_append(&kind->all, &ipc->link);
	kind->count++;
	*made = ipc;
	return 0;
}

int ipc_get(struct ipc_kind *kind, int32_t key, uint32_t size, uint32_t flags, struct ipc **found)
{
	*found = key == IPC_PRIVATE ? NULL : find_key(kind, key);
	if (*found)
		return (flags & IPC_CREAT) && (flags & IPC_EXCL) ? -EEXIST : 0;
	return key == IPC_PRIVATE || (flags & IPC_CREAT) ? add(kind, key, size, flags, found)
							 : -ENOENT;
}

void ipc_remove(struct ipc_kind *kind, struct ipc *ipc)
{
	list_remove(&ipc->link);
	kind->count--;
}

void ipc_set(struct ipc *ipc, struct linux_ipc wanted)
{
	ipc->permission.owner = wanted.owner;
	ipc->permission.group = wanted.group;
	ipc->permission.mode = wanted.mode & IPC_MODES;
}
