/* fs/path.c, fs/vfs.c and the directories of ramfs: each operation must do what the host's own file
 * system does, to the error number. */
#include <stdio.h>
#include <string.h>

#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/errno.h"
#include "fs/vfs/mounting.h"
#include "fs/vfs/mounts.h"
#include "fs/vfs/names.h"
#include "tests/host/fs/oracle.h"
#include "tests/host/fs/shim.h"

#define PATH_SIZE 1200u

static struct inode *base;
static char base_path[300];

/* ---- ours ---- */

static int open_close(const char *path, uint32_t flags, const char *text)
{
	struct file *file;
	int error = vfs_open(base, path, flags, 0644, &file);

	if (error)
		return error;
	if (text) {
		struct buffer buffer = buffer_of_kernel((void *)text, strlen(text));

		error = file_write(file, &buffer);
	}
	file_release(file);
	return error < 0 ? error : 0;
}

static int look(const char *path, enum path_end end, struct outcome *outcome)
{
	struct inode *inode;
	int error = path_find(base, path, end, &inode);

	if (error)
		return error;
	bool is_directory = inode_is(inode, S_IFDIR);

	outcome->type = inode->mode >> 12;
	outcome->links = is_directory ? 0 : inode->links;
	outcome->size = is_directory ? 0 : inode->size;
	inode_put(inode);
	return 0;
}

static int read_link(const char *path, struct outcome *outcome)
{
	struct inode *inode;
	int error = path_find(base, path, PATH_STAY, &inode);

	if (error)
		return error;
	error = -EINVAL;
	if (inode_is(inode, S_IFLNK))
		error = inode->ops->read_link(inode, outcome->text, sizeof(outcome->text) - 1);
	inode_put(inode);
	return error < 0 ? error : 0;
}

static int make_link(const char *first, const char *second)
{
	struct inode *inode;
	int error = path_find(base, first, PATH_STAY, &inode);

	if (error)
		return error;
	error = vfs_link(base, second, inode);
	inode_put(inode);
	return error;
}

static int perform(enum operation operation, const char *first, const char *second,
		   struct outcome *outcome)
{
	switch (operation) {
	case MAKE:
		return open_close(first, O_CREAT | O_RDWR, NULL);
	case MAKE_NEW:
		return open_close(first, O_CREAT | O_EXCL | O_RDWR, NULL);
	case READ:
		return open_close(first, O_RDONLY, NULL);
	case WRITE:
		return open_close(first, O_WRONLY | O_TRUNC, first);
	case ENTER:
		return open_close(first, O_RDONLY | O_DIRECTORY, NULL);
	case NO_FOLLOW:
		return open_close(first, O_RDONLY | O_NOFOLLOW, NULL);
	case MAKE_DIRECTORY:
		return vfs_make(base, first, S_IFDIR | 0755, 0);
	case REMOVE_DIRECTORY:
		return vfs_remove(base, first, true);
	case REMOVE:
		return vfs_remove(base, first, false);
	case MAKE_LINK:
		return make_link(first, second);
	case MAKE_SYMLINK:
		return vfs_symlink(base, second, first);
	case RENAME:
		return vfs_rename(base, first, base, second, 0);
	case RENAME_NEW:
		return vfs_rename(base, first, base, second, RENAME_NOREPLACE);
	case EXCHANGE:
		return vfs_rename(base, first, base, second, RENAME_EXCHANGE);
	case STAT:
		return look(first, PATH_FOLLOW, outcome);
	case LSTAT:
		return look(first, PATH_STAY, outcome);
	default:
		return read_link(first, outcome);
	}
}

/* ---- random paths ---- */

static void append(char *path, const char *text)
{
	REQUIRE(strlen(path) + strlen(text) < PATH_SIZE, "a path that is too long");
	strcat(path, text);
}

static void append_name(struct random *random, char *path, unsigned *ups)
{
	static const char *const names[] = { "a", "b", "c", "d", "a", "b", "c", "." };
	char long_name[NAME_MAX + 2] = { 0 };

	memset(long_name, 'n', NAME_MAX + random_below(random, 2));
	if (*ups > 0 && random_below(random, 8) == 0) {
		append(path, "..");
		--*ups;
	} else if (random_below(random, 60) == 0) {
		append(path, long_name);
	} else {
		append(path, names[random_below(random, 8)]);
	}
}

/*
 * Up to four names, at most `ups` of them "..", now and then odd slashes or an absolute path. It
 * never begins at the root but through base_path, and links have no "..": so what the host does
 * stays below the oracle's directory.
 */
static void make_path(struct random *random, char *path, unsigned ups)
{
	unsigned count = random_below(random, 4) + (random_below(random, 40) != 0);

	path[0] = '\0';
	if (random_below(random, 8) == 0)
		append(path, base_path);
	for (unsigned i = 0; i < count; i++) {
		append(path, *path ? "/" : "");
		append(path, *path && random_below(random, 12) == 0 ? "/" : "");
		append_name(random, path, &ups);
	}
	append(path, *path && random_below(random, 10) == 0 ? "/" : "");
}

static bool is_of_a_path(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -ENAMETOOLONG;
}

/* Equal; or both paths are bad, and the two looked at them in another order. */
static bool agree(enum operation operation, const struct outcome *ours,
		  const struct outcome *theirs)
{
	bool has_two = operation >= MAKE_LINK && operation <= EXCHANGE;

	if (has_two && ours->error && theirs->error &&
	    (is_of_a_path(ours->error) || is_of_a_path(theirs->error)))
		return true;
	/* "nnn.../" to be made; and links that make the path too long before there are too many. */
	if (ours->error == -ENAMETOOLONG && (theirs->error == -EISDIR || theirs->error == -ELOOP))
		return true;
	return ours->error == theirs->error && ours->type == theirs->type &&
	       ours->links == theirs->links && ours->size == theirs->size &&
	       strcmp(ours->text, theirs->text) == 0;
}

static void compare(enum operation operation, const char *first, const char *second)
{
	struct outcome theirs = oracle_do(operation, first, second), ours;

	memset(&ours, 0, sizeof(ours));
	ours.error = perform(operation, first, second, &ours);
	if (agree(operation, &ours, &theirs))
		return;
	unit_fail(__FILE__, __LINE__,
		  "operation %d, \"%s\", \"%s\": %d, type %u, %u links, size %u, \"%s\"; the host "
		  "gives %d, type %u, %u links, size %u, \"%s\"",
		  operation, first, second, ours.error, ours.type, ours.links, (unsigned)ours.size,
		  ours.text, theirs.error, theirs.type, theirs.links, (unsigned)theirs.size,
		  theirs.text);
}

/* The same directories as the host's, from the root on. */
static void make_base(const char *path)
{
	char part[sizeof(base_path)];

	snprintf(base_path, sizeof(base_path), "%s", path);
	for (uint32_t i = 1; i <= strlen(path); i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		REQUIRE(vfs_make(path_root(), part, S_IFDIR | 0755, 0) == 0, "%s", part);
	}
	REQUIRE(path_find(path_root(), path, PATH_FOLLOW, &base) == 0, "%s", path);
}

static void test_random(struct random *random, uint32_t rounds)
{
	char first[PATH_SIZE], second[PATH_SIZE];

	make_base(oracle_begin());
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		enum operation operation = random_below(random, OPERATIONS);

		make_path(random, first, operation == MAKE_SYMLINK ? 0 : 4);
		make_path(random, second, 4);
		compare(operation, first, second);
	}
	oracle_end();
	inode_put(base);
	shim_remove_all(path_root());
	shim_require_no_leak("random operations", 0);
}

/* ---- what the random paths do not reach ---- */

static int stat_of(const char *path)
{
	struct outcome outcome;

	return look(path, PATH_FOLLOW, &outcome);
}

/* A chain of links is followed 40 times; a loop ends. */
static void test_links(struct random *random, uint32_t rounds)
{
	char name[16], target[16];

	(void)random, (void)rounds;
	base = path_root();
	REQUIRE(vfs_make(base, "0", S_IFREG | 0644, 0) == 0, "a file");
	for (unsigned i = 1; i <= 41; i++) {
		snprintf(name, sizeof(name), "%u", i);
		snprintf(target, sizeof(target), "%u", i - 1);
		REQUIRE(vfs_symlink(base, name, target) == 0, "link %u", i);
	}
	REQUIRE(stat_of("40") == 0, "40 links");
	REQUIRE(stat_of("41") == -ELOOP, "41 links");
	REQUIRE(vfs_symlink(base, "loop", "loop/x") == 0 && stat_of("loop") == -ELOOP, "a loop");
	shim_remove_all(base);
	shim_require_no_leak("links", 0);
}

/* A path of 4095 bytes is walked, and a link that makes it longer is refused. */
static void test_long(struct random *random, uint32_t rounds)
{
	static char path[PATH_MAX], target[PATH_MAX];

	(void)random, (void)rounds;
	base = path_root();
	memset(path, '/', PATH_MAX - 2);
	path[PATH_MAX - 2] = '.';
	REQUIRE(stat_of(path) == 0, "4095 bytes");
	memset(target, '/', PATH_MAX - 3);
	strcpy(target + PATH_MAX - 5, "/.");
	REQUIRE(vfs_symlink(base, "long", target) == 0, "a long link");
	REQUIRE(stat_of("long") == 0 && stat_of("long/") == 0, "a long link, followed");
	REQUIRE(stat_of("long/long/long") == -ENAMETOOLONG, "a long link that gets longer");
	shim_remove_all(base);
	shim_require_no_leak("long paths", 0);
}

/* A type that gives a root which is there already. */
static struct inode *given_root;

static int mount_given(const struct filesystem *type, struct inode *device,
		       const struct mount_options *options, struct inode **root)
{
	(void)type, (void)device, (void)options;
	*root = given_root;
	return 0;
}

static int mount_at(const char *path, struct inode *root)
{
	static struct filesystem given = { .type = "given", .mount = mount_given };

	if (!filesystem_find("given"))
		filesystem_register(&given);
	given_root = root;
	return vfs_mount(path_root(), "none", "given", path, &(struct mount_options){ 0 });
}

/* The path of a directory, across a mount. */
static void test_directory_path(struct random *random, uint32_t rounds)
{
	struct inode *root = path_root(), *inner, *mounted;
	char path[64];

	(void)random, (void)rounds;
	vfs_make(root, "/x", S_IFDIR | 0755, 0);
	vfs_make(root, "/x/point", S_IFDIR | 0755, 0);
	mounted = inode_hold(root); /* only to have something to compare with */
	shim_new_root();
	inner = path_root();
	path_set_root(root);
	vfs_make(inner, "deep", S_IFDIR | 0755, 0);
	vfs_make(root, "/x/file", S_IFREG | 0644, 0);
	REQUIRE(mount_at("/x/file", inner) == -ENOTDIR, "no directory");
	REQUIRE(vfs_remove(root, "/x/file", false) == 0, "where nothing was mounted");
	REQUIRE(mount_at("/x/point", inode_hold(inner)) == 0, "a mount");
	REQUIRE(path_find(root, "/x/point/deep/../deep", PATH_FOLLOW, &inner) == 0, "across");
	REQUIRE(vfs_directory_path(inner, path, sizeof(path)) == 14 &&
		    strcmp(path, "/x/point/deep") == 0,
		"the path is %s", path);
	REQUIRE(vfs_directory_path(inner, path, 13) == -ERANGE, "a buffer that is too small");
	REQUIRE(vfs_remove(root, "/x/point", true) == -EBUSY, "a mount point removed");
	REQUIRE(vfs_rename(root, "/x/point", root, "/y", 0) == -EBUSY, "a mount point renamed");
	REQUIRE(vfs_rename(root, "/x/point/deep", root, "/y", 0) == -EXDEV, "a name across");
	REQUIRE(vfs_remove(root, "/x/point/deep", true) == 0, "removed below");
	REQUIRE(vfs_directory_path(inner, path, sizeof(path)) == -ENOENT, "a removed directory");
	REQUIRE(vfs_directory_path(root, path, sizeof(path)) == 2 && strcmp(path, "/") == 0,
		"the root");
	inode_put(inner);
	inode_put(mounted);
}

/* Targets around the length from which on they need a page. */
static void make_targets(struct inode *directory)
{
	char name[8], target[80], found[80];
	struct inode *link;

	memset(target, 'x', sizeof(target));
	for (int length = 40; length < 60; length++) {
		snprintf(name, sizeof(name), "l%d", length);
		target[length] = '\0';
		REQUIRE(vfs_symlink(directory, name, target) == 0, "%s", name);
		REQUIRE(path_find(directory, name, PATH_NAME, &link) == 0, "%s", name);
		REQUIRE(link->ops->read_link(link, found, sizeof(found)) == length &&
			    memcmp(found, target, length) == 0,
			"the target of %s", name);
		inode_put(link);
		target[length] = 'x';
	}
}

/* A file system in memory is unmounted when nothing of it is in use, and nothing of it stays. A
 * file that has lost its name and is open is in use, as on Linux. */
static void test_unmount(struct random *random, uint32_t rounds)
{
	const struct mount_options none = { .text = "" };
	struct inode *root = path_root(), *tree;
	struct file *file;

	(void)random, (void)rounds;
	vfs_make(root, "/t", S_IFDIR | 0755, 0);
	REQUIRE(vfs_mount(root, "none", "tmpfs", "/t", &none) == 0, "mounted");
	REQUIRE(path_find(root, "/t", PATH_FOLLOW, &tree) == 0, "its root");
	vfs_make(tree, "a", S_IFDIR | 0755, 0);
	vfs_make(tree, "a/b", S_IFDIR | 0755, 0);
	make_targets(tree);
	REQUIRE(vfs_open(tree, "a/b/file", O_CREAT | O_RDWR, 0644, &file) == 0, "a file");
	REQUIRE(vfs_link(tree, "twice", file->inode) == 0, "its second name");
	inode_put(tree);
	REQUIRE(vfs_unmount(root, "/t") == -EBUSY, "open");
	REQUIRE(vfs_remove(root, "/t/twice", false) == 0, "a name goes");
	REQUIRE(vfs_remove(root, "/t/a/b/file", false) == 0, "and the other one");
	REQUIRE(vfs_unmount(root, "/t") == -EBUSY, "open without a name");
	file_release(file);
	REQUIRE(vfs_unmount(root, "/t") == 0, "unused");
	REQUIRE(vfs_remove(root, "/t", true) == 0, "the mount point");
	shim_require_no_leak("unmounting", 0);
}

const struct unit_test names_tests[] = {
	{ "names_random", test_random },
	{ "names_links", test_links },
	{ "names_long", test_long },
	{ "names_unmount", test_unmount },
	{ "names_directory_path", test_directory_path },
	{ 0 },
};
