/* Calls on what files have. */
#define _GNU_SOURCE
#include "tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t buffer[CELLS * CELL / 8] __attribute__((aligned(4096)));

static void fill(uint64_t *words, const struct record *record)
{
	for (uint32_t i = 0; i < record->count; i++) {
		uint64_t word = word_of(record->file, record->first + i, record->value);

		for (uint32_t j = 0; j < CELL / 8; j++)
			*words++ = word;
	}
}

/* The first `sure` cells of a record have their new value; the others perhaps. */
static void note(const struct record *record, uint32_t sure, uint32_t value)
{
	struct file *file = &together->files[record->file];

	for (uint32_t i = 0; i < record->count; i++) {
		struct cell *cell = &file->cells[record->first + i];

		if (i < sure)
			*cell = (struct cell){ value, value };
		else
			cell->other = value;
	}
}

/* A run of cells that this task may write to: of a shared file, a pair. */
static void some_cells(uint32_t file, uint32_t *first, uint32_t *count)
{
	if (file < SHARED) {
		uint32_t pairs = CELLS / 2 / task_count;

		*first = 2 * (me->number + task_count * below(pairs)) + below(2);
		*count = *first % 2 == 0 ? 1 + below(2) : 1;
		return;
	}
	uint32_t most = file < SHARED + TASKS ? CELLS / 2 : CELLS / 4;
	uint32_t size = together->files[file].size;

	*first = one_in(2) && size < most ? size : below(most);
	*count = 1 + below(most - *first < 8 ? most - *first : 8);
}

void do_write(void)
{
	static const int flags[] = { 0, 0, 0, 0, O_SYNC, O_DSYNC };
	uint32_t file = some_file(false), first, count;
	int how = flags[below(6)];
	bool is_direct = file == 1 && one_in(3);

	some_cells(file, &first, &count);
	int opened = open(path_of(file), O_RDWR | how | (is_direct ? O_DIRECT : 0));

	if (opened < 0)
		return wrong("open of file %u: %s", file, strerror(errno));
	struct record *record = begin(WRITE, file, first, count);

	record->flags = how ? SYNCHRONOUS : 0;
	fill(buffer, record);
	long done = end(record, pwrite(opened, buffer, count * CELL, (off_t)first * CELL));

	close(opened);
	if (done < 0 && errno != ENOSPC)
		wrong("write to file %u: %s", file, strerror(errno));
	uint32_t sure = done > 0 ? (uint32_t)done / CELL : 0;
	struct file *known = &together->files[file];

	note(record, sure, record->value);
	if (sure > 0 && first + sure > known->size)
		known->size = first + sure;
}

/* ---- mapped files ---- */

static sigjmp_buf no_room;

static void on_no_room(int number)
{
	(void)number;
	siglongjmp(no_room, 1);
}

/* Stores into the cells of a record: false, if the disk has no room for them. */
static bool store(uint8_t *bytes, const struct record *record)
{
	signal(SIGBUS, on_no_room);
	if (sigsetjmp(no_room, 1))
		return false;
	fill((uint64_t *)(bytes + record->first * CELL), record);
	return true;
}

void do_store(void)
{
	uint32_t file = some_file(false), first, count, size = together->files[file].size;

	if (file == 1) /* that has direct writes, and no system promises both together */
		file = 0, size = CELLS;
	some_cells(file, &first, &count);
	if (size == 0)
		return;
	if (first >= size)
		first = size - 1;
	if (first + count > size)
		count = size - first;
	int opened = open(path_of(file), O_RDWR);
	uint8_t *bytes = mmap(NULL, size * CELL, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);

	if (bytes == MAP_FAILED)
		return wrong("mmap of file %u: %s", file, strerror(errno));
	struct record *record = begin(STORE, file, first, count);
	bool is_done = store(bytes, record);

	if (!is_done)
		errno = ENOSPC;
	end(record, is_done ? 0 : -1);
	note(record, is_done ? count : 0, record->value);
	if (one_in(2)) {
		record = begin(MSYNC, file, 0, size);
		if (end(record, msync(bytes, size * CELL, MS_SYNC)) < 0)
			wrong("msync of file %u: %s", file, strerror(errno));
	}
	munmap(bytes, size * CELL);
	close(opened);
}

/* ---- holes and sizes ---- */

void do_punch(void)
{
	uint32_t file = some_file(false), first, count;

	some_cells(file, &first, &count);
	int opened = open(path_of(file), O_RDWR);
	struct record *record = begin(PUNCH, file, first, count);
	int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	long done = end(record, fallocate(opened, how, (off_t)first * CELL, count * CELL));

	close(opened);
	if (done == 0)
		note(record, count, 0);
	else if (errno == ENOSPC)
		note(record, 0, 0);
	else if (errno != EOPNOTSUPP)
		wrong("a hole in file %u: %s", file, strerror(errno));
}

void do_resize(void)
{
	uint32_t file = some_file(false), size;

	if (file < SHARED)
		file = OWN(me->number);
	size = one_in(4) ? 0 : below(CELLS / 4);
	int opened = open(path_of(file), O_RDWR);
	struct record *record = begin(RESIZE, file, size, CELLS - size);
	long done = end(record, ftruncate(opened, (off_t)size * CELL));

	close(opened);
	if (done < 0 && errno != ENOSPC)
		return wrong("ftruncate of file %u: %s", file, strerror(errno));
	if (done == 0)
		together->files[file].size = size, note(record, CELLS - size, 0);
}

void do_range(void)
{
	uint32_t file = some_file(false);
	int opened = open(path_of(file), O_RDWR);
	struct record *record = begin(RANGE, file, 0, 0);
	unsigned how = SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

	if (end(record, sync_file_range(opened, 0, 0, how)) < 0)
		wrong("sync_file_range of file %u: %s", file, strerror(errno));
	close(opened);
}

/* ---- what is in them ---- */

/* What others write may change while it is read: each word must be one of its writer's. */
static bool is_of_writer(uint32_t file, uint32_t cell, uint64_t word)
{
	uint64_t first = word_of(file, cell, owner_of(file, cell) << 24 | 1) - 1;

	return word == 0 || (word & ~0xffffffull) == first;
}

static void check_cell(uint32_t file, uint32_t index, const uint64_t *words)
{
	const struct cell *cell = &together->files[file].cells[index];
	bool is_mine = owner_of(file, index) == me->number;

	for (uint32_t i = 0; i < CELL / 8; i++) {
		bool is_right = is_mine ? words[i] == word_of(file, index, cell->value) ||
					      words[i] == word_of(file, index, cell->other)
					: is_of_writer(file, index, words[i]);

		if (!is_right)
			return wrong("file %u, cell %u, word %u: %llx, expected %llx", file, index,
				     i, (unsigned long long)words[i],
				     (unsigned long long)word_of(file, index, cell->value));
	}
}

/* Compares what a file has. is_quiet: it may be gone, or be another one. */
void check_file(uint32_t file, bool is_quiet)
{
	const char *path = path_of(file);
	bool is_mapped = one_in(3), is_mine = file < SHARED || owner_of(file, 0) == me->number;

	if (path == NULL)
		return;
	int opened = open(path, O_RDONLY | (file == 1 && one_in(3) ? O_DIRECT : 0));

	if (opened < 0)
		return is_quiet ? (void)0 : wrong("open of file %u: %s", file, strerror(errno));
	uint32_t size = is_mine ? together->files[file].size : CELLS;
	struct stat status;

	if (is_mine && (fstat(opened, &status) != 0 || status.st_size != (off_t)size * CELL))
		wrong("file %u has %lld bytes, expected %u", file, (long long)status.st_size,
		      size * CELL);
	void *bytes = buffer;
	ssize_t length = 0;

	if (is_mapped && is_mine && file != 1 && size > 0) {
		bytes = mmap(NULL, size * CELL, PROT_READ, MAP_SHARED, opened, 0);
		length = (ssize_t)(bytes == MAP_FAILED ? 0 : size * CELL);
	} else {
		length = pread(opened, buffer, sizeof(buffer), 0);
	}
	if (is_mine && length != (ssize_t)(size * CELL))
		wrong("file %u gives %zd bytes, expected %u", file, length, size * CELL);
	for (uint32_t i = 0; (ssize_t)((i + 1) * CELL) <= length; i++)
		check_cell(file, i, (uint64_t *)bytes + i * (CELL / 8));
	if (bytes != buffer && length > 0)
		munmap(bytes, size * CELL);
	close(opened);
}

void do_read(void)
{
	uint32_t file = some_file(true);
	struct record *record = begin(READ, file, 0, 0);

	check_file(file, file >= SHARED && owner_of(file, 0) != me->number);
	end(record, 0);
}

/* ---- a log ---- */

/* All tasks append cells to one file. They have no place of their own: file and cell are 0. */
void do_append(void)
{
	if (is_recorded)
		return;
	int opened = open("/mnt/log", O_WRONLY | O_APPEND);
	struct record *record = begin(APPEND, 0, 0, 1);

	fill(buffer, record);
	long done = end(record, write(opened, buffer, CELL));

	close(opened);
	if (done == CELL)
		me->appended++;
	else if (done >= 0 || errno != ENOSPC)
		wrong("append: %ld: %s", done, strerror(errno));
}

/* Each cell is of one task, whose cells are in their order, and all are there. Then it is emptied.
 */
void check_appended(void)
{
	uint32_t counts[TASKS] = { 0 }, latest[TASKS] = { 0 };
	int opened = open("/mnt/log", O_RDWR);

	while (read(opened, buffer, CELL) == CELL) {
		uint32_t value = (uint32_t)buffer[0], task = value >> 24;

		if (task >= TASKS || value <= latest[task] ||
		    memcmp(buffer, buffer + 1, CELL - 8) != 0)
			return wrong("the log has %llx", (unsigned long long)buffer[0]);
		latest[task] = value;
		counts[task]++;
	}
	for (unsigned i = 0; i < task_count; i++)
		if (counts[i] != together->tasks[i].appended)
			wrong("the log has %u cells of task %u, expected %u", counts[i], i,
			      together->tasks[i].appended);
	close(opened);
}
