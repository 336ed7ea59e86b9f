/* Contents of files in ramfs against plain memory, with faults and without memory; and the table of
 * descriptors against an array. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/files.h"
#include "fs/pipe.h"
#include "fs/vfs/path.h"
#include "fs/ram/ramfs.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/errno.h"
#include "fs/vfs/names.h"
#include "kernel/task/task.h"
#include "mm/page_alloc.h"
#include "tests/host/fs/shim.h"

#define MODEL_SIZE (12u << 20) /* a file reaches into the second of the tables */
#define SMALL_SIZE (2u << 20)  /* where files have but one table */
#define CHUNK	   20000u

/* What the file must hold. */
struct model {
	uint8_t *bytes;
	uint64_t size;
	uint32_t limit;
};

static struct file *open_new(const char *path)
{
	struct file *file;

	REQUIRE(vfs_open(path_root(), path, O_CREAT | O_RDWR, 0644, &file) == 0, "%s", path);
	return file;
}

/* Mostly near the beginning or near the end, where the pointers change their kind. */
static uint32_t make_offset(struct random *random, const struct model *model)
{
	uint64_t near_end = model->size > CHUNK ? model->size - random_below(random, CHUNK) : 0;

	switch (random_below(random, 4)) {
	case 0:
		return random_below(random, 16 * PAGE_SIZE);
	case 1:
		return near_end;
	default:
		return random_below(random, model->limit - CHUNK);
	}
}

static void write_some(struct random *random, struct file *file, struct model *model)
{
	static uint8_t chunk[CHUNK];
	uint32_t offset = make_offset(random, model), length = random_below(random, CHUNK);
	struct buffer buffer = buffer_of_kernel(chunk, length);

	for (uint32_t i = 0; i < length; i++)
		chunk[i] = random_next(random);
	buffer.is_user = random_below(random, 4) == 0;
	shim_bytes_until_fault = random_below(random, CHUNK);
	int moved = file_write_at(file, &buffer, offset);

	if (moved == -EFAULT || moved == -ENOSPC)
		return;
	REQUIRE(moved >= 0 && (uint32_t)moved <= length, "a write of %u gives %d", length, moved);
	REQUIRE((uint32_t)moved == length || buffer.is_user || shim_pages_left == 0,
		"%d of %u bytes were written", moved, length);
	memcpy(model->bytes + offset, chunk, moved);
	if (moved > 0 && offset + (uint32_t)moved > model->size)
		model->size = offset + moved;
}

static void read_some(struct random *random, struct file *file, const struct model *model)
{
	static uint8_t chunk[CHUNK];
	uint32_t offset = make_offset(random, model), length = random_below(random, CHUNK);
	struct buffer buffer = buffer_of_kernel(chunk, length);
	uint64_t there = offset < model->size ? model->size - offset : 0;
	uint32_t expected = length < there ? length : there;

	REQUIRE(file_read_at(file, &buffer, offset) == (int32_t)expected, "%u bytes at %u", length,
		offset);
	REQUIRE(memcmp(chunk, model->bytes + offset, expected) == 0, "what is read at %u", offset);
}

static void truncate_some(struct random *random, struct file *file, struct model *model)
{
	uint32_t size = make_offset(random, model);

	REQUIRE(vfs_truncate(file->inode, size) == 0, "to %u", size);
	if (size < model->size)
		memset(model->bytes + size, 0, model->size - size);
	model->size = size;
	REQUIRE(size > 0 || file->inode->blocks == 0, "an empty file has blocks");
}

static void test_contents(struct random *random, uint32_t rounds)
{
	struct model model = { calloc(1, MODEL_SIZE), 0, MODEL_SIZE };
	struct file *file = open_new("file");

	if (vfs_truncate(file->inode, MODEL_SIZE) == -EFBIG)
		model.limit = SMALL_SIZE;
	vfs_truncate(file->inode, 0);

	for (unit_round = 0; unit_round < rounds; unit_round++) {
		if (random_below(random, 100) == 0) /* memory gets short, or comes back */
			shim_pages_left = random_below(random, 2) ? 3 : 100000;
		switch (random_below(random, 12)) {
		case 0:
			truncate_some(random, file, &model);
			break;
		case 1 ... 5:
			write_some(random, file, &model);
			break;
		default:
			read_some(random, file, &model);
		}
		REQUIRE(file->inode->size == model.size, "the size is %u, not %u",
			(unsigned)file->inode->size, (unsigned)model.size);
	}
	REQUIRE(vfs_remove(path_root(), "file", false) == 0, "the name goes, the file stays");
	read_some(random, file, &model);
	file_release(file);
	free(model.bytes);
	shim_require_no_leak("a file's contents", 0);
}

/* The largest offsets; and a hole of 64 MB costs no memory. */
static void test_sparse(struct random *random, uint32_t rounds)
{
	struct file *file = open_new("sparse");
	uint64_t far = 64u << 20, end = 1ull << 30;
	struct buffer buffer = buffer_of_kernel("x", 1);

	(void)random, (void)rounds;
	REQUIRE(file_write_at(file, &buffer, far) == 1, "a byte at 64 MB");
	REQUIRE(shim_ramfs_pages() == 3, "%u pages for a byte", shim_ramfs_pages());
	REQUIRE(file->inode->blocks == 8, "%u blocks", (unsigned)file->inode->blocks);
	buffer = buffer_of_kernel("x", 1);
	REQUIRE(file_write_at(file, &buffer, end - 1) == 1, "a byte at the end of what 9 bits a "
							    "level reach");
	REQUIRE(vfs_truncate(file->inode, far) == 0 && file->inode->blocks == 0, "cut to a hole");
	REQUIRE(vfs_truncate(file->inode, 0) == 0, "cut to nothing");
	REQUIRE(shim_ramfs_pages() == 0, "%u pages for nothing", shim_ramfs_pages());
	REQUIRE(vfs_truncate(file->inode, UINT64_MAX) == -EFBIG, "too far");
	file_release(file);
	shim_remove_all(path_root());
	shim_require_no_leak("sparse files", 0);
}

/* ---- descriptors ---- */

#define DESCRIPTORS 200u

/* Which of the files each descriptor has (0: none), and whether exec closes it. */
struct table_model {
	uint8_t file[DESCRIPTORS];
	bool closes[DESCRIPTORS];
};

static void check_table(const struct files *files, const struct table_model *model,
			struct file *const *opened)
{
	for (uint32_t i = 0; i < DESCRIPTORS; i++) {
		struct file *expected = model->file[i] ? opened[model->file[i] - 1] : NULL;

		REQUIRE(files_get(files, i) == expected, "descriptor %u", i);
		REQUIRE(!expected || files_closes_on_exec(files, i) == model->closes[i],
			"descriptor %u closes on exec", i);
	}
}

static void add(struct random *random, struct files *files, struct table_model *model,
		struct file *const *opened)
{
	uint32_t which = random_below(random, 3), lowest = random_below(random, 60), at = lowest;
	bool closes = random_below(random, 2);

	while (at < DESCRIPTORS && model->file[at])
		at++;
	if (at == DESCRIPTORS)
		return;
	opened[which]->references++;
	REQUIRE(files_add(files, opened[which], lowest, closes) == (int32_t)at, "the lowest");
	model->file[at] = which + 1;
	model->closes[at] = closes;
}

static void replace_or_close(struct random *random, struct files *files, struct table_model *model,
			     struct file *const *opened)
{
	uint32_t at = random_below(random, DESCRIPTORS), which = random_below(random, 3);

	if (random_below(random, 3) == 0) {
		REQUIRE(files_close(files, at) == (model->file[at] ? 0 : -EBADF), "close %u", at);
		model->file[at] = 0;
		return;
	}
	opened[which]->references++;
	REQUIRE(files_replace(files, at, opened[which], false) == (int32_t)at, "replace %u", at);
	model->file[at] = which + 1;
	model->closes[at] = false;
}

/* fork's copy has the same; exec closes what it should. */
static void copy(struct random *random, struct files **files, struct table_model *model,
		 struct file *const *opened)
{
	struct files *copied = files_copy(*files);

	REQUIRE(copied, "a copy");
	check_table(copied, model, opened);
	if (random_below(random, 2)) {
		files_destroy(*files);
		*files = copied;
	} else {
		files_destroy(copied);
	}
	if (random_below(random, 2))
		return;
	files_close_on_exec(*files);
	for (uint32_t i = 0; i < DESCRIPTORS; i++)
		model->file[i] = model->closes[i] ? 0 : model->file[i];
}

static void test_descriptors(struct random *random, uint32_t rounds)
{
	struct file *opened[3] = { open_new("x"), open_new("y"), open_new("z") };
	struct files *files = files_create();
	struct table_model model = { 0 };

	for (unit_round = 0; unit_round < rounds; unit_round++) {
		uint32_t choice = random_below(random, 40);

		if (choice == 0)
			copy(random, &files, &model, opened);
		else if (choice < 16)
			replace_or_close(random, files, &model, opened);
		else
			add(random, files, &model, opened);
		check_table(files, &model, opened);
	}
	REQUIRE(files_replace(files, FILES_MAX, opened[0], false) == -EBADF, "too high");
	files_destroy(files);
	for (uint32_t i = 0; i < 3; i++) {
		REQUIRE(opened[i]->references == 1, "%u references", opened[i]->references);
		file_release(opened[i]);
	}
	shim_remove_all(path_root());
	shim_require_no_leak("descriptors", 0);
}

/* The program that a task runs: nobody writes to it, and nobody runs what is written to. */
static void test_program(struct random *random, uint32_t rounds)
{
	struct files *files = files_create(), *copy;
	struct file *program, *other;

	(void)random, (void)rounds;
	REQUIRE(vfs_open(path_root(), "p", O_WRONLY | O_CREAT, 0755, &other) == 0, "p");
	REQUIRE(vfs_open_program(path_root(), "/p", &program) == -ETXTBSY, "it is written to");
	file_release(other);
	REQUIRE(vfs_open_program(path_root(), "/p", &program) == 0,
		"it is not written to any more");
	files_set(&files->program, program);
	file_release(program);
	copy = files_copy(files);
	files_destroy(files);
	REQUIRE(vfs_open(path_root(), "p", O_RDWR, 0, &other) == -ETXTBSY, "it is run");
	REQUIRE(vfs_open(path_root(), "p", O_TRUNC, 0, &other) == -ETXTBSY, "it is run");
	REQUIRE(vfs_truncate(program->inode, 0) == -ETXTBSY, "it is run");
	files_destroy(copy);
	REQUIRE(vfs_open(path_root(), "p", O_RDWR | O_TRUNC, 0, &other) == 0, "it is not run");
	file_release(other);
	shim_remove_all(path_root());
	shim_require_no_leak("programs", 0);
}

static void require_path(const struct file *file, const char *expected)
{
	char path[100];
	int length = vfs_file_path(file, path, sizeof(path));

	REQUIRE(length == (int32_t)strlen(expected) + 1 && strcmp(path, expected) == 0,
		"%d %s, not %s", length, path, expected);
}

/* The path of an open file goes with its names. */
static void test_file_path(struct random *random, uint32_t rounds)
{
	struct file *file, *directory, *reader, *writer;
	char path[100], gone[100];

	(void)random, (void)rounds;
	vfs_make(path_root(), "dir", S_IFDIR | 0755, 0);
	vfs_open(path_root(), "dir/f", O_RDWR | O_CREAT, 0600, &file);
	vfs_open(path_root(), "dir", O_RDONLY, 0, &directory);
	require_path(file, "/dir/f");
	require_path(directory, "/dir");
	vfs_rename(path_root(), "dir", path_root(), "new", 0);
	vfs_rename(path_root(), "new/f", path_root(), "new/g", 0);
	require_path(file, "/new/g");
	REQUIRE(vfs_file_path(file, path, 64) == 7, "room");
	vfs_remove(path_root(), "new/g", false);
	vfs_remove(path_root(), "new", true);
	snprintf(gone, sizeof(gone), "/#%u (deleted)", file->inode->number);
	require_path(file, gone);
	REQUIRE(pipe_create(0, &reader, &writer) == 0, "a pipe");
	snprintf(gone, sizeof(gone), "pipe:[%u]", reader->inode->number);
	require_path(reader, gone);
	file_release(reader);
	file_release(writer);
	file_release(directory);
	file_release(file);
	shim_remove_all(path_root());
	shim_require_no_leak("paths", 0);
}

const struct unit_test data_tests[] = {
	{ "data_contents", test_contents },	  { "data_sparse", test_sparse },
	{ "data_descriptors", test_descriptors }, { "data_program", test_program },
	{ "data_file_path", test_file_path },	  { 0 },
};
