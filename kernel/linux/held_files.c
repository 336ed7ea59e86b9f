/*
 * Calls of open files, while another task of the same program may close the file.
 *
 * A table of descriptors has a reference to each file, and a call that sleeps relies on it. With
 * threads that is not enough. So each of these calls is done by run_held, which has a reference of
 * its own as long as the call takes. poll holds its files itself (kernel/linux/syscall_poll.c).
 */
#include "kernel/lib/startup.h"
#include "kernel/process/file_calls.h"
#include "kernel/syscall/gate.h"
#include "kernel/syscall/syscall.h"

/* Numbers of calls that may sleep, and whose first argument is a descriptor: ioctl, readv, and
 * those like them. read, write, pread64 and pwrite64 hold their file themselves. */
static const uint16_t held[] = { 54, 118, 140, 145, 146, 148, 187, 220, 239, 333, 334 };

#define HELD (sizeof(held) / sizeof(held[0]))

static const struct syscall *originals[HELD];

/* The file is held, because another task of the program may close it meanwhile. */
static int run_held(struct trap_frame *frame)
{
	struct file *file = descriptor_file(frame->ebx);
	unsigned i = 0;

	while (held[i] != frame->eax)
		i++;
	if (file)
		file->references++;
	int result = originals[i]->run(frame);

	if (file)
		file_release(file);
	return result;
}

static void held_files_initialize(void)
{
	static struct syscall table[HELD];

	for (unsigned i = 0; i < HELD; i++) {
		originals[i] = syscall_find(held[i]);
		table[i] = *originals[i];
		table[i].run = run_held;
	}
	syscall_register(table, HELD);
}
STARTUP(held_files_initialize)
