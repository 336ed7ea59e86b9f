/*
 * System V shared memory (shmget(2), shmat(2)), and the keys of futexes in shared memory.
 *
 * A segment is a file in memory without a name, and areas show it. They show it by an object of the
 * segment's own, so that the segment learns when the last of them goes:
 *
 *	area --> segment.object --> file.object --> pages
 *
 * The list has one reference until the segment is removed (IPC_RMID), each area has one. As on
 * Linux, a segment that is removed keeps its id as long as it is attached.
 */
#include <stddef.h>

#include "fs/files.h"
#include "fs/memory/ramfs_memory.h"
#include "fs/path_page.h"
#include "fs/ram/ramfs_data.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/mman.h"
#include "kernel/abi/shm.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/futex/futex.h"
#include "kernel/linux/ipc/keys.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/process.h"
#include "kernel/report/printk.h"
#include "kernel/syscall/syscall.h"
#include "mm/area.h"
#include "mm/fault.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"
#include "mm/space_layout.h"
#include "mm/space_map.h"
#include "mm/user_copy.h"

struct segment {
	struct memory_object object; /* first: the two have one address */
	struct memory_object *file;
	uint32_t references;
	struct ipc ipc;
	struct linux_shm state; /* without the permission and the number of attachments */
};

static struct ipc *make(uint32_t size);

static struct pool pool = POOL_INITIALIZER(struct segment);
static struct ipc_kind segments = IPC_KIND(segments, SHM_LIMIT, make);

/* ---- the object ---- */

static struct memory_object *file_of(struct memory_object *object)
{
	return ((struct segment *)object)->file;
}

static int segment_page(struct memory_object *object, uint32_t index, bool write,
			struct page **page)
{
	return file_of(object)->ops->page(file_of(object), index, write, page);
}

static void *const *segment_peek(struct memory_object *object, uint32_t index, uint32_t *count)
{
	return file_of(object)->ops->peek(file_of(object), index, count);
}

static void segment_hold(struct memory_object *object)
{
	((struct segment *)object)->references++;
}

static void segment_release(struct memory_object *object)
{
	struct segment *segment = (struct segment *)object;

	if (--segment->references > 0)
		return;
	ipc_remove(&segments, &segment->ipc);
	segment->file->ops->release(segment->file);
	pool_free(&pool, segment);
}

static void segment_describe(const struct memory_object *object, char *text, uint32_t size)
{
	snprintk(text, size, "/SYSV%08x (deleted)",
		 ((const struct segment *)object)->ipc.permission.key);
}

static const struct memory_object_ops segment_ops = { .page = segment_page,
						      .peek = segment_peek,
						      .hold = segment_hold,
						      .release = segment_release,
						      .describe = segment_describe };

/* ---- segments ---- */

static struct segment *find(int32_t id)
{
	struct ipc *found = ipc_find(&segments, id);

	return found ? list_entry(found, struct segment, ipc) : NULL;
}

static struct ipc *make(uint32_t size)
{
	struct segment *segment = pool_alloc(&pool);

	if (!segment)
		return NULL;
	segment->file = ramfs_shared_memory(size);
	if (!segment->file) {
		pool_free(&pool, segment);
		return NULL;
	}
	object_initialize(&segment->object, &segment_ops);
	segment->references = 1;
	segment->state =
	    (struct linux_shm){ .size = size, .changed = ipc_now(), .creator_pid = ipc_caller() };
	return &segment->ipc;
}

static int get(int32_t key, uint32_t size, uint32_t flags)
{
	struct ipc *found;
	int error = ipc_get(&segments, key, (int32_t)size < 0 ? 0 : size, flags, &found);

	if (error)
		return error;
	return size > list_entry(found, struct segment, ipc)->state.size ? -EINVAL : found->id;
}

/* ---- attaching ---- */

/* Where it goes: where the program says, or where there is room. */
static int place(uint32_t address, uint32_t length, uint32_t flags)
{
	if (!address && (flags & SHM_REMAP))
		return -EINVAL;
	if (!address) {
		address = space_gap(current->space, length);
		return address ? (int32_t)address : -ENOMEM;
	}
	if (address % PAGE_SIZE && !(flags & SHM_RND))
		return -EINVAL;
	address &= -PAGE_SIZE;
	if (!space_can_hold(address, length))
		return -EINVAL;
	if (!(flags & SHM_REMAP) && !space_is_free(current->space, address, length))
		return -EINVAL;
	return address;
}

static int attach(int32_t id, uint32_t address, uint32_t flags, uint32_t result)
{
	struct segment *segment = find(id);

	if (!segment)
		return -EINVAL;
	uint32_t length = whole_pages(segment->state.size);
	struct area form = { .flags = AREA_SHARED | SPACE_READ, .object = &segment->object };
	int at = place(address, length, flags);

	form.flags |= flags & SHM_RDONLY ? AREA_LOCKED : SPACE_WRITE;
	form.flags |= flags & SHM_EXEC ? SPACE_EXECUTE : 0;
	if (is_error(at))
		return at;
	segment_hold(&segment->object); /* what it is put over may sleep, and this be removed */
	int error = area_put(current->space, at, at + length, &form);

	if (!error) {
		segment->state.attached = ipc_now();
		segment->state.last_pid = ipc_caller();
	}
	segment_release(&segment->object);
	return error ? error : give(result, &at, sizeof(at));
}

/* All parts of it that are still where they were. */
static int detach(uint32_t address)
{
	const struct area *area = area_find(current->space, address);

	if (address % PAGE_SIZE || !area || !area->object || area->object->ops != &segment_ops ||
	    area_start(area) != address || area->index != 0)
		return -EINVAL;
	struct segment *segment = (struct segment *)area->object;
	uint32_t end = address + whole_pages(segment->state.size);

	segment->state.detached = ipc_now();
	segment->state.last_pid = ipc_caller();
	segment_hold(&segment->object);
	for (uint32_t at = address;
	     (area = area_from(current->space, at)) && area_start(area) < end;) {
		at = area->end;
		if (area->object == &segment->object &&
		    area_start(area) - address == area->index << PAGE_SHIFT)
			area_cut(current->space, area_start(area), at);
	}
	segment_release(&segment->object);
	return 0;
}

/* ---- what is known of them ---- */

static int give_state(const struct ipc *ipc, uint32_t address)
{
	const struct segment *segment = list_entry(ipc, struct segment, ipc);
	struct linux_shm state = segment->state;

	state.permission = ipc->permission;
	for (const struct list *link = segment->object.areas.next; link != &segment->object.areas;
	     link = link->next)
		state.attachments++;
	return give(address, &state, sizeof(state));
}

/* Linux's struct shminfo64. */
static int give_limits(uint32_t address)
{
	const uint32_t words[9] = { SHM_MOST, 1, SHM_LIMIT, SHM_LIMIT, SHM_MOST };

	return ipc_give_info(&segments, address, words, sizeof(words));
}

/* Its struct shm_info; pages that nobody has touched count, too. */
static int give_use(uint32_t address)
{
	struct ipc *each;
	uint32_t words[6] = { segments.count };

	for (uint32_t i = 0; (each = ipc_at(&segments, i)); i++)
		words[1] += whole_pages(list_entry(each, struct segment, ipc)->state.size);
	words[1] >>= PAGE_SHIFT;
	words[2] = words[1];
	return ipc_give_info(&segments, address, words, sizeof(words));
}

/* Searched after the copy, which may sleep: another task may remove the segment meanwhile. */
static int set_state(int32_t id, uint32_t address)
{
	struct linux_shm wanted;

	if (copy_from_user(&wanted, address, sizeof(wanted)) != 0)
		return -EFAULT;
	struct segment *segment = find(id);

	if (!segment)
		return -EINVAL;
	uint32_t kept = segment->ipc.permission.mode & SHM_DEST;

	ipc_set(&segment->ipc, wanted.permission);
	segment->ipc.permission.mode |= kept;
	segment->state.changed = ipc_now();
	return 0;
}

static int control(int32_t id, uint32_t command, uint32_t address)
{
	struct segment *segment = find(id);

	switch (command & ~IPC_64) {
	case IPC_SET:
		return set_state(id, address);
	case IPC_INFO:
		return give_limits(address);
	case SHM_INFO:
		return give_use(address);
	case SHM_STAT:
	case SHM_STAT_ANY:
		return ipc_give_state_at(&segments, id, address, give_state);
	}
	if (!segment)
		return -EINVAL;
	switch (command & ~IPC_64) {
	case IPC_STAT:
		return give_state(&segment->ipc, address);
	case SHM_LOCK:
	case SHM_UNLOCK:
		return 0;
	case IPC_RMID:
		if (!(segment->ipc.permission.mode & SHM_DEST)) {
			segment->ipc.permission.mode |= SHM_DEST;
			segment->ipc.permission.key = IPC_PRIVATE;
			segment_release(&segment->object);
		}
		return 0;
	}
	return -EINVAL;
}

/* One call for all of System V's, with a number of its own; the upper half is a version. */
static int sys_ipc(struct trap_frame *frame)
{
	switch (frame->ebx) {
	case IPC_SHMAT:
		return attach(frame->ecx, frame->edi, frame->edx, frame->esi);
	case IPC_SHMDT:
		return detach(frame->edi);
	case IPC_SHMGET:
		return get(frame->ecx, frame->edx, frame->esi);
	case IPC_SHMCTL:
		return control(frame->ecx, frame->edx, frame->edi);
	}
	int result = semaphore_call(frame);

	return result == -ENOSYS ? message_call(frame) : result;
}

/* ---- files without a name ---- */

static int create_file(uint32_t name, uint32_t flags)
{
	char *text;
	struct file *file;
	int error =
	    flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING) ? -EINVAL : path_from_user(name, &text);

	if (error)
		return error;
	bool is_long = strlen(text) > MFD_NAME_MAX;

	path_page_free(text);
	struct ramfs_inode *made = is_long ? NULL : ramfs_make_inode(S_IFREG | 0777, 0);

	if (!made)
		return is_long ? -EINVAL : -ENOMEM;
	made->inode.links = 0;
	error = vfs_open_inode(&made->inode, O_RDWR | O_LARGEFILE, &file);
	inode_put(&made->inode);
	return error ? error : descriptor_add(file, flags & MFD_CLOEXEC ? O_CLOEXEC : 0);
}

CALL(sys_memfd_create, create_file(frame->ebx, frame->ecx))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 117, "ipc", "ddxxxx", sys_ipc },
	{ 356, "memfd_create", "sx", sys_memfd_create },
};

/* ---- futexes ---- */

/* Of memory that is not shared, each space has its own. */
struct futex_key futex_shared_key(uint32_t address)
{
	const struct area *area = area_find(current->space, address);

	if (!area || !area->object || !(area->flags & AREA_SHARED))
		return (struct futex_key){ current->space, address, NULL };
	return (struct futex_key){
		.memory = area->object,
		.offset = (uint64_t)area_index(area, address) << PAGE_SHIFT | address % PAGE_SIZE,
		.object = area->object,
	};
}

int futex_bring(uint32_t address)
{
	return space_fault(current->space, address, true, true);
}
