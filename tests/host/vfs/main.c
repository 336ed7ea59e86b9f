/*
 * fs/vfs and fs/disk, compiled for the host, while requests of the drive fail, or reads are
 * damaged: each in turn, in a process of its own. A script of operations goes on after an error as
 * programs do; then the file system is unmounted, which must succeed, and nothing of it may be
 * left: no reference, no inode, no page, no block that the cache cannot give away.
 *
 *	faults IMAGE SCRIPT count			says how many reads and writes it makes
 *	faults IMAGE SCRIPT read NUMBER DAMAGE PLACE
 *	faults IMAGE SCRIPT write NUMBER FAULT PLACE
 *
 * That read fails, or (DAMAGE is not 0) is wrong; or that write or flush fails, and what FAULT says
 * besides (enum write_fault). The image goes to PLACE, and "sound" says that its superblock does
 * not ask for e2fsck, "orphans" that some are left for the next mount. The last line is "clean".
 *
 * A line of the script is an operation and up to two paths or numbers; see `operations` below. With
 * a line "tasks SEED" those after it that begin with "| " are another task's, at the same time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/cache/bcache.h"
#include "fs/ext/disk.h"
#include "fs/vfs/mounting.h"
#include "fs/vfs/names.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/file.h"
#include "kernel/lib/errno.h"
#include "tests/host/ext/shim.h"
#include "tests/host/vfs/floors.h"
#include "tests/host/vfs/tasks.h"

#define BUFFERS 256u /* a transaction holds its blocks */
#define BLOCK	1024u
#define OPEN	8u /* files that are kept open */
#define SECONDS 20u
#define LINES	512u
#define ALL	0777u

/* fs/disk/ext_inode.h, one of whose names tests/host/ext has, too. */
void disk_inodes_shrink(void);

static struct file *kept[OPEN];
static uint32_t kept_count;

static struct inode *root(void)
{
	return path_root();
}

static int with_inode(const char *path, int (*act)(struct inode *inode, const char *more),
		      const char *more)
{
	struct inode *inode;
	int error = path_find(root(), path, PATH_FOLLOW, &inode);

	if (error)
		return error;
	error = act(inode, more);
	inode_put(inode);
	return error;
}

static int op_mount(const char *path, const char *text)
{
	const struct mount_options options = { .text = text };

	return vfs_mount(root(), "/disk", "ext4", path, &options);
}

static int op_remount(const char *path, const char *how)
{
	const struct mount_options options = { .read_only = strcmp(how, "ro") == 0,
					       .text = strchr(how, '=') ? how : "" };

	return vfs_remount(root(), path, &options);
}

static int op_directory(const char *path, const char *more)
{
	return vfs_make(root(), path, S_IFDIR | ALL, 0);
}

static int op_fifo(const char *path, const char *more)
{
	return vfs_make(root(), path, S_IFIFO | ALL, 0);
}

/* It is kept when it is open: another task may have kept one meanwhile. */
static int op_keep(const char *path, const char *more)
{
	struct file *file;
	int error = vfs_open(root(), path, O_CREAT | O_RDWR, ALL, &file);

	if (!error)
		kept[kept_count++] = file;
	return error;
}

static int op_close(const char *path, const char *more)
{
	while (kept_count > 0)
		file_release(kept[--kept_count]);
	return 0;
}

/* Writes nothing but "w". A write that was cut short is an error: of the rest nothing was promised.
 * What is read goes elsewhere: another task may be writing meanwhile. */
static int move(const char *path, uint32_t flags, const char *length, bool writes)
{
	static uint8_t letters[65536], bytes[65536];
	int wanted = atoi(length);

	memset(letters, 'w', sizeof(letters));
	struct buffer buffer = buffer_of_kernel(writes ? letters : bytes, (uint32_t)wanted);
	struct file *file;
	int error = vfs_open(root(), path, flags, ALL, &file);

	if (error)
		return error;
	error = writes ? file_write(file, &buffer) : file_read(file, &buffer);
	if (writes && error >= 0 && error < wanted)
		error = -EIO;
	if (writes && error > 0 && file->ops->sync && strstr(path, "safe")) {
		tasks_yield(); /* between the two calls of a program, a commit may begin and end */
		error = file->ops->sync(file, false);
		if (!error)
			floors_promised();
	}
	file_release(file);
	return error;
}

static int op_write(const char *path, const char *length)
{
	return move(path, O_CREAT | O_WRONLY | O_APPEND, length, true);
}

static int op_over(const char *path, const char *length)
{
	return move(path, O_CREAT | O_WRONLY | O_TRUNC, length, true);
}

static int op_read(const char *path, const char *length)
{
	return move(path, O_RDONLY, length, false);
}

static int truncate_to(struct inode *inode, const char *size)
{
	return vfs_truncate(inode, strtoull(size, NULL, 0));
}

static int op_truncate(const char *path, const char *size)
{
	return with_inode(path, truncate_to, size);
}

static int reserve(struct inode *inode, const char *length)
{
	return inode->ops->allocate ? inode->ops->allocate(inode, 0, 0, strtoull(length, NULL, 0))
				    : -EPERM;
}

static int op_reserve(const char *path, const char *length)
{
	return with_inode(path, reserve, length);
}

static int link_as(struct inode *inode, const char *path)
{
	return vfs_link(root(), path, inode);
}

static int op_link(const char *path, const char *new_path)
{
	return with_inode(path, link_as, new_path);
}

static int op_symlink(const char *target, const char *path)
{
	return vfs_symlink(root(), path, target);
}

static int op_rename(const char *path, const char *new_path)
{
	return vfs_rename(root(), path, root(), new_path, 0);
}

static int op_exchange(const char *path, const char *new_path)
{
	return vfs_rename(root(), path, root(), new_path, RENAME_EXCHANGE);
}

static int op_unlink(const char *path, const char *more)
{
	return vfs_remove(root(), path, false);
}

static int op_rmdir(const char *path, const char *more)
{
	return vfs_remove(root(), path, true);
}

static bool note(void *context, const struct directory_entry *entry)
{
	++*(uint32_t *)context;
	return true;
}

static int list(struct inode *inode, const char *more)
{
	uint64_t position = 0;
	uint32_t count = 0;

	return inode->ops->iterate && inode_is(inode, S_IFDIR)
		   ? inode->ops->iterate(inode, &position, note, &count)
		   : -ENOTDIR;
}

static int op_list(const char *path, const char *more)
{
	return with_inode(path, list, more);
}

static int say_path(struct inode *inode, const char *more)
{
	char text[256];

	return vfs_directory_path(inode, text, sizeof(text));
}

static int op_path(const char *path, const char *more)
{
	return with_inode(path, say_path, more);
}

static int attribute(struct inode *inode, const char *length)
{
	static char bytes[4096];
	int error = inode->ops->set_attribute(inode, "user.a", bytes,
					      (uint32_t)strtoul(length, NULL, 0), 0);

	if (!error)
		error = inode->ops->list_attributes(inode, bytes, sizeof(bytes));
	return error < 0 ? error : inode->ops->get_attribute(inode, "user.a", bytes, sizeof(bytes));
}

static int op_attribute(const char *path, const char *length)
{
	return with_inode(path, attribute, length);
}

static int touch(struct inode *inode, const char *more)
{
	inode_touch(inode, true);
	return 0;
}

static int op_touch(const char *path, const char *more)
{
	return with_inode(path, touch, more);
}

static int op_cache(const char *blocks, const char *more)
{
	bcache_init((uint32_t)atoi(blocks));
	return 0;
}

static int op_sync(const char *path, const char *more)
{
	int error = vfs_sync();

	if (!error)
		floors_promised();
	return error;
}

static const struct {
	const char *name;
	int (*run)(const char *path, const char *more);
} operations[] = {
	{ "mount", op_mount },	     { "remount", op_remount },	    { "mkdir", op_directory },
	{ "fifo", op_fifo },	     { "keep", op_keep },	    { "close", op_close },
	{ "write", op_write },	     { "over", op_over },	    { "read", op_read },
	{ "truncate", op_truncate }, { "reserve", op_reserve },	    { "link", op_link },
	{ "symlink", op_symlink },   { "rename", op_rename },	    { "exchange", op_exchange },
	{ "unlink", op_unlink },     { "rmdir", op_rmdir },	    { "list", op_list },
	{ "path", op_path },	     { "attribute", op_attribute }, { "touch", op_touch },
	{ "sync", op_sync },	     { "cache", op_cache },
};

/* What nobody uses is read again by the next operation. */
static void obey(char *line)
{
	char *rest;
	const char *name = strtok_r(line, " \n", &rest), *path = strtok_r(NULL, " \n", &rest);
	const char *more = strtok_r(NULL, " \n", &rest);

	for (size_t i = 0; name && i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (strcmp(operations[i].name, name) != 0)
			continue;
		int result = operations[i].run(path ? path : "", more ? more : "");

		printf("%s %s: %s\n", name, path ? path : "",
		       result < 0 ? errno_name(-result) : "0");
		disk_inodes_shrink();
		bcache_drop();
		return;
	}
	fail("no operation '%s'", name ? name : "");
}

static char lines[LINES][512];

/* Those of one of the tasks. */
static void obey_lines(unsigned task)
{
	for (uint32_t i = 0; i < LINES; i++)
		if (*lines[i] && (*lines[i] == '|') == (task > 0))
			obey(lines[i] + 2 * task);
}

static void run_script(const char *path)
{
	FILE *script = fopen(path, "r");
	uint32_t count = 0, seed = 0;

	if (!script)
		fail("cannot open %s", path);
	while (count < LINES && fgets(lines[count], sizeof(lines[count]), script)) {
		if (seed)
			count++;
		else if (sscanf(lines[count], "tasks %u", &seed) != 1)
			obey(lines[count]);
	}
	fclose(script);
	memset(lines[count], 0, sizeof(lines[count]));
	if (seed)
		tasks_run(obey_lines, seed);
}

/* Each block of the cache can be had for something else. */
static void check_cache(void)
{
	static struct cached_block *held[BUFFERS];

	bcache_drop();
	for (uint32_t i = 0; i < bcache_size(); i++)
		if (bcache_get(&disk.device, i, BLOCK, BLOCK_OTHER, &held[i]))
			fail("%u blocks of the cache are still in use", bcache_size() - i);
	for (uint32_t i = 0; i < bcache_size(); i++)
		bcache_put(held[i]);
}

static void audit(size_t pages, size_t objects)
{
	struct inode *mounted;
	int error;

	op_close("", "");
	if (path_find(root(), "/mnt", PATH_FOLLOW, &mounted))
		fail("/mnt is not there");
	bool is_mounted = mounted->covers;

	inode_put(mounted);
	error = is_mounted ? vfs_unmount(root(), "/mnt") : 0;
	if (error)
		fail("the unmount says %s", errno_name(-error));
	bcache_drop();
	bcache_shrink(BUFFERS);
	if (floors_references() || objects_in_use != objects || pages_in_use != pages)
		fail("left: %u references, %zd objects, %zd pages", floors_references(),
		     objects_in_use - objects, pages_in_use - pages);
	check_cache();
}

/* Also says whether the superblock calls it sound. */
static void keep_image(const char *path)
{
	const struct ext_super_block *super = (const void *)(disk.bytes + 1024);
	FILE *file = fopen(path, "w");

	if (super->s_state & EXT_STATE_VALID && !(super->s_state & EXT_STATE_ERROR) &&
	    !(super->s_feature_incompat & EXT_INCOMPAT_RECOVER))
		printf("%s\n", super->s_last_orphan ? "orphans" : "sound");
	if (!file ||
	    fwrite(disk.bytes, SECTOR_SIZE, disk.device.sectors, file) != disk.device.sectors)
		fail("cannot write %s", path);
	fclose(file);
}

int main(int count, char **words)
{
	bool reads = count == 7 && strcmp(words[3], "read") == 0;
	bool writes = count == 7 && strcmp(words[3], "write") == 0;

	if (!reads && !writes && (count != 4 || strcmp(words[3], "count") != 0))
		fail("usage: faults IMAGE SCRIPT count | read|write NUMBER HOW PLACE");
	alarm(SECONDS);
	setvbuf(stdout, NULL, _IONBF, 0);
	disk_open(words[1], "hdc", DISK_PRIVATE);
	if (bcache_init(BUFFERS) != BUFFERS)
		fail("no memory for the cache");
	floors_begin();
	size_t pages = pages_in_use, objects = objects_in_use;

	if (reads)
		floors_fault((uint32_t)strtoul(words[4], NULL, 0),
			     (uint32_t)strtoul(words[5], NULL, 0));
	if (writes)
		floors_write_fault((uint32_t)strtoul(words[4], NULL, 0),
				   (enum write_fault)strtoul(words[5], NULL, 0));
	run_script(words[2]);
	floors_fault(0, 0);
	audit(pages, objects);
	if (reads || writes)
		keep_image(words[6]);
	else
		printf("reads %u\nwrites %u\n", floors_reads(), floors_writes());
	printf("clean\n");
	return 0;
}
