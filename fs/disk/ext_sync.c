/*
 * When changes are safe. One rule, for fsync, fdatasync, O_SYNC, O_DSYNC, msync, sync_file_range,
 * sync, syncfs, of files and of directories:
 *
 *	Changes have the number of the transaction that they become part of. An inode keeps the
 *	number of its last change; who asks for it to be safe waits until that number is committed:
 *	a commit that began after the change has ended, with its last FLUSH CACHE.
 *
 *	task A	write: 7     fsync, commit 7 ......... FLUSH CACHE   0	write: 8
 *	task B	   write: 7     fsync, 7 is not committed, waits     0, without a commit
 *	mount	number 7			       committed 7	number 8
 *
 * Whose commit it is does not matter. Changes and commits have the mount's lock, so no change falls
 * into a commit, and with the lock a number is either committed or not begun. `number` is ahead of
 * `committed` from the first change until a commit ends well: a number here is what one call of
 * ext_commit makes safe, with a journal, in each mode of data=, or without one. The library's own
 * numbers do not do: contents that go straight to the drive are in no transaction of the journal,
 * and the drive may have them in its cache.
 *
 *	changed_in	the last change of any kind: fsync
 *	data_in		the last one that is needed to read the data again: fdatasync
 *
 * An inode that is read from the disk was perhaps changed, evicted and forgotten a moment ago: the
 * mount keeps the latest number of those that were evicted, one for each of EVICTED classes of
 * inodes. So what was only looked up need not wait, nor is a failed commit its error.
 *
 * A commit that fails is an error for each task that waits for it. It is also one of write-back
 * (fs/cache/write_errors.h) for each inode with a change in it, and for the mount; so it is told to
 * who asks later. The next commit has the next number. Without a journal it writes again what could
 * not be written (fs/cache/bcache.c): until that succeeds, nothing of the mount that has changed is
 * safe. An inode that was evicted before its commit failed is told of by syncfs only, as on Linux.
 *
 * Block devices need no numbers: their fsync always flushes (block_files.c).
 */
#include "fs/disk/ext_inode.h"
#include "fs/ext/disk.h"
#include "fs/vfs/vfs.h"
#include "kernel/report/printk.h"
#include "kernel/task/time.h"

#define COMMIT_NS 5000000000ull

/* ---- commits ---- */

static bool note_failure(struct disk_inode *inode)
{
	if (inode->changed_in == inode->mount->number)
		errors_note(&inode->pages.errors, inode->mount->commit_error);
	return false;
}

int disk_commit_failed(struct disk_mount *mount, int error)
{
	mount->commit_error = error == -EROFS ? -EIO : error;
	errors_note(&mount->errors, mount->commit_error);
	disk_inode_any(mount, note_failure);
	mount->failures++;
	mount->number++;
	return mount->commit_error;
}

/* Returns when `number` is committed, or a commit of it has failed. What another task's commit has
 * done meanwhile counts: it had the lock, and this caller's change was made before. */
static int commit_until(struct disk_mount *mount, uint32_t number)
{
	uint32_t failures = mount->failures;
	int error = 0;

	if (disk_is_committed(mount, number))
		return 0;
	mutex_lock(&mount->lock);
	if (mount->failures != failures) {
		error = mount->commit_error;
	} else if (!disk_is_committed(mount, number)) {
		error = ext_commit(mount->fs);
		if (error)
			error = disk_commit_failed(mount, error);
		else
			mount->committed = mount->number;
	}
	return disk_unlock(mount, error);
}

/* The library may have changed something of which no inode knows: freed blocks, for instance. */
int disk_commit(struct disk_mount *mount)
{
	mount->number += mount->number == mount->committed;
	return commit_until(mount, mount->number);
}

/* Before a commit, what write has changed only in memory: unless it is of no use to find the data
 * again (fdatasync). What is read-only now cannot keep what was written: that is EIO. */
int disk_commit_inode(struct cached_file *pages, bool data_only)
{
	struct disk_inode *inode = list_entry(pages, struct disk_inode, pages);
	int stored = 0;

	if (inode->is_changed && !data_only) {
		mutex_lock(&inode->mount->lock);
		stored = disk_unlock(inode->mount, disk_inode_store(inode));
	}
	int error = commit_until(inode->mount, data_only ? inode->data_in : inode->changed_in);

	return error ? error : stored == -EROFS ? -EIO : stored;
}

bool disk_is_synchronous(const struct disk_inode *inode)
{
	return inode->mount->synchronous || inode->ext.flags & EXT_FLAG_SYNC;
}

int disk_finish(struct disk_inode *inode, int error)
{
	if (error || !disk_is_synchronous(inode))
		return error;
	error = cached_file_write_back(&inode->pages, 0, UINT32_MAX);
	return error ? error : disk_commit_inode(&inode->pages, false);
}

/* ---- errors ---- */

int disk_open(struct file *file)
{
	struct disk_inode *inode = disk_inode(file->inode);

	file->private = (void *)(uintptr_t)errors_sample(&inode->pages.errors);
	file->mount_errors = errors_sample(&inode->mount->errors);
	return 0;
}

/* Reports it once for each mount, because a broken drive may lose much. The unmount reports it,
 * too. What is read-only now cannot keep what was written: that is EIO. */
int disk_inode_lost(struct disk_inode *inode, uint64_t offset, uint32_t length, int error)
{
	struct disk_mount *mount = inode->mount;

	error = error == -EROFS ? -EIO : error;
	if (!mount->lost_error)
		printk("%s: inode %u: %u bytes at %llu could not be written and are lost: %s\n",
		       mount->device->name, inode->inode.number, length, offset,
		       errno_name(-error));
	mount->lost_error = error;
	errors_note(&mount->errors, error);
	return error;
}

/* ---- all of a mount ---- */

int disk_write_all(struct disk_mount *mount)
{
	cached_files_write_back(false);
	return mount->read_only ? 0 : disk_store_all(mount);
}

/* syncfs, and sync, which has no file that remembers errors. */
int disk_sync(struct inode *root, uint32_t *seen)
{
	struct disk_mount *mount = disk_inode(root)->mount;

	mount->workers++;
	int stored = disk_write_all(mount), error = mount->read_only ? 0 : disk_commit(mount);
	int told = seen ? errors_tell(&mount->errors, seen) : 0;

	mount->workers--;
	return told ? told : error ? error : stored;
}

/* Commits all mounts, if the last time is some seconds ago. */
void cached_files_after(void)
{
	static uint64_t last;

	if (time_ns() - last < COMMIT_NS)
		return;
	last = time_ns();
	for (struct disk_mount *mount = disk_mounts; mount; mount = mount->next) {
		if (!mount->root || mount->read_only || ext_is_read_only(mount->fs))
			continue; /* the last: its journal has ended, and no commit can succeed */
		mount->workers++; /* so that it stays */
		disk_store_all(mount);
		disk_commit(mount);
		mount->workers--;
	}
}
