/* Runs a workload, and judges what many power cuts leave of it. */
#pragma once

#include <stdint.h>

#include "fs/ext/ext.h"
#include "tests/host/crash/session.h"

struct settings {
	struct ext_options options;
	uint64_t seed;
	uint32_t prefixes, subsets, torn, second, cuts, fsck, limit;
	const char *only;	/* one state, with all that is said of it; NULL: all */
	const char *log;	/* requests of another machine; NULL: the workloads run here */
	const char *save;	/* a file for the record of the workload; NULL: none */
	struct script *scripts; /* of second sessions */
	uint32_t script_count;
};

/* Once: takes memory. */
void explore_begin(void);

/* Runs one workload, on the disk as it is, and prints what was found. The disk is as before. */
void explore(const struct settings *settings, const struct script *script);
