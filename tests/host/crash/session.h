/*
 * A session: a mount, operations, and all that a crash laboratory wants to know of them: the
 * requests in their order, and the tree after each operation.
 *
 *	record	w w f w w w f w f ...	writes and flushes
 *	ends	    2       6	  9	their number after the mount, operation 1, ...
 *	trees	    0	    1	  2	what is there then
 *
 * A power cut after request 4 is in operation 1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fs/ext/ext.h"
#include "tests/host/crash/arena.h"
#include "tests/host/crash/model.h"
#include "tests/host/ext/shim.h"

#define PROBLEM_SIZE 1024

struct script {
	const char *name;
	const char **lines;
	uint32_t count;
	uint32_t quiet; /* this many of them come before the first power cut */
};

struct session {
	struct arena *arena;
	const struct script *script;
	struct disk_record record;
	uint64_t log_first, log_end; /* sectors of the journal; none: equal */
	uint32_t block_size;	     /* bytes */
	uint32_t done;		     /* operations that ended */
	uint64_t *ends;		     /* requests there were after operation 0 (the mount), 1, ... */
	bool *durable;		     /* operation 1, ... promised that all before it is safe */
	struct model **trees;	     /* after operation 0, 1, ... */
	char problem[PROBLEM_SIZE];  /* "" or what went wrong without any power cut */
};

/* In an arena that is empty. */
struct session *session_make(struct arena *arena, const struct script *script);

/* Mounts, and reads the tree. Returns false with a problem. */
bool session_begin(struct session *session, const struct ext_options *options);

/* The operations. Returns false with a problem: a result or a tree is not what it should be. */
bool session_operate(struct session *session, const struct ext_options *options);

/*
 * Instead of both: the requests are those of a log, that another machine made of the same
 * operations on the same disk. Each line begins with the number of requests there were when it
 * ended, "17 sync". The tree before them is read from the disk.
 */
bool session_load(struct session *session, const struct ext_options *options, const char *log);

/* Unmounts. Returns false with a problem. */
bool session_end(struct session *session);

/* Reads the tree of the mount. Returns NULL with a message in `problem`. */
struct model *tree_read(struct arena *arena, char *problem);
