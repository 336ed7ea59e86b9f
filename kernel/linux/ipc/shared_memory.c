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

#include "fs/memory/ramfs_memory.h"
#include "fs/ram/ramfs_data.h"
#include "fs/vfs/vfs.h"
#include "kernel/linux/futex/futex.h"
#include "kernel/linux/ipc/keys.h"
#include "kernel/linux/files/calls.h"
#include "kernel/linux/memory/mapping.h"
#include "kernel/report/printk.h"
#include "mm/area.h"
#include "mm/fault.h"
#include "mm/space_layout.h"

#define SHMINFO_WORDS  9u /* of struct shminfo64 */
#define SHM_INFO_WORDS 6u /* of struct shm_info */

/* A segment: ipc.size is how many bytes it has. */
struct segment {
	struct ipc ipc; /* its state lacks the number of attachments */
	struct memory_object object, *file;
	uint32_t references;
};

/* ---- the object ---- */

/* The object that areas show is in the middle of the segment. */
static struct segment *segment_of(const struct memory_object *object)
{
	return list_entry(object, struct segment, object);
}

static struct memory_object *segment_file(const struct memory_object *object)
{
	return segment_of(object)->file;
}

/* Pages are the file's. Both as struct memory_object_ops says. */
static int segment_page(struct memory_object *object, uint32_t index, bool write,
			struct page **page)
{
	return segment_file(object)->ops->page(segment_file(object), index, write, page);
}

static void *const *segment_peek(struct memory_object *object, uint32_t index, uint32_t *count)
{
	return segment_file(object)->ops->peek(segment_file(object), index, count);
}

/* By each area, and by calls that sleep. */
static void segment_hold(struct memory_object *object)
{
	segment_of(object)->references++;
}

/* The last reference: nobody attaches it, and it was removed. */
static void segment_release(struct memory_object *object)
{
	struct segment *segment = segment_of(object);
	struct memory_object *file = segment->file;

	if (--segment->references > 0)
		return;
	ipc_remove(&ipc_segments, &segment->ipc);
	file->ops->release(file);
}

/* As Linux shows it in /proc/PID/maps. */
static void segment_describe(const struct memory_object *object, char *text, uint32_t size)
{
	snprintk(text, size, "/SYSV%08x (deleted)", segment_of(object)->ipc.state.permission.key);
}

static const struct memory_object_ops segment_ops = { .page = segment_page,
						      .peek = segment_peek,
						      .hold = segment_hold,
						      .release = segment_release,
						      .describe = segment_describe };

/* ---- segments ---- */

/* Its pages are made when they are touched. */
static int segment_make(struct ipc *ipc)
{
	struct segment *segment = (struct segment *)ipc;

	segment->file = ramfs_shared_memory(ipc->size);
	object_initialize(&segment->object, &segment_ops);
	segment->references = 1;
	ipc->state.segment.size = ipc->size;
	ipc->state.segment.creator_pid = calling_pid();
	return segment->file ? 0 : -ENOMEM;
}

/* Its key finds it no more; it goes with its last area. */
static void segment_remove(struct ipc *ipc)
{
	if (ipc->state.permission.mode & SHM_DEST)
		return;
	ipc->state.permission.mode |= SHM_DEST;
	ipc->state.permission.key = IPC_PRIVATE;
	segment_release(&((struct segment *)ipc)->object);
}

/* Each area is an attachment. */
static void segment_get_state(const struct ipc *ipc, union ipc_state *state)
{
	const struct list *areas = &((const struct segment *)ipc)->object.areas;

	for (const struct list *link = areas->next; link != areas; link = link->next)
		state->segment.attachments++;
}

/* SHM_INFO gives Linux's struct shm_info: how many segments, their pages, and those in memory.
 * Pages that nobody has touched count, too. */
static uint32_t segment_get_use(uint32_t *words)
{
	memset(words, 0, SHM_INFO_WORDS * sizeof(*words));
	words[0] = ipc_segments.count;
	list_for_each(struct ipc, ipc, &ipc_segments.all, link)
		words[1] += whole_pages(ipc->size) >> PAGE_SHIFT;
	words[2] = words[1];
	return SHM_INFO_WORDS;
}

/* Limits: struct shminfo64. */
struct ipc_kind ipc_segments = {
	IPC_KIND(ipc_segments, struct segment, segment),
	.most = SHM_LIMIT,
	.largest = INT32_MAX,
	.stat = SHM_STAT,
	.limits = { SHM_MOST, 1, SHM_LIMIT, SHM_LIMIT, SHM_MOST },
	.limit_count = SHMINFO_WORDS,
	.make = segment_make,
	.remove = segment_remove,
	.get_state = segment_get_state,
	.get_use = segment_get_use,
};

/* ---- attaching ---- */

/* Where it goes: where the program says, or (0) where mmap would put it. -EINVAL, also for memory
 * that is in use, unless SHM_REMAP replaces that; -ENOMEM. */
static int attach_address(uint32_t address, uint32_t length, uint32_t flags)
{
	const struct mapping at = { .address = address & -PAGE_SIZE,
				    .flags = address ? MAP_FIXED : 0 };

	if ((address % PAGE_SIZE && !(flags & SHM_RND)) || (!at.address && flags & SHM_REMAP))
		return -EINVAL;
	if (address && !(flags & SHM_REMAP) && !space_is_free(current->space, at.address, length))
		return -EINVAL;
	return mapping_place(&at, length, PAGE_SIZE);
}

/* shmat(2): an area of the segment, whose address goes to the user address `result`. May sleep, if
 * SHM_REMAP replaces areas of files. */
int segment_attach(int32_t id, uint32_t address, uint32_t flags, uint32_t result)
{
	struct segment *segment = (struct segment *)ipc_find(&ipc_segments, id);

	if (!segment)
		return -EINVAL;
	uint32_t length = whole_pages(segment->ipc.size);
	struct area form = { .flags = AREA_SHARED | SPACE_READ, .object = &segment->object };
	int at = attach_address(address, length, flags);

	form.flags |= flags & SHM_RDONLY ? AREA_LOCKED : SPACE_WRITE;
	form.flags |= flags & SHM_EXEC ? SPACE_EXECUTE : 0;
	if (is_error(at))
		return at;
	segment_hold(&segment->object); /* what it is put over may sleep, and this be removed */
	int error = area_put(current->space, at, at + length, &form);

	if (!error) {
		segment->ipc.state.segment.attached = ipc_now();
		segment->ipc.state.segment.last_pid = calling_pid();
	}
	segment_release(&segment->object);
	return error ? error : give(result, &at, sizeof(at));
}

/* shmdt(2): removes the areas that one shmat made, also if mprotect or munmap has cut them into
 * several: they are those whose place in the segment fits their address. */
int segment_detach(uint32_t address)
{
	const struct area *area = area_find(current->space, address);

	if (address % PAGE_SIZE || !area || !area->object || area->object->ops != &segment_ops ||
	    area_start(area) != address || area->index != 0)
		return -EINVAL;
	struct segment *segment = segment_of(area->object);
	uint32_t end = address + whole_pages(segment->ipc.size);

	segment->ipc.state.segment.detached = ipc_now();
	segment->ipc.state.segment.last_pid = calling_pid();
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

/* shmctl(2). There is no swap, so a segment is always locked. */
int segment_control(int32_t id, uint32_t command, uint32_t address)
{
	if (command == SHM_LOCK || command == SHM_UNLOCK)
		return ipc_find(&ipc_segments, id) ? 0 : -EINVAL;
	return ipc_control(&ipc_segments, id, command, address);
}

/* ---- files without a name ---- */

/* memfd_create(2): a file in memory that no directory has. MFD_ALLOW_SEALING is accepted, although
 * fcntl(2) has no seals. */
static int create_file(uint32_t name, uint32_t flags)
{
	char *text CLEANUP(path_page_release) = NULL;
	struct file *file;
	int error =
	    flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING) ? -EINVAL : path_from_user(name, &text);

	if (error || strlen(text) > MFD_NAME_MAX)
		return error ?: -EINVAL;
	struct ramfs_inode *made = ramfs_make_inode(S_IFREG | 0777, 0);

	if (!made)
		return -ENOMEM;
	made->inode.links = 0;
	error = vfs_open_inode(&made->inode, O_RDWR | O_LARGEFILE, &file);
	inode_put(&made->inode);
	return error ? error : descriptor_add(file, flags & MFD_CLOEXEC ? O_CLOEXEC : 0);
}

SYSCALL(356, sys_memfd_create, "sx", create_file(frame->ebx, frame->ecx))

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

/* As for a write of the program at that address: a page that is shared after fork is copied now. */
int futex_bring(uint32_t address)
{
	return space_fault(current->space, address, true, true);
}
