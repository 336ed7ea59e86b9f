/* /proc/syscalls: the latest system calls, for programs to read; 1 or 0 written to it switches the
 * recording on or off. */
#include "fs/proc/procfs.h"
#include "kernel/lib/errno.h"
#include "kernel/syscall/syscall_trace.h"

#define TEXT_ORDER 5 /* 128 KiB: a line for each record of the ring */
#define LINE	   160

/* The text is made in one go when the file is read, and the recording goes on meanwhile: so the
 * calls that read it are in the next one. Records that were overwritten since the one before are
 * only counted. */
static void trace_file_show(struct procfs_text *text, const struct task *task)
{
	uint32_t next = 0, lost = 0;
	struct syscall_record record;
	char line[LINE];

	while (syscall_trace_read(&next, &record, 1, &lost) == 1) {
		if (lost > 0)
			procfs_print(text, "(%u earlier calls were overwritten)\n", lost);
		lost = 0;
		syscall_trace_format(&record, line, sizeof(line));
		procfs_print(text, "%s", line);
	}
}

/* -EINVAL for anything but 0 and 1. */
static int trace_file_store(const void *unused, const char *line)
{
	if (strcmp(line, "0") != 0 && strcmp(line, "1") != 0)
		return -EINVAL;
	syscall_trace_on = line[0] == '1';
	return 0;
}

PROCFS_ENTRY(&procfs_root, trace, "syscalls", .show = trace_file_show, .store = trace_file_store,
	     .order = TEXT_ORDER)
