/* Keys, ids and common commands of System V's semaphores, messages and shared memory: a list of
 * each kind (sysvipc(7)). Ids are given in order, so that one that was removed is not found again
 * for a long time. There is one user, root, so permissions are kept and shown, but refuse nothing.
 */
#include "kernel/linux/ipc/keys.h"

#include "fs/vfs/wall_time.h"
#include "kernel/lib/string.h"
#include "mm/kmalloc.h"

#define SECOND 1000000000u

/* As semid_ds and its like show times. */
uint64_t ipc_now(void)
{
	return divide64(time_wall_ns(), SECOND, NULL);
}

/* semid_ds, msqid_ds and shmid_ds have the time at different offsets. */
void ipc_note_change(const struct ipc_kind *kind, struct ipc *ipc)
{
	*(uint64_t *)((char *)&ipc->state + kind->changed_at) = ipc_now();
}

/* Ids come from programs and may be any number; the list is short. */
struct ipc *ipc_find(const struct ipc_kind *kind, int32_t id)
{
	list_for_each(struct ipc, ipc, &kind->all, link)
		if (ipc->id == id)
			return ipc;
	return NULL;
}

/* ---- semget, msgget, shmget ---- */

/* Keys are numbers that programs agree on (ftok(3)). Anything with IPC_PRIVATE for a key has none.
 */
static struct ipc *ipc_find_key(const struct ipc_kind *kind, int32_t key)
{
	list_for_each(struct ipc, ipc, &kind->all, link)
		if (key != IPC_PRIVATE && ipc->state.permission.key == key)
			return ipc;
	return NULL;
}

/* Returns the new one's id, or an error. The id after the last one is taken next, so that a program
 * that still has the id of one that was removed is told so (EIDRM, EINVAL). */
static int ipc_add(struct ipc_kind *kind, int32_t key, uint32_t size, uint32_t mode)
{
	if (size == 0 || size > kind->largest)
		return -EINVAL;
	if (kind->count == kind->most)
		return -ENOSPC;
	uint32_t bytes = kind->bytes + size * kind->unit_bytes;
	struct ipc *ipc = kmalloc(bytes);

	if (!ipc)
		return -ENOMEM;
	memset(ipc, 0, bytes);
	ipc->size = size;
	if (kind->make(ipc) != 0) {
		kfree(ipc);
		return -ENOMEM;
	}
	do
		kind->last_id = (kind->last_id + 1) & INT32_MAX;
	while (ipc_find(kind, kind->last_id));
	ipc->id = kind->last_id;
	ipc->state.permission = (struct linux_ipc){ .key = key, .mode = mode & IPC_MODES };
	ipc_note_change(kind, ipc);
	list_append(&kind->all, &ipc->link);
	kind->count++;
	return ipc->id;
}

/* The flags are those of open: IPC_CREAT makes one if there is none, with IPC_EXCL it must be new.
 * Of one that is there a smaller size may be asked for, 0 as well. Nothing sleeps between the
 * search and the addition: a key is given once. */
int ipc_get(struct ipc_kind *kind, int32_t key, uint32_t size, uint32_t flags)
{
	const struct ipc *found = ipc_find_key(kind, key);

	if (!found)
		return key == IPC_PRIVATE || flags & IPC_CREAT ? ipc_add(kind, key, size, flags)
							       : -ENOENT;
	if (flags & IPC_CREAT && flags & IPC_EXCL)
		return -EEXIST;
	return size <= found->size ? found->id : -EINVAL;
}

/* Those that have its id get -EIDRM or -EINVAL from now on. */
void ipc_remove(struct ipc_kind *kind, struct ipc *ipc)
{
	list_remove(&ipc->link);
	kind->count--;
	kfree(ipc);
}

/* ---- semctl, msgctl, shmctl ---- */

/* IPC_STAT and SEM_STAT, for which nobody lacks the permission. The copy may sleep, and the one
 * with the state may be gone then. Returns 0 or -EFAULT. */
static int ipc_give_state(const struct ipc_kind *kind, const struct ipc *ipc, uint32_t address)
{
	union ipc_state state = ipc->state;

	if (kind->get_state)
		kind->get_state(ipc, &state);
	return give(address, &state, kind->state_size);
}

/* IPC_STAT by a number from 0 on, in place of an id. Returns the id: it may be gone after the copy,
 * which may sleep. */
static int ipc_give_state_at(const struct ipc_kind *kind, uint32_t index, uint32_t address)
{
	list_for_each(struct ipc, ipc, &kind->all, link)
		if (index-- == 0) {
			int32_t id = ipc->id;

			return ipc_give_state(kind, ipc, address) ?: id;
		}
	return -EINVAL;
}

/* Bits of a mode that are not permissions say what has become of it, and stay. */
static int ipc_set_state(const struct ipc_kind *kind, int32_t id, uint32_t address)
{
	union ipc_state wanted;
	struct linux_ipc *permission;

	if (copy_from_user(&wanted, address, kind->state_size) != 0)
		return -EFAULT;
	struct ipc *ipc = ipc_find(kind, id);

	if (!ipc)
		return -EINVAL;
	permission = &ipc->state.permission;
	permission->owner = wanted.permission.owner;
	permission->group = wanted.permission.group;
	permission->mode &= ~IPC_MODES;
	permission->mode |= wanted.permission.mode & IPC_MODES;
	ipc_note_change(kind, ipc);
	if (kind->set_state)
		kind->set_state(ipc, &wanted);
	return 0;
}

/* IPC_INFO, and (of_use) SEM_INFO and its like, whose structures have only words. A program that
 * goes through all of a kind begins with them. Returns the highest index that ipc_give_state_at
 * takes, or 0. */
static int ipc_give_info(const struct ipc_kind *kind, uint32_t address, bool of_use)
{
	uint32_t words[IPC_INFO_WORDS], count = kind->limit_count;
	int highest = kind->count > 0 ? kind->count - 1 : 0;

	memcpy(words, kind->limits, sizeof(words));
	if (of_use)
		count = kind->get_use(words);

	return give(address, words, count * sizeof(words[0])) ?: highest;
}

/* Those that need no id come first: what is in its place may be anything. IPC_SET looks its id up
 * after the copy; the others do not sleep before they are done. semctl(2), msgctl(2), shmctl(2). */
int ipc_control(struct ipc_kind *kind, int32_t id, uint32_t command, uint32_t address)
{
	bool is_info = command == kind->stat + 1;

	if (command == IPC_SET)
		return ipc_set_state(kind, id, address);
	if (command == IPC_INFO || is_info)
		return ipc_give_info(kind, address, is_info);
	if (command == kind->stat || command == kind->stat + 2)
		return ipc_give_state_at(kind, id, address);
	struct ipc *ipc = ipc_find(kind, id);

	if (!ipc || (command != IPC_STAT && command != IPC_RMID))
		return -EINVAL;
	if (command == IPC_STAT)
		return ipc_give_state(kind, ipc, address);
	kind->remove(ipc);
	return 0;
}
