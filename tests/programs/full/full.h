/* Ways to fill a disk: main.c has the order of things, ways.c what else wants blocks. */
#pragma once

#include <stdint.h>

#define PAGE	    4096
#define PATH_LENGTH 400
#define FILES	    4
#define LEFT	    60	 /* blocks: up to twice as many are free when it begins */
#define MOST	    3000 /* of anything */

/* What the log has. */
struct accepted {
	int32_t file, length;
	uint64_t offset;
};

struct full {
	const char *folder;
	uint32_t seed;
	int log, files[FILES];
};
struct full *full_state(void);

struct way {
	const char *name;
	uint64_t (*place)(uint32_t number); /* where a file's page goes */
	int (*want)(uint32_t number);	    /* wants blocks; false: there are none */
	void (*begin)(void);		    /* before; may be NULL */
	int beside;			    /* in a task of its own, while pages are written */
};
const struct way *full_way(const char *name);

uint32_t full_random(uint32_t below);
void full_path(char *path, const char *name, int number);
void full_contents(uint8_t *page, int file, uint64_t offset);

/* Writes a page of a file; false if not all of it was accepted. */
int full_write(int file, uint64_t offset);
void full_accept(int file, uint64_t offset, int length);
