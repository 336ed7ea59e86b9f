/* The exerciser of file systems: what its files share. main.c says what it does. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PROCESSES 3
#define MOST	  (300 * 1024) /* bytes: where writes begin at most */
#define BUFFER	  (64 * 1024)
#define PAGE	  4096

/* In memory that all processes have together: who has the turn is the only one who uses it. */
struct shared {
	uint64_t random;
	uint32_t operation; /* the number of the one that runs */
	uint32_t hash;	    /* of the lines since the last one that was printed */
	uint32_t used;	    /* of `line` */
	char line[8192];
};

extern struct shared *shared;

/* An operation: what it does is written to the line by say. */
struct operation {
	void (*run)(void);
	unsigned weight; /* how often, out of the sum of all */
};

extern const struct operation file_operations[], name_operations[];

/* The same numbers in the same order on every kernel. `limit` is at least 1. */
uint32_t below(uint32_t limit);
bool one_in(uint32_t times);

/* Adds to the line of this operation. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What a call returned: a number, or the error's name. */
void say_result(long result);

/* A hash of bytes: four at a time, so that it does not cost more than the call. */
uint32_t hash_of(const void *bytes, uint32_t length);

/* A path, which it says, too: up to three names out of few, so that it is often there. Valid until
 * the call after the next one. */
const char *any_path(void);
const char *any_directory(void); /* or so one hopes */

/* What stat gave, but for what kernels may choose: numbers of inodes, blocks, the size of a
 * directory. */
struct stat;
void say_status(long result, const struct stat *status);

/* Of files.c: an open file of this process, or -1, which it says, too; a place and a length; bytes
 * for an operation. */
extern uint8_t buffer[BUFFER + PAGE];
int any_file(void);
uint32_t any_offset(void);
uint32_t any_length(void);
void fill(uint8_t *bytes, uint32_t length);

/* Operations of maps.c. */
void map_file(void);
void read_map(void);
void write_map(void);
void save_map(void);
void unmap(void);
