/*
 * Calls of open files. Another task of the program may close a descriptor while a call sleeps, so a
 * call has a reference of its own to the file, from its first instruction to its last:
 *
 *	FILE_CALL(sys_fsync, sync_file(file))		row: { 118, "fsync", "f", sys_fsync }
 *	OFFSET_CALL(sys_read, read_here(file, frame))	row: { 3, "read", "Fpd", sys_read }
 *
 * `file` is the open file of the descriptor in EBX, or NULL; the function itself says -EBADF, since
 * some calls look at other arguments first. It never looks a descriptor up itself: after a sleep
 * the number may be another file's.
 */
#pragma once

#include "fs/files.h"
#include "kernel/process/process.h"
#include "kernel/syscall/syscall.h"

/* The open file of a descriptor, with a reference; NULL when there is none. */
static inline struct file *file_hold(uint32_t descriptor)
{
	struct file *file = files_get(current->process->files, descriptor);

	if (file)
		file->references++;
	return file;
}

/* Gives the reference back; NULL is allowed. */
static inline void file_drop(struct file *file)
{
	if (file)
		file_release(file);
}

#define HELD_CALL(name, result, locks, descriptors)                                                \
	static int name(struct trap_frame *frame)                                                  \
	{                                                                                          \
		struct file *file = file_hold(frame->ebx);                                         \
		bool moves = locks && file && !file->ops->is_stream;                               \
		struct claim *lock = moves ? file_offset_lock(file) : NULL;                        \
		int value = result;                                                                \
                                                                                                   \
		if (lock)                                                                          \
			claim_give(lock);                                                          \
		file_drop(file);                                                                   \
		return value;                                                                      \
	}                                                                                          \
	HOLDS(name, descriptors)

/* Defines a call of an open file: a function of `file` and the frame's registers. */
#define FILE_CALL(name, result) HELD_CALL(name, result, false, HELD(0))

/* The same for a call that uses the file's offset, which is locked meanwhile. */
#define OFFSET_CALL(name, result) HELD_CALL(name, result, true, HELD_OFFSET)
