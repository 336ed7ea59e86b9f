/*
 * fs/disk/ext_inode.c, compiled for the host: the last reference of an inode goes, while another
 * task stores all inodes of the mount. The task that gives it back may be interrupted wherever it
 * may sleep: each of these places is tried.
 *
 *	inodes LINKS	for a file with so many names: says how many places there are
 *	inodes sync	what fs/disk/ext_sync.c commits, by itself and beside another task's commit
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
static unsigned places, meanwhile_at, released, freed, commits;
static bool is_meanwhile, commits_meanwhile;
static int commit_result, store_result;

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
	if (commits_meanwhile)
		disk_commit(&mount);
	else
		require(disk_store_all(&mount) == 0, "the other task had an error");
	is_meanwhile = false;
}

/* ---- what the kernel has ---- */

const struct file_ops special_file_ops;

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

void cached_file_reserve(struct cached_file *file, uint64_t *reserved, uint32_t page_blocks)
{
}

uint32_t ext_map_worst(const struct ext_inode *inode)
{
	return 0;
}

void cached_file_cut(struct cached_file *file, uint64_t size)
{
	may_sleep();
}

int ext_inode_read(struct ext_fs *fs, uint32_t number, struct ext_inode *inode)
{
	return -EIO;
}

int64_t ext_time_kept(const struct ext_inode *inode, int64_t time)
{
	return time;
}

int ext_inode_write(struct ext_inode *inode)
{
	return store_result;
}

int ext_release(struct ext_inode *inode)
{
	released++;
	return 0;
}

bool ext_is_read_only(const struct ext_fs *fs)
{
	return false;
}

int ext_commit(struct ext_fs *fs)
{
	commits++;
	return commit_result;
}

int cached_file_write_back(struct cached_file *file, uint32_t first, uint32_t end)
{
	return 0;
}

void cached_files_write_back(bool is_due)
{
}

uint64_t time_ns(void)
{
	return 0;
}

void dentry_forget(struct dentry *name)
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

static const struct inode_ops inode_ops = { .forget = disk_inode_forget };
static const struct disk_operations operations = { .inode = &inode_ops };

static bool is_there(struct disk_inode *inode)
{
	return true;
}

/* Returns whether the other task ran: there is such a place. */
static bool try_place(unsigned place, unsigned links)
{
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

/* ---- commits ---- */

/* Of this number, or of an equal one of another turn, if that is in memory. */
static struct disk_inode *make_inode(uint32_t number)
{
	struct disk_inode *inode = disk_inode_allocate(&mount);
	static uint32_t made;

	inode->ext = (struct ext_inode){ .number = number + made++ * EVICTED };
	inode->ext.mode = S_IFREG;
	inode->ext.links = 1;
	disk_inode_insert(inode);
	return inode;
}

/* fsync, or fdatasync: must give this result after so many commits. */
static void require_sync(struct disk_inode *inode, bool data_only, int result, unsigned most,
			 const char *text)
{
	commits = 0;
	require(disk_commit_inode(&inode->pages, data_only) == result, text);
	require(commits == most, text);
}

static void try_alone(struct disk_inode *one, struct disk_inode *two)
{
	require_sync(one, false, 0, 0, "nothing has changed");
	disk_inode_changed(one, true);
	require_sync(two, false, 0, 0, "another has changed");
	require_sync(one, true, 0, 1, "data has changed");
	require_sync(one, false, 0, 0, "the same commit");
	one->is_changed = true;
	require_sync(one, true, 0, 0, "times are not for fdatasync");
	require_sync(one, false, 0, 1, "times are for fsync");
	disk_inode_changed(two, true);
	require_sync(make_inode(14), false, 0, 0, "looked up while another change is not safe");
	struct disk_inode *gone = make_inode(15);

	disk_inode_changed(gone, true);
	inode_put(&gone->inode);
	disk_inodes_shrink();
	require_sync(make_inode(16), false, 0, 0, "looked up after another was evicted");
	require_sync(make_inode(15), false, 0, 1, "changed, evicted and read again");
	require_sync(make_inode(15), false, 0, 0, "read when all is safe");
}

/* The inode keeps its times, and nobody is told an error. */
static void try_memory(struct disk_inode *inode)
{
	uint32_t seen = inode->pages.errors.count;

	store_result = -ENOMEM;
	inode->is_changed = true;
	require(disk_store_all(&mount) == -ENOMEM, "no memory to store an inode");
	store_result = 0;
	require(errors_tell(&inode->pages.errors, &seen) == 0, "what is tried again is no error");
	require(disk_store_all(&mount) == 0 && !inode->is_changed, "it is tried again");
	require_sync(inode, false, 0, 1, "then it is committed");
}

/* Both have changes; the commit fails once. */
static void try_failure(struct disk_inode *one, struct disk_inode *two)
{
	uint32_t seen = errors_sample(&two->pages.errors), all = errors_sample(&mount.errors);

	disk_inode_changed(one, true);
	struct disk_inode *untouched = make_inode(17);
	uint32_t seen_here = errors_sample(&untouched->pages.errors);

	disk_inode_changed(two, false);
	commit_result = -EROFS;
	require_sync(one, false, -EIO, 1, "a commit that fails");
	require_sync(untouched, false, 0, 0, "of a file that was only looked up");
	require(errors_tell(&untouched->pages.errors, &seen_here) == 0, "nor is it told later");
	commit_result = 0;
	require_sync(two, false, 0, 1, "the next one does not");
	require(errors_tell(&two->pages.errors, &seen) == -EIO, "who asks later is told");
	require(errors_tell(&two->pages.errors, &seen) == 0, "once");
	require(errors_tell(&mount.errors, &all) == -EIO, "the mount, too");
}

/* Another task commits while this one waits for the lock. */
static void try_beside(struct disk_inode *inode, int result)
{
	disk_inode_changed(inode, true);
	commits_meanwhile = true;
	commit_result = result;
	places = 0;
	meanwhile_at = 1;
	require_sync(inode, false, result, 1, "another task's commit is enough");
	commits_meanwhile = false;
	commit_result = 0;
	require_sync(inode, false, 0, result != 0, "what it did not make safe is tried again");
}

static void try_sync(void)
{
	mount = (struct disk_mount){ .operations = &operations, .number = -2, .committed = -2 };
	for (unsigned i = 0; i < EVICTED; i++)
		mount.evicted_in[i] = -2;
	struct disk_inode *one = make_inode(12), *two = make_inode(13);

	for (unsigned turn = 0; turn < 4; turn++) { /* numbers wrap around */
		try_alone(one, two);
		try_failure(one, two);
		try_memory(one);
		try_beside(one, 0);
		try_beside(one, -EIO);
		meanwhile_at = 0;
	}
	disk_inode_forget_all(&mount);
}

int main(int count, char **words)
{
	unsigned place = 1;

	if (count > 1 && strcmp(words[1], "sync") == 0) {
		try_sync();
		return 0;
	}
	while (count > 1 && try_place(place, atoi(words[1])))
		place++;
	printf("%u\n", place - 1);
	return 0;
}
