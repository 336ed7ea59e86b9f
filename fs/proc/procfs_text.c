/*
 * The texts of files in /proc and /sys, as seq_file's on Linux: a text is made when it is read from
 * its beginning, and kept in the open file's own pages until it is read from there again. So a
 * program that reads piece by piece sees one state of the kernel, and one that keeps the file open
 * (top) sees the present one each time.
 *
 * How many pages the entry says (`order`); what does not fit is lost. Reading and writing may sleep
 * in the copy to or from the program, and where the entry's functions do.
 */
#include "fs/proc/procfs_text.h"

#include "fs/file.h"
#include "kernel/report/printk.h"
#include "kernel/task/task.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"

static struct pool texts = POOL_INITIALIZER(struct procfs_text);

void procfs_print(struct procfs_text *text, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	text->length +=
	    vsnprintk(text->bytes + text->length, text->size - text->length, format, arguments);
	va_end(arguments);
	if (text->length >= text->size)
		text->length = text->size - 1;
}

/* The text is made later: its task may have ended by then, which is -ESRCH. */
static int procfs_open(struct file *file)
{
	const struct procfs_entry *entry = procfs_node(file->inode)->entry;
	struct procfs_text *text = pool_alloc(&texts);
	char *bytes = text ? page_alloc(entry->order) : NULL;

	if (!bytes) {
		if (text)
			pool_free(&texts, text);
		return -ENOMEM;
	}
	*text = (struct procfs_text){ bytes, .size = PAGE_SIZE << entry->order };
	file->private = text;
	return 0;
}

/* Writes the text, as it is now. The task is looked up here, and `show` may keep the pointer until
 * it sleeps. */
static int make_text(const struct procfs_node *node, struct procfs_text *text)
{
	const struct task *task = node->pid ? task_find(node->pid) : NULL;

	if (node->pid && !task)
		return -ESRCH;
	text->length = 0;
	text->object = node->object;
	if (node->entry->text)
		procfs_print(text, "%s\n", node->entry->text);
	else
		node->entry->show(text, task);
	return 0;
}

/* A reader that begins again gets a new text, and another the rest of its own. */
static int procfs_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct procfs_text *text = file->private;
	bool begins = offset == 0 || text->length == 0;
	int error = begins ? make_text(procfs_node(file->inode), text) : 0;

	if (error || offset >= text->length)
		return error;
	return buffer_put(to, text->bytes + offset, text->length - (uint32_t)offset);
}

/* One line a call. The whole call succeeds or fails; a longer line is cut, and counts as far as it
 * was taken. */
static int procfs_write(struct file *file, struct buffer *from, uint64_t offset)
{
	const struct procfs_node *node = procfs_node(file->inode);
	char line[PROCFS_LINE];
	int length = buffer_take(from, line, sizeof(line) - 1);

	if (!node->entry->store)
		return -EACCES;
	if (length < 0)
		return length;
	line[length] = '\0';
	if (strchr(line, '\n'))
		*strchr(line, '\n') = '\0';
	int error = node->entry->store(node->object, line);

	return error ? error : length;
}

/* The open file's own text: each that opens the file has another one. */
static void procfs_release(struct file *file)
{
	struct procfs_text *text = file->private;

	page_free(text->bytes, procfs_node(file->inode)->entry->order);
	pool_free(&texts, text);
}

const struct file_ops procfs_text_ops = {
	.open = procfs_open,
	.read = procfs_read,
	.write = procfs_write,
	.release = procfs_release,
};
