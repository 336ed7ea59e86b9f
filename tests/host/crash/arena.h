/*
 * Memory that a process shares with those it forked from: allocated, and given back all at once.
 *
 * A session of the file system runs in a process of its own, so that each one begins with a library
 * that was never used, and a crash in it is only a finding. What it did (requests, and the tree
 * after each operation) is for its parent.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;

/* Makes one that can have `size` bytes; pages that are not touched cost nothing. */
struct arena *arena_make(size_t size);

/* Zeroed, aligned to 16 bytes. Ends the program when the arena is full. */
void *arena_take(struct arena *arena, size_t size);

/* The same, with undefined contents: its pages are not touched. */
void *arena_take_raw(struct arena *arena, size_t size);

/* Everything that was taken is given back. */
void arena_reset(struct arena *arena);
