/* A root for each test of the file layer, and what must be gone after it. */
#include "tests/host/fs/shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/console/keyboard.h"
#include "drivers/console/serial.h"
#include "fs/files.h"
#include "fs/pipe.h"
#include "fs/ram/ramfs.h"
#include "fs/vfs/names.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/startup.h"
#include "mm/pool.h"

const struct unit_test *const shim_suites[] = {
	names_tests, data_tests, pipe_tests, archive_tests, line_tests, NULL,
};

/* ---- the console's devices, which no test here listens to ---- */

void (*keyboard_listener)(uint8_t byte);

void serial_listen(void (*receive)(uint8_t byte), bool (*has_room)(void))
{
	(void)receive, (void)has_room;
}

void serial_resume(void)
{
}

void console_write(const char *text, uint32_t length)
{
	(void)text, (void)length;
}

uint32_t copy_from_user(void *to, uint32_t from, uint32_t length)
{
	(void)to, (void)from;
	return length;
}

/* ---- roots ---- */

static struct files *files;
static uint32_t roots;

void shim_new_root(void)
{
	struct inode *root = ramfs_create_root();

	roots++;
	path_set_root(root);
	if (files)
		files_destroy(files);
	files = files_create();
}

/* Names that were found in a directory: one at a time is enough. */
struct found {
	char name[NAME_MAX + 1];
	bool is_directory;
};

static bool note(void *context, const struct directory_entry *entry)
{
	struct found *found = context;

	if (name_is(&entry->name, ".") || name_is(&entry->name, ".."))
		return true;
	memcpy(found->name, entry->name.text, entry->name.length);
	found->name[entry->name.length] = '\0';
	found->is_directory = entry->mode >> 12 == S_IFDIR >> 12;
	return false;
}

void shim_remove_all(struct inode *directory)
{
	for (;;) {
		struct found found = { "", false };
		struct inode *inner;
		uint64_t position = 0;

		directory->ops->iterate(directory, &position, note, &found);
		if (!found.name[0])
			return;
		if (found.is_directory) {
			REQUIRE(path_find(directory, found.name, PATH_NAME, &inner) == 0,
				"%s is listed, but not found", found.name);
			shim_remove_all(inner);
			inode_put(inner);
		}
		int error = vfs_remove(directory, found.name, found.is_directory);

		REQUIRE(error == 0, "%s cannot be removed: %d", found.name, error);
	}
}

uint32_t shim_ramfs_pages(void)
{
	return ramfs_counts.pages;
}

void shim_require_no_leak(const char *after, uint32_t pages)
{
	REQUIRE(ramfs_inodes.used == roots, "after %s: %u inodes, %u roots", after,
		ramfs_inodes.used, roots);
	REQUIRE(ramfs_entries.used == 0, "after %s: %u directory entries", after,
		ramfs_entries.used);
	REQUIRE(ramfs_counts.pages == 0, "after %s: %u pages of ramfs", after, ramfs_counts.pages);
	REQUIRE(shim_pages_out <= pages + 1, "after %s: %u pages", after, shim_pages_out);
	REQUIRE(file_pool.used == 0, "after %s: %u open files", after, file_pool.used);
	REQUIRE(pipe_pool.used == 0, "after %s: %u pipes", after, pipe_pool.used);
}

extern startup_function *const __start_startups[], *const __stop_startups[];

static void run_startups(void)
{
	for (startup_function *const *each = __start_startups; each < __stop_startups; each++)
		(*each)();
}

void shim_begin(void)
{
	shim_new_root();
	run_startups();
}
