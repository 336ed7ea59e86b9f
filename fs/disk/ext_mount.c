/*
 * ext2, ext3 and ext4 as file systems that are mounted.
 *
 * The three are one library; a type only says what the features must be at most, so that "mount"
 * without a type, which tries all, names the right one. Options:
 *
 *	data=ordered|journal|writeback	errors=continue|remount-ro|panic	barrier=0|1
 *	nobarrier			noload
 *
 * The library knows nothing of tasks: one lock for each mount serializes its calls (disk_unlock).
 * What is here may sleep, for that lock and for the disk. mount(8), ext4(5).
 */
#include "fs/disk/block_files.h"
#include "fs/disk/ext_inode.h"
#include "fs/vfs/mounting.h"
#include "kernel/cpu/machine.h"
#include "kernel/lib/startup.h"
#include "kernel/report/printk.h"
#include "kernel/task/time.h"
#include "mm/kmalloc.h"

/* The root directory's inode, and the type that statfs(2) tells: of all three. */
#define ROOT   2u
#define MAGIC  0xef53u
#define TRIES  20 /* of an unmount, while pages are being written back */
#define TRY_MS 20

/* ---- options ---- */

/* Where a member of ext_options is: all are of one byte, or little-endian with a value below 256.
 */
#define MEMBER(name) ((uint8_t)offsetof(struct ext_options, name))

/* An option, its value, and where they go: a number into a member of ext_options, whose first byte
 * has it, be it an enumeration or a bool. */
static const struct {
	const char *name, *value;
	uint8_t member, number;
} known[] = {
	{ "data", "ordered", MEMBER(data), EXT_DATA_ORDERED },
	{ "data", "journal", MEMBER(data), EXT_DATA_JOURNAL },
	{ "data", "writeback", MEMBER(data), EXT_DATA_WRITEBACK },
	{ "errors", "continue", MEMBER(errors), EXT_ERRORS_CONTINUE },
	{ "errors", "remount-ro", MEMBER(errors), EXT_ERRORS_READ_ONLY },
	{ "errors", "panic", MEMBER(errors), EXT_ERRORS_PANIC },
	{ "barrier", "0", MEMBER(no_barriers), true },
	{ "nobarrier", "", MEMBER(no_barriers), true },
	{ "barrier", "1", MEMBER(no_barriers), false },
	{ "barrier", "", MEMBER(no_barriers), false },
	{ "noload", "", MEMBER(no_replay), true },
};

/* Two options are several ways to say one thing; an empty value is an option without one. */
#define KNOWN (sizeof(known) / sizeof(known[0]))

/* Options that the text does not name stay as they are in *to; after an error some have changed.
 * One that is not known is refused, as on Linux: who asks for it relies on it. */
static int parse_options(const char *type, const struct mount_options *from, struct ext_options *to)
{
	const char *text = from->text, *value;
	char name[32];

	to->read_only = from->read_only;
	while (mount_option_next(&text, name, sizeof(name), &value)) {
		uint32_t i = 0;

		while (i < KNOWN &&
		       (strcmp(known[i].name, name) != 0 || strcmp(known[i].value, value) != 0))
			i++;
		if (i == KNOWN) {
			printk("mount: %s: option %s%s%s is not known (data=, errors=, barrier=, "
			       "nobarrier, noload are)\n",
			       type, name, *value ? "=" : "", value);
			return -EINVAL;
		}
		((uint8_t *)to)[known[i].member] = known[i].number;
	}
	return 0;
}

/* ---- mount and unmount ---- */

/* "ext4" may be any of the three, as in Linux; "ext2" and "ext3" must be what the features say. */
static bool is_type(const char *wanted, const char *found)
{
	return strcmp(wanted, "ext4") == 0 || strcmp(wanted, found) == 0;
}

/* A type that the disk is not is -EINVAL: `mount` without a type tries the next one then. */
static int open_fs(struct disk_mount *mount, const char *type, const struct ext_options *options)
{
	int error = ext_mount(mount->device, options, &mount->fs);

	if (error)
		return error;
	const struct ext_summary *summary = ext_summary(mount->fs);

	mount->block_shift = __builtin_ctz(summary->block_size);
	if (is_type(type, summary->type))
		return 0;
	ext_unmount(mount->fs);
	return -EINVAL;
}

/* What the VFS and the files ask of each mount; the library has the rest. */
static void set_mount_flags(struct disk_mount *mount, const struct mount_options *options)
{
	mount->read_only = options->read_only;
	mount->no_access_time = options->no_access_time;
	mount->synchronous = options->synchronous;
	mount->synchronous_directories = options->synchronous_directories;
}

/* Everything after the claim of the device. After an error nothing of the library is left, and
 * end_mount does the rest. */
static int fill_mount(struct disk_mount *mount, const char *type,
		      const struct mount_options *options)
{
	struct inode *root;
	int error = parse_options(type, options, &mount->options);

	if (!error)
		error = open_fs(mount, type, &mount->options);
	if (error)
		return error;
	set_mount_flags(mount, options);
	mount->filesystem = mount->device->number; /* as programs compare st_dev with st_rdev */
	mutex_lock(&mount->lock);
	error = disk_unlock(mount, disk_inode_get(mount, ROOT, &root));
	if (error)
		ext_unmount(mount->fs);
	else
		mount->root = disk_inode(root);
	return error;
}

/* Takes the mount out of the list, and releases the device, which others may mount now. */
static void end_mount(struct disk_mount *mount)
{
	struct disk_mount **at = &disk_mounts;

	block_file_claim(mount->device, false);
	while (*at != mount)
		at = &(*at)->next;
	*at = mount->next;
	kfree(mount);
}

/* For fs/disk/ext_inode.c, which makes the inodes and knows no file that has their operations. */
static const struct disk_operations operations = { &disk_inode_ops, &disk_file_ops,
						   &disk_directory_ops, &disk_pages_ops };

/* The device is claimed for the mount, as Linux's bd_holder does it: until the end nobody mounts it
 * elsewhere, nor opens it with O_EXCL. */
static int disk_mount(const struct filesystem *type, struct inode *inode,
		      const struct mount_options *options, struct inode **root)
{
	struct block_device *device = block_of_number(inode->device);
	int error = device ? block_file_claim(device, true) : -ENXIO;

	if (error)
		return error;
	struct disk_mount *mount = kmalloc(sizeof(*mount));

	if (!mount) {
		block_file_claim(device, false);
		return -ENOMEM;
	}
	*mount = (struct disk_mount){
		.operations = &operations,
		.device = device,
		.options = { .now = time_wall_ns, .reserved = &mount->reserved },
		.next = disk_mounts,
	};
	disk_mounts = mount;
	error = fill_mount(mount, type->type, options);
	if (error) {
		end_mount(mount);
		return error;
	}
	cached_files_start();
	*root = &mount->root->inode;
	return 0;
}

/* Has it something to write, or a user besides the mount itself? */
static bool is_used(struct disk_inode *inode)
{
	return inode->pages.dirty || inode->is_changed ||
	       inode->inode.references > (inode == inode->mount->root);
}

/* May it change, or is it freed with its last user? Such a file forbids "read only". */
static bool is_written(struct disk_inode *inode)
{
	return inode->inode.writers > 0 || inode->inode.links == 0;
}

/* No task commits the mount, or will: the thread passes over a mount without a root. */
static bool is_idle(struct disk_mount *mount)
{
	return mount->workers == 0 && !disk_inode_any(mount, is_used);
}

/* As on Linux it succeeds whatever could not be written: the mount is gone, and the console says
 * so.
 */
static int disk_unmount(struct inode *root)
{
	struct disk_mount *mount = disk_inode(root)->mount;
	int tries = TRIES;

	mount->lost_error = 0;
	disk_write_all(mount);
	for (; !is_idle(mount) && tries > 0; tries -= mount->workers == 0) {
		msleep(TRY_MS); /* the thread has a page or commits, or a time has changed */
		disk_write_all(mount);
	}
	if (tries == 0)
		return -EBUSY;
	mount->root = NULL;
	disk_inode_forget_all(mount);
	int error = ext_unmount(mount->fs);

	error = error ? error : mount->lost_error;
	if (error)
		printk("%s: not everything could be written before the unmount: %s\n",
		       mount->device->name, errno_name(-error));
	end_mount(mount);
	return 0;
}

/* ---- while it is mounted ---- */

/* The library counts what dirty pages have reserved as not available (fs/ext/usage.c). */
static void disk_statfs(struct inode *root, struct filesystem_usage *usage)
{
	struct disk_mount *mount = disk_inode(root)->mount;
	struct ext_usage of_ext;

	mutex_lock(&mount->lock);
	ext_usage(mount->fs, &of_ext);
	mutex_unlock(&mount->lock);
	*usage = (struct filesystem_usage){ .type = MAGIC,
					    .block_size = 1u << mount->block_shift,
					    .blocks = of_ext.blocks,
					    .free = of_ext.free,
					    .available = of_ext.available,
					    .inodes = of_ext.inodes,
					    .free_inodes = of_ext.free_inodes };
}

/* Asked for, or become so: by errors=remount-ro, or by a journal that could not be written. */
static bool disk_is_read_only(const struct inode *root)
{
	const struct disk_mount *mount = ((const struct disk_inode *)root)->mount;

	return mount->read_only || ext_is_read_only(mount->fs);
}

/* The library ends its mount and begins again. Not while files are open to be written, or have no
 * name: they would be freed. If that fails for any reason but memory, the disk can be read as
 * before, and not written. */
static int restart_fs(struct disk_mount *mount, const struct ext_options *options)
{
	disk_write_all(mount);
	if (!mount->read_only && disk_inode_any(mount, is_written) && !vfs_is_shutting_down)
		return -EBUSY;
	mutex_lock(&mount->lock);
	int error = ext_remount(mount->fs, options);

	if (error && error != -ENOMEM) {
		mount->read_only = true;
		if (mount->number != mount->committed)
			disk_commit_failed(mount, error);
	}
	return disk_unlock(mount, error);
}

/* Between reading and writing, and with other barriers, the library begins again; other errors= it
 * takes at once; data= stays, as on Linux. */
static int disk_remount(struct inode *root, const struct mount_options *options)
{
	struct disk_mount *mount = disk_inode(root)->mount;
	struct ext_options of_ext = mount->options;
	int error = parse_options("remount", options, &of_ext);

	if (!error && of_ext.data != mount->options.data) {
		printk("remount: %s: data= cannot change while it is mounted\n",
		       mount->device->name);
		error = -EINVAL;
	}
	if (error)
		return error;
	if (of_ext.read_only != mount->read_only ||
	    of_ext.no_barriers != mount->options.no_barriers)
		error = restart_fs(mount, &of_ext);
	if (error)
		return error;
	ext_set_errors(mount->fs, of_ext.errors);
	mount->options = of_ext;
	set_mount_flags(mount, options);
	return 0;
}

/* ---- start ---- */

/* A mount without a type tries them in this order, so ext4, which takes any of the three, is last.
 */
static void ext_start(void)
{
	static struct filesystem types[3];
	static const char *const names[] = { "ext3", "ext2", "ext4" };

	for (unsigned i = 0; i < 3; i++) {
		types[i] = (struct filesystem){ .type = names[i],
						.needs_device = true,
						.mount = disk_mount,
						.remount = disk_remount,
						.is_read_only = disk_is_read_only,
						.statfs = disk_statfs,
						.sync = disk_sync,
						.unmount = disk_unmount };
		filesystem_register(&types[i]);
	}
}
STARTUP(ext_start)

/* Before the machine is switched off, restarted or ends: what is mounted is safe by then. */
void machine_before_exit(void)
{
	vfs_shut_down();
}
