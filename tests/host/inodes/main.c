/*
 * fs/disk/ext_inode.c, compiled for the host: the last reference of an inode goes, while another
 * task stores all inodes of the mount. The task that gives it back may be interrupted wherever it
 * may sleep: each of these places is tried.
 *
 *	inodes LINKS	for a file with so many names: says how many places there are
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/disk/ext_inode.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"

static struct disk_mount mount;
static unsigned places, meanwhile_at, released, freed;
static bool is_meanwhile;

static void require(bool is_so, const char *text)
{
	if (is_so)
		return;
	printf("place %u: %s\n", meanwhile_at, text);
	exit(EXIT_FAILURE);
}

/* The task may sleep here: the other one runs, from its beginning to its end. */
static void may_sleep(void)
{
	if (is_meanwhile || ++places != meanwhile_at)
		return;
	is_meanwhile = true;
	require(disk_store_all(&mount) == 0, "the other task had an error");
	is_meanwhile = false;
}

/* ---- what the kernel has ---- */

const struct file_ops device_file_ops, *fifo_file_ops;

void mutex_lock(struct mutex *mutex)
{
	if (!mutex->owner)
		may_sleep();
	require(!mutex->owner, "a mutex is taken twice");
	mutex->owner = (struct task *)mutex;
}

void mutex_unlock(struct mutex *mutex)
{
	mutex->owner = NULL;
	may_sleep();
}

void cached_file_initialize(struct cached_file *file, const struct cached_file_ops *ops)
{
	file->ops = ops;
}

void cached_file_cut(struct cached_file *file, uint64_t size)
{
	may_sleep();
}

int ext_inode_read(struct ext_fs *fs, uint32_t number, struct ext_inode *inode)
{
	return -EIO;
}

int64_t ext_time_kept(const struct ext_fs *fs, int64_t time)
{
	return time;
}

int ext_inode_write(struct ext_inode *inode)
{
	return 0;
}

int ext_release(struct ext_inode *inode)
{
	released++;
	return 0;
}

int ext_commit(struct ext_fs *fs)
{
	return 0;
}

void kept_name_forget(struct kept_name *name)
{
}

size_t page_free_count(void)
{
	return 1000;
}

void *pool_alloc(struct pool *pool)
{
	return calloc(1, sizeof(struct disk_inode));
}

void pool_free(struct pool *pool, void *object)
{
	freed++;
	free(object);
}

void printk(const char *format, ...)
{
}

const char *errno_name(int error)
{
	return "";
}

/* ---- the test ---- */

static bool is_there(struct disk_inode *inode)
{
	return true;
}

/* Returns whether the other task ran: there is such a place. */
static bool try_place(unsigned place, unsigned links)
{
	static const struct inode_ops inode_ops = { .forget = disk_inode_forget };
	static const struct disk_operations operations = { .inode = &inode_ops };

	mount = (struct disk_mount){ .operations = &operations, .block_shift = 12 };
	meanwhile_at = place;
	places = released = freed = 0;
	struct disk_inode *inode = disk_inode_allocate(&mount);

	inode->ext = (struct ext_inode){ .number = 12, .mode = S_IFREG, .links = links };
	disk_inode_insert(inode);
	inode->is_changed = true;
	inode_put(&inode->inode);
	bool is_place = places >= place;

	require(released == (links == 0), "its blocks are not freed once");
	require(disk_inode_any(&mount, is_there) == (links > 0), "the table is wrong");
	disk_inode_forget_all(&mount);
	require(freed == 1, "the inode is not freed once");
	return is_place;
}

int main(int count, char **words)
{
	unsigned place = 1;

	while (count > 1 && try_place(place, atoi(words[1])))
		place++;
	printf("%u\n", place - 1);
	return 0;
}
