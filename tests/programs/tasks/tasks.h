/* Tasks that use the same files at the same time: what its files share. main.c says what it does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TASKS	4
#define CELL	512 /* bytes: each has one writer */
#define CELLS	64  /* of a file, at most */
#define SHARED	2   /* files that all tasks write to */
#define SLOTS	4   /* further files of each task, which come and go */
#define NAMES	6   /* of each task, for those */
#define FILES	(SHARED + TASKS + TASKS * SLOTS)
#define RECORDS 4096 /* of each task */

/* The files: those that all write to, one of each task, which keeps its name, and the others. */
#define OWN(task)	 (SHARED + (task))
#define SLOT(task, slot) (SHARED + TASKS + (task) * SLOTS + (slot))
#define NO_FILE		 255
#define A_DIRECTORY	 254

/* A call, as the host reads it (labs/storage/crash/tasks_model.py has the same numbers). */
enum kind {
	WRITE = 1,
	STORE,
	PUNCH,
	RESIZE,
	MSYNC,
	FSYNC,
	FDATASYNC,
	SYNC,
	SYNC_DIRECTORY,
	CREATE,
	LINK,
	RENAME,
	UNLINK,
	MKDIR,
	RMDIR,
	DROP,
	RANGE,
	READ,
	FILL,
	APPEND,
};

#define SYNCHRONOUS 1u /* a flag of WRITE: the file has O_SYNC or O_DSYNC */

struct record {
	uint64_t begun, returned; /* CLOCK_MONOTONIC, in ns */
	uint8_t task, kind, file, flags;
	int32_t result; /* or -errno */
	uint32_t first,
	    count;	/* cells; of RESIZE the new size in cells; of calls on names the names */
	uint32_t value; /* what the cells have now */
	uint32_t inode; /* of CREATE and MKDIR */
};

/* What a cell has: one of these two. They differ after a write that failed. */
struct cell {
	uint32_t value, other;
};

struct file {
	uint32_t size; /* in cells; of files that all write to it does not change */
	struct cell cells[CELLS];
};

struct task {
	uint32_t number, serial, records;
	uint64_t random;
	uint8_t names[NAMES]; /* the file of a name, A_DIRECTORY or NO_FILE */
	uint32_t appended;
	uint64_t done; /* calls that were made */
	uint32_t wrong;
};

/* In memory that all processes have together: each task writes to what is its own. */
struct together {
	struct task tasks[TASKS];
	struct file files[FILES];
	struct record records[TASKS][RECORDS];
};

extern struct together *together;
extern struct task *me;
extern unsigned task_count;
extern bool is_recorded, is_full;

/* An operation, and how often it is chosen, out of the sum of all. */
struct operation {
	void (*run)(void);
	unsigned weight;
};

extern const struct operation operations[];

uint32_t below(uint32_t limit); /* a random number; limit is at least 1 */
bool one_in(uint32_t times);

/* A call begins, and has returned. A result that no kernel may give is told. */
struct record *begin(enum kind kind, uint32_t file, uint32_t first, uint32_t count);
long end(struct record *record, long result);

/* Says what is wrong, and counts it. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Who writes to a cell of a file. */
unsigned owner_of(uint32_t file, uint32_t cell);

/* What the 64 words of a cell have, in memory. */
uint64_t word_of(uint32_t file, uint32_t cell, uint32_t value);

/* contents.c: calls on what files have. */
void do_write(void);
void do_store(void);
void do_punch(void);
void do_resize(void);
void do_read(void);
void do_range(void);
void do_append(void);
void check_file(uint32_t file, bool is_quiet);
void check_appended(void);

/* safety.c: calls that make something safe, or drop it. */
void do_fsync(void);
void do_sync(void);
void do_directory(void);
void do_drop(void);
void do_evicted(void);
void do_fill(void);

/* names.c: calls on names. */
void do_create(void);
void do_link(void);
void do_rename(void);
void do_unlink(void);
void do_mkdir(void);
void do_rmdir(void);

/* The path of a file that is there; NULL for one without a name. Valid until the next call. */
const char *path_of(uint32_t file);

/* A file that this task may write to. With `any`, perhaps another task's, for a sync. */
uint32_t some_file(bool any);
